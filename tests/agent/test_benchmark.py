"""What the agent's benchmark measures is what it claims to be; how fast it is, no test says."""

from __future__ import annotations

import pytest

from benchmarks import agent
from tests.fakes.nvml import compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler: no stand-in for NVML")


def test_every_figure_is_had_from_a_node_whose_gpus_are_all_held() -> None:
    with agent.busy_node() as (node, folder):
        look = node.sources.look()
        clock, cpu = agent.passes(node, count=2)
        hours = agent.written(node, folder, seconds=7200)
        memory = agent.resident(node, folder, seconds=3)
    assert len(look.grants.containers) == len(look.driver.boards) == 8
    assert set(look.owners.values()) == {
        f"0f4c2d1e-aaaa-bbbb-cccc-12345678900{n}" for n in range(8)
    }
    assert 0 < cpu < 5
    assert clock > 0
    assert 20 <= hours["writes"] <= 40
    assert hours["object bytes"] < hours["sent bytes"] < 3 * hours["object bytes"]
    assert memory > 10 << 20
