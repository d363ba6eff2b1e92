"""Reads from the kubelet's own files which NUMA policies it runs with; asks no kubelet.

``config.yaml`` is what kubeadm and most distributions write. A flag on the kubelet's command line
overrides it, and ``--config-dir`` drop-ins add to it. Where the state files of the CPU and the
Memory Manager lie beside it, they show the policy that really runs, and win.

Sources: KubeletConfiguration v1beta1; kubelet/cm/cpumanager/state, memorymanager/state,
topologymanager (defaults: policy none, scope container).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.topology.readings import KubeletConfig, MemoryGrant

FILE = "/var/lib/kubelet/config.yaml"
LONGEST = 1 << 20


def read(file: str = FILE) -> KubeletConfig | None:
    """The settings, None where there is no configuration file that can be read.

    A file mounted into a container stays the old one when the node's is replaced: it has no name
    any more then, and is not believed.
    """
    place = Path(file).parent
    data = _yaml(Path(file))
    if data is None or data.get("kind") != "KubeletConfiguration":
        return None
    cpu = _state(place / "cpu_manager_state")
    memory = _state(place / "memory_manager_state")
    return KubeletConfig(
        topology_policy=_text(data, "topologyManagerPolicy", "none"),
        topology_scope=_text(data, "topologyManagerScope", "container"),
        topology_options=_texts(data.get("topologyManagerPolicyOptions")),
        cpu_policy=cpu or _text(data, "cpuManagerPolicy", "none"),
        cpu_options=_texts(data.get("cpuManagerPolicyOptions")),
        memory_policy=memory or _text(data, "memoryManagerPolicy", "None"),
        reserved_cpus=_text(data, "reservedSystemCPUs", "") or None,
        reserved_memory=tuple(_reserved(data.get("reservedMemory"))),
    )


def _reserved(listed: Any) -> list[MemoryGrant]:
    found = []
    for entry in listed if isinstance(listed, list) else ():
        limits, node = entry.get("limits"), entry.get("numaNode")
        if not isinstance(limits, dict) or not isinstance(node, int):
            continue
        for kind, amount in limits.items():
            try:
                found.append(MemoryGrant(str(kind), quantity.value(amount), (node,)))
            except quantity.QuantityError:
                continue
    return found


def _yaml(file: Path) -> dict[str, Any] | None:
    try:
        about = file.stat()
        if about.st_size > LONGEST or about.st_nlink == 0:
            return None
        data = yaml.load(file.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError):
        return None
    return data if isinstance(data, dict) else None


def _state(file: Path) -> str:
    """``policyName`` of a checkpoint; '' where there is none."""
    try:
        data = msgspec.json.decode(file.read_bytes())
    except (OSError, msgspec.MsgspecError):
        return ""
    return str(data.get("policyName") or "") if isinstance(data, dict) else ""


def _text(data: dict[str, Any], key: str, default: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) and value else default


def _texts(value: Any) -> dict[str, str]:
    held = value if isinstance(value, dict) else {}
    return {str(name): str(held[name]).lower() for name in sorted(held, key=str)}
