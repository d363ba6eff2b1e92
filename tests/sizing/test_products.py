"""GPUs as people write them, and the ones that are looked through for advice."""

from __future__ import annotations

import pytest

from kubectl_gpuadmit.kube.gpu_memory import MIG_PROFILES, product_mib
from kubectl_gpuadmit.sizing.products import ADVISED, advised, named


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("H100 80GB", 81559),
        ("NVIDIA-H100-80GB-HBM3", 81559),
        ("h100", 81559),
        ("H100 NVL", 95830),
        ("A100", 81920),
        ("A100 40GB", 40960),
        ("NVIDIA A100-SXM4-40GB", 40960),
        ("L4", 23034),
        ("l4 24gb", 23034),
        ("NVIDIA L40S", 46068),
        ("T4", 15360),
        ("RTX 4090", 24564),
        ("4090", 24564),
        ("rtx 6000 ada", 49140),
        ("RTX PRO 6000 Blackwell 96GB", 97887),
        ("A100-80GB 1g.10gb", 9856),
        ("H200 MIG 3g.71gb", 72704),
        ("24576", 24576),
        ("81,559 MiB", 81559),
        ("40GiB", 40960),
    ],
)
def test_a_gpu_is_found_as_people_write_it(text: str, mib: int) -> None:
    product = named(text)
    assert product is not None
    assert product.mib == mib


@pytest.mark.parametrize(
    "text",
    ["", "-", "24GB", "H100 40GB", "L4 48GB", "GB200", "H100 3g.99gb", "12", "99999999999", "tpu"],
)
def test_what_names_no_gpu_is_not_guessed(text: str) -> None:
    assert named(text) is None


def test_every_advised_product_is_known_and_they_come_by_memory() -> None:
    found = advised()
    assert len(found) == len(ADVISED)
    assert [product.mib for product in found] == sorted(product.mib for product in found)


@pytest.mark.parametrize("product", MIG_PROFILES)
def test_every_product_with_slices_is_a_known_product(product: str) -> None:
    assert product_mib(f"NVIDIA-{product}") or product_mib(product)
