"""Which features of the ledger a claim, a class or a driver's slices make use of; judges nothing.

Sources: k8s.io/api v0.37.2 resource/v1/types.go (the gate of each field stands beside it);
kubernetes-sigs/dra-driver-nvidia-gpu api/nvidia.com/resource/v1beta1 (GpuConfig, MigDeviceConfig,
VfioDeviceConfig: a sharing strategy whose gate is off is refused when the claim is prepared) and
cmd/gpu-kubelet-plugin (what the slices of each gate look like).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.devices.gates import KUBERNETES, NVIDIA, Component
from kubectl_gpuadmit.devices.model import Claim, Class, Configuration, Want
from kubectl_gpuadmit.kube.dra import BasicDevice, ResourceSlice
from kubectl_gpuadmit.kube.listed import Template, template_of

DRIVER = "gpu.nvidia.com"
HEALTH_TAINTS = ("gpu.nvidia.com/xid", "gpu.nvidia.com/gpu-lost", "gpu.nvidia.com/unmonitored")

_PARTITION = re.compile(r"gpu\.nvidia\.com/partition[1-9][0-9]*")
_MIG = re.compile(r"""\.type\s*==\s*["']mig["']|["']mig["']\s*==|\.profile\b""")
_STRATEGIES = {"MPS": "MPSSupport", "TimeSlicing": "TimeSlicingSettings"}

Shown = frozenset[tuple[Component, str]]


class Use(Struct, frozen=True, order=True):
    """One feature, and the place that uses it."""

    component: Component
    feature: str
    where: str
    """``request gpu``, ``config[0]``, ``DeviceClass shared: config[0]``."""
    what: str
    """In the words of the field: ``sharing.strategy MPS``."""


def of_claim(
    claim: Claim, classes: Callable[[str], Class | None], shown: Shown = frozenset()
) -> tuple[Use, ...]:
    """What a claim uses, its classes' configuration included, in the order of its fields.

    ``shown`` are the features that the cluster's slices show (``of_slices``): a claim for MIG
    devices uses DynamicMIG where MIG devices are made on demand.
    """
    found: list[Use] = []
    asked: dict[str, Class | None] = {}
    for request in claim.requests:
        if request.first_available:
            at = f"request {request.name}"
            found.append(Use(KUBERNETES, "DRAPrioritizedList", at, "firstAvailable"))
        for want in request.wants:
            if want.device_class not in asked:
                asked[want.device_class] = classes(want.device_class)
            cls = asked[want.device_class]
            found += _of_want(want, f"request {request.full_name(want)}", cls, shown)
    for index, constraint in enumerate(claim.constraints):
        at = f"constraints[{index}]"
        if constraint.distinct:
            found.append(Use(KUBERNETES, "DRAConsumableCapacity", at, "distinctAttribute"))
        for name in (constraint.match, constraint.distinct):
            if _PARTITION.fullmatch(name):
                found.append(Use(NVIDIA, "FabricManagerPartitioning", at, name))
    found += _of_config(claim.config, "")
    for name, cls in asked.items():
        found += _of_config(cls.config if cls else (), f"DeviceClass {name}: ")
    return tuple(dict.fromkeys(found))


def _of_want(want: Want, at: str, cls: Class | None, shown: Shown) -> Iterator[Use]:
    if want.admin_access:
        yield Use(KUBERNETES, "DRAAdminAccess", at, "adminAccess")
    if want.tolerations:
        yield Use(KUBERNETES, "DRADeviceTaints", at, "tolerations")
    if any(one.key in HEALTH_TAINTS for one in want.tolerations):
        yield Use(NVIDIA, "NVMLDeviceHealthCheck", at, "toleration of a health taint")
    if want.derived:
        yield Use(KUBERNETES, "DRADerivedAttributes", at, "derivedAttributes")
    nvidia = _is_nvidia(want.device_class, cls)
    if want.capacity:
        what = f"capacity request of {', '.join(sorted(want.capacity))}"
        yield Use(KUBERNETES, "DRAConsumableCapacity", at, what)
        if nvidia:
            yield Use(NVIDIA, "ConsumableShares", at, what)
    texts = [text for text in (*want.selectors, *(cls.selectors if cls else ())) if text]
    if any(".includes(" in text for text in texts):
        yield Use(KUBERNETES, "DRAListTypeAttributes", at, ".includes() in a selector")
    if any("device.allowMultipleAllocations" in text for text in texts):
        what = "device.allowMultipleAllocations in a selector"
        yield Use(KUBERNETES, "DRAConsumableCapacity", at, what)
    if want.device_class == "vfio.gpu.nvidia.com":
        yield Use(NVIDIA, "PassthroughSupport", at, "DeviceClass vfio.gpu.nvidia.com")
    if (NVIDIA, "DynamicMIG") in shown and nvidia and asks_mig(want.device_class, texts):
        yield Use(NVIDIA, "DynamicMIG", at, "a MIG device, made on demand in this cluster")


def asks_mig(class_name: str, selectors: Iterable[str]) -> bool:
    """Whether a request is for MIG devices, by its class's name or by the text of selectors."""
    return class_name == "mig.nvidia.com" or any(_MIG.search(text) for text in selectors)


def _is_nvidia(name: str, cls: Class | None) -> bool:
    """Whether a class is for devices of NVIDIA's GPU driver, by its name or its selectors."""
    return name.endswith("nvidia.com") or any(
        DRIVER in text for text in (cls.selectors if cls else ()) if text
    )


def _of_config(config: tuple[Configuration, ...], of: str) -> Iterator[Use]:
    for index, one in enumerate(config):
        if one.driver != DRIVER or not isinstance(one.parameters, dict):
            continue
        at = f"{of}config[{index}]"
        parameters: dict[str, Any] = one.parameters
        if parameters.get("kind") == "VfioDeviceConfig":
            yield Use(NVIDIA, "PassthroughSupport", at, "VfioDeviceConfig")
        sharing = parameters.get("sharing")
        strategy = sharing.get("strategy") if isinstance(sharing, dict) else None
        if isinstance(strategy, str) and strategy in _STRATEGIES:
            yield Use(NVIDIA, _STRATEGIES[strategy], at, f"sharing.strategy {strategy}")


def of_slices(slices: Iterable[ResourceSlice]) -> tuple[Use, ...]:
    """What the published devices show to be on, each feature once, by the first slice that does."""
    found: dict[tuple[Component, str], Use] = {}
    asked: set[tuple[str, bool, Template]] = set()
    for one in slices:
        template = template_of(one.spec.devices)
        alike = (one.spec.driver, bool(one.spec.sharedCounters), template)
        if alike in asked and "type" not in template.varying:
            continue
        asked.add(alike)
        for component, feature, what in _of_slice(one):
            use = Use(component, feature, f"ResourceSlice {one.name}", what)
            found.setdefault((component, feature), use)
    return tuple(found.values())


def _of_slice(one: ResourceSlice) -> Iterator[tuple[Component, str, str]]:
    nvidia = one.spec.driver == DRIVER
    if one.spec.sharedCounters:
        yield KUBERNETES, "DRAPartitionableDevices", "sharedCounters"
    for listed in one.spec.devices or ():
        device: BasicDevice = listed.basic or listed
        attributes = device.attributes or {}
        kind = attributes["type"].string if "type" in attributes else None
        if device.taints:
            yield KUBERNETES, "DRADeviceTaints", f"taints of device {listed.name}"
        if device.allowMultipleAllocations:
            yield KUBERNETES, "DRAConsumableCapacity", f"device {listed.name} is shared"
            if nvidia:
                yield NVIDIA, "ConsumableShares", f"device {listed.name} is shared"
        if device.bindingConditions:
            yield KUBERNETES, "DRADeviceBindingConditions", f"device {listed.name}"
        if any(a.strings or a.ints or a.bools or a.versions for a in attributes.values()):
            yield KUBERNETES, "DRAListTypeAttributes", f"device {listed.name}"
        if not nvidia:
            continue
        if device.consumesCounters and kind == "mig":
            yield NVIDIA, "DynamicMIG", f"device {listed.name} consumes counters"
        if kind == "vfio":
            yield NVIDIA, "PassthroughSupport", f"device {listed.name}"
        if any(taint.key in HEALTH_TAINTS for taint in device.taints or ()):
            yield NVIDIA, "NVMLDeviceHealthCheck", f"taints of device {listed.name}"
        if any(_PARTITION.fullmatch(f"{DRIVER}/{name}") for name in attributes):
            yield NVIDIA, "FabricManagerPartitioning", f"device {listed.name}"
