"""Writes one node's GpuTopology object, and reads it back; decides nothing of what is in it.

Two places, chosen by who installs the agent:

- the custom resource: checked by its schema, guarded by a policy on typed fields, listed by itself;
- a ConfigMap in the agent's namespace, labelled ``gpu-admit.io/kind: GpuTopology``, with the whole
  object as JSON under ``object``, for clusters whose administrators allow no CRDs.

Both are owned by the Node, so that the garbage collector removes them with it. Writes are
server-side apply: one request, whether the object is there or not, and the same in any order.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kubectl_gpuadmit.adapters.kube import listing
from kubectl_gpuadmit.adapters.kube.connection import Connection, Reply
from kubectl_gpuadmit.adapters.kube.faults import HttpStatus
from kubectl_gpuadmit.adapters.kube.resources import BUILT_IN
from kubectl_gpuadmit.errors import GpuAdmitError, Unanswerable
from kubectl_gpuadmit.kube import gpu_topology as wire
from kubectl_gpuadmit.kube.gpu_topology import GpuTopologySpec
from kubectl_gpuadmit.kube.gpu_topology_object import (
    HOME,
    KEY,
    LABEL,
    PREFIX,
    document,
    from_config_map,
    unpacked,
)
from kubectl_gpuadmit.kube.objects import GpuTopology, KubeObject

MANAGER = "gpu-admit-agent"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"


class CustomObjects:
    """GpuTopology objects."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def load(self, node: str) -> GpuTopologySpec | None:
        """What is stored, None for nothing that we can read. Raises Unanswerable."""
        try:
            return _spec(self._connection.get(self._path(node)).body)
        except HttpStatus as problem:
            if problem.status == 404:
                return None
            raise self._error(problem) from None

    def write(self, node: str, spec: GpuTopologySpec) -> tuple[GpuTopologySpec, int]:
        """Stores the report; what is stored now, and the bytes sent. Raises Unanswerable."""
        made = document(node, spec, uid=_owner(self._connection, node))
        body = msgspec.json.encode(made)
        reply = self._send(node, body, APPLY, force="true")
        return _spec(reply.body) or GpuTopologySpec(), len(body)

    def renew(self, node: str, as_of: str) -> tuple[GpuTopologySpec | None, int]:
        """Stores a newer time alone; what is stored now, None where there is nothing."""
        body = msgspec.json.encode({"spec": {"asOf": as_of}})
        try:
            return _spec(self._send(node, body, MERGE).body), len(body)
        except Unanswerable as problem:
            if problem.ref == "not-served":
                return None, len(body)
            raise

    def _send(self, node: str, body: bytes, content: str, **query: str) -> Reply:
        try:
            return self._connection.patch(
                self._path(node), body, content=content, query={"fieldManager": MANAGER, **query}
            )
        except HttpStatus as problem:
            raise self._error(problem) from None

    def _path(self, node: str) -> str:
        return f"/apis/{wire.GROUP}/{wire.VERSION}/gputopologies/{node}"

    def _error(self, problem: HttpStatus) -> Unanswerable:
        if problem.status == 404:
            return Unanswerable(
                "not-served",
                "the API server knows no GpuTopology",
                hint="apply the CRD: kubectl gpu-admit agent --manifests | kubectl apply -f -",
            )
        return self._connection.fail(problem)


class ConfigMaps:
    """The same objects inside ConfigMaps of one namespace."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self._namespace = namespace

    def load(self, node: str) -> GpuTopologySpec | None:
        """What is stored, None for nothing that we can read. Raises Unanswerable."""
        try:
            return _inside(self._connection.get(self._path(node)).body)
        except HttpStatus as problem:
            if problem.status == 404:
                return None
            raise self._connection.fail(problem) from None

    def write(self, node: str, spec: GpuTopologySpec) -> tuple[GpuTopologySpec, int]:
        """As CustomObjects.write."""
        uid = _owner(self._connection, node)
        whole = document(node, spec, uid=uid)
        metadata = {**whole["metadata"], "name": PREFIX + node, "labels": LABEL}
        made = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {KEY: msgspec.json.encode(whole).decode()},
        }
        body = msgspec.json.encode(made)
        query = {"fieldManager": MANAGER, "force": "true"}
        try:
            reply = self._connection.patch(self._path(node), body, content=APPLY, query=query)
        except HttpStatus as problem:
            raise self._connection.fail(problem) from None
        return _inside(reply.body) or GpuTopologySpec(), len(body)

    def renew(self, node: str, as_of: str) -> tuple[GpuTopologySpec | None, int]:
        """The time is inside the text, so the whole is written; no write where it is gone."""
        stored = self.load(node)
        if stored is None:
            return None, 0
        return self.write(node, msgspec.structs.replace(stored, asOf=as_of))

    def _path(self, node: str) -> str:
        return f"/api/v1/namespaces/{self._namespace}/configmaps/{PREFIX}{node}"


class Later:
    """A store that connects when it is first used, and again after it could not."""

    def __init__(self, connect: Callable[[], CustomObjects | ConfigMaps]) -> None:
        self._connect = connect
        self._store: CustomObjects | ConfigMaps | None = None

    def load(self, node: str) -> GpuTopologySpec | None:
        """As CustomObjects.load."""
        return self._there().load(node)

    def write(self, node: str, spec: GpuTopologySpec) -> tuple[GpuTopologySpec, int]:
        """As CustomObjects.write."""
        return self._there().write(node, spec)

    def renew(self, node: str, as_of: str) -> tuple[GpuTopologySpec | None, int]:
        """As CustomObjects.renew."""
        return self._there().renew(node, as_of)

    def _there(self) -> CustomObjects | ConfigMaps:
        if self._store is None:
            self._store = self._connect()
        return self._store


def in_config_maps(connection: Connection) -> list[KubeObject]:
    """The objects that agents have put into ConfigMaps of ``HOME``: one namespace is looked at, for
    a list of all would cost every question dearly. Raises HttpStatus and Unanswerable."""
    labels = ",".join(f"{name}={value}" for name, value in LABEL.items())
    listed = listing.objects(connection, BUILT_IN["ConfigMap"], namespace=HOME, labels=labels)
    return [one for one in map(unpacked, listed) if isinstance(one, GpuTopology)]


def _inside(body: bytes) -> GpuTopologySpec | None:
    try:
        found = from_config_map(msgspec.json.decode(body).get("data"))
    except (msgspec.MsgspecError, AttributeError):
        return None
    return _ours(found.spec) if found is not None else None


def _spec(body: bytes) -> GpuTopologySpec | None:
    try:
        return _ours(msgspec.json.decode(body, type=GpuTopology).spec)
    except msgspec.MsgspecError:
        return None


def _ours(spec: GpuTopologySpec) -> GpuTopologySpec | None:
    """Another schema, older or newer, is replaced, and nothing is taken over from it."""
    return spec if spec.schema == wire.SCHEMA else None


class _Metadata(msgspec.Struct):
    uid: str = ""


class _Owner(msgspec.Struct):
    metadata: _Metadata


def _owner(connection: Connection, node: str) -> str:
    """The Node's UID. Raises Unanswerable (``no-such-node`` where there is no such Node)."""
    try:
        body = connection.get(f"/api/v1/nodes/{node}").body
        return msgspec.json.decode(body, type=_Owner).metadata.uid
    except HttpStatus as problem:
        if problem.status == 404:
            raise _no_node(node) from None
        raise connection.fail(problem) from None
    except msgspec.MsgspecError:
        raise _no_node(node) from None


def _no_node(node: str) -> GpuAdmitError:
    return Unanswerable(
        "no-such-node", f"the cluster has no node {node}", hint="--node NAME, or NODE_NAME"
    )
