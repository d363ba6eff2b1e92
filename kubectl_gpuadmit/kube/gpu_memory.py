"""How much memory one GPU of a node has, from its labels or from known products; guesses nothing.

Amounts are MiB as NVML reports them. An "80 GB" H100 has 81559 MiB, an A100-40GB 40960: a limit in
GB means what product names mean by it, MiB / 1024.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

MIB_PER_GB = 1024

_PRODUCTS: tuple[tuple[str, int], ...] = (
    # total memory that NVML reports, from listings of nvidia-smi and GFD labels of real nodes
    (r"A100.*-80GB|A800.*-80GB", 81920),
    (r"A100.*-40GB|A800.*-40GB", 40960),
    (r"H100-NVL", 95830),
    (r"H100-80GB|H100-PCIe|H100-SXM|H800", 81559),
    (r"GH200-480GB", 97871),
    (r"H20(?![0-9])", 97871),
    (r"H200", 143771),
    (r"B200", 183359),
    (r"B300", 275040),
    (r"RTX-PRO-6000", 97887),
    (r"RTX-6000-Ada", 49140),
    (r"RTX-A6000", 49140),
    (r"RTX-A5000", 24564),
    (r"L40S", 46068),
    (r"L40(?![0-9S])", 46068),
    (r"L20(?![0-9])", 46068),
    (r"L4(?![0-9])", 23034),
    (r"A40(?![0-9])", 46068),
    (r"A30(?![0-9])", 24576),
    (r"A10G?(?![0-9A-Z])", 23028),
    (r"V100.*-32GB", 32768),
    (r"V100.*-16GB", 16384),
    (r"T4(?![0-9])", 15360),
    (r"GB10(?![0-9])", 124610),  # shared with the host, as the driver gives it
    (r"A2(?![0-9])", 15356),
    (r"RTX-A4000", 16376),
    (r"RTX-A4500", 20470),
    (r"RTX-5090", 32607),
    (r"RTX-5080", 16303),
    (r"RTX-5070-Ti", 16303),
    (r"RTX-4090", 24564),
    (r"RTX-4080", 16376),
    (r"RTX-3090", 24576),
    (r"RTX-4070-Ti-SUPER", 16376),
    (r"RTX-3080-Ti", 12288),
    (r"RTX-3060(?!-)", 12288),
    (r"RTX-2080-Ti", 11264),
    (r"P100.*-16GB", 16384),
)
"""(regular expression found in ``nvidia.com/gpu.product``, MiB). First match wins."""

_SLICES: dict[str, dict[str, int]] = {
    # memory that NVML reports for a MIG slice: go-nvml's tables of the machines, GFD labels
    "A100-40": {"1g.5gb": 4864, "2g.10gb": 9856, "3g.20gb": 19968, "7g.40gb": 40192},
    "80": {"1g.10gb": 9856, "2g.20gb": 19968, "3g.40gb": 40192, "7g.80gb": 80384},
}
MIG_PROFILES: dict[str, dict[str, int]] = {
    # profile: how many one GPU holds (mig-parted config-default.yaml, MIG user guide)
    "A30": {"1g.6gb": 4, "2g.12gb": 2, "4g.24gb": 1},
    "A100-40GB": {
        "1g.5gb": 7,
        "1g.10gb": 4,
        "2g.10gb": 3,
        "3g.20gb": 2,
        "4g.20gb": 1,
        "7g.40gb": 1,
    },
    "A100-80GB": {
        "1g.10gb": 7,
        "1g.20gb": 4,
        "2g.20gb": 3,
        "3g.40gb": 2,
        "4g.40gb": 1,
        "7g.80gb": 1,
    },
    "H100-80GB": {
        "1g.10gb": 7,
        "1g.20gb": 4,
        "2g.20gb": 3,
        "3g.40gb": 2,
        "4g.40gb": 1,
        "7g.80gb": 1,
    },
    "H100-NVL": {
        "1g.12gb": 7,
        "1g.24gb": 4,
        "2g.24gb": 3,
        "3g.47gb": 2,
        "4g.47gb": 1,
        "7g.94gb": 1,
    },
    "GH200-480GB": {
        "1g.12gb": 7,
        "1g.24gb": 4,
        "2g.24gb": 3,
        "3g.48gb": 2,
        "4g.48gb": 1,
        "7g.96gb": 1,
    },
    "H200": {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1},
    "B200": {"1g.23gb": 7, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "4g.90gb": 1, "7g.180gb": 1},
    "B300": {"1g.34gb": 7, "1g.67gb": 4, "2g.67gb": 3, "3g.135gb": 2, "4g.135gb": 1, "7g.269gb": 1},
    "RTX-PRO-6000": {"1g.24gb": 4, "2g.48gb": 2, "4g.96gb": 1},
}
"""By product as ``product_mib`` finds it. Names depend on the driver: labels outrank this."""

_MIG = re.compile(r"nvidia\.com/mig-([0-9]+g\.[0-9]+gb)[-.+a-z0-9]*")
_WHOLE_IS_SLICE = re.compile(r"-MIG-([0-9]+g\.[0-9]+gb)")


def memory_mib(labels: Mapping[str, str], resource: str) -> int | None:
    """MiB of one unit of ``resource`` on a node with these labels; None where nothing says.

    For ``nvidia.com/gpu``: label ``nvidia.com/gpu.memory`` (GPU Feature Discovery), else the
    product. For ``nvidia.com/mig-PROFILE``: label ``nvidia.com/mig-PROFILE.memory``, else the
    profile's known size, else the size in its name. A time-sliced GPU counts whole: nothing bounds
    its users.
    """
    mig = _MIG.fullmatch(resource)
    label = labels.get(f"{resource}.memory" if mig else "nvidia.com/gpu.memory", "")
    if label.isascii() and label.isdecimal() and 0 < len(label) < 10:
        return int(label) or None
    product = labels.get("nvidia.com/gpu.product", "")
    if mig:
        return _slice_mib(product, mig[1])
    if resource.startswith("nvidia.com/"):
        return product_mib(product)
    return None


@lru_cache(maxsize=1024)
def product_mib(product: str) -> int | None:
    """MiB of a known product as GFD names it (``NVIDIA-A100-SXM4-40GB``); None for others.

    With MIG strategy ``single`` the product names the slice: ``…-MIG-1g.5gb``.
    """
    if slice_of := _WHOLE_IS_SLICE.search(product):
        return _slice_mib(product[: slice_of.start()], slice_of[1])
    for pattern, mib in _PRODUCTS:
        if re.search(rf"(?:^|-){pattern}", product):
            return mib
    return None


def _slice_mib(product: str, profile: str) -> int:
    family = "A100-40" if product_mib(product) == 40960 else "80"
    nominal = int(profile.partition(".")[2].removesuffix("gb")) * MIB_PER_GB
    return _SLICES[family].get(profile, nominal)
