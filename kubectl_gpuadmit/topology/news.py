"""Whether a new report of a node is worth a write; compares two reports and makes none."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kubectl_gpuadmit.kube.gpu_topology import GpuTopologySpec

DRIFT_MIB = 1024
"""Memory in use that differs by less is left as it was reported."""


def changed(old: GpuTopologySpec | None, new: GpuTopologySpec) -> bool:
    """Whether the difference is worth a write at once. Memory in use and counts of errors are not:
    a model that loads, or a GPU that reports the same error each second, must not cost the API
    server a write a pass."""
    return old is None or _news(old) != _news(new)


def drifted(old: GpuTopologySpec, new: GpuTopologySpec) -> bool:
    """Whether what is no news has moved so far that the heartbeat should carry it along."""
    if any(a.xids != b.xids for a, b in zip(old.gpus, new.gpus, strict=False)):
        return True
    return any(
        abs((a or 0) - (b or 0)) >= DRIFT_MIB
        for a, b in zip(_amounts(old), _amounts(new), strict=False)
    )


def _news(spec: GpuTopologySpec) -> GpuTopologySpec:
    """The report without its time, and without what varies all the time."""
    return replace(
        spec,
        asOf="",
        gpus=tuple(
            replace(
                gpu,
                usedMiB=None,
                residueMiB=bool(gpu.residueMiB) if gpu.residueMiB is not None else None,
                xids=tuple(replace(xid, at="", count=1) for xid in gpu.xids),
                mig=tuple(replace(part, usedMiB=None) for part in gpu.mig),
            )
            for gpu in spec.gpus
        ),
        holders=None
        if spec.holders is None
        else tuple(replace(one, usedMiB=None) for one in spec.holders),
    )


def _amounts(spec: GpuTopologySpec) -> Iterator[int | None]:
    for gpu in spec.gpus:
        yield gpu.usedMiB
        yield gpu.residueMiB
        for part in gpu.mig:
            yield part.usedMiB
