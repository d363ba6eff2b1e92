"""Fetches the objects that a call names, as documents to judge; judges none.

Names are written as for kubectl: ``deploy/web``, ``job/a pod/b``, ``deploy web worker``,
``deploy,sts``, a type with ``-l`` or alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kubectl_gpuadmit.adapters.kube import listing
from kubectl_gpuadmit.adapters.kube.connection import Connection
from kubectl_gpuadmit.adapters.kube.faults import HttpStatus
from kubectl_gpuadmit.adapters.kube.resources import Catalogue, Resource
from kubectl_gpuadmit.errors import BadInput, NothingChecked, Unanswerable
from kubectl_gpuadmit.kube.manifests import Document


def fetch(
    connection: Connection,
    catalogue: Catalogue,
    words: Sequence[str],
    *,
    namespace: str,
    labels: str = "",
    everywhere: bool = False,
) -> list[dict[str, Any]]:
    """The objects as plain data, in the order of the words, each once.

    Raises BadInput (``unknown-type``, ``no-such-object``, ``bad-selector``), NothingChecked for a
    list without an object, Unanswerable for what the API server refuses.
    """
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for resource, name in _asked(words, catalogue):
        if name:
            objects = [_one(connection, resource, namespace, name)]
        else:
            objects = _listed(connection, resource, "" if everywhere else namespace, labels)
        for obj in objects:
            meta = obj["metadata"]
            key = (resource.full_name, str(meta.get("namespace", "")), str(meta.get("name")))
            found.setdefault(key, obj)
    if not found:
        where = "any namespace" if everywhere else f"namespace {namespace}"
        with_labels = f" with labels {labels}" if labels else ""
        raise NothingChecked(
            "no-such-object",
            f"no {', '.join(words)}{with_labels} in {where}",
            hint="kubectl get " + " ".join(words) + (" -A" if not everywhere else ""),
        )
    return list(found.values())


def document(obj: dict[str, Any]) -> Document:
    """A stored object as a manifest: without status, without the node that it is on already."""
    meta = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    data = {**obj, "metadata": meta}
    data.pop("status", None)
    kind, spec = str(obj.get("kind", "")), obj.get("spec")
    if kind == "Pod" and isinstance(spec, dict):
        data["spec"] = {k: v for k, v in spec.items() if k not in ("nodeName", "priority")}
    name = f"{kind.lower()}/{meta.get('name')}"
    return Document(file=f"{name} in {meta.get('namespace')}", index=0, line=0, data=data)


def _asked(words: Sequence[str], catalogue: Catalogue) -> Iterator[tuple[Resource, str]]:
    """(resource, name or '' for all) of what was typed."""
    slashed = [word for word in words if "/" in word]
    if slashed:
        if len(slashed) != len(words):
            plain = next(word for word in words if "/" not in word)
            raise BadInput(
                "usage",
                f"{plain} is no TYPE/NAME, and the others are",
                hint="kubectl gpu-admit explain deploy/a job/b",
            )
        for word in words:
            type_, _, name = word.partition("/")
            if not type_ or not name or "/" in name:
                raise BadInput("usage", f"{word} is no TYPE/NAME", hint="for example deploy/web")
            yield catalogue.typed(type_), name
        return
    for type_ in words[0].split(","):
        for name in words[1:] or [""]:
            yield catalogue.typed(type_), name


def _one(connection: Connection, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
    for version in resource.versions:
        try:
            reply = connection.get(resource.path(version, namespace, name))
        except HttpStatus as problem:
            if problem.status == 404:
                continue
            raise _refused(connection, resource, problem, "get", namespace) from None
        try:
            found: dict[str, Any] = msgspec.json.decode(reply.body, type=dict[str, Any])
        except msgspec.MsgspecError as fault:
            raise Unanswerable(
                "garbled-reply",
                f"{resource.full_name} {name} from {connection.host} cannot be read: {fault}",
                hint="does a proxy change answers on the way?",
            ) from None
        return found
    near = ""
    try:
        import difflib

        names = [
            o["metadata"]["name"] for o in listing.plain(connection, resource, namespace=namespace)
        ]
        close = difflib.get_close_matches(name, names, n=1)
        near = f"did you mean {close[0]}?" if close else ""
    except HttpStatus:
        pass
    raise BadInput(
        "no-such-object",
        f"there is no {resource.full_name} {name} in namespace {namespace}",
        hint=near or f"kubectl get {resource.full_name} -A",
    )


def _listed(
    connection: Connection, resource: Resource, namespace: str, labels: str
) -> list[dict[str, Any]]:
    try:
        return listing.plain(connection, resource, namespace=namespace, labels=labels)
    except HttpStatus as problem:
        if problem.status == 400:
            raise BadInput(
                "bad-selector",
                f"{problem.message}",
                field="-l",
                hint="for example app=web,tier!=test",
            ) from None
        raise _refused(connection, resource, problem, "list", namespace) from None


def _refused(
    connection: Connection, resource: Resource, problem: HttpStatus, verb: str, namespace: str
) -> Unanswerable:
    if problem.status != 403:
        return connection.fail(problem)
    user = f'user "{problem.user}"' if problem.user else "you"
    where = f" in namespace {namespace}" if namespace else " in all namespaces"
    role = "a Role" if namespace else "a ClusterRole"
    return Unanswerable(
        "forbidden",
        f"{user} may not {verb} {resource.full_name}{where}",
        hint=f"{role} would need: {resource.rule(verb)}",
    )
