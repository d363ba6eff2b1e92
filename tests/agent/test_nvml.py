"""What the real nvidia-ml-py and our adapter above it read of machines behind NVML's C boundary."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_gpuadmit.adapters.nvml import Nvml
from kubectl_gpuadmit.errors import Unanswerable
from kubectl_gpuadmit.topology.readings import Board, FabricState, MigDevice, Port, Process
from tests.fakes import machines
from tests.fakes.nvml import SOURCE, Driver, NoCompiler, build


def test_an_hgx_h100_has_eighteen_links_a_gpu_and_four_switches(nvml: Nvml, driver: Driver) -> None:
    driver.show(machines.hgx_h100())
    read = nvml.read()
    assert (read.version, len(read.boards), read.missing) == ("550.163.01", 8, ())
    first = read.boards[0]
    assert first == Board(
        index=0,
        uuid="GPU-00001000-5a5a-4b4b-8c8c-000000001000",
        pci="0000:1b:00.0",
        name="NVIDIA H100 80GB HBM3",
        minor=0,
        memory_mib=81559,
        used_mib=0,
        numa=0,
        mig_enabled=False,
        ports=first.ports,
        fabric=FabricState("completed", "00000000-0000-0000-0000-000000000000", 0, None),
        processes=(),
        ecc_uncorrected=0,
    )
    assert len(first.ports) == 18
    assert first.ports[0] == Port(0, True, version=4, kind="switch", remote="0000:07:00.0")
    assert {port.remote for port in first.ports} == {
        "0000:07:00.0", "0000:08:00.0", "0000:09:00.0", "0000:0a:00.0",
    }  # fmt: skip
    assert read.levels[:4] == ((0, 1, "NODE"), (0, 2, "NODE"), (0, 3, "NODE"), (0, 4, "SYS"))


def test_mig_devices_are_told_with_profile_instance_and_place(nvml: Nvml, driver: Driver) -> None:
    driver.show(machines.dgx_a100_mig())
    boards = nvml.read().boards
    assert [len(board.mig) for board in boards] == [7, 2, 0, 0, 0, 0, 0, 0]
    assert [board.mig_enabled for board in boards[:3]] == [True, True, False]
    assert boards[1].mig == (
        MigDevice(
            "MIG-00002200-5a5a-4b4b-8c8c-000000002200", "3g.20gb", start=4, slices=4,
            memory_mib=19968, used_mib=0, gpu_instance=2, compute_instance=0,
        ),
        MigDevice(
            "MIG-00002201-5a5a-4b4b-8c8c-000000002201", "4g.20gb", start=0, slices=4,
            memory_mib=19968, used_mib=0, gpu_instance=1, compute_instance=0,
        ),
    )  # fmt: skip


def test_a_board_without_nvlink_mig_or_fabric_tells_none_of_them(
    nvml: Nvml, driver: Driver
) -> None:
    driver.show(machines.pcie_l40s())
    (first, *_) = nvml.read().boards
    assert (first.ports, first.mig_enabled, first.fabric) == ((), None, None)


def test_switches_in_other_trays_have_no_address(nvml: Nvml, driver: Driver) -> None:
    driver.show(machines.gb200_tray())
    read = nvml.read()
    assert read.boards[3].ports[17] == Port(17, True, version=5, kind="switch", remote="")
    assert read.boards[3].pci == "0019:01:00.0"
    assert read.boards[0].fabric == FabricState(
        "completed", "c1d5a2b6-e07f-4f0f-9a3d-5b1e22334455", 32766, None
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"fabric__state": 2}, FabricState("in-progress")),
        ({"fabric__state": 1}, FabricState("not-started")),
        ({"fabric__summary": 1}, ("completed", True)),
        ({"fabric__summary": 2}, ("completed", False)),
        ({"fabric__summary": 3}, ("completed", False)),
        ({"fabric__health": 0b101010}, ("completed", True)),
        ({"fabric__health": 0b101001}, ("completed", False)),
        ({"fabric__status": 999}, ("completed", False)),
    ],
)
def test_the_fabrics_state_and_health(
    nvml: Nvml, driver: Driver, values: dict[str, int], expected: object
) -> None:
    driver.show(machines.counters(machines.gb200_tray(), 0, **values))
    fabric = nvml.read().boards[0].fabric
    assert fabric is not None
    assert expected in (fabric, (fabric.state, fabric.healthy))


def test_memory_errors_come_from_pages_or_from_rows_as_the_board_has_them(
    nvml: Nvml, driver: Driver
) -> None:
    machine = machines.counters(
        machines.hgx_h100(), 2, rows__corrected=9, rows__uncorrected=2, rows__pending=1,
        rows__failed=0, ecc__volatile__uncorrected=5,
    )  # fmt: skip
    driver.show(machine)
    board = nvml.read().boards[2]
    assert (board.ecc_uncorrected, board.retired_pages) == (5, 2)
    assert (board.retirement_pending, board.remap_failed) == (True, False)
    driver.show(machines.counters(machines.dgx_a100_mig(), 4, retired__single=3, retired__double=2))
    board = nvml.read().boards[4]
    assert (board.retired_pages, board.retirement_pending) == (5, False)


def test_processes_are_told_with_their_memory(nvml: Nvml, driver: Driver) -> None:
    machine = machines.hgx_h100().with_gpu(1, processes=((71, 512), (9, 40_000)), used_mib=40_900)
    driver.show(machine)
    board = nvml.read().boards[1]
    assert board.processes == (Process(9, 40_000), Process(71, 512))
    assert board.used_mib == 40_900


def test_each_xid_is_told_once_with_its_gpu(nvml: Nvml, driver: Driver) -> None:
    driver.show(machines.xids(machines.hgx_h100(), (2, 79), (0, 63)))
    assert nvml.read().xids == ((2, 79), (0, 63))
    assert nvml.read().xids == ()
    driver.show(machines.xids(machines.hgx_h100(), (2, 79), (0, 63), (2, 79)))
    assert nvml.read().xids == ((2, 79),)


def test_a_lost_gpu_does_not_hide_the_others(nvml: Nvml, driver: Driver) -> None:
    driver.show(machines.lost(machines.hgx_h100(), 3))
    boards = nvml.read().boards
    assert boards[3] == Board(index=3, lost=True)
    assert [board.lost for board in boards] == [index == 3 for index in range(8)]


def test_a_gpu_whose_handle_is_refused_is_lost_too(nvml: Nvml, driver: Driver) -> None:
    machine = machines.hgx_h100()
    driver.show(machine.with_gpu(0, values={**machine.gpus[0].values, "handle": "15"}))
    assert nvml.read().boards[0] == Board(index=0, lost=True)


@pytest.mark.parametrize(
    ("error", "ref"),
    [("9", "nvml-silent"), ("999", "nvml-silent"), ("18", "nvml-mismatch")],
)
def test_a_driver_that_answers_nothing_is_named_and_read_again_once_it_is_back(
    nvml: Nvml, driver: Driver, error: str, ref: str
) -> None:
    driver.show(machines.hgx_h100())
    assert len(nvml.read().boards) == 8
    driver.show(machines.hgx_h100(), error=error)
    for _ in range(2):
        with pytest.raises(Unanswerable) as told:
            nvml.read()
        assert told.value.ref == ref
    driver.show(machines.gb200_tray())
    assert len(nvml.read().boards) == 4


def test_a_driver_that_is_unloaded_and_loaded_again_is_found_again(
    nvml: Nvml, driver: Driver
) -> None:
    driver.show(machines.pcie_l40s())
    assert len(nvml.read().boards) == 4
    driver.unload()
    with pytest.raises(Unanswerable, match="Driver Not Loaded"):
        nvml.read()
    driver.show(machines.pcie_l40s())
    assert len(nvml.read().boards) == 4


def test_the_stand_in_needs_a_compiler_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SOURCE.is_file()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(NoCompiler, match="no C compiler"):
        build(tmp_path)
