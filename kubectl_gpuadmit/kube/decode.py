"""Stand-in until the real decoder lands."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.kube.objects import KNOWN_KINDS, AnyKnown, Generic, KubeObject, ObjectMeta

T = TypeVar("T")


def convert(data: Any, type: type[T], *, document: Document | None, pointer: str = "") -> T:
    try:
        return msgspec.convert(data, type)
    except msgspec.ValidationError as problem:
        raise BadManifest("wrong-type", str(problem), file=document.file if document else "", line=document.line if document else 0) from None


def from_data(data: dict[str, Any], document: Document | None = None) -> KubeObject:
    kind = str(data.get("kind", ""))
    cls = KNOWN_KINDS.get(kind)
    if cls is not None:
        return convert(data, cls, document=document)
    meta = msgspec.convert(data.get("metadata") or {}, ObjectMeta)
    return Generic(apiVersion=str(data.get("apiVersion", "")), metadata=meta, realKind=kind, document=data)


def decode_object(document: Document) -> KubeObject:
    return from_data(document.data, document)


class _List(msgspec.Struct):
    items: list[AnyKnown]


class _Raw(msgspec.Struct):
    kind: str = ""
    items: list[dict[str, Any]] | None = None


def decode_bulk(raw: bytes, file: str) -> tuple[list[KubeObject], set[str]]:
    try:
        found = msgspec.json.decode(raw, type=_List).items
        return list(found), {o.kind for o in found}
    except msgspec.ValidationError:
        pass
    data = msgspec.json.decode(raw)
    items = data.get("items")
    if items is None:
        items = [data]
    typed = str(data.get("kind", "")).removesuffix("List")
    for item in items:
        item.setdefault("kind", typed)
    objects = [from_data(i) for i in items]
    return objects, {o.kind for o in objects} | ({typed} if typed else set())
