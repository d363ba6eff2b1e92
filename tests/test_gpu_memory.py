"""Memory of a GPU as its node's labels say, else as its product is known to have."""

from __future__ import annotations

import pytest

from kubectl_gpuadmit.kube.gpu_memory import memory_mib

PRODUCT = "nvidia.com/gpu.product"


@pytest.mark.parametrize(
    ("labels", "resource", "mib"),
    [
        ({"nvidia.com/gpu.memory": "81559"}, "nvidia.com/gpu", 81559),
        ({"nvidia.com/gpu.memory": "lots", PRODUCT: "Tesla-T4"}, "nvidia.com/gpu", 15360),
        ({PRODUCT: "A100-PCIE-40GB"}, "nvidia.com/gpu", 40960),
        ({PRODUCT: "NVIDIA-A100-80GB-PCIe"}, "nvidia.com/gpu", 81920),
        ({PRODUCT: "NVIDIA-H100-80GB-HBM3-SHARED"}, "nvidia.com/gpu.shared", 81559),
        ({PRODUCT: "NVIDIA-L40S"}, "nvidia.com/gpu", 46068),
        ({PRODUCT: "NVIDIA-L40"}, "nvidia.com/gpu", 46068),
        ({PRODUCT: "NVIDIA-L4"}, "nvidia.com/gpu", 23034),
        ({PRODUCT: "NVIDIA-A10G"}, "nvidia.com/gpu", 23028),
        ({PRODUCT: "NVIDIA-A1000"}, "nvidia.com/gpu", None),
        ({PRODUCT: "NVIDIA-GB200"}, "nvidia.com/gpu", None),
        ({}, "nvidia.com/gpu", None),
        ({PRODUCT: "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}, "nvidia.com/gpu", 4864),
        ({"nvidia.com/mig-1g.5gb.memory": "4864"}, "nvidia.com/mig-1g.5gb", 4864),
        ({PRODUCT: "NVIDIA-A100-SXM4-40GB"}, "nvidia.com/mig-2g.10gb", 9856),
        ({PRODUCT: "NVIDIA-H100-80GB-HBM3"}, "nvidia.com/mig-1g.10gb.me", 9856),
        ({PRODUCT: "NVIDIA-H200"}, "nvidia.com/mig-3g.71gb", 72704),
        ({PRODUCT: "Tesla-T4"}, "amd.com/gpu", None),
    ],
)
def test_memory_is_known_or_unknown(labels: dict[str, str], resource: str, mib: int | None) -> None:
    assert memory_mib(labels, resource) == mib
