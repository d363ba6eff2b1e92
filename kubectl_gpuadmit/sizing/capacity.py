"""What the driver gives of a GPU, and arguments that no engine takes."""

from __future__ import annotations

from kubectl_gpuadmit.sizing.amount import Range
from kubectl_gpuadmit.sizing.constants import RESERVED, RESERVED_OF
from kubectl_gpuadmit.sizing.plan import NoPlan
from kubectl_gpuadmit.sizing.serving import Serving

MIB = 1 << 20


def capacity_of(device_mib: int, product: str) -> Range:
    """Bytes that the driver gives of a device: NVML's total less what it keeps."""
    size = device_mib * float(MIB)
    name = product.upper()
    known = "A100-40" if "A100" in name and device_mib < 50000 else ""
    known = known or ("A100-80" if "A100" in name else "")
    words = name.replace(" ", "-").split("-")
    known = known or next((key for key in RESERVED_OF if key in words), "")
    known = known or next((k for k in RESERVED_OF if k in name.replace(" ", "-")), "")
    if known and "MIG" not in name:
        kept = RESERVED_OF[known]
        return Range(size * (1 - kept - 0.002), size * (1 - kept), size * (1 - kept + 0.002))
    return Range(
        size * (1 - RESERVED.high), size * (1 - RESERVED.likely), size * (1 - RESERVED.low)
    )


def require_sound(serving: Serving) -> None:
    """Raises NoPlan for numbers that no engine takes."""
    counts = (
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "expert_parallel_size",
        "decode_context_parallel_size",
        "max_num_seqs",
        "max_num_batched_tokens",
        "block_size",
        "max_model_len",
    )
    wrong = [
        f"a sound {name} ({getattr(serving, name)} cannot be)"
        for name in counts
        if getattr(serving, name) is not None and not 0 < getattr(serving, name) <= 1 << 30
    ]
    for name in ("gpu_memory_utilization", "mem_fraction_static", "free_gpu_memory_fraction"):
        share = getattr(serving, name)
        if share is not None and not 0 < share <= 1:
            wrong.append(f"a sound {name} ({share:g} is not between 0 and 1)")
    if wrong:
        raise NoPlan(*wrong)
