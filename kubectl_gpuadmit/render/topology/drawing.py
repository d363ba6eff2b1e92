"""One node as SVG: GPUs in their islands and NUMA nodes, coloured by who holds them, broken links.

Everything that a cluster can name is escaped. Nothing is told by colour alone: a held GPU bears the
letter of its class, a free one is outlined, an unusable one hatched, a broken one crossed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from msgspec import Struct

from kubectl_gpuadmit.overview.model import GpuView, NodeView
from kubectl_gpuadmit.render.topology.colours import Ink

WIDTH = 358
_CELL_W, _CELL_H, _GAP = 70, 46, 8
_LEFT, _TOP = 52, 4
_IN_ROW = 4

STYLE = """
.gpu{stroke:#5b6470;stroke-width:1}
.free{fill:#ffffff;stroke-dasharray:4 3}
.unknown{fill:#eef0f3}
.unfree{fill:url(#hatch)}
.sick{stroke:#c1121f;stroke-width:2}
.island{fill:none;stroke:#7d8794;stroke-width:1.5}
.down{stroke:#c1121f;stroke-width:2.5;fill:none;stroke-dasharray:5 3}
.n{font:600 13px system-ui,sans-serif}
.t{font:10.5px system-ui,sans-serif}
.s{font:10px system-ui,sans-serif;fill:#4d5663}
.r{font:600 10px system-ui,sans-serif;fill:#a30f1a}
"""

HATCH = (
    '<defs><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="7" height="7" fill="#fff3d6"/>'
    '<line x1="0" y1="0" x2="0" y2="7" stroke="#b8860b" stroke-width="3"/></pattern></defs>'
)


class _Row(Struct, frozen=True):
    """GPUs of one NUMA node and one island that stand beside each other."""

    numa: int | None
    island: int | None
    gpus: tuple[GpuView, ...]


class _Place(Struct, frozen=True):
    x: int
    y: int

    @property
    def centre(self) -> tuple[int, int]:
        return self.x + _CELL_W // 2, self.y + _CELL_H // 2


def document(node: NodeView, inks: Mapping[str, Ink]) -> str:
    """A whole SVG file of one node, with its own style."""
    body, height = _body(node, inks)
    title = escape(f"GPUs of node {node.name}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height + 22}" '
        f'width="{WIDTH}" height="{height + 22}" role="img">'
        f"<title>{title}</title><style>{STYLE}</style>{HATCH}"
        f'<rect width="100%" height="100%" fill="#ffffff"/>'
        f'<text x="{_TOP}" y="15" class="n">{escape(node.name)}</text>'
        f'<g transform="translate(0 22)">{body}</g></svg>'
    )


def inline(node: NodeView, inks: Mapping[str, Ink]) -> str:
    """The same for a page that brings ``STYLE`` and ``HATCH`` along once; '' without named GPUs."""
    if not node.gpus:
        return ""
    body, height = _body(node, inks)
    title = escape(f"GPUs of node {node.name}")
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" class="node">'
        f"<title>{title}</title>{body}</svg>"
    )


def _body(node: NodeView, inks: Mapping[str, Ink]) -> tuple[str, int]:
    rows = tuple(_rows(node.gpus))
    places: dict[int, _Place] = {}
    parts: list[str] = []
    y = _TOP + 6
    numa: object = object()
    for number, row in enumerate(rows):
        if number and row.island != rows[number - 1].island:
            y += 6
        if row.numa != numa and row.numa is not None:
            parts.append(f'<text x="4" y="{y + _CELL_H // 2 + 4}" class="s">NUMA {row.numa}</text>')
        numa = row.numa
        for column, view in enumerate(row.gpus):
            places[view.index] = _Place(_LEFT + column * (_CELL_W + _GAP // 2), y)
        y += _CELL_H + _GAP
    frames = [_frame(members, places) for members in node.islands or () if len(members) > 1]
    cells = [_cell(view, places[view.index], inks) for row in rows for view in row.gpus]
    return "".join((*frames, *parts, *cells, *_broken(node, places))), y


def _rows(gpus: Sequence[GpuView]) -> Iterator[_Row]:
    """By island, then NUMA node, at most four beside each other."""

    def key(view: GpuView) -> tuple[int, int]:
        numa = -1 if view.gpu.numa is None else view.gpu.numa
        return (1 << 20 if view.island is None else view.island, numa)

    row: list[GpuView] = []
    for view in sorted(gpus, key=lambda view: (*key(view), view.index)):
        if row and (key(view) != key(row[0]) or len(row) == _IN_ROW):
            yield _Row(row[0].gpu.numa, row[0].island, tuple(row))
            row = []
        row.append(view)
    if row:
        yield _Row(row[0].gpu.numa, row[0].island, tuple(row))


def _frame(members: Sequence[int], places: Mapping[int, _Place]) -> str:
    """The outline of an island."""
    held = [places[index] for index in members if index in places]
    if not held:
        return ""
    x, y = min(p.x for p in held) - 4, min(p.y for p in held) - 4
    width = max(p.x for p in held) + _CELL_W + 4 - x
    height = max(p.y for p in held) + _CELL_H + 4 - y
    return f'<rect class="island" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'


def _cell(view: GpuView, at: _Place, inks: Mapping[str, Ink]) -> str:
    ink = inks[view.holders[0].workload_class] if view.holders else None
    classes = {"free": "free", "unfree": "unfree", "unknown": "unknown"}.get(view.state, "")
    sick = " sick" if view.state == "unhealthy" else ""
    fill = f' style="fill:{ink.fill}"' if ink and view.state in ("held", "unhealthy") else ""
    colour = f' style="fill:{ink.text}"' if fill and ink else ""
    top = f"{view.index}" + (f"  {ink.letter}" if ink else "")
    x, y = at.x + 6, at.y
    lines = [
        f'<text x="{x}" y="{y + 16}" class="n"{colour}>{escape(top)}</text>',
        f'<text x="{x}" y="{y + 30}" class="t"{colour}>{escape(_short(view))}</text>',
        f'<text x="{x}" y="{y + 42}" class="t"{colour}>{escape(_second(view))}</text>',
    ]
    cross = ""
    if view.state == "unhealthy":
        right, up = at.x + _CELL_W - 6, at.y + 5
        cross = (
            f'<path d="M{right - 12} {up}L{right} {up + 12}M{right} {up}L{right - 12} {up + 12}"'
            ' stroke="#c1121f" stroke-width="2.5"/>'
        )
    return (
        f"<g><title>{escape(label(view))}</title>"
        f'<rect class="gpu {classes}{sick}" x="{at.x}" y="{at.y}" width="{_CELL_W}" '
        f'height="{_CELL_H}" rx="5"{fill}/>{"".join(lines)}{cross}</g>'
    )


def _short(view: GpuView) -> str:
    if view.holders:
        return _cut(view.holders[0].pod, 9)
    return {"unfree": "residue", "unhealthy": "broken", "unknown": "unknown"}.get(
        view.state, "free"
    )


def _second(view: GpuView) -> str:
    if len(view.holders) > 1:
        return f"and {len(view.holders) - 1} more"
    return view.holders[0].share if view.holders else ""


def _broken(node: NodeView, places: Mapping[int, _Place]) -> Iterator[str]:
    """Links of which lanes are down, as a dashed line with what is left of it."""
    for link in node.map.links or ():
        if not link.degraded or link.a not in places or link.b not in places:
            continue
        (x1, y1), (x2, y2) = places[link.a].centre, places[link.b].centre
        middle = ((x1 + x2) // 2, (y1 + y2) // 2 - (24 if y1 == y2 else 0))
        yield (
            f'<path class="down" d="M{x1} {y1}Q{middle[0]} {middle[1]} {x2} {y2}"/>'
            f'<text class="r" text-anchor="middle" x="{middle[0]}" y="{middle[1] + 4}">'
            f"{link.lanes} of {link.lanes_total}</text>"
        )


def label(view: GpuView) -> str:
    """Everything about one GPU in a line, for whoever points at it or has it read aloud."""
    gpu = view.gpu
    parts = [f"GPU {view.index}", view.state + (f": {view.why}" if view.why else "")]
    parts += [f"{held.name} {held.workload_class} {held.share}".strip() for held in view.holders]
    if gpu.product:
        parts.append(gpu.product)
    if gpu.memory_mib is not None:
        used = "" if gpu.used_mib is None else f"{gpu.used_mib} of "
        parts.append(f"{used}{gpu.memory_mib} MiB")
    if gpu.uuid:
        parts.append(gpu.uuid)
    if gpu.pci_bus_id:
        parts.append(gpu.pci_bus_id)
    return " · ".join(parts)


def _cut(text: str, width: int) -> str:
    """In the middle: the end of a pod's name tells replicas apart."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"
