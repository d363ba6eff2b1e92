"""Maps for tests, written as matrices."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_gpuadmit.topology.model import Gpu, Link, NodeMap


def from_rows(rows: Sequence[str], numa: Sequence[int | None] = ()) -> NodeMap:
    """``["X NV1", "NV1 X"]`` as a map; ``?`` for a pair that is not known."""
    cells = [row.split() for row in rows]
    count = len(cells)
    nodes = numa or (None,) * count
    return NodeMap(
        node="n",
        source="agent",
        count=count,
        gpus=tuple(Gpu(index, numa=nodes[index]) for index in range(count)),
        links=tuple(
            Link(a, b, cells[a][b], int(cells[a][b][2:]) if cells[a][b][:2] == "NV" else 0)
            for a in range(count)
            for b in range(a + 1, count)
            if cells[a][b] != "?"
        ),
    )


def all_to_all(count: int, lanes: int = 18, numa: Sequence[int | None] = ()) -> NodeMap:
    rows = [" ".join("X" if a == b else f"NV{lanes}" for b in range(count)) for a in range(count)]
    return from_rows(rows, numa)
