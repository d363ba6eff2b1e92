"""What is otherwise in one overview than in another: alerts, nodes, holders, placements left."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kubectl_gpuadmit.overview.model import SIZES, Alert, NodeView, Overview


class Change(Struct, frozen=True):
    """One change of one node or GPU. ``worse`` is None where it is neither better nor worse."""

    node: str
    what: str
    before: str
    after: str
    gpu: int | None = None
    worse: bool | None = None


class Difference(Struct, frozen=True):
    before: Overview
    after: Overview
    new_alerts: tuple[Alert, ...]
    ended_alerts: tuple[Alert, ...]
    changes: tuple[Change, ...]
    """By node, then GPU."""

    @property
    def worse(self) -> bool:
        return any(a.severity == "alert" for a in self.new_alerts) or any(
            change.worse for change in self.changes
        )


def difference(before: Overview, after: Overview) -> Difference:
    """Alerts are the same where code, node and GPU are; their ages and numbers may differ."""
    old = {_key(alert): alert for alert in before.alerts}
    new = {_key(alert): alert for alert in after.alerts}
    nodes = {node.name: node for node in before.nodes}, {node.name: node for node in after.nodes}
    names = sorted(nodes[0].keys() | nodes[1].keys())
    return Difference(
        before,
        after,
        tuple(alert for key, alert in new.items() if key not in old),
        tuple(alert for key, alert in old.items() if key not in new),
        tuple(
            change
            for name in names
            for change in _node(name, nodes[0].get(name), nodes[1].get(name))
        ),
    )


def _key(alert: Alert) -> tuple[str, str, int | None, str]:
    counted = alert.what if alert.gpu is None and alert.code == "unreadable-map" else ""
    return alert.code, alert.node, alert.gpu, counted


def _node(name: str, old: NodeView | None, new: NodeView | None) -> Iterator[Change]:
    if old is None or new is None:
        yield Change(
            name,
            "node",
            "not there" if old is None else f"{old.total} GPUs",
            "gone" if new is None else f"{new.total} GPUs",
            worse=new is None,
        )
        return
    if old.total != new.total:
        worse = new.total < old.total
        yield Change(name, "GPUs", str(old.total), str(new.total), worse=worse)
    if old.map.source != new.map.source:
        yield Change(name, "source", old.map.source, new.map.source)
    if old.cordoned != new.cordoned:
        words = ("schedulable", "cordoned")
        yield Change(name, "state", words[old.cordoned], words[new.cordoned], worse=new.cordoned)
    if old.islands != new.islands:
        yield Change(name, "islands", _islands(old), _islands(new))
    if old.clean != new.clean:
        less = bool(
            old.clean
            and new.clean
            and any(new.clean.get(size, 0) < old.clean.get(size, 0) for size in SIZES)
        )
        yield Change(
            name, "clean placements", _clean(old), _clean(new), worse=less if old.clean else None
        )
    yield from _gpus(name, old, new)


def _gpus(name: str, old: NodeView, new: NodeView) -> Iterator[Change]:
    before = {view.index: view for view in old.gpus}
    for view in new.gpus:
        was = before.get(view.index)
        if was is None:
            continue
        if was.gpu.uuid and view.gpu.uuid and was.gpu.uuid != view.gpu.uuid:
            yield Change(name, "UUID", was.gpu.uuid, view.gpu.uuid, view.index)
        holders = tuple(", ".join(held.name for held in one.holders) for one in (was, view))
        if (was.state, holders[0]) != (view.state, holders[1]):
            bad = view.state in ("unfree", "unhealthy")
            yield Change(
                name,
                "holder",
                holders[0] or was.state,
                holders[1] or view.state,
                view.index,
                worse=True if bad and was.state != view.state else None,
            )


def _islands(node: NodeView) -> str:
    if node.islands is None:
        return "not known"
    return " + ".join(str(len(one)) for one in node.islands) or "none"


def _clean(node: NodeView) -> str:
    if node.clean is None:
        return "not known"
    return " ".join(f"{size}:{node.clean.get(size, 0)}" for size in SIZES)
