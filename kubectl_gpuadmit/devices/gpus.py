"""Which devices and requests mean GPUs: network cards, TPUs and CPUs come through DRA as well.

A driver is known by its name. Drivers of GPUs call themselves ``gpu.<vendor>``; NVIDIA's publishes
partitions (MIG) and GPUs for virtual machines under the same name and tells them by ``type``.

Sources: kubernetes-sigs/dra-driver-nvidia-gpu (cmd/gpu-kubelet-plugin/deviceinfo.go), and the
drivers gpu.intel.com, gpu.amd.com, gpu.example.com.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kubectl_gpuadmit.devices.model import Claim, Class, Device, Want

_GPU = re.compile(r"(^|[.-])(gpu|mig)[.-]")
_PART = re.compile(r"""(^|[.'"-])(mig|vgpu|vfio)([.'"-]|$)|\.profile\b""")
_DRIVER = re.compile(r"""device\s*\.\s*driver\s*==\s*["']([^"']+)["']""")


def is_gpu_driver(driver: str) -> bool:
    """Whether the devices of this driver are GPUs or parts of GPUs."""
    return bool(_GPU.search(driver))


def is_gpu(device: Device) -> bool:
    """Whether it is a GPU, whole or in part."""
    return is_gpu_driver(device.driver)


def is_whole(device: Device) -> bool:
    """A GPU that is no partition of one (MIG, vGPU slot)."""
    kind = device.attributes.get(f"{device.driver}/type")
    return is_gpu(device) and kind not in ("mig", "vgpu") and not _parent(device)


def _parent(device: Device) -> bool:
    return f"{device.driver}/parentUUID" in device.attributes


def asked(claim: Claim, classes: Mapping[str, Class]) -> dict[str, int]:
    """DeviceClass -> GPUs that the claim asks for, at least; ``All`` counts as one.

    Of alternatives the first counts. A class whose selectors name a driver goes by that; another
    by its own name.
    """
    found: dict[str, int] = {}
    for request in claim.requests:
        for want in request.wants[:1]:
            if not want.admin_access and _of_gpus(want, classes):
                number = want.count if want.mode == "ExactCount" else 1
                found[want.device_class] = found.get(want.device_class, 0) + number
    return found


def _of_gpus(want: Want, classes: Mapping[str, Class]) -> bool:
    known = classes.get(want.device_class)
    return is_gpu_class(known) if known is not None else is_gpu_driver(want.device_class)


def is_for_gpus_of(class_: Class, vendor: str) -> bool:
    """Whether the class is for whole GPUs of ``nvidia.com`` or another: not for parts of them, nor
    for GPUs as seen by virtual machines."""
    texts = [text for text in (class_.name, *class_.selectors) if text]
    partial = any(_PART.search(text) for text in texts)
    return is_gpu_class(class_) and not partial and any(vendor in text for text in texts)


def is_gpu_class(class_: Class) -> bool:
    """Whether the class is for GPUs, by the driver that its selectors name, else by its name."""
    drivers = [driver for text in class_.selectors if text for driver in _DRIVER.findall(text)]
    return any(map(is_gpu_driver, drivers or [class_.name]))
