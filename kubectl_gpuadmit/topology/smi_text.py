"""The lines of a pasted ``nvidia-smi topo -m``: which are headers, which rows, and what they hold.

Tabs may be lost, cells glued together, escape codes, prompts, Markdown and quoting marks be around.
A cell that could be read in two ways is not read.
"""

from __future__ import annotations

import itertools
import re
from typing import Literal

from msgspec import Struct

TailColumn = Literal["cpus", "numa", "memory numa"]

_ESCAPES = re.compile(
    r"(?:\x1b|\^\[|\\033|\\x1b|\\e)"  # the byte, and how terminals and languages write it
    r"(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z])"
)
_INVISIBLE = re.compile(r"[\u200b-\u200f\u2060\ufeff\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")
_MARGIN = re.compile(r"[\s|>#*`]*")
_GAP = re.compile(r"[\s|]*")
_GPU = re.compile(r"GPU([0-9]{1,3})", re.ASCII)
_NIC = re.compile(r"NIC[0-9]{1,3}|mlx[0-9]+_(?:bond_)?[0-9]+|[a-z][a-z0-9]*_[a-z]*[0-9]+", re.ASCII)
_WORD = re.compile(r"[^\s|]+")
_COLUMNS: tuple[tuple[re.Pattern[str], TailColumn], ...] = (
    (re.compile(r"GPU\s*NUMA\s*ID", re.I), "memory numa"),
    (re.compile(r"CPU\s*Affinity", re.I), "cpus"),
    (re.compile(r"NUMA\s*Affinity", re.I), "numa"),
)
_BARE_NUMA = re.compile(r"NUMA(?=[\s|]*$)", re.I)
_CELL = re.compile(r"NV[0-9]+|PIX|PXB|PHB|NODE|SYS|SOC|X(?![A-Za-z0-9]*=)", re.ASCII)
_PEER = re.compile(r"(?:OK|CNS|GNS|TNS|NS|U)(?![A-Za-z])")
_CPUS = re.compile(r"[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*", re.ASCII)
_LEGEND = re.compile(r"(NIC[0-9]{1,3})\s*:\s*([A-Za-z][\w.-]*)\s*$", re.ASCII)


class Header(Struct, frozen=True):
    """``gpus`` columns GPU0 … come first, then ``nics``, then ``tail``."""

    gpus: int
    nics: tuple[str, ...]
    tail: tuple[TailColumn, ...]
    nics_certain: bool
    """False where something among the columns is no name that could be told from its neighbours."""
    cut: bool
    """It ends in the middle of a column, or before any of ``tail``."""
    last: int
    """Length of the last column's name. One named ``NUMA`` and no more may be cut."""
    length: int
    """Of the line, without blanks at its end."""

    @property
    def width(self) -> int:
        return self.gpus + len(self.nics)


class Row(Struct, frozen=True):
    label: str
    cells: tuple[str | None, ...]
    """In order, None for one that cannot be read for certain."""
    rest: str
    """What follows the cells, as it stands."""
    blank: bool
    """A cell among them is empty, so what follows it has lost its place."""
    peer: bool
    """It is of another table, ``topo -p2p``."""
    length: int
    ends_text: bool
    """No newline comes after it."""
    widest: float = 1.0
    """The widest step from one cell to the next, in terms of the narrowest: 2 where columns are
    even and one of them is empty."""


def lines(text: str) -> list[str]:
    """The lines without escape codes and invisible characters."""
    text = _ESCAPES.sub("", text)
    if "\\tGPU0" in text or "\\nGPU0" in text:  # the inside of a JSON string
        text = text.replace("\\t", "\t").replace("\\n", "\n")
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ").replace("\x1b", "")
    return [_INVISIBLE.sub("", line) for line in text.split("\n")]


def legend(line: str) -> tuple[str, str] | None:
    """``NIC0: mlx5_0`` as a pair."""
    found = _LEGEND.match(line, _margin(line))
    return (found[1], found[2]) if found else None


def _margin(line: str) -> int:
    found = _MARGIN.match(line)
    return found.end() if found else 0


def header(line: str) -> Header | None:
    """The line as a header, None if it is none."""
    at = _margin(line)
    if not (first := _GPU.match(line, at)):
        return None
    after = _GAP.match(line, first.end())
    if after and (_CELL.match(line, after.end()) or _PEER.match(line, after.end())):
        return None  # a row
    text = line[at:]
    tail: list[tuple[int, TailColumn]] = []
    for pattern, column in _COLUMNS:
        if found := pattern.search(text):
            tail.append((found.start(), column))
            text = text[: found.start()] + " " * (found.end() - found.start()) + text[found.end() :]
    short = _BARE_NUMA.search(text)
    if short and "numa" not in (column for _, column in tail):
        tail.append((short.start(), "numa"))
        text = text[: short.start()]
    else:
        short = None
    tail.sort()
    names = text[: tail[0][0]] if tail else text
    junk = bool(tail and text[tail[0][0] :].strip(" \t|"))
    gpus = 0
    nics: list[str] = []
    certain, cut = True, not tail or junk
    for found in _WORD.finditer(names):
        word = found[0]
        place = 0
        while place < len(word):
            if (number := _GPU.match(word, place)) and not nics and int(number[1]) == gpus:
                gpus, place = gpus + 1, number.end()
            elif (nic := _NIC.match(word, place)) and gpus:
                nics.append(nic[0])
                place = nic.end()
            else:
                certain, cut = False, cut or not tail
                break
    if not gpus:
        return None
    columns = tuple(column for _, column in tail)
    length = len(line.rstrip(" \t|"))
    last = length - at - tail[-1][0] if tail else 0
    return Header(gpus, tuple(nics), columns, certain, cut, last, length)


def begins_elsewhere(line: str) -> str:
    """The first GPU of a header whose left part is missing, '' for any other line."""
    at = _margin(line)
    words = line[at:].split()
    numbers = [word for word in words if _GPU.fullmatch(word)]
    return numbers[0] if len(numbers) > 1 and words[0] == numbers[0] != "GPU0" else ""


def row(line: str, nics: tuple[str, ...], *, ends_text: bool) -> Row | None:
    """The line as a row of a GPU or of one of ``nics``, None if it is none."""
    at = _margin(line)
    found = _GPU.match(line, at) or _NIC.match(line, at)
    if not found or (not found[0].startswith("GPU") and found[0] not in nics):
        return None
    cells: list[str | None] = []
    starts = [at]
    blank = False
    place = found.end()
    while True:
        gap = _GAP.match(line, place)
        start = gap.end() if gap else place
        cell = _CELL.match(line, start)
        if not cell:
            break
        blank = blank or _skips_a_cell(line[place:start])
        following = line[cell.end() : cell.end() + 1]
        if cell[0].startswith("NV") and (len(cell[0]) > 4 or following in ("-", ",")):
            cells.append(None)  # digits of the next column may have run into it
            return Row(found[0], tuple(cells), "", blank, False, len(line), ends_text)
        cells.append(cell[0])
        starts.append(start)
        place = cell.end()
    peer = bool(_PEER.match(line, start))
    if not cells and not peer:
        return None
    length = len(line.rstrip(" \t|"))
    steps = [b - a for a, b in itertools.pairwise(starts)]
    widest = max(steps) / min(steps) if steps else 1.0
    return Row(found[0], tuple(cells), line[place:], blank, peer, length, ends_text, widest)


def _skips_a_cell(between: str) -> bool:
    return between.count("\t") > 1 or between.count("|") > 1


def affinities(text: str, columns: tuple[TailColumn, ...]) -> dict[TailColumn, str] | None:
    """Column -> value for what stands behind the cells of a row; None where it fits no reading.

    A value that is absent, ``N/A`` or not certain is not in the answer. Where fewer values stand
    than there are columns, only nvidia-smi's own pattern of tabs tells which is the blank one; and
    a CPU list beside a blank NUMA column may have swallowed it.
    """
    words = _WORD.findall(text)
    if not columns:
        return {}
    if columns == ("cpus",) and words and words[0].isdecimal():
        return None  # the node in a NUMA column whose header is lost looks the same
    if len(words) == len(columns):
        found = dict(zip(columns, words, strict=True))
    else:
        fields = [field.strip() for field in text.split("\t")]
        if len(fields) != 5 or fields[0] or fields[3] or columns != ("cpus", "numa", "memory numa"):
            return None
        found = {"cpus": fields[1], "numa": fields[2], "memory numa": fields[4]}
        if not fields[2]:
            found["cpus"] = ""
    kept: dict[TailColumn, str] = {}
    for column, value in found.items():
        if value in ("N/A", ""):
            continue
        if not _CPUS.fullmatch(value) or (column == "memory numa" and not value.isdecimal()):
            return None
        kept[column] = value
    return kept


def values(text: str) -> int:
    """How many values stand behind the cells of a row."""
    return len(_WORD.findall(text))
