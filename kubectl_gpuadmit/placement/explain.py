"""Folds the verdicts of all nodes on a pod that found none into findings a person can act on.

The findings speak of the nodes that the pod itself selects, and of those the ones with the fewest
permanent obstacles; what else other nodes have against the pod follows at level ``audit``. Numbers
come from one best node, never from minima over different nodes. Suggestions are data for the engine
to try.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct, structs

from kubectl_gpuadmit.kube.selectors import taint_text
from kubectl_gpuadmit.placement import shortage, suggest
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.placement.filters import RANK, node_unschedulable
from kubectl_gpuadmit.placement.message import PREFILTER_CODES
from kubectl_gpuadmit.placement.waiting import lack
from kubectl_gpuadmit.verdict import (
    Evidence,
    Finding,
    NodeVerdict,
    Placement,
    Remedy,
    Shortfall,
)

RULE = "placement"
REASONS = {
    "placement/no-nodes": "The cluster has no node at all. Check that the source holds the nodes.",
    "placement/no-such-label": "No node carries the label that the pod's nodeSelector asks for. "
    "Correct the key or value, or label the nodes.",
    "placement/too-many-replicas": "Some replicas fit, and the rest would not fit even if nothing "
    "else ran. Use fewer replicas or more nodes.",
}

_SIDE_FINDINGS = 6
_CORDON_TAINT = taint_text(node_unschedulable.TAINT)

_FOLDED = {
    "placement/node-name": "{nodes}: the pod names node {subject}",
    "placement/cordoned": "{nodes} cordoned",
    "placement/taint": "{nodes}: taint {subject}",
    "placement/node-affinity": "{nodes}: labels do not match {subject}",
    "placement/host-port": "{nodes}: host port {subject} is taken",
    "placement/too-many-pods": "{nodes}: no more pods allowed",
    "placement/spread": "{nodes}: one more pod there would break the spread over {subject}",
    "placement/spread-label": "{nodes}: no label {subject} to spread over",
    "placement/pod-affinity": "{nodes}: no pod with {subject} that it must be near",
    "placement/pod-affinity-label": "{nodes}: no label {subject} for the pod affinity",
    "placement/pod-anti-affinity": "{nodes}: a pod that it avoids runs there ({subject})",
    "placement/existing-anti-affinity": "{nodes}: a pod with the same {subject} refuses this one",
    "placement/volume-affinity": "{nodes}: {subject} cannot be reached",
    "placement/volume-zone": "{nodes}: {subject} is in another zone",
    "placement/volume-no-match": "{nodes}: no volume for {subject}",
    "placement/volume-conflict": "{nodes}: disk {subject} is mounted there",
    "placement/volume-in-use": "{nodes}: claim {subject} is used by another pod",
    "placement/volume-limit": "{nodes}: driver {subject} can attach no more volumes",
    "placement/volume-gone": "{nodes}: a claim is bound to a volume that does not exist",
    "placement/insufficient": "{nodes}: too little {subject}",
    "placement/no-devices": "{nodes}: not all devices for {subject} are to be had",
    "placement/claim-elsewhere": "{nodes}: the devices of {subject} are on another node",
    "placement/pools-invalid": "{nodes}: a driver's ResourceSlices contradict each other",
    "placement/extended-stale": "{nodes}: claim {subject} is left from an earlier attempt",
    "placement/extended-unserved": "{nodes}: {subject} is neither advertised nor backed by devices",
    "placement/attempt-fails": "the scheduler gives up with an error: {subject}",
}

_BY_TOPOLOGY = frozenset(
    {
        "placement/spread",
        "placement/pod-affinity",
        "placement/pod-anti-affinity",
        "placement/existing-anti-affinity",
    }
)
"""Their subjects end in ``key=value`` of one domain; all domains of a key are told together."""

_SELECTION = frozenset({"placement/node-affinity", "placement/node-name"})
"""The pod says itself that it does not want these nodes."""

_FIELDS = {
    "placement/node-name": "/spec/nodeName",
    "placement/taint": "/spec/tolerations",
    "placement/node-affinity": "/spec/nodeSelector",
    "placement/spread": "/spec/topologySpreadConstraints",
    "placement/spread-label": "/spec/topologySpreadConstraints",
    "placement/pod-affinity": "/spec/affinity/podAffinity",
    "placement/pod-affinity-label": "/spec/affinity/podAffinity",
    "placement/pod-anti-affinity": "/spec/affinity/podAntiAffinity",
    "placement/no-devices": "/spec/resourceClaims",
    "placement/claim-elsewhere": "/spec/resourceClaims",
}


class _Scene(Struct, frozen=True):
    """What the findings are made of."""

    cycle: Cycle
    nodes: tuple[NodeVerdict, ...]
    main: tuple[NodeVerdict, ...]
    """The nodes that the findings speak of."""
    best: NodeVerdict
    """The one of ``main`` that lacks least: all numbers are its own."""


def findings(
    cycle: Cycle,
    nodes: tuple[NodeVerdict, ...],
    *,
    placement: Placement,
    placed: int,
    count: int,
    room: int,
) -> tuple[Finding, ...]:
    """Why replica ``placed + 1`` of ``count`` finds no node; ``room`` would if all else ended."""
    if not nodes:
        return (Finding("placement/no-nodes", "the cluster has no nodes", rule=RULE),)
    rejected = [s for s in nodes[0].shortfalls if s.code in PREFILTER_CODES]
    if rejected:
        return tuple(_rejection(s) for s in rejected)
    found: list[Finding] = []
    if placement == "never" and room > 0:
        found.append(_too_many(nodes, placed=placed, count=count, room=room))
    scene = _scene(cycle, nodes)
    found += _main_findings(scene)
    if placement == "waits":
        found = [structs.replace(f, permanent=False) for f in found]
    elif placement == "never" and room > 0:
        found = [found[0], *(structs.replace(f, level="audit") for f in found[1:])]
    evidence = [e for f in found for e in f.evidence]
    told = {e.what for e in evidence} | {f"{e.what}={e.wanted}" for e in evidence}
    side = [f for f in _side_findings(scene) if f.evidence[0].what not in told]
    more = tuple(remedy for f in side for remedy in f.suggest)
    if more:
        found[0] = structs.replace(found[0], suggest=(*found[0].suggest, *more))
    return (*found, *(structs.replace(f, suggest=()) for f in side[:_SIDE_FINDINGS]))


def _permanent(verdict: NodeVerdict) -> list[Shortfall]:
    return [s for s in verdict.shortfalls if s.permanent and not s.until]


def _all(verdict: NodeVerdict) -> list[Shortfall]:
    return list(verdict.shortfalls)


def _obstacles(shortfalls: Iterable[Shortfall]) -> int:
    return len({(s.code, _subject(s)) for s in shortfalls})


def _scene(cycle: Cycle, nodes: tuple[NodeVerdict, ...]) -> _Scene:
    obstacles = [_rank(v) for v in nodes]
    fewest = min(obstacles)
    main = tuple(v for v, n in zip(nodes, obstacles, strict=True) if n == fewest)
    return _Scene(cycle, nodes, main, _nearest(main))


def _rank(verdict: NodeVerdict) -> tuple[bool, int]:
    """(the pod does not select this node, number of permanent obstacles)."""
    permanent = _permanent(verdict)
    return any(s.code in _SELECTION for s in permanent), _obstacles(permanent)


def _subject(shortfall: Shortfall) -> str:
    subject = shortfall.subject
    return subject.rpartition("=")[0] if shortfall.code in _BY_TOPOLOGY else subject


def _main_findings(scene: _Scene) -> list[Finding]:
    """One finding for each obstacle of the main nodes: names that exist nowhere come first."""
    obstacles = _fold(scene.main, _permanent if any(map(_permanent, scene.main)) else _all)
    first: list[Finding] = []
    rest: list[Finding] = []
    for (code, subject), names in obstacles.items():
        if code == "placement/node-affinity" and (found := _no_such_label(scene, subject)):
            first.append(found)
        elif code == "placement/insufficient":
            found = _shortage(scene, subject, names)
            (first if found.reason == "placement/no-such-resource" else rest).append(found)
        else:
            rest.append(_folded(scene, code, subject, names))
    return first + rest


def _shortage(scene: _Scene, name: str, lacking: Sequence[str]) -> Finding:
    """Too little of a resource, told of the open nodes where that is possible."""
    names = frozenset(lacking)
    short = [v for v in scene.main if v.node in names]
    opened = [v for v in short if not any(s.until for s in v.shortfalls)] or short
    best = scene.best if scene.best in opened else None
    return shortage.finding(scene.cycle, name, opened, best or _nearest(opened))


def _nearest(verdicts: Iterable[NodeVerdict]) -> NodeVerdict:
    """The one that lacks least."""
    return min(verdicts, key=lambda v: (*lack(v.shortfalls), v.node))


def _fold(
    nodes: Iterable[NodeVerdict], wanted: Callable[[NodeVerdict], list[Shortfall]] = _all
) -> dict[tuple[str, str], list[str]]:
    """(code, subject) -> nodes, in filter order, then most nodes first."""
    folded: dict[tuple[str, str], list[str]] = {}
    ranks: dict[tuple[str, str], int] = {}
    for verdict in nodes:
        cordoned = any(s.code == "placement/cordoned" for s in verdict.shortfalls)
        for s in wanted(verdict):
            if cordoned and s.subject == _CORDON_TAINT:
                continue  # the taint says the same again
            key = (s.code, _subject(s))
            names = folded.setdefault(key, [])
            ranks[key] = RANK[s.filter]
            if not names or names[-1] != verdict.node:
                names.append(verdict.node)
    order = sorted(folded, key=lambda k: (ranks[k], -len(folded[k]), k))
    return {key: folded[key] for key in order}


def _side_findings(scene: _Scene) -> Iterator[Finding]:
    """What the nodes that the findings do not speak of have against the pod.

    A remedy is suggested where it is all that some node has against the pod.
    """
    main = {v.node for v in scene.main}
    others = [v for v in scene.nodes if v.node not in main]
    lone = set(_fold(v for v in others if _obstacles(v.shortfalls) == 1))
    for (code, subject), names in _fold(others, _permanent).items():
        finding = structs.replace(_folded(scene, code, subject, names), level="audit")
        yield finding if (code, subject) in lone else structs.replace(finding, suggest=())


def _folded(scene: _Scene, code: str, subject: str, names: Sequence[str]) -> Finding:
    count = "1 node" if len(names) == 1 else f"{len(names)} nodes"
    text = _FOLDED.get(code, "{nodes}: {subject}")
    shortfall = next(
        s
        for v in scene.nodes
        if v.node == names[0]
        for s in v.shortfalls
        if (s.code, _subject(s)) == (code, subject)
    )
    if shortfall.until and code not in ("placement/cordoned", "placement/pod-affinity"):
        text += f" (until {shortfall.until})"
    return Finding(
        reason=code,
        detail=text.format(nodes=count, subject=subject),
        evidence=(
            Evidence(
                subject=f"Node {names[0]}",
                what=subject or code.partition("/")[2],
                observed=len(names),
                wanted=0,
                source=f"nodes with this obstacle, of {len(scene.nodes)}",
            ),
        ),
        permanent=shortfall.permanent and not shortfall.until,
        field=_FIELDS.get(code, ""),
        suggest=_suggestions(scene, code, subject, names),
        rule=RULE,
    )


def _suggestions(
    scene: _Scene, code: str, subject: str, names: Sequence[str]
) -> tuple[Remedy, ...]:
    pod, nodes = scene.cycle.pod, scene.cycle.cluster.nodes
    match code:
        case "placement/taint":
            # all that one node has, so that the change by itself may suffice
            verdict = next(v for v in scene.nodes if v.node == names[0])
            own = {s.subject for s in verdict.shortfalls if s.code == code and not s.until}
            taints = [t for t in nodes[names[0]].taints if taint_text(t) in own]
            return (suggest.toleration(pod, taints),) if taints else ()
        case "placement/node-affinity":
            key, _, value = subject.partition("=")
            if (pod.spec.nodeSelector or {}).get(key) == value:
                return (suggest.without_label(pod, key),)
        case "placement/spread-label" | "placement/spread":
            return suggest.soft_spread(pod, subject)
        case "placement/node-name":
            return (suggest.removed("nodeName", "let the scheduler choose the node"),)
    return ()


def _no_such_label(scene: _Scene, subject: str) -> Finding | None:
    """A nodeSelector entry that no node at all carries; None for one that some node does."""
    pod, cluster = scene.cycle.pod, scene.cycle.cluster
    key, _, value = subject.partition("=")
    if (pod.spec.nodeSelector or {}).get(key) != value:
        return None
    values = suggest.known_values(cluster, key)
    if value in values:
        return None
    if values:
        more = f" and {len(values) - 5} more" if len(values) > 5 else ""
        detail = f"no node carries {subject} (known values: {', '.join(values[:5])}{more})"
    else:
        keys = {k for info in cluster.nodes.values() for k in info.labels}
        meant = suggest.near(key, keys)
        hint = f" (did you mean {meant}?)" if meant else ""
        detail = f"no node carries a label {key}{hint}"
    return Finding(
        reason="placement/no-such-label",
        detail=detail,
        evidence=(
            Evidence(
                subject=f"{len(scene.nodes)} nodes",
                what=key,
                observed=", ".join(values) or None,
                wanted=value,
                source="metadata.labels",
            ),
        ),
        field=suggest.pointer("spec", "nodeSelector", key),
        suggest=suggest.other_label(cluster, pod, key, value),
        rule=RULE,
    )


def _too_many(nodes: Sequence[NodeVerdict], *, placed: int, count: int, room: int) -> Finding:
    return Finding(
        reason="placement/too-many-replicas",
        detail=f"asks {count} pods: {placed} fit now, {room} would if nothing else ran",
        evidence=(
            Evidence(
                f"{len(nodes)} nodes",
                "room for such pods",
                room,
                count,
                "emptied nodes",
                bound="least",
            ),
        ),
        rule=RULE,
    )


def _rejection(shortfall: Shortfall) -> Finding:
    """Refused before any node is looked at: the scheduler's own words."""
    return Finding(
        reason=shortfall.code,
        detail=shortfall.reason,
        evidence=(Evidence("pod", shortfall.subject or shortfall.filter, None, None),),
        permanent=not shortfall.until,
        rule=RULE,
    )
