"""Brings objects about by server-side apply and takes them away; decides nothing about them.

Each object is read before and after, so that what is told is what happened. A claim or template
cannot be changed (its spec is immutable): one that differs is made anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.adapters.kube.connection import Connection
from kubectl_gpuadmit.adapters.kube.faults import HttpStatus
from kubectl_gpuadmit.adapters.kube.resources import BUILT_IN, Resource
from kubectl_gpuadmit.errors import Unanswerable

Effect = Literal["created", "changed", "unchanged", "made anew", "deleted", "absent"]
APPLY = "application/apply-patch+yaml"
"""Content type of server-side apply; JSON is YAML."""

_GROUP = "resource.k8s.io"


class Done(Struct, frozen=True):
    """What became of one object."""

    kind: str
    name: str
    effect: Effect


class _Head(Struct):
    class Meta(Struct):
        name: str = ""
        uid: str = ""
        resourceVersion: str = ""

    metadata: Meta = msgspec.field(default_factory=Meta)


class _List(Struct):
    items: list[_Head] = []


class _Group(Struct):
    class Version(Struct):
        version: str = ""

    versions: list[Version] = []


class Applier:
    """Applies and deletes as one field manager."""

    def __init__(self, connection: Connection, *, manager: str) -> None:
        self._connection = connection
        self._manager = manager
        self._dra = ""

    def dra_version(self) -> str:
        """The newest version of resource.k8s.io that is served. Raises Unanswerable for none."""
        if not self._dra:
            try:
                reply = self._connection.get(f"/apis/{_GROUP}")
            except HttpStatus as problem:
                if problem.status != 404:
                    raise self._connection.fail(problem) from None
                served = set()
            else:
                group = msgspec.json.decode(reply.body, type=_Group)
                served = {one.version for one in group.versions}
            known = [v for v in BUILT_IN["DeviceClass"].versions if v in served]
            if not known:
                raise Unanswerable(
                    "no-dra",
                    f"{self._connection.host} serves no claims (resource.k8s.io v1 or v1beta)",
                    hint="DRA is on from Kubernetes 1.34; before, turn it and its API on",
                )
            self._dra = known[0]
        return self._dra

    def uid(self, kind: str, name: str, namespace: str = "") -> str:
        """The uid of an object, '' where there is none. Raises Unanswerable."""
        head = self._get(BUILT_IN[kind], name, namespace)
        return head.metadata.uid if head else ""

    def names(self, kind: str) -> list[str]:
        """Names of all objects of a cluster-scoped kind; none where that may not be read."""
        try:
            return [one.metadata.name for one in self._list(BUILT_IN[kind], "", "")]
        except HttpStatus as problem:
            if problem.status in (403, 404):
                return []
            raise self._connection.fail(problem) from None

    def labelled(self, kind: str, label: str, namespace: str = "") -> list[str]:
        """Names of the objects with a label ``key=value``. Raises Unanswerable."""
        try:
            found = self._list(BUILT_IN[kind], namespace, label)
        except HttpStatus as problem:
            raise self._connection.fail(problem) from None
        return [one.metadata.name for one in found]

    def _list(self, resource: Resource, namespace: str, label: str) -> list[_Head]:
        path = resource.path(self._version(resource), namespace)
        reply = self._connection.get(path, {"labelSelector": label} if label else None)
        return msgspec.json.decode(reply.body, type=_List).items

    def apply(self, document: Mapping[str, Any]) -> Done:
        """One object as it is to be. Raises Unanswerable, also where somebody else owns a field."""
        kind, name = str(document["kind"]), str(document["metadata"]["name"])
        namespace = str(document["metadata"].get("namespace", ""))
        resource = BUILT_IN[kind]
        before = self._get(resource, name, namespace)
        effect: Effect = "created" if before is None else "changed"
        try:
            after = self._apply(resource, document, name, namespace)
        except HttpStatus as problem:
            if problem.status != 422 or before is None or "immutable" not in problem.message:
                raise self._failed(problem, kind, name) from None
            self.delete(kind, name, namespace)
            effect = "made anew"
            try:
                after = self._apply(resource, document, name, namespace)
            except HttpStatus as second:
                raise self._failed(second, kind, name) from None
        if before and before.metadata.resourceVersion == after.metadata.resourceVersion:
            effect = "unchanged"
        return Done(kind, name, effect)

    def _apply(
        self, resource: Resource, document: Mapping[str, Any], name: str, namespace: str
    ) -> _Head:
        path = resource.path(self._version(resource), namespace, name)
        body = msgspec.json.encode(document)
        query = {"fieldManager": self._manager}
        reply = self._connection.patch(path, body, content=APPLY, query=query)
        return msgspec.json.decode(reply.body, type=_Head)

    def delete(self, kind: str, name: str, namespace: str = "") -> Done:
        """Takes one object away, if it is there. Raises Unanswerable."""
        resource = BUILT_IN[kind]
        try:
            self._connection.delete(resource.path(self._version(resource), namespace, name))
        except HttpStatus as problem:
            if problem.status == 404:
                return Done(kind, name, "absent")
            raise self._failed(problem, kind, name) from None
        return Done(kind, name, "deleted")

    def _get(self, resource: Resource, name: str, namespace: str) -> _Head | None:
        try:
            reply = self._connection.get(resource.path(self._version(resource), namespace, name))
        except HttpStatus as problem:
            if problem.status == 404:
                return None
            raise self._connection.fail(problem) from None
        return msgspec.json.decode(reply.body, type=_Head)

    def _version(self, resource: Resource) -> str:
        return self.dra_version() if resource.group == _GROUP else resource.versions[0]

    def _failed(self, problem: HttpStatus, kind: str, name: str) -> Unanswerable:
        what = f"{kind.lower()} {name}"
        if problem.status == 409:
            return Unanswerable(
                "field-conflict",
                f"{what}: {problem.message}",
                hint="whoever set the field has to give it up, or apply with --force-conflicts"
                " of kubectl",
            )
        if problem.status in (400, 403, 422) and not problem.by_rbac:
            said = f"{what}: {problem.message}"
            return Unanswerable("refused-by-server", said, hint="the reason is the API server's")
        return self._connection.fail(problem)
