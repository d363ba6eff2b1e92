"""Whether a device's taints keep a request away.

Sources: k8s.io/dynamic-resource-allocation v0.37.2 resourceclaim/devicetoleration.go;
structured/internal/incubating (taintPreventsAllocation).
"""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_gpuadmit.devices.model import Device, Taint, Toleration

PREVENTING = ("NoSchedule", "NoExecute")
"""Other effects, ``None`` among them, keep nobody away."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
    return False


def untolerated(device: Device, tolerations: Iterable[Toleration]) -> tuple[Taint, ...]:
    """The taints that keep a request with these tolerations away from the device."""
    listed = tuple(tolerations)
    return tuple(
        taint
        for taint in device.taints
        if taint.effect in PREVENTING and not any(tolerates(one, taint) for one in listed)
    )
