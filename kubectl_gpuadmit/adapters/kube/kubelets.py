"""Asks kubelets for their configuration through the API server's node proxy, where that is allowed.

``GET /api/v1/nodes/NAME/proxy/configz`` needs ``get`` on ``nodes/proxy``, a right that reaches far
beyond reading: nobody should be given it for this. Whoever has it gets the best source there is;
whoever has not is not told so, for the agent's map, NodeResourceTopology objects and the policy
file say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.adapters.kube import listing
from kubectl_gpuadmit.adapters.kube.connection import Connection
from kubectl_gpuadmit.adapters.kube.faults import HttpStatus
from kubectl_gpuadmit.errors import Unanswerable
from kubectl_gpuadmit.kube import pods
from kubectl_gpuadmit.kube.gpus import is_gpu
from kubectl_gpuadmit.kube.objects import Generic, KubeObject, Node, ObjectMeta
from kubectl_gpuadmit.topology.kubelets import GROUP, KIND

MOST = 64
"""Kubelets that are asked in one call; of a larger cluster the first by name."""


class _Configz(Struct):
    kubeletconfig: dict[str, Any]


def configurations(connection: Connection, objects: Iterable[KubeObject]) -> list[KubeObject]:
    """One KubeletConfiguration object for each GPU node among ``objects`` whose kubelet answers.

    The first is asked alone: where it does not answer, nobody else is asked.
    """
    names = sorted(_gpu_nodes(objects))[:MOST]
    found = _asked(connection, names[:1])
    if found:
        found += _asked(connection, names[1:])
    return found


def _gpu_nodes(objects: Iterable[KubeObject]) -> Iterator[str]:
    """Nodes with GPUs whose kubelet reports itself ready: others would let us wait."""
    for obj in objects:
        if not isinstance(obj, Node):
            continue
        amounts = pods.amounts(obj.status.allocatable or obj.status.capacity)
        ready = any(c.type == "Ready" and c.status == "True" for c in obj.status.conditions or ())
        if ready and any(n and is_gpu(name) for name, n in amounts.items()):
            yield obj.name


def _asked(connection: Connection, names: Sequence[str]) -> list[KubeObject]:
    def ask(name: str) -> KubeObject | None:
        try:
            reply = connection.get(f"/api/v1/nodes/{name}/proxy/configz")
            told = msgspec.json.decode(reply.body, type=_Configz).kubeletconfig
        except (HttpStatus, Unanswerable, msgspec.MsgspecError):
            return None
        version = f"{GROUP}/v1beta1"
        document = {**told, "apiVersion": version, "kind": KIND, "metadata": {"name": name}}
        return Generic(
            apiVersion=version, metadata=ObjectMeta(name=name), realKind=KIND, document=document
        )

    return [one for one in listing.in_parallel(ask, names) if one is not None]
