"""Text with the output of ``nvidia-smi topo -m`` in it -> maps; what was cut off is said to miss.

Nothing is invented: each link stands in a cell that was read for certain, in the row of one GPU or
the other; where both are there and differ, neither counts. X must stand where a row and its own
column meet, or the row has lost its place and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from kubectl_gpuadmit.errors import BadMatrix
from kubectl_gpuadmit.topology import smi_text
from kubectl_gpuadmit.topology.model import PCIE_LEVELS, Gpu, Link, Nic, NodeMap, NumaNode
from kubectl_gpuadmit.topology.smi_text import Header, Row

MAX_CHARACTERS = 4_000_000
UNEVEN = 1.6
"""An empty cell makes one step of a row twice as wide as the others; words of different length make
less of a difference."""
_NVLINK_STATUS = re.compile(r"^\s*Link [0-9]+: |retrieve NVLink information", re.M)
_WRONG_CALL = re.compile(r"nvidia-smi topo|command line argument|nvidia-smi has failed", re.I)


class Reading(Struct, frozen=True):
    """What a text holds: a map for each matrix, in the order of the text."""

    maps: tuple[NodeMap, ...]
    """``node`` is '' for a single one, else ``matrix 1`` …; each has its own ``problems``."""
    missing: tuple[str, ...]
    """What was cut off or cannot be told, a sentence each."""
    problems: tuple[str, ...] = ()
    """What contradicts itself."""


class _Table(Struct):
    header: Header
    line: int
    rows: dict[str, Row]
    legend: dict[str, str]
    twice: str = ""
    peer: bool = False


def read_smi(text: str, *, file: str = "") -> Reading:
    """Every matrix in ``text``. Raises BadMatrix (``not-a-matrix``, ``matrix-without-header``,
    ``matrix-without-rows``, ``matrix-twice``)."""
    if len(text) > MAX_CHARACTERS:
        raise BadMatrix("not-a-matrix", "the text is longer than any matrix", file=file)
    listed = smi_text.lines(text)
    tables, strays = _tables(listed)
    maps: list[NodeMap] = []
    missing: list[str] = []
    problems: list[str] = []
    real = [table for table in tables if not table.peer]
    if not real:
        raise _refusal(text, listed, strays, bool(tables), file)
    for number, table in enumerate(real, 1):
        if table.twice:
            raise BadMatrix(
                "matrix-twice",
                f"{table.twice} has two different rows under one header",
                file=file,
                line=table.line,
                hint="give each matrix with its own header line",
            )
        name = f"matrix {number}" if len(real) > 1 else ""
        lost: list[str] = []
        wrong: list[str] = []
        found = _map(name, table, lost, wrong)
        if found is None:
            raise BadMatrix(
                "matrix-without-rows",
                wrong[0] if wrong else "the header of a matrix is there, but no row of a GPU",
                file=file,
                line=table.line,
                hint="paste the whole output of nvidia-smi topo -m",
            )
        maps.append(found)
        before = f"{name}: " if name else ""
        missing += [before + one for one in lost]
        problems += [before + one for one in wrong]
    return Reading(tuple(maps), tuple(missing), tuple(problems))


def _refusal(text: str, listed: list[str], strays: list[int], peers: bool, file: str) -> BadMatrix:
    """Why there is no matrix, by what there is instead."""
    if _NVLINK_STATUS.search(text):
        return BadMatrix(
            "not-a-matrix",
            "this is the state of single NVLinks (nvidia-smi nvlink -s), not a matrix",
            file=file,
            hint="give the output of nvidia-smi topo -m",
        )
    if strays:
        head = next((found for line in listed if (found := smi_text.begins_elsewhere(line))), "")
        told = f", its header begins with {head}" if head else ""
        return BadMatrix(
            "matrix-without-header",
            f"rows of a matrix without a header that begins with GPU0{told}",
            file=file,
            line=strays[0],
            hint="paste the whole output of nvidia-smi topo -m, the header line too",
        )
    if peers:
        told = "a table of nvidia-smi topo -p2p, which tells no topology"
    elif _WRONG_CALL.search(text):
        told = "nvidia-smi printed no matrix here"
    elif not text.strip():
        told = "there is no text"
    else:
        told = "no matrix of nvidia-smi topo -m is in this text"
    return BadMatrix("not-a-matrix", told, file=file, hint="give the output of nvidia-smi topo -m")


def _tables(listed: Sequence[str]) -> tuple[list[_Table], list[int]]:
    """Headers with the rows below them; numbers of lines that are rows without a header."""
    tables: list[_Table] = []
    strays: list[int] = []
    peer_next = False
    for number, line in enumerate(listed, 1):
        if "-p2p" in line:
            peer_next = True
        if head := smi_text.header(line):
            tables.append(_Table(head, number, {}, {}, peer=peer_next))
            peer_next = False
            continue
        current = tables[-1] if tables else None
        if named := smi_text.legend(line):
            if current:
                current.legend.setdefault(*named)
            continue
        found = smi_text.row(
            line, current.header.nics if current else (), ends_text=number == len(listed)
        )
        if not found:
            continue
        if current is None:
            strays.append(number)
        elif found.peer:
            current.peer = True
        elif found.label not in current.rows:
            current.rows[found.label] = found
        elif current.rows[found.label].cells != found.cells:
            current.twice = current.twice or found.label
    return tables, strays


def _map(name: str, table: _Table, missing: list[str], problems: list[str]) -> NodeMap | None:
    """The map of one table; None where not one row of a GPU can be used."""
    head = table.header
    labels = [int(label[3:]) for label in table.rows if label.startswith("GPU")]
    if not labels:
        return None
    count = max(head.gpus, max(labels) + 1)
    if count > head.gpus:
        missing.append(f"the header ends at GPU{head.gpus - 1}, a row is of GPU{count - 1}")
    rows: dict[int, Row] = {}
    for index in sorted(labels):
        row = table.rows[f"GPU{index}"]
        if fault := _fault(row, index, head):
            problems.append(f"row GPU{index} {fault}: it is left out")
        else:
            rows[index] = row
    if not rows:
        return None
    if head.cut and not head.tail:
        missing.append("the header has no affinity columns: its right part may be cut off")
    absent = [index for index in range(count) if index not in labels]
    if absent:
        missing.append(f"no row of {_gpus(absent)}")
    links = tuple(_links(rows, count, head, missing, problems))
    gpus = tuple(_gpu(index, rows.get(index), head) for index in range(count))
    if head.tail and (
        unread := [gpu.index for gpu in gpus if _unplaced(rows.get(gpu.index), head)]
    ):
        missing.append(f"the affinity columns of {_gpus(unread)} cannot be told apart")
    unknown = any(gpu.numa is None for gpu in gpus)
    return NodeMap(
        node=name,
        source="smi",
        count=count,
        gpus=gpus,
        links=links,
        nics=_nics(rows, head, table.legend),
        numa=None
        if unknown
        else tuple(NumaNode(node) for node in sorted({gpu.numa or 0 for gpu in gpus})),
        problems=tuple(problems),
    )


def _gpus(indexes: Sequence[int]) -> str:
    return "GPU " + ", ".join(map(str, indexes))


def _fault(row: Row, index: int, head: Header) -> str:
    """Why the cells of a row are not where the header says, '' if they are."""
    if row.blank:
        return "has an empty cell"
    cells = row.cells
    if len(cells) > index and index < head.gpus and cells[index] != "X":
        return f"does not have X in column GPU{index}"
    if [place for place, cell in enumerate(cells) if cell == "X"] not in ([index], []):
        return "has X in another column than its own"
    if len(cells) <= index and row.widest > UNEVEN:
        return "is cut off before its X, and its columns are uneven"
    if len(cells) < head.width and smi_text.values(row.rest):
        return "has fewer cells than the header has columns"
    if len(cells) > head.width and head.nics_certain and not head.cut:
        return "has more cells than the header has columns"
    return ""


def _akin(seen: str, told: str) -> bool:
    """Whether a cell that may have lost or gained a digit can be the one in the other row."""
    return seen.startswith(told) or told.startswith(seen)


def _cell(row: Row | None, column: int, head: Header) -> tuple[str | None, bool]:
    """A cell, and whether it is certain: the last one of a row that ends early may have lost its
    end, and the last before the affinities may have taken in a digit of them."""
    if row is None or column >= min(len(row.cells), head.gpus):
        return None, False
    cell = row.cells[column]
    if cell is None:
        return None, False
    if column == len(row.cells) - 1 and cell.startswith("NV"):
        cut = len(row.cells) < head.width or (head.cut and not row.rest.strip(" \t|"))
        if (cut and not _closed(row)) or smi_text.values(row.rest) < len(head.tail):
            return cell, False
    return ("SYS" if cell == "SOC" else cell), True


def _closed(row: Row) -> bool:
    """A bar or a tab behind the last cell shows that it is whole."""
    return row.rest[:1] in ("\t", "|") or row.rest.startswith(" |")


def _links(
    rows: dict[int, Row], count: int, head: Header, missing: list[str], problems: list[str]
) -> Iterable[Link]:
    lost: list[tuple[int, int]] = []
    for a in range(count):
        for b in range(a + 1, count):
            both = _cell(rows.get(a), b, head), _cell(rows.get(b), a, head)
            told = {cell for cell, certain in both if cell and certain}
            seen = {cell for cell, _ in both if cell}
            if len(told) > 1 or (told and not all(_akin(cell, *told) for cell in seen)):
                first, second = sorted(seen)
                problems.append(f"GPU {a} and {b} are {first} in one row and {second} in the other")
                told = set()
            if not told:
                lost.append((a, b))
                continue
            cell = told.pop()
            yield Link(a, b, cell, int(cell[2:]) if cell.startswith("NV") else 0)
    if lost:
        shown = ", ".join(f"{a}-{b}" for a, b in lost[:6]) + (" …" if len(lost) > 6 else "")
        missing.append(f"what joins {len(lost)} of {count * (count - 1) // 2} pairs: {shown}")


def _tail(row: Row | None, head: Header) -> dict[smi_text.TailColumn, str] | None:
    if row is None or len(row.cells) < head.width or not head.nics_certain or head.cut:
        return None
    found = smi_text.affinities(row.rest, head.tail)
    last = head.tail[-1] if head.tail else None
    if found and last in found:
        beyond = len(found[last]) >= head.last and row.length >= head.length
        if row.ends_text or beyond:
            return None  # the value may go on where the text does not
    return found


def _unplaced(row: Row | None, head: Header) -> bool:
    return row is not None and _tail(row, head) is None


def _gpu(index: int, row: Row | None, head: Header) -> Gpu:
    tail = _tail(row, head) or {}
    affinity, memory = tail.get("numa"), tail.get("memory numa")
    return Gpu(
        index=index,
        numa=int(re.split("[-,]", affinity)[0]) if affinity else None,
        numa_affinity=affinity,
        memory_numa=int(memory) if memory else None,
        cpus=tail.get("cpus"),
    )


def _nics(rows: dict[int, Row], head: Header, legend: dict[str, str]) -> tuple[Nic, ...] | None:
    if not head.nics_certain or head.cut:
        return None
    found = []
    for number, nic in enumerate(head.nics):
        levels: dict[int, str] = {}
        for index, row in rows.items():
            if len(row.cells) == head.width:
                cell = row.cells[head.gpus + number]
                level = "SYS" if cell == "SOC" else cell
                if level in PCIE_LEVELS:
                    levels[index] = level
        found.append(Nic(legend.get(nic, nic), levels=levels))
    return tuple(found)
