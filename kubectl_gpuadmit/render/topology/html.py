"""The overview as one page that needs nothing else: no script, no font, no request to anywhere.

Alerts come first, then pools, then nodes: those with something to say are drawn, the rest of a
large cluster is a strip of cells a node. Every text of the cluster is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from kubectl_gpuadmit.overview.model import (
    SIZES,
    Alert,
    GpuView,
    NodeView,
    Overview,
    PoolView,
)
from kubectl_gpuadmit.render.topology import drawing
from kubectl_gpuadmit.render.topology.colours import Ink, inks
from kubectl_gpuadmit.render.topology.words import islands_words, source_words, subtitle
from kubectl_gpuadmit.render.wording import plural

DRAWN = 120
"""Nodes that are drawn in full; of a larger cluster only those that an alert names or that are
split, up to this number."""

_STYLE = """
:root{color-scheme:light}
*{box-sizing:border-box}
body{margin:0;background:#f4f5f7;color:#1b1f24;font:14px/1.45 system-ui,-apple-system,sans-serif}
main{max-width:1180px;margin:0 auto;padding:16px}
h1{font-size:20px;margin:4px 0}h2{font-size:16px;margin:24px 0 8px}
.meta{color:#4d5663;margin:0 0 12px}
.alerts{list-style:none;padding:0;margin:0;display:grid;gap:6px}
.alerts li{background:#fff;border-left:4px solid #c1121f;padding:8px 10px;border-radius:4px}
.alerts li.unknown{border-color:#b8860b}
.alerts b{margin-right:6px}.alerts code{display:block;color:#4d5663;font-size:12px;
overflow-wrap:anywhere}
.none{background:#fff;border-left:4px solid #2e7d32;padding:8px 10px;border-radius:4px}
.scroll{overflow-x:auto;background:#fff;border-radius:6px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:6px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid #e6e8ec}
th:first-child,td:first-child{text-align:left}
th{font-weight:600;color:#4d5663}
.nodes{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,358px),1fr));gap:12px}
.card{background:#fff;border-radius:8px;padding:10px 12px;min-width:0}
.card h3{font-size:14px;margin:0;overflow-wrap:anywhere}
.card p{margin:2px 0 6px;color:#4d5663;font-size:12px;overflow-wrap:anywhere}
.card ul{margin:4px 0;padding-left:18px;font-size:12px;overflow-wrap:anywhere}
svg.node{display:block;width:100%;height:auto;max-width:420px}
.legend{display:flex;flex-wrap:wrap;gap:12px;margin:8px 0;font-size:13px}
.legend span{display:inline-flex;align-items:center;gap:5px}
.legend i,.strip i{display:inline-block;width:18px;height:18px;border-radius:3px;font:600 11px/18px
system-ui,sans-serif;text-align:center;font-style:normal;border:1px solid #5b6470}
.strip{display:flex;flex-wrap:wrap;gap:2px;align-items:center;padding:2px 0}
.strip b{font-weight:400;min-width:140px;overflow-wrap:anywhere}
.x-free{background:#fff;border-style:dashed!important}
.x-unknown{background:#eef0f3}
.x-unfree{background:repeating-linear-gradient(45deg,#fff3d6 0 4px,#b8860b 4px 6px)}
.x-unhealthy{border:2px solid #c1121f!important}
details{margin:8px 0}summary{cursor:pointer}
details.matrix table{font-size:11px}details.matrix td,details.matrix th{padding:2px 5px}
"""


def page(found: Overview) -> str:
    """The whole document."""
    by_class = inks(found.nodes)
    title = f"GPU topology · {found.source}"
    drawn = _drawn(found)
    style = _STYLE + drawing.STYLE
    return "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{style}</style></head><body>",
            f'<svg width="0" height="0" style="position:absolute">{drawing.HATCH}</svg>',
            f"<main><h1>{escape(title)}</h1>",
            f'<p class="meta">{escape(_moment(found))}</p>',
            *_alerts(found.alerts),
            *_pools(found.pools),
            *_legend(by_class),
            *_nodes(found, drawn, by_class),
            *_unknowns(found.unknowns),
            "</main></body></html>\n",
        )
    )


def _moment(found: Overview) -> str:
    stamp = found.as_of.strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"as of {stamp}" + (f" · {found.assumed}" if found.assumed else "")


def _drawn(found: Overview) -> frozenset[str]:
    """Names of the nodes that are drawn in full."""
    if len(found.nodes) <= DRAWN:
        return frozenset(node.name for node in found.nodes)
    named = {alert.node for alert in found.alerts}
    chosen = [n.name for n in found.nodes if n.name in named]
    chosen += [n.name for n in found.nodes if n.name not in named and n.split]
    return frozenset(chosen[:DRAWN])


def _alerts(alerts: Sequence[Alert]) -> Iterator[str]:
    yield "<h2>Alerts</h2>"
    if not alerts:
        yield '<p class="none">✓ nothing to report</p>'
        return
    yield '<ul class="alerts">'
    for one in alerts:
        unknown = one.severity == "unknown"
        yield f'<li class="{one.severity}"><b>{"?" if unknown else "!"} {escape(one.node)}</b>'
        yield escape(one.what) + (f" · {escape(one.effect)}" if one.effect else "")
        yield (f"<code>{escape(one.next)}</code>" if one.next else "") + "</li>"
    yield "</ul>"


def _pools(pools: Sequence[PoolView]) -> Iterator[str]:
    yield '<h2>Pools</h2><div class="scroll"><table><tr><th>Pool</th><th>Nodes</th><th>GPUs</th>'
    yield "<th>held</th><th>free</th><th>unfree</th><th>broken</th>"
    yield "".join(f"<th>clean {size}</th>" for size in SIZES) + "<th>islands</th></tr>"
    for pool in pools:
        numbers = (pool.nodes, pool.total, pool.held, pool.free, pool.unfree, pool.unhealthy)
        yield f"<tr><td>{escape(pool.name or '(no pool)')}</td>"
        yield "".join(f"<td>{number:,}</td>" for number in numbers)
        yield "".join(f"<td>{pool.clean.get(size, 0):,}</td>" for size in SIZES)
        yield f"<td>{escape(islands_words(pool))}</td></tr>"
    yield "</table></div>"


def _legend(by_class: Mapping[str, Ink]) -> Iterator[str]:
    yield '<div class="legend">'
    for ink in by_class.values():
        colours = f"background:{ink.fill};color:{ink.text}"
        yield f'<span><i style="{colours}">{escape(ink.letter)}</i>{escape(ink.name)}</span>'
    for state, words in (
        ("free", "free"),
        ("unfree", "residue: not usable"),
        ("unhealthy", "broken"),
        ("unknown", "not known"),
    ):
        yield f'<span><i class="x-{state}"></i>{words}</span>'
    yield "</div>"


def _nodes(found: Overview, drawn: frozenset[str], by_class: Mapping[str, Ink]) -> Iterator[str]:
    for pool in found.pools:
        members = [node for node in found.nodes if node.pool == pool.name]
        yield f"<h2>{escape(pool.name or '(no pool)')} · {plural(len(members), 'node')}</h2>"
        cards = [node for node in members if node.name in drawn]
        if cards:
            yield '<div class="nodes">'
            for node in cards:
                yield from _card(node, by_class)
            yield "</div>"
        rest = [node for node in members if node.name not in drawn]
        if rest:
            more = "more " if cards else ""
            yield f"<details open><summary>{len(rest):,} {more}nodes</summary>"
            for node in rest:
                yield from _strip(node, by_class)
            yield "</details>"


def _card(node: NodeView, by_class: Mapping[str, Ink]) -> Iterator[str]:
    yield f'<section class="card"><h3>{escape(node.name)}{" · cordoned" * node.cordoned}</h3>'
    yield f"<p>{escape(subtitle(node))}<br>{escape(source_words(node))}</p>"
    yield drawing.inline(node, by_class)
    if node.loose:
        yield "<ul>"
        for held in node.loose:
            which = f"{held.count} × {held.resource}" if held.resource else f"{held.count} GPUs"
            yield f"<li>{escape(held.name)} · {escape(which)} · which ones is not known</li>"
        yield "</ul>"
    yield from _matrix(node)
    yield "</section>"


def _matrix(node: NodeView) -> Iterator[str]:
    links = node.map.links
    if not links or len(node.gpus) < 2:
        return
    cells = {(link.a, link.b): link.type for link in links}
    indexes = [view.index for view in node.gpus]
    yield '<details class="matrix"><summary>matrix</summary><div class="scroll"><table>'
    yield "<tr><th></th>"
    yield "".join(f"<th>{index}</th>" for index in indexes) + "</tr>"
    for row in indexes:
        yield f"<tr><th>{row}</th>"
        for column in indexes:
            cell = "·" if row == column else cells.get((min(row, column), max(row, column)), "?")
            yield f"<td>{escape(cell)}</td>"
        yield "</tr>"
    yield "</table></div></details>"


def _strip(node: NodeView, by_class: Mapping[str, Ink]) -> Iterator[str]:
    """One line of cells for a node that is not drawn."""
    yield f'<div class="strip"><b>{escape(node.name)}</b>'
    for view in node.gpus:
        yield _mini(view, by_class)
    if not node.gpus:
        free = "?" if node.free is None else str(node.free)
        yield f"{node.total} GPUs, {free} free"
    yield "</div>"


def _mini(view: GpuView, by_class: Mapping[str, Ink]) -> str:
    title = escape(drawing.label(view), quote=True)
    if view.holders and view.state in ("held", "unhealthy"):
        ink = by_class[view.holders[0].workload_class]
        sick = ' class="x-unhealthy"' if view.state == "unhealthy" else ""
        colours = f"background:{ink.fill};color:{ink.text}"
        return f'<i{sick} style="{colours}" title="{title}">{escape(ink.letter)}</i>'
    return f'<i class="x-{view.state}" title="{title}"></i>'


def _unknowns(unknowns: Sequence[str]) -> Iterator[str]:
    if unknowns:
        yield "<h2>Not known</h2><ul>"
        yield "".join(f"<li>{escape(text)}</li>" for text in unknowns)
        yield "</ul>"
