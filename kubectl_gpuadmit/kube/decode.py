"""Plain data or JSON -> the structs of ``objects``; a wrong type is one error with its place.

Which struct: that of the kind if the object's API group is the kind's own (``Event`` of v1, not of
events.k8s.io; ``Node`` of v1, not of longhorn.io). Everything else is ``Generic``, under its kind,
or under ``Kind.group`` where the bare name is one that a struct has: so ``Cluster.every("Node")``
holds Kubernetes' nodes alone. The version within a group does not matter where the fields that are
read are the same in all of them; of ``PINNED`` kinds, an object of another version is Generic under
the bare kind, so that who reads it can refuse that one object.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar, Union

import msgspec
from msgspec import Raw, Struct

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube import dra, gpu_topology, listed
from kubectl_gpuadmit.kube.conform import conform
from kubectl_gpuadmit.kube.kinds import GROUPS, KNOWN_KINDS
from kubectl_gpuadmit.kube.manifests import Document, documents_of, is_list, read_roots
from kubectl_gpuadmit.kube.objects import Generic, KubeObject, ObjectMeta
from kubectl_gpuadmit.kube.pointers import dotted, token

T = TypeVar("T")

PINNED: dict[str, str] = {"GpuTopology": gpu_topology.VERSION}
"""Kind -> the one version that its struct fits."""


def group_of(api_version: str) -> str:
    """``apps/v1`` -> ``apps``; '' for the core group."""
    return api_version.rpartition("/")[0]


def kind_name(api_version: str, kind: str) -> str:
    """The name under which objects of this kind are indexed: ``Node``, ``Node.longhorn.io``."""
    group = group_of(api_version)
    return (
        f"{kind}.{group or 'core'}"
        if kind in GROUPS and api_version and group != GROUPS[kind]
        else kind
    )


def _fits(kind: str, api_version: str) -> bool:
    """Whether the struct of ``kind`` is for objects of this apiVersion; none given fits."""
    if not api_version:
        return True
    group, _, version = api_version.rpartition("/")
    return group == GROUPS[kind] and PINNED.get(kind, version) == version


def convert(data: Any, type: type[T], *, document: Document | None = None, pointer: str = "") -> T:
    """Plain data as ``type``. ``pointer`` says where in the document the data lies.

    Raises BadManifest (``wrong-type``) with the field as Kubernetes writes it, the line and column
    of that field if the document is given, what was expected and what was found.
    """
    try:
        return msgspec.convert(data, type)
    except (msgspec.ValidationError, RecursionError):
        pass
    fitted, misfit = conform(data, type)
    path: tuple[str | int, ...] = ()
    field, message, hint = "", "", ""
    if misfit is None:
        try:
            return msgspec.convert(fitted, type)
        except (msgspec.ValidationError, RecursionError) as problem:
            message = str(problem)
    else:
        path, field, message, hint = misfit.path, misfit.field, misfit.message, misfit.hint
    line, column, file = 0, 0, ""
    if document is not None:
        steps = "".join("/" + token(str(step)) for step in path)
        file, (line, column) = document.file, document.position(pointer + steps)
    raise BadManifest(
        "wrong-type",
        message,
        file=file,
        line=line,
        column=column,
        field=".".join(filter(None, (dotted(pointer), field))),
        hint=hint,
    )


def decode_object(document: Document) -> KubeObject:
    """The struct of the document's kind, or Generic. Raises BadManifest."""
    return _from_data(document.data, document)


def _from_data(data: dict[str, Any], document: Document | None) -> KubeObject:
    api_version, kind = _identity(data, document)
    struct = KNOWN_KINDS.get(kind)
    if struct is not None and _fits(kind, api_version):
        return convert(data, struct, document=document)
    metadata = data.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        metadata = {k: v for k, v in metadata.items() if k != "managedFields"}
        data = {**data, "metadata": metadata}
    return Generic(
        apiVersion=api_version,
        metadata=convert(metadata or {}, ObjectMeta, document=document, pointer="/metadata"),
        realKind=kind_name(api_version, kind),
        document=data,
    )


def _identity(data: dict[str, Any], document: Document | None) -> tuple[str, str]:
    """apiVersion and kind. Raises BadManifest where there is no usable kind."""
    api_version, kind = data.get("apiVersion"), data.get("kind")
    if isinstance(kind, str) and kind and isinstance(api_version, str | None):
        return api_version or "", kind
    field = "kind" if not isinstance(kind, str) or not kind else "apiVersion"
    line, column = document.position(f"/{field}") if document is not None else (0, 0)
    missing = data.get(field) in (None, "")
    other = next((str(k) for k in data if str(k).lower() == field.lower() and k != field), "")
    raise BadManifest(
        "no-kind",
        f"{field} is missing, so this is no Kubernetes object"
        if missing
        else f"{field} is not text, so this is no Kubernetes object",
        file=document.file if document is not None else "",
        line=line,
        column=column,
        field=field,
        hint=f"write {field} instead of {other}" if other else f"add {field}: at the top",
    )


# -- whole files at once ---------------------------------------------------------------------------


class _Head(Struct):
    """What a top-level JSON object says of itself."""

    apiVersion: str | None = None
    kind: str | None = None
    items: list[Raw] | None = None


class _Item(Struct):
    apiVersion: str | None = None
    kind: str | None = None


@cache
def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_, float_hook=_number)


def _number(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**63 else number


@cache
def _list_decoder(item: Any) -> msgspec.json.Decoder[Any]:
    fields: list[Any] = [("items", list[item])]
    fields += [("apiVersion", str | None, None), ("kind", str | None, None)]
    return msgspec.json.Decoder(msgspec.defstruct("_ListOf", fields))


def decode_bulk(raw: bytes, file: str) -> tuple[list[KubeObject], set[str]]:
    """Every object of a file, and the kinds that it exported, also those without an object.

    The fast way in for big JSON Lists: one pass over the bytes where all kinds have a struct, item
    by item where others are among them. YAML, JSON in a row and whatever the fast way stumbles over
    go through ``manifests``. A holder of objects that is no List itself (our Snapshot) comes first,
    as a Generic without its items. Raises BadManifest at the first thing that cannot be read.
    """
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if raw[:256].lstrip()[:1] == b"{":
        try:
            return _one_json(raw)
        except (msgspec.MsgspecError, RecursionError, BadManifest, UnicodeError):
            pass  # the slow way says where, or reads it
    return _slowly(raw, file)


_IDENTITY = re.compile(rb'\s*\{\s*"apiVersion":\s*"([^"\\]*)",\s*"kind":\s*"([^"\\]*)"')
_MEMBER = re.compile(rb'"apiVersion":\s*"[^"\\]*",\s*"kind":\s*"([^"\\]*)",\s*"metadata"')
_LIST_KIND = re.compile(rb'"kind":\s*"([A-Z][A-Za-z]*)List"')
_SAMPLES = 64


def _mixed(raw: bytes) -> bool:
    """Whether a look here and there meets an object without a struct: then one pass cannot do.

    A guess that costs or saves time, and decides nothing.
    """
    step = max(len(raw) // _SAMPLES, 1)
    looks = [_MEMBER.search(raw, at, at + 20_000) for at in range(0, len(raw), step)]
    looks += _MEMBER.finditer(raw, max(len(raw) - 200_000, 0))
    return any(f and f[1].decode("utf-8", "replace") not in KNOWN_KINDS for f in looks)


def _one_json(raw: bytes) -> tuple[list[KubeObject], set[str]]:
    """A file of one JSON object. Raises msgspec's errors or BadManifest without a place."""
    found = _one_pass(raw)
    if found is not None:
        return found
    head = _decoder(_Head).decode(raw)
    kind = head.kind or ""
    if head.items is None or not (kind.endswith("List") or _are_objects(head.items)):
        if kind.endswith("List"):
            return _with_holder(raw, head, [])
        (single,) = _packed([_from_raw(Raw(raw))])
        return [single], {single.kind}
    return _with_holder(raw, head, _items(head))


def _one_pass(raw: bytes) -> tuple[list[KubeObject], set[str]] | None:
    """A List of objects that all have a struct, or None where that does not work out."""
    peek = _LIST_KIND.search(raw, 0, 500) or _LIST_KIND.search(raw, max(len(raw) - 500, 0))
    named = peek[1].decode() if peek else ""
    if (named and named not in KNOWN_KINDS) or _mixed(raw):
        return None
    try:
        head = _list_decoder(_wire(named) if named else _any_wire()).decode(raw)
        head.items = _packed(head.items)
    except msgspec.ValidationError:
        return None
    version = head.apiVersion or ""
    if not head.items or not head.kind or not _all_fit(head.items):
        return None
    if named:
        if head.kind != f"{named}List" or group_of(version) != GROUPS[named]:
            return None
        if named in PINNED and not _fits(named, version):
            return None
        for obj in head.items:
            if not obj.apiVersion:
                msgspec.structs.force_setattr(obj, "apiVersion", version)
    return _with_holder(raw, head, list(head.items))


def _wire(kind: str) -> type[KubeObject]:
    return dra.UnreadSlice if kind == "ResourceSlice" else KNOWN_KINDS[kind]


@cache
def _any_wire() -> Any:
    return Union[tuple(map(_wire, KNOWN_KINDS))]  # noqa: UP007


def _packed(objects: list[KubeObject]) -> list[KubeObject]:
    """With what slices hold, which many of them share. Raises BadManifest without a place."""
    unread = [obj for obj in objects if isinstance(obj, dra.UnreadSlice)]
    if not unread:
        return objects
    packer = listed.Packer(_decoder(tuple[dra.SliceDevice, ...]))
    of_driver: dict[str, list[Raw]] = {}
    for one in unread:
        if bytes(memoryview(one.spec.devices)[:1]) == b"[":
            of_driver.setdefault(one.spec.driver, []).append(one.spec.devices)
    for driver, written in of_driver.items():
        packer.learn(driver, written)
    counters: dict[bytes, tuple[dra.CounterSet, ...] | None] = {b"null": None}
    return [
        _read(obj, packer, counters) if isinstance(obj, dra.UnreadSlice) else obj for obj in objects
    ]


def _read(
    unread: dra.UnreadSlice,
    packer: listed.Packer,
    counters: dict[bytes, tuple[dra.CounterSet, ...] | None],
) -> dra.ResourceSlice:
    spec = unread.spec
    written = bytes(spec.devices)
    devices: Sequence[dra.SliceDevice] | None
    try:
        devices = None if written == b"null" else packer.packed(spec.driver, written)
    except msgspec.ValidationError:  # a null where only the API server's decoder sees no error
        devices = convert(_decoder(Any).decode(written), tuple[dra.SliceDevice, ...])
    held = bytes(spec.sharedCounters)
    if held not in counters:
        counters[held] = convert(_decoder(Any).decode(held), tuple[dra.CounterSet, ...])
    read = dra.ResourceSliceSpec(
        spec.driver,
        spec.pool,
        spec.nodeName,
        spec.nodeSelector,
        spec.allNodes,
        spec.perDeviceNodeSelection,
        spec.skipNodeOperations,
        devices,
        counters[held],
    )
    return dra.ResourceSlice(apiVersion=unread.apiVersion, metadata=unread.metadata, spec=read)


def _items(head: _Head) -> list[KubeObject]:
    """The items of a List; those of a typed one that name no kind get the list's."""
    kind, version = head.kind or "", head.apiVersion or ""
    named = kind.removesuffix("List") if kind.endswith("List") else ""
    inherited = (version, named) if named else ("", "")
    return _packed([_from_raw(item, *inherited) for item in head.items or ()])


def _are_objects(items: list[Raw]) -> bool:
    return bool(items) and all(
        _IDENTITY.match(item) or all(msgspec.structs.astuple(_decoder(_Item).decode(item)))
        for item in items
    )


def _with_holder(
    raw: bytes, head: Any, objects: list[KubeObject]
) -> tuple[list[KubeObject], set[str]]:
    """Adds what the List itself tells: the kind of its items; its own fields if it is no List."""
    kind, version = head.kind or "", head.apiVersion or ""
    if not kind.endswith("List"):
        fields = _decoder(dict[str, Raw]).decode(raw)
        data = {k: _decoder(Any).decode(v) for k, v in fields.items() if k != "items"}
        objects = [_from_data(data, None), *objects]
    known = kinds_of(objects)
    if kind.endswith("List") and kind != "List":
        known.add(kind_name(version, kind.removesuffix("List")))
    return objects, known


def kinds_of(objects: Collection[KubeObject]) -> set[str]:
    """The kinds of these objects: a list has many objects, and few classes."""
    classes = {obj.__class__ for obj in objects}
    kinds = {str(cls.__struct_config__.tag) for cls in classes - {Generic}}
    return kinds | {obj.kind for obj in objects} if Generic in classes else kinds


def _all_fit(objects: Iterable[KubeObject]) -> bool:
    """Whether each object is of the group that its struct is for. A list has few apiVersions."""
    pairs = {(obj.__class__, obj.apiVersion) for obj in objects}
    return all(_fits(str(struct.__struct_config__.tag), version) for struct, version in pairs)


def _from_raw(item: Raw, api_version: str = "", kind: str = "") -> KubeObject:
    """One object. ``api_version`` and ``kind`` hold where it names neither."""
    found = _IDENTITY.match(item)
    head = _Item(found[1].decode(), found[2].decode()) if found else _decoder(_Item).decode(item)
    if not head.kind and not head.apiVersion and kind:
        head = _Item(api_version, kind)
    struct = KNOWN_KINDS.get(head.kind or "")
    version = head.apiVersion or ""
    if struct is not None and _fits(str(head.kind), version):
        try:
            read: KubeObject = _decoder(_wire(str(head.kind))).decode(item)
        except msgspec.ValidationError:
            pass  # a null or 1.0 where only the API server's decoder sees no error
        else:
            if not read.apiVersion:
                msgspec.structs.force_setattr(read, "apiVersion", version)
            return read
    data = _decoder(Any).decode(item)
    if not isinstance(data, dict):
        raise BadManifest("not-a-mapping", "an item of a List is an object")
    if head.kind and not data.get("kind"):
        data = {**data, "apiVersion": version, "kind": head.kind}
    return _from_data(data, None)


def _slowly(raw: bytes, file: str) -> tuple[list[KubeObject], set[str]]:
    objects: list[KubeObject] = []
    known: set[str] = set()
    for root in read_roots(raw, file):
        if isinstance(root, BadManifest):
            raise root
        if is_list(root.data):
            kind = str(root.data["kind"])
            if kind.endswith("List"):
                version = root.data.get("apiVersion")
                name = kind.removesuffix("List")
                known.add(kind_name(version if isinstance(version, str) else "", name))
            else:
                held = {key: value for key, value in root.data.items() if key != "items"}
                objects.append(_from_data(held, None))
        for document in documents_of(root, file):
            if isinstance(document, BadManifest):
                raise document
            objects.append(decode_object(document))
    return objects, (known | kinds_of(objects)) - {""}
