"""All forms of a snapshot, what each says of the kinds it exported, and what is refused how."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
import zstandard
from msgspec import Struct

from kubectl_gpuadmit.adapters.snapshot import Snapshot, encoded, load_snapshot, save_snapshot
from kubectl_gpuadmit.errors import BadManifest, GpuAdmitError

AT = dt.datetime(2026, 11, 29, 14, 0, tzinfo=dt.UTC)
NODE: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "team"},
    "spec": {"nodeName": "n0"},
}
WIDGET: dict[str, Any] = {
    "apiVersion": "example.io/v1",
    "kind": "Widget",
    "metadata": {"name": "w", "namespace": "team"},
}
LIST: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": [NODE, POD, WIDGET]}
EMPTY: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": []}
HEAD: dict[str, Any] = {"apiVersion": "gpu-admit.io/v1", "kind": "Snapshot"}

ALL = {"Node": ["/n0"], "Pod": ["team/p"], "Widget": ["team/w"]}


class Said(Struct):
    """An error as a person meets it."""

    type: str
    ref: str
    message: str
    file: str
    field: str = ""
    hint: str = ""


def refusal(path: Path) -> Said:
    with pytest.raises(GpuAdmitError) as caught:
        load_snapshot(str(path))
    e = caught.value
    return Said(type(e).__name__, e.ref, e.message, e.file, e.field, e.hint)


def held(snapshot: Snapshot) -> dict[str, list[str]]:
    """Kind -> its objects as namespace/name."""
    cluster = snapshot.cluster
    return {k: [f"{o.namespace}/{o.name}" for o in cluster.every(k)] for k in cluster.kinds()}


def wrote(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(json.dumps(content) if ".json" in path.name else yaml.safe_dump(content))
    return path


@pytest.mark.parametrize("name", ["all.json", "all.yaml", "all"])
def test_one_file_of_kubectl_get_in_any_format(tmp_path: Path, name: str) -> None:
    assert held(load_snapshot(str(wrote(tmp_path / name, LIST)))) == ALL


def test_documents_one_after_another_as_kubectl_and_jq_write_them(tmp_path: Path) -> None:
    in_yaml = wrote(tmp_path / "a.yaml", yaml.safe_dump_all([NODE, POD, WIDGET]).encode())
    in_row = wrote(tmp_path / "b.json", "\n".join(map(json.dumps, (NODE, POD, WIDGET))).encode())
    flow = wrote(tmp_path / "c.yaml", b"{apiVersion: v1, kind: Node, metadata: {name: n0}}\n")
    assert held(load_snapshot(str(in_yaml))) == ALL
    assert held(load_snapshot(str(in_row))) == ALL
    assert held(load_snapshot(str(flow))) == {"Node": ["/n0"]}


def test_a_folder_is_read_with_all_below_it_and_logs_and_hidden_files_passed_over(
    tmp_path: Path,
) -> None:
    wrote(tmp_path / "nodes.json", {**LIST, "items": [NODE]})
    wrote(tmp_path / "team" / "pods.yaml", {**LIST, "items": [POD]})
    wrote(tmp_path / "team" / "p" / "logs.txt", b"no yaml: [")
    wrote(tmp_path / ".git" / "broken.yaml", b"a: [")
    widgets = json.dumps({**LIST, "items": [WIDGET]}).encode()
    wrote(tmp_path / "w.json.zst", zstandard.compress(widgets))
    wrote(tmp_path / "again.json.gz", gzip.compress(widgets))
    assert held(load_snapshot(str(tmp_path))) == ALL


@pytest.mark.parametrize("name", ["q.json", "q.yaml"])
def test_an_empty_typed_list_says_that_its_kind_was_exported(tmp_path: Path, name: str) -> None:
    wrote(tmp_path / name, {"apiVersion": "v1", "kind": "ResourceQuotaList", "items": []})
    cluster = load_snapshot(str(tmp_path)).cluster
    assert (cluster.knows("ResourceQuota"), cluster.knows("Pod")) == (True, False)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("resourcequotas.yaml", "ResourceQuota"),
        ("quotas.json", "ResourceQuota"),
        ("priorityclasses.yaml", "PriorityClass"),
        ("pvcs.yaml", "PersistentVolumeClaim"),
        ("PDBs-all.json", "PodDisruptionBudget"),
        ("csinodes.yaml", "CSINode"),
        ("resourceslices.yaml", "ResourceSlice"),
        ("deviceclasses.yaml", "DeviceClass"),
    ],
)
def test_an_empty_list_says_what_was_exported_by_its_files_name(
    tmp_path: Path, name: str, kind: str
) -> None:
    wrote(tmp_path / name, EMPTY)
    wrote(tmp_path / "nodes.json", {**LIST, "items": [NODE]})
    cluster = load_snapshot(str(tmp_path)).cluster
    known = {k: cluster.knows(k) for k in (kind, "Node", "Event")}
    assert known == {kind: True, "Node": True, "Event": False}


def test_a_list_that_is_not_empty_says_nothing_by_its_name(tmp_path: Path) -> None:
    wrote(tmp_path / "resourcequotas.json", {**LIST, "items": [NODE]})
    assert not load_snapshot(str(tmp_path)).cluster.knows("ResourceQuota")


@pytest.mark.parametrize("name", ["snapshot.yaml", "snapshot.json"])
def test_an_index_beside_the_files_names_time_and_kinds(tmp_path: Path, name: str) -> None:
    wrote(tmp_path / "nodes.json", {**LIST, "items": [NODE]})
    head = {**HEAD, "asOf": "2026-11-29T15:00:00+01:00", "kinds": ["Pod", "Widget"]}
    wrote(tmp_path / name, head)
    snapshot = load_snapshot(str(tmp_path))
    known = [k for k in ("Node", "Pod", "Widget", "Event") if snapshot.cluster.knows(k)]
    assert (snapshot.as_of, known, held(snapshot)) == (
        AT,
        ["Node", "Pod", "Widget"],
        {"Node": ["/n0"]},
    )


def test_without_an_index_only_the_newest_files_age_is_known(tmp_path: Path) -> None:
    for name, age in (("a.json", 100), ("b.json", 50)):
        os.utime(wrote(tmp_path / name, LIST), (AT.timestamp() - age,) * 2)
    snapshot = load_snapshot(str(tmp_path))
    assert (snapshot.name, snapshot.as_of, snapshot.modified) == (
        str(tmp_path),
        None,
        AT - dt.timedelta(seconds=50),
    )


@pytest.mark.parametrize("name", ["s.json", "s.json.zst"])
def test_what_is_saved_is_what_is_loaded(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    save_snapshot(path, [NODE, POD, WIDGET], as_of=AT)
    snapshot = load_snapshot(str(path))
    assert (held(snapshot), snapshot.as_of) == (ALL, AT)
    kinds = ("Node", "Pod", "Widget", "ResourceQuota", "List", "Snapshot")
    assert [k for k in kinds if snapshot.cluster.knows(k)] == ["Node", "Pod", "Widget"]
    widget = snapshot.cluster.get("Widget", "team", "w")
    assert getattr(widget, "document", None) == WIDGET


def test_kinds_that_are_named_are_known_and_others_were_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(encoded([NODE, POD], as_of=AT, kinds=["Node", "ResourceQuota"]))
    snapshot = load_snapshot(str(path))
    assert held(snapshot) == {"Node": ["/n0"], "Pod": ["team/p"]}
    known = [k for k in ("Node", "Pod", "ResourceQuota") if snapshot.cluster.knows(k)]
    assert known == ["Node", "ResourceQuota"]


@pytest.mark.parametrize("name", ["s.json", "s.json.zst"])
def test_the_same_objects_give_the_same_bytes(tmp_path: Path, name: str) -> None:
    first, second = tmp_path / f"1{name}", tmp_path / f"2{name}"
    save_snapshot(first, iter([NODE, POD]), as_of=AT, kinds=["B", "A"])
    there = AT.astimezone(dt.timezone(dt.timedelta(hours=3)))
    save_snapshot(second, [NODE, POD], as_of=there, kinds={"A", "B"})
    assert first.read_bytes() == second.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([first.name, second.name])


def test_an_object_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        save_snapshot(tmp_path / "s.json", [NODE, {"kind": object()}], as_of=AT)
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_of_no_object_is_refused_and_says_what_to_export(tmp_path: Path) -> None:
    hint = "kubectl get nodes,pods,resourcequotas -A -o json > "
    nothing, bare = tmp_path / "nothing", wrote(tmp_path / "list.json", EMPTY)
    nothing.mkdir()
    assert refusal(nothing) == Said(
        "BadSnapshot",
        "empty-snapshot",
        "holds no .json or .yaml file",
        str(nothing),
        hint=f"{hint}DIR/cluster.json",
    )
    assert refusal(bare) == Said(
        "BadSnapshot", "empty-snapshot", "holds no Kubernetes object", str(bare), hint=f"{hint}FILE"
    )


def test_a_path_that_is_not_there_or_not_to_be_read(tmp_path: Path) -> None:
    missing, long = tmp_path / "no", tmp_path / ("n" * 300)
    assert [refusal(missing), refusal(long)] == [
        Said(
            "BadSnapshot",
            "no-such-path",
            "no such file or directory",
            str(missing),
            hint="check the path of the snapshot",
        ),
        Said("BadSnapshot", "unreadable", "cannot be read: File name too long", str(long)),
    ]


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (
            {**HEAD, "apiVersion": "gpu-admit.io/v9"},
            Said(
                "BadSnapshot",
                "snapshot-version",
                "is of version 'gpu-admit.io/v9'; this program reads gpu-admit.io/v1",
                "",
                "apiVersion",
                "upgrade kubectl gpu-admit, or export the snapshot again",
            ),
        ),
        (
            {**HEAD, "asOf": "yesterday"},
            Said(
                "BadSnapshot",
                "bad-snapshot-index",
                "'yesterday' is no RFC 3339 time",
                "",
                "asOf",
                "for example 2026-11-29T14:00:00Z",
            ),
        ),
        (
            {**HEAD, "kinds": [7]},
            Said(
                "BadSnapshot",
                "bad-snapshot-index",
                "Expected `str`, got `int` - at `$.kinds[0]`",
                "",
            ),
        ),
    ],
)
def test_an_index_that_is_wrong(tmp_path: Path, head: dict[str, Any], said: Said) -> None:
    said.file = str(wrote(tmp_path / "s.json", {**head, "items": [NODE]}))
    assert refusal(Path(said.file)) == said


def test_a_file_that_is_no_manifest_is_told_with_its_line(tmp_path: Path) -> None:
    path = wrote(tmp_path / "pods.yaml", b"apiVersion: v1\nkind: Pod\nmetadata: [\n")
    with pytest.raises(GpuAdmitError) as caught:
        load_snapshot(str(tmp_path))
    error = caught.value
    assert (type(error).__name__, error.file, error.line) == ("BadManifest", str(path), 4)


def packed(*, sized: bool) -> bytes:
    raw = json.dumps({**LIST, "items": [NODE] * 50_000}).encode()
    if sized:
        return zstandard.compress(raw)
    stream = zstandard.ZstdCompressor().compressobj()
    return stream.compress(raw) + stream.flush()


@pytest.mark.parametrize("sized", [True, False])
def test_a_zstd_file_is_read_whole_in_however_many_frames(tmp_path: Path, sized: bool) -> None:
    raw = json.dumps(LIST).encode()
    frames = zstandard.compress(raw[:40]) + zstandard.compress(raw[40:])
    assert held(load_snapshot(str(wrote(tmp_path / "f.json.zst", frames)))) == ALL
    many = wrote(tmp_path / "m.json.zst", packed(sized=sized))
    assert held(load_snapshot(str(many))) == {"Node": ["/n0"]}


@pytest.mark.parametrize("sized", [True, False])
def test_a_cut_or_damaged_zstd_file_is_never_read_in_part(tmp_path: Path, sized: bool) -> None:
    whole = packed(sized=sized)
    cut = wrote(tmp_path / "cut.json.zst", whole[:-5])
    damaged = wrote(tmp_path / "damaged.json.zst", whole[:20] + b"\xff" * 9 + whole[29:])
    trailed = wrote(tmp_path / "trailed.json.zst", whole + b"and more")
    within = "is no whole zstd file: it ends within a frame"
    assert refusal(cut) == Said("BadSnapshot", "unreadable", within, str(cut), hint="was it cut?")
    for path in (damaged, trailed):
        said = refusal(path)
        assert (said.ref, said.file, said.hint) == ("unreadable", str(path), "was it cut?")
        assert said.message.startswith("is no whole zstd file: ")


def test_what_describe_prints_is_refused_with_the_command_that_would_do(tmp_path: Path) -> None:
    file = tmp_path / "node.txt"
    file.write_text("Name:               gpu-0\nRoles:              <none>\n", "utf-8")
    with pytest.raises(BadManifest) as raised:
        load_snapshot(str(file))
    assert raised.value.hint == (
        "a snapshot is API objects: kubectl get nodes,pods -A -o json > FILE"
    )
