"""Which resource names are GPUs, what one unit of each physically is, and how many a pod asks for.

Rules of this module
1. A count is what Kubernetes would book: limits stand for missing requests, init containers by the
   maximum rule, sidecars added (component-helpers v0.37.2 resource/helpers.go, PodRequests).
2. Toleration keys, node selectors, labels, comments and ``managedFields`` never count: only
   resources do, and the few annotations by which Run:ai and KAI book without a resource.
3. A name that measures a share of a device (``nvidia.com/gpumem``) is no count of devices.

It does not know which physical device a pod gets, nor what DRA claims bring.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.objects import Container, Pod
from kubectl_gpuadmit.kube.pointers import token

Kind = Literal["whole", "shared", "mig", "memory", "cores", "fraction"]


class Means(Struct, frozen=True):
    """What one unit of a resource is.

    ``whole``: a device of its own. ``shared``: a place on a device that others use too
    (time-slicing, MPS, HAMi without shares). ``mig``: a MIG slice or another hardware partition.
    ``memory``, ``cores``: an amount of a device that stands beside or instead of a count.
    ``fraction``: part of one device, booked by annotation.
    """

    kind: Kind
    vendor: str
    unit: str = "devices"
    """``devices``, ``MiB``, ``GiB``, ``percent`` …; ``GiB or MiB`` where the plugin's flag
    decides."""
    profile: str = ""
    """MIG or partition profile, e.g. ``3g.20gb``."""
    legacy: str = ""
    """The name that has replaced this one."""

    @property
    def counts_devices(self) -> bool:
        return self.kind in ("whole", "shared", "mig")


DEFAULT: tuple[str, ...] = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/gpu-*",
    "nvidia.com/mig-*",
    "amd.com/gpu*",
    "amd.com/[scdtq]px_nps*",
    "gpu.intel.com/*",
    "aliyun.com/gpu-mem",
    "aliyun.com/gpu-count",
    "volcano.sh/vgpu-number",
    "k8s.amazonaws.com/vgpu",
    "tencent.com/vcuda-core",
    "alpha.kubernetes.io/nvidia-gpu",
)
"""Patterns (fnmatch, case counts) of the resources that say by themselves that a pod uses a GPU."""

ACCELERATORS: tuple[str, ...] = (
    "google.com/tpu",
    "cloud-tpus.google.com/*",
    "aws.amazon.com/neuron*",
    "habana.ai/gaudi*",
    "huawei.com/[Aa]scend*",
    "cambricon.com/*",
    "qualcomm.com/qaic*",
)
"""Accelerators that are no GPUs: counted apart, never as GPUs."""

_SHARES: dict[str, Means] = {
    "nvidia.com/gpumem": Means("memory", "nvidia", "MiB"),
    "nvidia.com/gpumem-percentage": Means("memory", "nvidia", "percent"),
    "nvidia.com/gpucores": Means("cores", "nvidia", "percent"),
    "nvidia.com/total-gpucores": Means("cores", "nvidia", "percent"),
    "nvidia.com/total-gpumem": Means("memory", "nvidia", "MiB"),
    "nvidia.com/priority": Means("cores", "nvidia", "priority"),
    "aliyun.com/gpu-mem": Means("memory", "nvidia", "GiB or MiB"),
    "volcano.sh/gpu-memory": Means("memory", "nvidia", "MiB"),
    "volcano.sh/vgpu-memory": Means("memory", "nvidia", "MiB"),
    "volcano.sh/vgpu-cores": Means("cores", "nvidia", "percent"),
    "tencent.com/vcuda-core": Means("cores", "nvidia", "hundredths of a device"),
    "tencent.com/vcuda-memory": Means("memory", "nvidia", "256 MiB"),
    "gpu.intel.com/memory.max": Means("memory", "intel", "bytes"),
    "gpu.intel.com/millicores": Means("cores", "intel", "thousandths of a device"),
    "gpu.intel.com/tiles": Means("cores", "intel", "tiles"),
    "gpu.intel.com/i915_monitoring": Means("cores", "intel", "monitoring access"),
    "gpu.intel.com/xe_monitoring": Means("cores", "intel", "monitoring access"),
}
_MIG = re.compile(r"nvidia\.com/mig-(?P<profile>[0-9]+g\.[0-9]+gb(?:[.+a-z0-9]*)?)")
_AMD_PARTITION = re.compile(r"amd\.com/(?P<profile>[a-z]px_nps[0-9]+)")

ANNOTATED_FRACTION = "gpu-fraction"
"""Key of ``pod_gpus`` for the devices on which a pod holds a share by Run:ai/KAI annotation."""


@lru_cache(maxsize=4096)
def means(resource: str) -> Means | None:
    """The physical meaning of a GPU resource name; None for a name that is none we know."""
    known = _SHARES.get(resource)
    if known:
        return known
    if resource == "alpha.kubernetes.io/nvidia-gpu":
        return Means("whole", "nvidia", legacy="nvidia.com/gpu")
    mig = _MIG.fullmatch(resource)
    if mig:
        return Means("mig", "nvidia", profile=mig["profile"])
    partition = _AMD_PARTITION.fullmatch(resource)
    if partition:
        return Means("mig", "amd", profile=partition["profile"])
    if resource.endswith(".shared") and resource.startswith(("nvidia.com/", "gpu.intel.com/")):
        return Means("shared", "intel" if "intel" in resource else "nvidia")
    if resource in ("volcano.sh/vgpu-number", "k8s.amazonaws.com/vgpu"):
        return Means("shared", "nvidia")
    if is_gpu(resource):
        domain = resource.split("/", 1)[0]
        return Means("whole", next((v for v in ("amd", "intel") if v in domain), "nvidia"))
    return None


@lru_cache(maxsize=4096)
def _matches(resource: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(resource, pattern) for pattern in patterns)


def is_gpu(resource: str, patterns: Sequence[str] = DEFAULT) -> bool:
    """True where the name says that a pod uses a GPU; shares that stand beside a count are not.

    ``patterns`` are those of the policy: shell patterns over the whole name.
    """
    share = _SHARES.get(resource)
    if share is not None and resource not in patterns:
        return False
    return _matches(resource, tuple(patterns))


def is_accelerator(resource: str) -> bool:
    """TPU, Neuron, Gaudi …: an accelerator, but no GPU."""
    return _matches(resource, ACCELERATORS)


def _asked(container: Container) -> dict[str, int]:
    """What the API server would store as requests: limits where requests are silent."""
    resources = container.resources
    if resources is None:
        return {}
    found: dict[str, int] = {}
    for name, text in {**(resources.limits or {}), **(resources.requests or {})}.items():
        try:
            found[name] = quantity.value(text)
        except quantity.QuantityError:
            continue  # reported where the manifest is read
    return found


def _booked(pod: Pod, wanted: Callable[[str], bool]) -> dict[str, int]:
    """PodRequests for the names that ``wanted`` keeps."""
    total: dict[str, int] = {}
    for container in pod.spec.containers or ():
        _add(total, _asked(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.spec.initContainers or ():
        asked = _asked(container)
        if container.restartPolicy == "Always":
            _add(total, asked)
            _add(sidecars, asked)
            asked = sidecars
        else:
            asked = dict(asked)
            _add(asked, sidecars)
        for name, amount in asked.items():
            peak[name] = max(peak.get(name, 0), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, 0), amount)
    return {name: amount for name, amount in total.items() if amount and wanted(name)}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


_MEMO: dict[int, tuple[Pod, tuple[str, ...], dict[str, int]]] = {}
_MEMO_SIZE = 512
"""Every rule asks the same of the pod in hand: the last few answers, by identity."""


def pod_gpus(pod: Pod, patterns: Sequence[str] = DEFAULT) -> dict[str, int]:
    """GPU resource -> amount that one such pod books, sorted by name; ``{}`` for none.

    A pod that holds a share by annotation has ``{"gpu-fraction": devices}``; a MIG slice by Run:ai
    annotation appears under its resource name. Shares of memory that stand alone
    (``aliyun.com/gpu-mem``) appear in their own unit.
    """
    chosen = tuple(patterns)
    known = _MEMO.get(id(pod))
    if known is None or known[0] is not pod or known[1] != chosen:
        if len(_MEMO) >= _MEMO_SIZE:
            _MEMO.clear()
        known = _MEMO[id(pod)] = (pod, chosen, _pod_gpus(pod, chosen))
    return dict(known[2])


def _pod_gpus(pod: Pod, chosen: tuple[str, ...]) -> dict[str, int]:
    found = _booked(pod, lambda name: is_gpu(name, chosen))
    annotations = pod.annotations
    if not any(key in annotations for key in ("gpu-fraction", "gpu-memory")) or found:
        for key, value in annotations.items():
            if key not in found and _MIG.fullmatch(key) and value.strip().isdecimal():
                found[key] = int(value)
    else:
        devices = annotations.get("gpu-fraction-num-devices", "1").strip()
        found[ANNOTATED_FRACTION] = int(devices) if devices.isdecimal() else 1
    if not found and _booked(pod, _hami_alone):
        found["nvidia.com/gpu"] = 1  # HAMi books one device for a pod that names shares only
    return dict(sorted((name, amount) for name, amount in found.items() if amount))


def _hami_alone(name: str) -> bool:
    return name in ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores")


def pod_accelerators(pod: Pod) -> dict[str, int]:
    """The same for accelerators that are no GPUs."""
    return dict(sorted(_booked(pod, is_accelerator).items()))


class Share(Struct, frozen=True):
    """What part of each device the pod gets; None where nothing bounds it."""

    memory_mib: int | None = None
    memory_percent: float | None = None
    cores_percent: int | None = None
    by: str = ""
    """The resource or annotation that says so."""


def share(pod: Pod) -> Share | None:
    """The share of each of its devices that a pod books by HAMi resources or KAI/Run:ai annotation.

    None for whole devices and for plain time-slicing, which bounds nothing. Memory is MiB a device.
    """
    annotations = pod.annotations
    fraction = annotations.get("gpu-fraction", "")
    if re.fullmatch(r"0?\.[0-9]+|1(?:\.0+)?", fraction):
        return Share(memory_percent=float(fraction) * 100, by="annotation gpu-fraction")
    memory = annotations.get("gpu-memory", "")
    if memory.isdecimal():
        return Share(memory_mib=int(memory), by="annotation gpu-memory")
    for container in pod.spec.containers or ():
        asked = _asked(container)
        if any(_hami_alone(name) for name in asked):
            percent = asked.get("nvidia.com/gpumem-percentage")
            return Share(
                memory_mib=asked.get("nvidia.com/gpumem"),
                memory_percent=None if percent is None else float(percent),
                cores_percent=asked.get("nvidia.com/gpucores"),
                by="HAMi resources",
            )
    return None


class Bypass(Struct, frozen=True):
    """A way in which a container reaches GPUs that nothing books."""

    container: str
    how: Literal["visible-devices", "device-mount", "privileged-host-path", "cdi", "runtime-class"]
    value: str
    pointer: str
    """Inside the pod template."""


_NOTHING_VISIBLE = ("", "void", "none", "NoDevFiles")
_DEVICE_PATHS = re.compile(
    r"/dev/?|/dev/(?:nvidia.*|dri(?:/.*)?|kfd)|/(?:usr/local|home/kubernetes/bin|run)/nvidia.*"
)


def bypasses(pod: Pod, patterns: Sequence[str] = DEFAULT) -> tuple[Bypass, ...]:
    """Every way past the booking that is visible in the pod itself.

    The kubelet puts a pod's own ``env`` after the device plugin's, so
    ``NVIDIA_VISIBLE_DEVICES=all`` shows every GPU of the node whatever the container has booked. An
    image may set the variable too: that cannot be seen here, except that ``runtimeClassName:
    nvidia`` without a request invites it.
    """
    found: list[Bypass] = []
    books = bool(pod_gpus(pod, patterns))
    host_paths = {
        volume.name: volume.hostPath.path for volume in pod.spec.volumes or () if volume.hostPath
    }
    for field in ("initContainers", "containers"):
        containers: tuple[Container, ...] = getattr(pod.spec, field) or ()
        for index, container in enumerate(containers):
            at = f"/spec/{field}/{index}"
            for number, env in enumerate(container.env or ()):
                if (
                    env.name == "NVIDIA_VISIBLE_DEVICES"
                    and (env.value or "") not in _NOTHING_VISIBLE
                ):
                    found.append(
                        Bypass(
                            container.name, "visible-devices", env.value or "", f"{at}/env/{number}"
                        )
                    )
            privileged = bool(container.securityContext and container.securityContext.privileged)
            for number, mount in enumerate(container.volumeMounts or ()):
                where = f"{at}/volumeMounts/{number}"
                if mount.mountPath.startswith("/var/run/nvidia-container-devices/"):
                    found.append(Bypass(container.name, "device-mount", mount.mountPath, where))
                path = host_paths.get(mount.name, "")
                if privileged and not books and path and _DEVICE_PATHS.fullmatch(path):
                    found.append(Bypass(container.name, "privileged-host-path", path, where))
    for key, value in sorted(pod.annotations.items()):
        if key.startswith("cdi.k8s.io/") and "/gpu=" in value:
            found.append(Bypass("", "cdi", value, f"/metadata/annotations/{token(key)}"))
    runtime = pod.spec.runtimeClassName or ""
    if runtime.startswith("nvidia") and not books and not pod.spec.resourceClaims:
        found.append(Bypass("", "runtime-class", runtime, "/spec/runtimeClassName"))
    return tuple(found)
