"""What expressions cost: numbers that cel-go 0.29.2 gave for them in Kubernetes 1.37.2."""

from __future__ import annotations

import pytest

from kubectl_gpuadmit.cel import dra
from kubectl_gpuadmit.kube import quantity

DEVICE = dra.Device(
    "gpu.example.com",
    {
        "name": "A100-SXM4-80GB",
        "index": 7,
        "healthy": True,
        "version": dra.Version("550.54.15"),
        "names": ["mig", "H100"],
    },
    {"memory": quantity.parse("80Gi")},
)
NAME = 'device.attributes["gpu.example.com"].name'
NAMES = 'device.attributes["gpu.example.com"].names'
ENDLESS = 2**64 - 1


def selector(text: str) -> dra.Selector:
    compiled = dra.compile(text)
    assert isinstance(compiled, dra.Selector), compiled
    return compiled


COSTS = {
    "true": (0, 0),
    f'{NAME} == "H100"': (5, 5),
    f'{NAME}.matches("^H[0-9]+")': (18, 8),
    f"has({NAME})": (3, 3),
    f'{NAME} in ["A100-SXM4-80GB", "H100"]': (16, 4),
    f"{NAMES}.exists(n, n == {NAME})": (1029, 25),
    f"{NAMES}.map(n, n).size() == 2": (849, 33),
    f'{NAMES}.filter(n, n != "mig").all(n, n.startsWith("H"))': (1296, 28),
    f'cel.bind(a, {NAME}, a != "" && a.lowerAscii().contains("sxm"))': (30, 10),
    'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))': (6, 6),
    'device.attributes["gpu.example.com"].?name.orValue("x").endsWith("GB")': (6, 5),
    'device.attributes["gpu.example.com"].missing == "x"': (5, 5),
    "([1, 2, 3] + [4]).sortBy(n, -n)[0] == 4": (145, 106),
    'device.attributes["gpu.example.com"].exists(k, v, k >= k)': (420, 14),
    f'{NAMES}.join(",").size() > 0': (13, 8),
}
"""Expression → (estimate, cost on DEVICE)."""


@pytest.mark.parametrize("text", COSTS)
def test_estimate_and_cost_are_those_of_kubernetes(text: str) -> None:
    found = selector(text)
    cost = found.program.cost(DEVICE.variables, dra.MOST_COST)
    assert (found.most, cost) == COSTS[text]


def test_an_expression_over_the_limit_of_the_estimate_is_too_complex() -> None:
    twice = f'{NAMES}.exists(a, {NAMES}.exists(b, a == "x" && b == "y"))'
    assert selector(twice).too_complex == ""
    thrice = f'{NAMES}.exists(a, {NAMES}.exists(b, {NAMES}.exists(c, b + c == "xy")))'
    assert selector(thrice).too_complex == "too complex, exceeds cost limit"


def test_two_list_attributes_cannot_be_compared_for_nothing_bounds_their_texts() -> None:
    found = selector(f"{NAMES}.exists(a, {NAMES}.exists(b, a == b))")
    assert (found.most, found.too_complex) == (ENDLESS, "too complex, exceeds cost limit")


def test_the_limit_of_a_run_is_the_last_cost_that_is_allowed() -> None:
    # 11 units for the list beside its numbers, 1 for the size and 1 for the comparison
    assert selector("lists.range(999987).size() > 0").matches(DEVICE) is True
    assert selector("lists.range(999988).size() > 0").matches(DEVICE) == dra.RuntimeProblem(
        "operation cancelled: actual cost limit exceeded"
    )


def test_a_range_that_no_memory_holds_is_cancelled_at_once() -> None:
    assert selector("lists.range(9223372036854775807).size() > 0").matches(
        DEVICE
    ) == dra.RuntimeProblem("operation cancelled: actual cost limit exceeded")


def test_a_device_beyond_the_api_s_limits_is_counted_although_the_estimate_is_low() -> None:
    long = dra.Device("d", {"s": "x" * 5_000_000}, {})
    text = 'device.attributes["d"].s.matches("(aaaa|bbbb|cccc)*$")'
    assert selector(text).most < 1000
    assert selector(text).matches(long) == dra.RuntimeProblem(
        "operation cancelled: actual cost limit exceeded"
    )
