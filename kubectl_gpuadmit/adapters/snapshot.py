"""Reads and writes cluster snapshots: what ``kubectl get`` wrote, dump trees, and our own form.

A snapshot is a file or a directory of API objects. Three things say that a kind was exported even
though there is no object of it: a typed list (``kind: ResourceQuotaList``), the name of a file with
an empty list (``resourcequotas.yaml``), and the ``kinds`` of a ``Snapshot`` index. Every other kind
is *unknown*, never empty.

Of a file that holds a ``Snapshot`` with items, its ``kinds`` are the kinds that were read to the
end: items of others are some of them, and the kind stays unknown.

Our own form, ``.json`` or ``.json.zst``, is ``{"apiVersion": "gpu-admit.io/v1", "kind":
"Snapshot", "asOf": RFC 3339, "kinds": […], "items": […]}``. The same without ``items``, beside
other files in a directory, is an index.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import gc
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.adapters.files import MAX_BYTES, SUFFIXES, read_file
from kubectl_gpuadmit.adapters.writing import write_whole
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.errors import BadManifest, BadSnapshot
from kubectl_gpuadmit.kube.decode import decode_bulk, kind_name
from kubectl_gpuadmit.kube.gpu_topology_object import unpacked
from kubectl_gpuadmit.kube.kinds import KNOWN_KINDS
from kubectl_gpuadmit.kube.objects import Generic, KubeObject

_PIECE = 1 << 16
"""Bytes that are unpacked at a time."""

API_VERSION = "gpu-admit.io/v1"

_PLURALS = {kind.lower() + ("es" if kind.endswith("s") else "s"): kind for kind in KNOWN_KINDS} | {
    "quotas": "ResourceQuota",
    "pvcs": "PersistentVolumeClaim",
    "pvs": "PersistentVolume",
    "pdbs": "PodDisruptionBudget",
    "validatingadmissionpolicies": "ValidatingAdmissionPolicy",
    "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
    "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
}
"""File stem -> kind, for lists that came back empty and so name no kind."""


class Snapshot(Struct, frozen=True):
    """A cluster as it was: the index over its objects, and when that was."""

    cluster: Cluster
    name: str
    as_of: dt.datetime | None
    """None where the snapshot does not say: then only the files' own age is known."""
    modified: dt.datetime
    """When the newest of its files was written."""


class _Index(Struct):
    """The head of a Snapshot document."""

    apiVersion: str = ""
    kind: str = ""
    asOf: str | None = None
    context: str | None = None
    kinds: tuple[str, ...] = ()


def load_snapshot(given: str) -> Snapshot:
    """Loads a snapshot file or directory. Raises BadSnapshot or BadManifest with the place.

    A directory's files that are no YAML or JSON by name (logs of ``cluster-info dump``) are passed
    over.
    """
    path = Path(given)
    objects: list[KubeObject] = []
    known: set[str] = set()
    partial: set[str] = set()
    as_of: dt.datetime | None = None
    modified = 0.0
    with _no_garbage_collection():
        for file in _files(path):
            modified = max(modified, file.stat().st_mtime)
            found, kinds = _load_file(file)
            for obj in found:
                if isinstance(obj, Generic) and obj.realKind == "Snapshot":
                    index = _index(obj.document, file)
                    as_of = _instant(index.asOf, file) if index.asOf else as_of
                    if index.kinds:  # of the rest of this very file it knows best
                        partial |= kinds - {"Snapshot", *index.kinds}
                        kinds = set(index.kinds)
                else:
                    objects.append(obj)
            known |= kinds - {"Snapshot"}
        if not objects and not known:
            raise BadSnapshot(
                "empty-snapshot",
                "holds no Kubernetes object",
                file=given,
                hint="kubectl get nodes,pods,resourcequotas -A -o json > FILE",
            )
        cluster = Cluster.of(objects, known, partial=partial - known)
    newest = dt.datetime.fromtimestamp(modified, tz=dt.UTC)
    return Snapshot(cluster=cluster, name=given, as_of=as_of, modified=newest)


def save_snapshot(
    path: Path,
    items: Iterable[dict[str, Any]],
    *,
    as_of: dt.datetime,
    kinds: Iterable[str] = (),
    replace: bool = False,
) -> None:
    """Writes our own form, whole or not at all; ``.zst`` in the name compresses.

    ``kinds`` were read besides those of the items. Bytes depend on the arguments alone. Raises as
    ``writing.write_whole``.
    """
    listed = list(items)
    raw = encoded(listed, as_of=as_of, kinds={*kinds, *_kinds_of(listed)})
    write_whole(path, raw, replace=replace)


def _kinds_of(items: Iterable[dict[str, Any]]) -> set[str]:
    named = {kind_name(str(i.get("apiVersion") or ""), str(i.get("kind", ""))) for i in items}
    return named - {""}


def encoded(items: Iterable[dict[str, Any]], *, as_of: dt.datetime, kinds: Iterable[str]) -> bytes:
    """A snapshot in our own form: a line for each object, so that text tools show what differs.

    ``kinds`` are those that were read to the end; of others there may be single items.
    """
    head: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "Snapshot",
        "asOf": as_of.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "kinds": sorted(set(kinds)),
    }
    made = bytearray(msgspec.json.encode(head)[:-1] + b',"items":[')
    between = b"\n"
    for item in items:  # one by one: they take ten times the room of their text
        made += between
        made += msgspec.json.encode(item, order="sorted")
        between = b",\n"
    made += b"\n]}\n" if between != b"\n" else b"\n\n]}\n"
    return bytes(made)


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Half a million fresh objects make the cyclic collector run over and over for nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def _files(path: Path) -> list[Path]:
    try:
        path.stat()
    except FileNotFoundError:
        raise BadSnapshot(
            "no-such-path",
            "no such file or directory",
            file=str(path),
            hint="check the path of the snapshot",
        ) from None
    except OSError as problem:
        said = f"cannot be read: {problem.strerror or type(problem).__name__}"
        raise BadSnapshot("unreadable", said, file=str(path)) from None
    if not path.is_dir():
        return [path]
    wanted = (*SUFFIXES, ".json.zst")
    files = sorted(
        entry
        for entry in path.rglob("*")
        if entry.name.endswith(wanted)
        and entry.is_file()
        and not any(part.startswith(".") for part in entry.relative_to(path).parts)
    )
    if not files:
        raise BadSnapshot(
            "empty-snapshot",
            "holds no .json or .yaml file",
            file=str(path),
            hint="kubectl get nodes,pods,resourcequotas -A -o json > DIR/cluster.json",
        )
    return files


def _load_file(file: Path) -> tuple[list[KubeObject], set[str]]:
    raw = read_packed(file)
    name = str(file)
    try:
        objects, known = decode_bulk(raw, name)
    except BadManifest as problem:
        if b"apiVersion" not in raw:  # what describe, --show-labels or a table prints
            problem.hint = "a snapshot is API objects: kubectl get nodes,pods -A -o json > FILE"
        raise
    if "ConfigMap" in known:  # an agent may have put its map into one
        objects = [unpacked(obj) for obj in objects]
        known = known | {obj.kind for obj in objects if obj.kind == "GpuTopology"}
    if not objects:
        known = known | _kind_of_empty_file(file)
    return objects, known


def read_packed(file: Path) -> bytes:
    """The content of a file that may be compressed by gzip or zstd."""
    raw = read_file(file)
    return _unzstd(raw, str(file)) if raw[:4] == b"\x28\xb5\x2f\xfd" else raw


def _kind_of_empty_file(file: Path) -> set[str]:
    stem = re.split(r"[._-]", file.name, maxsplit=1)[0].lower()
    return {_PLURALS[stem]} if stem in _PLURALS else set()


def _unzstd(raw: bytes, name: str) -> bytes:
    """Frame after frame, in pieces: a small file may unpack to more than there is memory for."""
    import zstandard

    def broken(why: object) -> BadSnapshot:
        said = f"is no whole zstd file: {why}"
        return BadSnapshot("unreadable", said, file=name, hint="was it cut?")

    content = bytearray()
    while raw:
        frame = zstandard.ZstdDecompressor().decompressobj()
        for at in range(0, len(raw), _PIECE):
            try:
                content += frame.decompress(raw[at : at + _PIECE])
            except zstandard.ZstdError as problem:
                raise broken(problem) from None
            if len(content) > MAX_BYTES:
                said = f"unpacks to more than {MAX_BYTES:,} bytes"
                raise BadSnapshot("too-large", said, file=name)
            if frame.eof:
                break
        if not frame.eof:
            raise broken("it ends within a frame")
        raw = frame.unused_data + raw[at + _PIECE :]
    return bytes(content)


def _index(document: dict[str, Any], file: Path) -> _Index:
    try:
        index = msgspec.convert(document, _Index)
    except msgspec.ValidationError as problem:
        raise BadSnapshot("bad-snapshot-index", str(problem), file=str(file)) from None
    if index.apiVersion != API_VERSION:
        raise BadSnapshot(
            "snapshot-version",
            f"is of version {index.apiVersion!r}; this program reads {API_VERSION}",
            file=str(file),
            field="apiVersion",
            hint="upgrade kubectl gpu-admit, or export the snapshot again",
        )
    return index


def _instant(text: str, file: Path) -> dt.datetime:
    try:
        at = dt.datetime.fromisoformat(text)
    except ValueError:
        raise BadSnapshot(
            "bad-snapshot-index",
            f"{text!r} is no RFC 3339 time",
            file=str(file),
            field="asOf",
            hint="for example 2026-11-29T14:00:00Z",
        ) from None
    return at if at.tzinfo else at.replace(tzinfo=dt.UTC)
