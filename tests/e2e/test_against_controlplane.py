"""Each example is judged by us and by a running control plane: admission, message, placement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.bed import ControlPlane
from tests.controlplane.loading import load, read
from tests.e2e.comparison import Baseline, compare

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def loaded(running_control_plane: ControlPlane) -> Iterator[tuple[ControlPlane, Baseline]]:
    """The example cluster on the API server, as each run is to find it."""
    bed = running_control_plane
    bed.clear()
    left = {d["kind"] for d in load(bed, read(EXAMPLES / "cluster"))}
    assert left == {"GpuPoolHistory", "GpuTopology", "Snapshot"}, "kinds that no server serves"
    yield bed, Baseline.of(bed)


CASES = Path(__file__).parent / "cases"
FILES = [*sorted((EXAMPLES / "workloads").iterdir()), *sorted(CASES.iterdir())]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_control_plane_does_what_we_say(
    file: Path, loaded: tuple[ControlPlane, Baseline]
) -> None:
    bed, baseline = loaded
    try:
        found = compare(bed, file)
    finally:
        baseline.restore(bed)
    assert {c.workload: c.differences for c in found if c.differences} == {}
