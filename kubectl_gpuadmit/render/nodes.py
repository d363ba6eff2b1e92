"""The answers of all nodes in one folded line, or one line a node; decides nothing."""

from __future__ import annotations

from kubectl_gpuadmit.render.wording import amount, plural, shortfall
from kubectl_gpuadmit.verdict import NodeVerdict, Shortfall


def folded(nodes: tuple[NodeVerdict, ...]) -> list[str]:
    """``2 fit``, ``4 taint a:NoSchedule``, ``6 short of nvidia.com/gpu (need 4, best has 2 free)``:
    each node once, under its permanent shortfall if it has one; the largest group first."""
    groups: dict[tuple[str, str], list[Shortfall]] = {}
    fit = 0
    for node in nodes:
        if node.fits or not node.shortfalls:
            fit += node.fits
            continue
        first = min(node.shortfalls, key=lambda s: not s.permanent)
        counted = first.requested is not None
        groups.setdefault((first.code, first.subject if counted else _why(first)), []).append(first)
    out = [f"{fit:,} fit"] if fit else []
    for (_, what), shorts in sorted(groups.items(), key=lambda g: (-len(g[1]), g[0])):
        text = f"{len(shorts):,} {what}"
        asked = shorts[0].requested
        if asked is not None:
            most = max((s.capacity or 0) - (s.used or 0) for s in shorts)
            free = "none free" if most <= 0 else f"best has {amount(what, most)} free"
            if all(s.permanent for s in shorts):
                free = f"largest has {amount(what, max(s.capacity or 0 for s in shorts))}"
            text = f"{len(shorts):,} short of {what} (need {amount(what, asked)}, {free})"
        out.append(text)
    return out


def _why(short: Shortfall) -> str:
    """The scheduler's words without its "node(s)", and what they are about."""
    match short.filter:
        case "TaintToleration" if short.subject:
            return f"taint {short.subject}"
        case "NodeAffinity" if short.subject:
            return f"other labels than {short.subject}"
        case "NodeUnschedulable":
            return "cordoned"
        case "DynamicResources" if short.code == "placement/attempt-fails":
            return short.subject.partition(". consider using CEL")[0]
    words = short.reason.removeprefix("node(s) ")
    return words if not short.subject or short.subject in words else f"{words}: {short.subject}"


def line(node: NodeVerdict) -> str:
    """Every reason of one node."""
    if node.fits:
        return "fits"
    until = [f"until {s.until}" for s in node.shortfalls if s.until]
    return "; ".join([shortfall(s) for s in node.shortfalls] + until) or "does not fit"


def best(nodes: tuple[NodeVerdict, ...]) -> str:
    """What stands in the way on most nodes, for one status line."""
    parts = [part for part in folded(nodes) if not part.endswith(" fit")]
    return f"of {plural(len(nodes), 'node')}: {parts[0]}" if parts else ""
