"""Findings about claims that no node can serve: the funnel of each request in words and numbers.

The DynamicResources filter has said no; this says at which of the things asked the devices run out,
what the nearest device lacks, and who has the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kubectl_gpuadmit.devices.allocator import of as features_of
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.kube.objects import NodeSelector
from kubectl_gpuadmit.kube.selectors import node_selector_matches
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.placement.filters.pod_claims import FILTER
from kubectl_gpuadmit.verdict import Evidence, Finding, NodeVerdict

if TYPE_CHECKING:
    from kubectl_gpuadmit.devices.funnel import Funnel, Stage

RULE = "placement"
NO_DEVICES = "placement/no-devices"
REASONS = {
    "placement/nothing-published": (
        "No driver publishes devices, or only pools that are incomplete or contradict "
        "themselves. Look at the DRA driver on the nodes."
    ),
    "placement/class-empty": (
        "No device is of the class that a request names: the class's selectors match none. Name"
        " another class, or correct its selectors."
    ),
    "placement/selector-unmet": (
        "No device meets a selector of a request. Correct the expression by what the nearest "
        "device has."
    ),
    "placement/devices-elsewhere": (
        "Devices that match are only on nodes that the pod may not use. Loosen the pod's node "
        "selector or tolerate the taints of those nodes."
    ),
    "placement/devices-in-use": (
        "All devices that match are allocated to other claims. Wait until one is released, or "
        "ask for another kind."
    ),
    "placement/devices-tainted": (
        "The devices that match carry taints that the request does not tolerate. Repair the "
        "device, or add a toleration to the request."
    ),
    "placement/amounts-short": (
        "Of the devices that match none has left what is asked: their GPU's partitions or "
        "shares are taken. Ask for less, or wait."
    ),
    "placement/too-few-together": (
        "No single node has as many matching devices as the claims ask for together. Ask for "
        "fewer, or split the work over several pods."
    ),
    "placement/constraint-unmet": (
        "There are enough devices on a node, but not enough that agree in the attribute of the "
        "claim's constraint. Loosen the constraint, or ask for fewer."
    ),
    "placement/requests-collide": (
        "Each request could be met by itself; together they ask for devices that exclude each "
        "other. Ask for fewer, or for other partitions."
    ),
}
_BY_STAGE = {
    "pools": "placement/nothing-published",
    "class": "placement/class-empty",
    "selector": "placement/selector-unmet",
    "nodes": "placement/devices-elsewhere",
    "free": "placement/devices-in-use",
    "untainted": "placement/devices-tainted",
    "amounts": "placement/amounts-short",
    "together": "placement/too-few-together",
    "constraint": "placement/constraint-unmet",
}
_MAY_PASS = frozenset({"free", "untainted", "amounts"})
"""Time may bring what these lack."""


def funnels(cycle: Cycle, nodes: tuple[NodeVerdict, ...]) -> tuple[Funnel, ...]:
    """One for each request of the pod's claims that have no devices yet."""
    if cycle.dra is None:
        return ()
    lacking = (v.node for v in nodes if any(s.code == NO_DEVICES for s in v.shortfalls))
    claims = cycle.dra.asks(cycle.cluster.nodes.get(next(lacking, "")))
    if not claims:
        return ()
    from kubectl_gpuadmit.devices import funnel  # brings CEL along: only for who needs it

    cluster = cycle.cluster
    mine = frozenset(v.node for v in nodes if all(s.filter == FILTER for s in v.shortfalls))

    def selected(selector: NodeSelector) -> frozenset[str]:
        return frozenset(
            info.name
            for info in cluster.nodes.values()
            if node_selector_matches(selector, info.labels, info.name)
        )

    return funnel.of_claims(
        claims,
        Inventory.of(cluster),
        features=features_of(cycle.kubernetes),
        kubernetes=cycle.kubernetes,
        around=funnel.Surroundings(mine, selected),
    )


def findings(
    cycle: Cycle, nodes: tuple[NodeVerdict, ...], found: tuple[Finding, ...]
) -> tuple[Finding, ...]:
    """``found`` with the bare ``placement/no-devices`` taken apart, request by request."""
    bare = next((f for f in found if f.reason == NO_DEVICES), None)
    if bare is None:
        return found
    told = [_finding(one, bare) for one in funnels(cycle, nodes)]
    short = [finding for finding in told if finding is not None]
    if told and not short:
        short = [_collision(cycle, nodes, bare)]
    at = found.index(bare)
    return (*found[:at], *short, *found[at + 1 :]) if short else found


def _finding(one: Funnel, bare: Finding) -> Finding | None:
    """None for a request that finds what it asks for."""
    falls = one.falls
    if falls is None:
        return None
    passes = falls.name in _MAY_PASS or (
        falls.name in ("together", "constraint") and _ever(one) and not bare.permanent
    )
    return Finding(
        reason=_BY_STAGE[falls.name],
        detail=sentence(one, falls),
        evidence=tuple(_evidence(one, falls)),
        permanent=bare.permanent and not passes,
        field="/spec/resourceClaims",
        rule=RULE,
        level=bare.level,
    )


def _ever(one: Funnel) -> bool:
    """Whether there were enough devices before those in use were taken off."""
    before = [s.left for s in one.stages if s.name in ("class", "selector", "nodes")]
    return bool(before) and before[-1] >= one.needs


def sentence(one: Funnel, falls: Stage) -> str:
    """``request gpu needs 1: of 24 devices of class gpu.nvidia.com none is left after …``."""
    needs = "all that match" if one.everything else f"{one.needs}"
    said = f"request {one.request} needs {needs}"
    left = "none" if falls.left == 0 else f"{falls.left}"
    if falls is one.stages[0]:
        return f"{said}: {left} {falls.asks}" + _most(falls)
    before = one.stages[one.stages.index(falls) - 1]
    of = {"pools": "published", "class": before.asks}.get(before.name, "that match")
    verb = "is" if falls.left < 2 else "are"
    said += f": of {before.left} devices {of}, {left} {verb} {falls.asks}"
    if one.nearest is not None and falls.name in ("class", "selector"):
        return f"{said}; nearest is {one.nearest.device}{_alike(one)}, where {lacks(one)}"
    return said + _most(falls)


def _most(falls: Stage) -> str:
    """What most of the lost devices were lost for."""
    if not falls.losses:
        return ""
    loss = falls.losses[0]
    verb = "is" if loss.count == 1 else "are"
    how = f"kept away by {loss.why}" if loss.why.startswith("taint ") else loss.why
    return f"; {loss.count} {verb} {how}" if not how.startswith(("pool ", "its ")) else f"; {how}"


def _alike(one: Funnel) -> str:
    more = (one.nearest.count if one.nearest else 1) - 1
    return f" and {more} like it" if more else ""


def lacks(one: Funnel) -> str:
    """What the nearest device has instead of what the first terms ask."""
    from kubectl_gpuadmit.devices import funnel

    said = []
    for lack in one.nearest.lacks[:2] if one.nearest else ():
        values = ", ".join(f"{_short(what)} is {funnel.spelt(v)}" for what, v in lack.values)
        said.append(f"{values} and {lack.term} fails" if values else f"{lack.term} fails")
    return "; ".join(said)


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _evidence(one: Funnel, falls: Stage) -> Iterator[Evidence]:
    """The stages down to the one that is too few, what was lost there, what the nearest lacks."""
    from kubectl_gpuadmit.devices import funnel

    about = f"request {one.request}"
    before = -1
    for stage in one.stages:
        short = stage is falls
        if stage.left == before and not short and stage.name not in ("class", "selector"):
            continue  # nothing was lost to it
        before = stage.left
        yield Evidence(
            subject=about,
            what=stage.asks,
            observed=stage.left,
            wanted=one.needs if short else None,
            source=stage.expression,
            bound="least" if short else "",
        )
        if short:
            break
    for loss in falls.losses:
        what = "1 device" if loss.count == 1 else f"{loss.count} devices"
        yield Evidence(loss.example, what, loss.why, None)
    if one.nearest is not None and falls.name in ("class", "selector"):
        for lack in one.nearest.lacks:
            for what, value in lack.values or (("selector", ""),):
                yield Evidence(
                    f"nearest device {one.nearest.device}",
                    _short(what),
                    funnel.spelt(value),
                    lack.term,
                )


def _collision(cycle: Cycle, nodes: tuple[NodeVerdict, ...], bare: Finding) -> Finding:
    """Enough for each request, and yet no node serves all: they exclude each other."""
    names = ", ".join(one.request for one in funnels(cycle, nodes))
    return Finding(
        reason="placement/requests-collide",
        detail=f"each of the requests {names} could be met by itself, but no node meets them"
        " together",
        evidence=bare.evidence,
        permanent=bare.permanent,
        field="/spec/resourceClaims",
        rule=RULE,
        level=bare.level,
    )
