"""What is known of parameters of admission policies beyond the objects themselves; evaluates none.

``PolicyParameters`` (gpu-admit.io/v1), one for each paramKind, says that somebody asked the API
server for all objects of the kind that bindings refer to. An object of which only the parts that
policies read were kept names them in an annotation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kubectl_gpuadmit.kube.objects import Generic, ObjectMeta

KIND = "PolicyParameters"
API_VERSION = "gpu-admit.io/v1"
KEPT = "gpu-admit.io/kept"
"""Annotation: a JSON list of paths (``data/limit``, ``spec``); of the rest nothing is known."""


def record_name(api_version: str, kind: str) -> str:
    """The name of the record of a kind: ``limit.v1.example.com``."""
    group, _, version = api_version.rpartition("/")
    return ".".join(part for part in (kind.lower(), version, group) if part)


def record(api_version: str, kind: str, *, served: bool, namespaced: bool) -> Generic:
    """``served``: the API server has the kind."""
    of: dict[str, Any] = {"apiVersion": api_version, "kind": kind, "served": served}
    of |= {"namespaced": namespaced} if served else {}
    name = record_name(api_version, kind)
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": of,
    }
    return Generic(
        apiVersion=API_VERSION, realKind=KIND, metadata=ObjectMeta(name=name), document=document
    )


def kept(annotations: Mapping[str, str]) -> tuple[str, ...] | None:
    """The paths that were kept of an object ('' all of it), None where nobody has left out any."""
    text = annotations.get(KEPT)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=tuple[str, ...])
    except msgspec.MsgspecError:
        return ()


def only(document: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """The parts of an object that lie on the paths, as they stand."""
    listed = sorted(set(paths))
    if "" in listed:
        return dict(document)
    found: dict[str, Any] = {}
    for path in listed:
        head, slash, key = path.partition("/")
        held = document.get(head)
        if head not in document or head in ("metadata", "kind", "apiVersion"):
            continue
        if slash and isinstance(held, dict):
            part = found.setdefault(head, {})
            if key in held:
                part[key] = held[key]
        else:
            found[head] = held
    return found


def written(paths: Iterable[str]) -> str:
    """The annotation's value."""
    return msgspec.json.encode(sorted(set(paths))).decode()
