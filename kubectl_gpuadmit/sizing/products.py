"""GPUs as people write them, and the products that ``fit --advise`` looks through."""

from __future__ import annotations

import re

from msgspec import Struct

from kubectl_gpuadmit.kube.gpu_memory import MIG_PROFILES, product_mib

MOST_MIB = 1 << 24
"""16 TiB: more is a mistyped number."""


class Product(Struct, frozen=True):
    """A GPU or a MIG slice. ``name`` is what GFD would label it; ``mib`` as NVML reports."""

    name: str
    mib: int
    most: int = 8
    """GPUs of a usual node."""


ADVISED: tuple[tuple[str, int], ...] = (
    # product and how many a usual node of a cloud has, smallest memory first
    ("Tesla-T4", 8),
    ("NVIDIA-A10G", 8),
    ("NVIDIA-L4", 8),
    ("NVIDIA-A30", 8),
    ("NVIDIA-GeForce-RTX-4090", 8),
    ("NVIDIA-GeForce-RTX-5090", 8),
    ("NVIDIA-A100-SXM4-40GB", 8),
    ("NVIDIA-A40", 8),
    ("NVIDIA-L40S", 8),
    ("NVIDIA-RTX-6000-Ada-Generation", 8),
    ("NVIDIA-H100-80GB-HBM3", 8),
    ("NVIDIA-A100-SXM4-80GB", 8),
    ("NVIDIA-H100-NVL", 8),
    ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 8),
    ("NVIDIA-H200", 8),
    ("NVIDIA-B200", 8),
    ("NVIDIA-B300", 8),
)

_ALIASES = {
    # short names with one meaning; the first of a family that clouds offer
    "A100": "NVIDIA-A100-SXM4-80GB",
    "A100-80": "NVIDIA-A100-SXM4-80GB",
    "A100-80GB": "NVIDIA-A100-SXM4-80GB",
    "A100-40": "NVIDIA-A100-SXM4-40GB",
    "A100-40GB": "NVIDIA-A100-SXM4-40GB",
    "H100": "NVIDIA-H100-80GB-HBM3",
    "H100-80": "NVIDIA-H100-80GB-HBM3",
    "H100-94GB": "NVIDIA-H100-NVL",
    "V100": "Tesla-V100-SXM2-16GB",
    "T4": "Tesla-T4",
    "3090": "NVIDIA-GeForce-RTX-3090",
    "4090": "NVIDIA-GeForce-RTX-4090",
    "5090": "NVIDIA-GeForce-RTX-5090",
}
_MIB = re.compile(r"([0-9][0-9,]*)(?:-?MIB|M)?")
_GIB = re.compile(r"([0-9]+(?:\.[0-9]+)?)-?(?:GIB|GI)")
_SLICE = re.compile(r"[-/ ](?:MIG[- ])?([0-9]+G\.[0-9]+GB)$")
_SAID = re.compile(r"-([0-9]{1,4})GB(?:-|$)")
_NOISE = re.compile(r"^(?:NVIDIA|TESLA|GEFORCE|QUADRO)-")


def named(text: str) -> Product | None:
    """The GPU that a person means: ``H100 80GB``, ``NVIDIA-H100-80GB-HBM3``, ``l4``, ``24576``
    (MiB), ``40GiB``, ``A100-80GB 1g.10gb`` (a slice); None for what nobody knows.

    Memory alone is not a product: ``24GB`` says too little of how much of it is free to use, so
    amounts are MiB or GiB.
    """
    words = re.sub(r"[\s_]+", "-", text.strip().upper()).strip("-")
    if not words or len(words) > 100:
        return None
    if (bare := _MIB.fullmatch(words)) and words not in _ALIASES:
        mib = int(bare[1].replace(",", ""))
        return Product("", mib) if 1024 <= mib <= MOST_MIB else None
    if sized := _GIB.fullmatch(words):
        mib = int(float(sized[1]) * 1024)
        return Product("", mib) if 1024 <= mib <= MOST_MIB else None
    part = _SLICE.search(words)
    whole = words[: part.start()] if part else words
    name = _full_name(whole)
    if name is None:
        return None
    if part:
        profile = part[1].lower()
        if not any(
            profile in profiles for of, profiles in MIG_PROFILES.items() if of in _plain(name)
        ):
            return None
        name = f"{name}-MIG-{profile}"
    mib_of = product_mib(name)
    said = _SAID.search(whole)
    if mib_of is None or (not part and said and abs(int(said[1]) * 1000 / mib_of - 1) > 0.15):
        return None  # a product of another size than the name says
    return Product(name, mib_of)


def _full_name(words: str) -> str | None:
    """GFD's name of a product: as written, or the one that a short name means."""
    short = _NOISE.sub("", words)
    if short in _ALIASES:
        return _ALIASES[short]
    cased = _cased(words)
    for name in (cased, f"NVIDIA-{_NOISE.sub('', cased)}"):
        if product_mib(name):
            return name
    return None


def _plain(name: str) -> str:
    """``NVIDIA-A100-SXM4-80GB`` as MIG_PROFILES spells it: ``A100-80GB``."""
    return re.sub(r"-(?:SXM[0-9]?|PCIE|PCIe)-", "-", name).replace("-HBM3", "")


def _cased(words: str) -> str:
    """As GFD writes it where case matters."""
    for lower, right in (("-ADA", "-Ada"), ("PCIE", "PCIe"), ("-TI", "-Ti")):
        words = words.replace(lower, right)
    return words


def advised() -> tuple[Product, ...]:
    """Products to look through, least memory first."""
    found = [
        Product(name, mib, most) for name, most in ADVISED if (mib := product_mib(name)) is not None
    ]
    return tuple(sorted(found, key=lambda product: (product.mib, product.name)))
