"""``topo`` for a terminal: pools and alerts in one screen, or nodes with matrix and holders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubectl_gpuadmit.overview.model import SIZES, Alert, GpuView, NodeView, Overview, PoolView
from kubectl_gpuadmit.render.topology.words import (
    islands_words,
    next_placement,
    source_words,
    subtitle,
)
from kubectl_gpuadmit.render.wording import plural
from kubectl_gpuadmit.topology.model import PCIE_LEVELS

if TYPE_CHECKING:
    from rich.text import Text

    from kubectl_gpuadmit.render.page import Page

ALERTS = 12
"""Alerts that are written out without ``-v``; how many more there are is said."""
_MATRIX = 16
"""GPUs up to which a matrix is written."""


def summary(
    found: Overview, *, width: int = 80, ascii: bool = False, details: bool = False
) -> Text:
    """Pools, then alerts, then what it rests on."""
    from kubectl_gpuadmit.render.page import Page

    page = Page(width, ascii=ascii)
    if not found.pools:
        page.line(("no node has a GPU", "bold"))
    else:
        _pools(page, found.pools)
    page.blank()
    _alerts(page, found.alerts, details=details)
    _demand(page, found.pools)
    if details:
        for node in found.nodes:
            page.blank()
            _node(page, node)
    page.blank()
    for unknown in found.unknowns:
        page.block([page.mark("unknown")], unknown, indent=2)
    moment = found.as_of.strftime("%Y-%m-%d %H:%M:%S UTC")
    rests = f"{found.source} · as of {moment}" + (f" · {found.assumed}" if found.assumed else "")
    page.block([("Rests on  ", "dim")], rests, indent=10, style="dim")
    if found.pools and not details:
        page.line(("topo NODE for the matrix · --watch · -o html", "dim"))
    return page.text


def node(found: Overview, *, width: int = 80, ascii: bool = False) -> Text:
    """Each node of the overview in full, with its alerts."""
    from kubectl_gpuadmit.render.page import Page

    page = Page(width, ascii=ascii)
    for one in found.nodes:
        _node(page, one, pasted=found.kind == "text")
        _alerts(page, [alert for alert in found.alerts if alert.node == one.name], details=True)
        page.blank()
    for unknown in found.unknowns:
        page.block([page.mark("unknown")], unknown, indent=2)
    return page.text


# -- pools -----------------------------------------------------------------------------------------


def _pools(page: Page, pools: Sequence[PoolView]) -> None:
    names = [pool.name or "(no pool)" for pool in pools]
    room = min(max(4, *map(len, names)), 20)
    page.line(
        (f"{'POOL':<{room}}  NODES   GPUS   held   free  unfree  ", "bold"),
        ("clean placements left   islands", "bold"),
    )
    for pool, name in zip(pools, names, strict=True):
        counts = [f"{size}:{pool.clean.get(size, 0)}" for size in SIZES]
        clean = "  ".join(counts)
        if len(clean) > 22:  # thousands of GPUs: better close together than the last column cut
            clean = " ".join(counts)
        page.line(
            (f"{page.cut(name, room):<{room}}  {pool.nodes:>5}  {pool.total:>5}  ", ""),
            (f"{pool.held:>5}  {pool.free:>5}  ", ""),
            (f"{pool.unfree + pool.unhealthy:>6}  ", "yellow" if pool.unfree else ""),
            (f"{clean:<22}  ", ""),
            (islands_words(pool), "yellow" if pool.split else ""),
        )


def _demand(page: Page, pools: Sequence[PoolView]) -> None:
    for pool in pools:
        for one in pool.demand:
            if one.placeable >= one.pods:
                continue
            where = f"pool {pool.name}: " if pool.name else ""
            page.block(
                [page.mark("warn")],
                f"{where}{plural(one.pods, 'pod')} {'waits' if one.pods == 1 else 'wait'} for"
                f" {one.size} GPUs of one node: {one.placeable} can be placed clean,"
                f" {one.countable} by count",
                indent=2,
            )


# -- alerts ----------------------------------------------------------------------------------------


def _alerts(page: Page, alerts: Sequence[Alert], *, details: bool) -> None:
    shown = alerts if details else alerts[:ALERTS]
    room = min(max((len(alert.node) for alert in shown), default=0), 24)
    for alert in shown:
        mark = page.mark("unknown" if alert.severity == "unknown" else "warn")
        what = alert.what + (f" · {alert.effect}" if alert.effect else "")
        if alert.next and details:
            what += f" · {alert.next}"
        page.block(
            [mark, (f"{page.cut(alert.node, room):<{room}}  ", "bold")], what, indent=room + 4
        )
    if len(alerts) > len(shown):
        page.line((f"  and {plural(len(alerts) - len(shown), 'more alert')}: -v", "dim"))


# -- one node --------------------------------------------------------------------------------------


def _node(page: Page, one: NodeView, *, pasted: bool = False) -> None:
    cordoned = " · cordoned" if one.cordoned else ""
    page.line((one.name, "bold"), (f"  {subtitle(one)}{cordoned}", ""))
    page.block([], source_words(one), indent=2, style="dim")
    for problem in one.map.problems:
        page.block([page.mark("unknown")], problem, indent=4)
    if one.gpus:
        _matrix(page, one, holders=not pasted)
    _nics(page, one)
    for held in one.loose:
        what = f"{held.count} × {held.resource}" if held.resource else plural(held.count, "GPU")
        page.block([("  ", "")], f"{held.name} has {what}; which ones is not known", indent=4)
    if not pasted:
        page.line((next_placement(one), ""))


def _nics(page: Page, one: NodeView) -> None:
    """Network cards, each with the GPUs that are nearest to it on PCIe."""
    for nic in one.map.nics or ():
        levels = nic.levels or {}
        level = next((name for name in PCIE_LEVELS if name in levels.values()), "")
        near = [str(gpu) for gpu, found in sorted(levels.items()) if found == level]
        parts = [f"GPU {', '.join(near)} ({level})"] if level else []
        if nic.numa is not None:
            parts.append(f"NUMA {nic.numa}")
        kind = " ".join(str(part) for part in (nic.link_layer, nic.state) if part)
        parts += [kind] if kind else []
        if nic.rate_gbps:
            parts.append(f"{nic.rate_gbps} Gb/s")
        broken = nic.state is not None and nic.state.lower() != "active"
        page.block(
            [("  NIC ", "dim"), (f"{page.cut(nic.name, 12):<12}  ", "")],
            " · ".join(parts) or "nothing more is known",
            indent=20,
            style="red" if broken else "",
        )


def _matrix(page: Page, one: NodeView, *, holders: bool = True) -> None:
    indexes = [view.index for view in one.gpus]
    cells = {(link.a, link.b): link for link in one.map.links or ()}
    drawn = bool(cells) and len(indexes) <= _MATRIX
    wide = max((len(link.type) for link in cells.values()), default=1) + 1 if drawn else 0
    if drawn:
        head = "".join(f"{index:<{wide}}" for index in indexes)
        page.line((f"      {head}", "bold"), (" NUMA  holder" if holders else " NUMA", "bold"))
    island: int | None = None
    for view in one.gpus:
        row: list[tuple[str, str]] = [(f"{_bracket(view, island)}{view.index:>3}  ", "bold")]
        island = view.island
        for column in indexes if drawn else ():
            link = cells.get((min(view.index, column), max(view.index, column)))
            text = "·" if column == view.index else link.type if link else "?"
            broken = link is not None and link.degraded and column != view.index
            row.append((f"{text:<{wide}}", "red" if broken else ""))
        numa = "?" if view.gpu.numa is None else view.gpu.numa
        row.append((f" {numa:>4}  ", ""))
        if holders:
            row.append((_holder(view), _colour(view)))
        page.line(*row)


def _bracket(view: GpuView, before: int | None) -> str:
    """``┌`` where an island begins and ``│`` where it goes on, so that it needs no colour."""
    if view.island is None:
        return " "
    return "│" if view.island == before else "┌"


def _holder(view: GpuView) -> str:
    words = [
        " ".join(part for part in (held.name, held.workload_class, held.share) if part)
        for held in view.holders
    ]
    if view.why:
        words.append(f"({view.why})")
    if not words:
        return {"unknown": "not known", "held": "held, by whom is not known"}.get(
            view.state, view.state
        )
    return ", ".join(words)


def _colour(view: GpuView) -> str:
    return {"free": "green", "unfree": "yellow", "unhealthy": "red", "unknown": "dim"}.get(
        view.state, ""
    )
