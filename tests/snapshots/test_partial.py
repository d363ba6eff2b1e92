"""A kind of which only some objects could be read stays unknown in every file."""

from __future__ import annotations

from pathlib import Path

from kubectl_gpuadmit.adapters.snapshot import encoded, load_snapshot
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.snapshots import trim
from kubectl_gpuadmit.snapshots.recording import Recorder
from tests.snapshots.clusters import NOW, cluster, example


def narrowed() -> Cluster:
    """The example for somebody who may read the quotas of one namespace alone."""
    objects = [
        obj
        for kind in example().kinds()
        for obj in example().every(kind)
        if kind != "ResourceQuota" or obj.namespace == "team-a"
    ]
    return Cluster.of(objects, example().known_kinds(), partial=["ResourceQuota"])


def test_a_snapshot_does_not_claim_it(tmp_path: Path) -> None:
    whole = narrowed()
    file = tmp_path / "s.json"
    kinds = trim.known_kinds(whole)
    file.write_bytes(encoded(trim.items(whole), as_of=NOW, kinds=kinds))
    read = load_snapshot(str(file)).cluster
    assert not read.knows("ResourceQuota")
    assert [quota.name for quota in read.quotas("team-a")] == ["gpus"]
    assert read.known_kinds() == whole.known_kinds()


def test_neither_does_a_capsule_or_what_records_for_it() -> None:
    whole = narrowed()
    recorder = Recorder.over(whole)
    restored = cluster(trim.items(whole), trim.known_kinds(whole))
    for one in (recorder, recorder.fork(), restored):
        assert one.known_kinds() == whole.known_kinds()
        assert [quota.name for quota in one.quotas("team-a")] == ["gpus"]
