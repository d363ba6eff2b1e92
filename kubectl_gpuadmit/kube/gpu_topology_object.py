"""A GpuTopology object as it is stored, by itself or as text inside a ConfigMap; judges nothing.

A cluster whose administrators allow no custom resources has it in a ConfigMap of the namespace
``HOME``, labelled ``gpu-admit.io/kind: GpuTopology``, as JSON under ``object``.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.kube import gpu_topology as wire
from kubectl_gpuadmit.kube.gpu_topology import GpuTopologySpec
from kubectl_gpuadmit.kube.objects import ConfigMap, GpuTopology, KubeObject

HOME = "gpu-admit"
"""The namespace in which readers look for ConfigMaps."""
LABEL = {"gpu-admit.io/kind": "GpuTopology"}
PREFIX = "gpu-topology-"
"""Of the ConfigMap's name."""
KEY = "object"


def document(node: str, spec: GpuTopologySpec, *, uid: str = "") -> dict[str, Any]:
    """The object as it is written; ``uid`` of the Node that owns it, '' for no owner."""
    metadata: dict[str, Any] = {"name": node}
    if uid:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
        ]
    return {
        "apiVersion": f"{wire.GROUP}/{wire.VERSION}",
        "kind": "GpuTopology",
        "metadata": metadata,
        "spec": plain(spec),
    }


def unpacked(obj: KubeObject) -> KubeObject:
    """The object inside an agent's ConfigMap; every other object as it is."""
    if not isinstance(obj, ConfigMap) or not LABEL.items() <= obj.labels.items():
        return obj
    return from_config_map(obj.data) or obj


def from_config_map(data: Any) -> GpuTopology | None:
    """The object inside a ConfigMap's ``data``; None where there is none that can be read."""
    text = data.get(KEY) if isinstance(data, dict) else None
    try:
        return msgspec.json.decode(text, type=GpuTopology) if isinstance(text, str) else None
    except msgspec.MsgspecError:
        return None


def plain(spec: GpuTopologySpec) -> dict[str, Any]:
    """The spec as JSON data, without what reads the same when it is absent."""
    found = _plain(spec)
    assert isinstance(found, dict)
    return found


def _plain(held: Any) -> Any:
    match held:
        case Struct():
            made: dict[str, Any] = {}
            for field in msgspec.structs.fields(type(held)):
                value = getattr(held, field.name)
                if field.default is msgspec.NODEFAULT or value != field.default:
                    made[field.encode_name] = _plain(value)
            return made
        case tuple() | list():
            return [_plain(item) for item in held]
        case _:
            return held
