"""What a kubelet's gate reads survives a snapshot, and pseudonyms change no answer of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.decode import decode_object
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.snapshots import trim
from kubectl_gpuadmit.snapshots.redact import Redactor
from tests.placement.build import KNOWN, node
from tests.placement.test_alignment import CONFIGZ, NRT, STATIC, agent_map, manifest, running
from tests.runs import home, only, report

Items = list[dict[str, Any]]


def read(documents: Items) -> list[KubeObject]:
    return [decode_object(Document("c.json", n, 1, one)) for n, one in enumerate(documents)]


SECRET = {**CONFIGZ, "topologyManagerPolicy": "single-numa-node", "clusterDomain": "acme.corp"}
HELD = {
    **STATIC,
    "assignments": [{"namespace": "default", "pod": "llama", "container": "c", "cpus": "1-31"}],
}
SOURCES: dict[str, list[KubeObject]] = {
    "agent map": [agent_map("inf-0", HELD, held={"llama": [0, 4]})],
    "kubelet /configz": [agent_map("inf-0", held={"llama": [0, 4]}), *read([SECRET])],
    "NodeResourceTopology": read([NRT]),
}


def findings(items: Items) -> list[str]:
    made = only(report(manifest(4, cpu="16"), Cluster.of(read(items), KNOWN), Policy.default()))
    return [f.detail for f in made.findings if f.reason.startswith("placement/numa")]


@pytest.mark.parametrize("source", SOURCES)
def test_a_snapshot_keeps_what_the_gate_reads_and_names_become_pseudonyms(source: str) -> None:
    objects = [*home(), node("inf-0"), running("llama", 2), *SOURCES[source]]
    items = trim.items(Cluster.of(objects, KNOWN))
    before = findings(items)
    assert len(before) == 1
    assert "acme" not in msgspec.json.encode(items).decode()
    redactor = Redactor.of(items)
    hidden = [redactor.object(item) for item in items]
    text = msgspec.json.encode(hidden).decode()
    assert "llama" not in text
    assert '"inf-0"' not in text
    assert [redactor.name(detail) for detail in before] == [
        redactor.name(detail) for detail in findings(hidden)
    ]
