"""Machines made up at random, printed as ``nvidia-smi topo -m`` prints them, and then mangled."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import strategies as st

LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")
LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g. UPI)
  NV#  = Connection traversing a bonded set of # NVLinks
"""


class Machine(NamedTuple):
    cells: dict[tuple[int, int], str]
    """(GPU, GPU), the lower first, or (GPU, GPUs + NIC)."""
    nic_cells: dict[tuple[int, int], str]
    gpus: int
    nics: tuple[str, ...]
    cpus: tuple[str, ...]
    numa: tuple[str, ...]
    """'' for blank, ``N/A``, or nodes."""
    memory: tuple[str, ...]
    columns: int
    """How many affinity columns are printed: 1, 2 or 3."""

    def cell(self, a: int, b: int) -> str:
        if a == b:
            return " X "
        if max(a, b) < self.gpus:
            return self.cells[min(a, b), max(a, b)]
        if min(a, b) < self.gpus:
            return self.cells[min(a, b), max(a, b)]
        return self.nic_cells[min(a, b), max(a, b)]

    def tail(self, gpu: int) -> list[str]:
        """Fields as nvidia-smi's tabs divide them: an empty one stands before the last."""
        if self.columns == 1:
            return [self.cpus[gpu]]
        if self.columns == 2:
            return [self.cpus[gpu], self.numa[gpu]]
        return [self.cpus[gpu], self.numa[gpu], "", self.memory[gpu]]

    def header(self) -> list[str]:
        names = [f"GPU{n}" for n in range(self.gpus)] + list(self.nics)
        return ["", *names, *["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"][: self.columns]]

    def rows(self) -> list[list[str]]:
        width = self.gpus + len(self.nics)
        found = [self.header()]
        for gpu in range(self.gpus):
            cells = [self.cell(gpu, other) for other in range(width)]
            found.append([f"GPU{gpu}", *cells, *self.tail(gpu)])
        for nic in range(self.gpus, width):
            cells = [self.cell(nic, other) for other in range(width)]
            found.append([self.nics[nic - self.gpus], *cells, *[""] * (self.columns + 1)])
        return found

    def text(self) -> str:
        return "\n".join("\t".join(row) for row in self.rows()) + "\n" + LEGEND


CPUS = st.sampled_from(
    ("0-55,112-167", "56-111,168-223", "0-13", "4,6,8,10", "3", "0", "N/A", "", "0-191")
)
NUMAS = st.sampled_from(("0", "1", "3", "17", "0,3-9,11-17", "N/A", ""))


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    gpus = draw(st.integers(1, 17))
    style = draw(st.sampled_from(("NIC{}", "mlx5_{}", "mlx5_bond_{}")))
    nics = tuple(style.format(n) for n in range(draw(st.sampled_from((0, 0, 1, 4, 12)))))
    links = draw(st.sampled_from((("NV18",), ("NV12",), ("NV1", "NV2", "NODE"), (*LEVELS, "NV4"))))
    width = gpus + len(nics)
    cells, nic_cells = {}, {}
    for a in range(width):
        for b in range(a + 1, width):
            kind = links if b < gpus else LEVELS
            cell = draw(st.sampled_from(kind))
            (cells if a < gpus else nic_cells)[a, b] = cell

    def per(values: st.SearchStrategy[str]) -> tuple[str, ...]:
        return tuple(draw(st.lists(values, min_size=gpus, max_size=gpus)))

    return Machine(
        cells,
        nic_cells,
        gpus,
        nics,
        per(CPUS),
        per(NUMAS),
        per(st.sampled_from(("N/A", "2", "18", ""))),
        draw(st.integers(1, 3)),
    )


Mangling = Callable[[st.DrawFn, Machine, str], str]


def as_printed(draw: st.DrawFn, machine: Machine, text: str) -> str:
    return text


def tabs_expanded(draw: st.DrawFn, machine: Machine, text: str) -> str:
    return text.expandtabs(draw(st.sampled_from((4, 8, 16))))


def tabs_to_one_blank(draw: st.DrawFn, machine: Machine, text: str) -> str:
    return re.sub(r"[\t ]+", " ", text)


def tabs_lost(draw: st.DrawFn, machine: Machine, text: str) -> str:
    return text.replace("\t", "")


def some_glued(draw: st.DrawFn, machine: Machine, text: str) -> str:
    """A few tabs or blanks fall out, anywhere."""
    places = [n for n, c in enumerate(text) if c in "\t "]
    chosen = draw(st.lists(st.sampled_from(places), min_size=1, max_size=9, unique=True))
    return "".join(c for n, c in enumerate(text) if n not in chosen)


def header_not_indented(draw: st.DrawFn, machine: Machine, text: str) -> str:
    return text.lstrip("\t")


def cut_below(draw: st.DrawFn, machine: Machine, text: str) -> str:
    lines = text.split("\n")
    return "\n".join(lines[: draw(st.integers(1, len(lines)))])


def cut_above(draw: st.DrawFn, machine: Machine, text: str) -> str:
    lines = text.split("\n")
    return "\n".join(lines[draw(st.integers(1, machine.gpus)) :])


def cut_right(draw: st.DrawFn, machine: Machine, text: str) -> str:
    width = draw(st.integers(8, 180))
    return "\n".join(line[:width] for line in text.expandtabs(8).split("\n"))


def cut_anywhere(draw: st.DrawFn, machine: Machine, text: str) -> str:
    return text[: draw(st.integers(8, len(text)))]


def folded(draw: st.DrawFn, machine: Machine, text: str) -> str:
    """A terminal breaks long lines wherever they end."""
    width = draw(st.integers(60, 140))
    found = []
    for line in text.expandtabs(8).split("\n"):
        found += [line[at : at + width] for at in range(0, max(len(line), 1), width)]
    return "\n".join(found)


def rows_lost(draw: st.DrawFn, machine: Machine, text: str) -> str:
    lines = text.split("\n")
    gone = draw(st.integers(1, machine.gpus))
    return "\n".join(lines[:gone] + lines[gone + 1 :])


def old_words(draw: st.DrawFn, machine: Machine, text: str) -> str:
    return text.replace("SYS", "SOC")


def escape_codes(draw: st.DrawFn, machine: Machine, text: str) -> str:
    first, _, rest = text.partition("\n")
    return f"\t\x1b[4m{first[1:]}\x1b[0m\n{rest}"


def prompt(draw: st.DrawFn, machine: Machine, text: str) -> str:
    return "root@node-1:/# nvidia-smi topo -m\n" + text + "root@node-1:/# exit\n"


def quoted(draw: st.DrawFn, machine: Machine, text: str) -> str:
    return "\n".join("> " + line for line in text.split("\n"))


def indented(draw: st.DrawFn, machine: Machine, text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))


def markdown(draw: st.DrawFn, machine: Machine, text: str) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in machine.rows()]
    lines.insert(1, "|---" * len(machine.header()) + "|")
    return "\n".join(lines)


def cell_emptied(draw: st.DrawFn, machine: Machine, text: str) -> str:
    rows = machine.rows()
    row = draw(st.integers(1, machine.gpus))
    rows[row][draw(st.integers(1, machine.gpus + len(machine.nics)))] = ""
    return "\n".join("\t".join(cells) for cells in rows)


def cells_swapped(draw: st.DrawFn, machine: Machine, text: str) -> str:
    """Two cells of one row change places: whoever reads it must not believe either."""
    rows = machine.rows()
    row = draw(st.integers(1, machine.gpus))
    a, b = (draw(st.integers(1, machine.gpus)) for _ in range(2))
    rows[row][a], rows[row][b] = rows[row][b], rows[row][a]
    return "\n".join("\t".join(cells) for cells in rows)


def with_peer_table(draw: st.DrawFn, machine: Machine, text: str) -> str:
    names = [f"GPU{n}" for n in range(machine.gpus)]
    peers = ["\t".join(["", *names])]
    for name in names:
        peers.append("\t".join([name, *("X" if n == name else "OK" for n in names)]))
    return text + "\n$ nvidia-smi topo -p2p rw\n" + "\n".join(peers) + "\n"


WHOLE: tuple[Mangling, ...] = (
    as_printed,
    header_not_indented,
    old_words,
    escape_codes,
    prompt,
    quoted,
    indented,
    with_peer_table,
)
"""After these everything is still there: it must be read whole, affinities aside."""

BROKEN: tuple[Mangling, ...] = (
    tabs_expanded,
    tabs_to_one_blank,
    tabs_lost,
    some_glued,
    cut_below,
    cut_above,
    cut_right,
    cut_anywhere,
    folded,
    rows_lost,
    markdown,
    cell_emptied,
)
"""After these something may be gone; what is read must still be true."""
