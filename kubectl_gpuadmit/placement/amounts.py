"""Amounts of a resource in the scheduler's unit as people read them."""

from __future__ import annotations

_SIZES = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def amount(resource: str, number: int) -> str:
    """``4`` GPUs, ``1500m`` or ``2`` of cpu, ``64Gi`` or ``1.5Gi`` of memory."""
    if resource == "cpu":
        return str(number // 1000) if number % 1000 == 0 else f"{number}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for suffix, size in _SIZES:
            if abs(number) >= size:
                return f"{number / size:.1f}".removesuffix(".0") + suffix
    return str(number)
