"""Whatever is done to a printed matrix, it is read back or refused, and never misread."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit.errors import BadMatrix
from kubectl_gpuadmit.topology.model import NodeMap
from kubectl_gpuadmit.topology.smi import Reading, read_smi
from tests.topology.matrices import BROKEN, WHOLE, Machine, cells_swapped, machines

REFS = {"not-a-matrix", "matrix-without-header", "matrix-without-rows", "matrix-twice"}
THOROUGH = settings(
    max_examples=1200,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def links(machine: Machine) -> dict[tuple[int, int], str]:
    return {pair: cell for pair, cell in machine.cells.items() if pair[1] < machine.gpus}


def assert_true(found: NodeMap, machine: Machine, reading: Reading) -> None:
    """All that is read stands in the machine; what is not read is said to miss."""
    truth = links(machine)
    for link in found.links or ():
        assert truth[link.a, link.b] == link.type
        assert link.lanes == (int(link.type[2:]) if link.type.startswith("NV") else 0)
    for gpu in found.gpus:
        assert gpu.cpus in (None, machine.cpus[gpu.index])
        assert gpu.numa_affinity in (None, machine.numa[gpu.index])
        assert gpu.memory_numa is None or str(gpu.memory_numa) == machine.memory[gpu.index]
    for number, nic in enumerate(found.nics or ()):
        assert nic.name == machine.nics[number]
        for gpu, level in (nic.levels or {}).items():
            assert machine.cell(gpu, machine.gpus + number) == level
    assert found.count <= machine.gpus
    known = {(link.a, link.b) for link in found.links or ()}
    if found.count < machine.gpus or known != set(truth):
        assert reading.missing


def read(text: str) -> Reading | None:
    try:
        return read_smi(text)
    except BadMatrix as error:
        assert error.ref in REFS
        return None


@THOROUGH
@given(st.data(), machines(), st.sampled_from(WHOLE))
def test_a_matrix_with_nothing_missing_is_read_back(data, machine, mangling) -> None:  # type: ignore[no-untyped-def]
    reading = read_smi(mangling(data.draw, machine, machine.text()))
    (found,) = reading.maps
    assert_true(found, machine, reading)
    assert {(one.a, one.b): one.type for one in found.links or ()} == links(machine)
    assert found.count == machine.gpus
    assert tuple(nic.name for nic in found.nics or ()) == machine.nics


@THOROUGH
@given(st.data(), machines(), st.lists(st.sampled_from(BROKEN), min_size=1, max_size=2))
def test_a_broken_matrix_is_read_in_part_or_refused(data, machine, manglings) -> None:  # type: ignore[no-untyped-def]
    text = machine.text()
    for mangling in manglings:
        text = mangling(data.draw, machine, text)
    reading = read(text)
    if reading is not None:
        (found,) = reading.maps
        assert_true(found, machine, reading)


@THOROUGH
@given(st.data(), machines())
def test_a_contradiction_is_believed_on_neither_side(data, machine) -> None:  # type: ignore[no-untyped-def]
    text = cells_swapped(data.draw, machine, machine.text())
    reading = read(text)
    if reading is not None:
        truth = links(machine)
        (found,) = reading.maps
        assert all(truth[one.a, one.b] == one.type for one in found.links or ())


@THOROUGH
@given(st.data(), st.lists(machines(), min_size=2, max_size=3), st.sampled_from(WHOLE))
def test_several_matrices_in_one_text_stay_apart(data, several, mangling) -> None:  # type: ignore[no-untyped-def]
    text = "\n".join(mangling(data.draw, one, one.text()) for one in several)
    reading = read_smi(text)
    assert [found.node for found in reading.maps] == [
        f"matrix {number}" for number in range(1, len(several) + 1)
    ]
    for found, machine in zip(reading.maps, several, strict=True):
        assert {(one.a, one.b): one.type for one in found.links or ()} == links(machine)


@THOROUGH
@given(st.text(alphabet="GPU0123 \tNVXSYODE|-\n,mlx5_:", max_size=400))
def test_any_other_text_is_refused_or_read_without_a_traceback(text: str) -> None:
    read(text)
