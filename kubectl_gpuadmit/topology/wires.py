"""The matrix of a report: what joins each GPU to each other and to each card; asks nobody."""

from __future__ import annotations

from kubectl_gpuadmit.kube.gpu_topology import ReportedGpu
from kubectl_gpuadmit.topology import nvlink, pci
from kubectl_gpuadmit.topology.readings import Board, Driver, Kernel, PciPlace


def rows(
    gpus: tuple[ReportedGpu, ...], driver: Driver, kernel: Kernel, matrix: str
) -> tuple[tuple[str, ...], list[str]]:
    """Rows of the matrix, and what is wrong with them."""
    boards = {board.index: board for board in driver.boards if not board.lost}
    levels = {(a, b): level for a, b, level in driver.levels}
    places = {place.address: place for place in kernel.gpus}
    printed = pasted(matrix)
    cards = [card for card in kernel.cards if card.place is not None]
    found: list[str] = []
    unknown = 0
    for first in gpus:
        cells = []
        for second in gpus:
            low, high = sorted((first.index, second.index))
            if first.index == second.index:
                cells.append("X")
                continue
            cell = "?"
            if not first.lost and not second.lost:
                cell = _cell(boards.get(first.index), boards.get(second.index), driver.boards)
                if not cell.startswith("NV"):  # nvidia-smi is asked where NVML told no links
                    cell = printed.get((low, high), cell)
                cell = cell or levels.get((low, high), "")
                cell = cell or _level(places.get(first.pciBusID), places.get(second.pciBusID))
                cell = cell or "?"
                unknown += cell == "?" and first.index < second.index
            cells.append(cell)
        place = None if first.lost else places.get(first.pciBusID)
        cells += [_level(place, card.place) or "?" for card in cards]
        found.append(" ".join(cells))
    problems = [f"what joins {unknown} of the pairs of GPUs could not be read"] if unknown else []
    return tuple(found), problems


def _cell(a: Board | None, b: Board | None, boards: tuple[Board, ...]) -> str:
    if a is None or b is None:
        return ""
    lanes = nvlink.between(a, b, boards).count
    return "?" if lanes is None else f"NV{lanes}" if lanes else ""


def _level(a: PciPlace | None, b: PciPlace | None) -> str:
    return "" if a is None or b is None else pci.level(a, b)


def pasted(matrix: str) -> dict[tuple[int, int], str]:
    """(a, b) -> cell, of a matrix that nvidia-smi printed; empty where it cannot be read."""
    if not matrix:
        return {}
    from kubectl_gpuadmit.errors import BadInput
    from kubectl_gpuadmit.topology.smi import read_smi

    try:
        maps = read_smi(matrix).maps
    except BadInput:
        return {}
    return {(link.a, link.b): link.type for one in maps[:1] for link in one.links or ()}


def tells_links(driver: Driver) -> bool:
    """Whether the driver says what joins its GPUs: the PCIe level of pairs, and what every NVLink
    that is up leads to."""
    if sum(not board.lost for board in driver.boards) < 2:
        return True
    ups = [port for board in driver.boards for port in board.ports if port.up]
    return bool(driver.levels or ups) and all(port.kind or port.remote for port in ups)
