"""Whose end would let a waiting pod in: deadlines, times to live, pods that are going already.

Modelled: it looks at the nodes that lack least, and takes pods to end when they say so.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence

from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.devices.model import Claim
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.pods import priority, requests
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.placement.preemption import Candidate
from kubectl_gpuadmit.verdict import NodeVerdict, Shortfall

NODES_LOOKED_AT = 32
"""Nodes on which the ends of pods are tried; of a larger cluster those that lack least."""
SENTENCES = 3
_NEVER = dt.datetime.max.replace(tzinfo=dt.UTC)


class Release(Struct, frozen=True):
    """A node on which the pod fits once ``pods`` are gone."""

    node: str
    pods: tuple[Pod, ...]
    at: dt.datetime | None
    """When the last of them ends, None where one of them does not say."""
    why: str
    """``TTL 14:20 UTC``, ``deadline …``, ``terminating``; '' where one does not say."""
    lacking: tuple[Shortfall, ...]
    events: tuple[str, ...] = ()
    """What must be done to the node besides: ``uncordoned``."""


def end_of(
    pod: Pod, cluster: Cluster, ttl_annotations: Sequence[str]
) -> tuple[dt.datetime, str] | None:
    """When a running pod ends and what says so, None where nothing does.

    ``ttl_annotations`` are looked for on the pod, then on its controller if the source has it: a
    duration since the object's creation, or an instant.
    """
    found: list[tuple[dt.datetime, str]] = []
    _note(found, pod.metadata.deletionTimestamp, None, "terminating")
    deadline = pod.spec.activeDeadlineSeconds
    if deadline is not None and pod.status.startTime:
        _note(found, f"{deadline}s", pod.status.startTime, "deadline")
    for key in ttl_annotations:
        text = pod.annotations.get(key)
        start = pod.metadata.creationTimestamp or pod.status.startTime
        if text is None:
            for owner in pod.metadata.ownerReferences or ():
                held = cluster.get(owner.kind, pod.namespace, owner.name)
                if held is not None and key in held.annotations:
                    text = held.annotations[key]
                    start = held.metadata.creationTimestamp or start
        if text is not None:
            _note(found, text, start, "TTL")
            break
    return min(found, default=None)


def _note(
    found: list[tuple[dt.datetime, str]], text: str | None, start: str | None, why: str
) -> None:
    """Adds the end that ``text`` states; what cannot be read says nothing."""
    try:
        end = times.parse_end(text, times.parse_instant(start) if start else None) if text else None
    except times.TimeError:
        return
    if end is not None:
        found.append((end, why))


def releases(
    cycle: Cycle,
    verdicts: Sequence[NodeVerdict],
    *,
    now: dt.datetime,
    ttl_annotations: Sequence[str] = (),
) -> tuple[Release, ...]:
    """Nodes that the end of pods would open, the soonest first."""
    waiting = [
        v
        for v in verdicts
        if not v.fits
        and any(not s.permanent for s in v.shortfalls)
        and all(not s.permanent or s.until for s in v.shortfalls)
    ]
    waiting.sort(key=lambda v: (lack(v.shortfalls), v.node))
    found = [
        release
        for v in waiting[:NODES_LOOKED_AT]
        if (release := _release(cycle, v, now, ttl_annotations)) is not None
    ]
    found.sort(key=lambda r: (len(r.events), r.at or _NEVER, len(r.pods), r.node))
    return tuple(found)


def lack(shortfalls: Iterable[Shortfall]) -> tuple[int, float]:
    """How far a node is from taking the pod: (kinds of lack, sum of shares of what is asked)."""
    listed = tuple(shortfalls)
    shares = sum(
        (s.requested + (s.used or 0) - (s.capacity or 0)) / s.requested
        for s in listed
        if s.requested
    )
    return len({s.code for s in listed}), shares


def _release(
    cycle: Cycle, verdict: NodeVerdict, now: dt.datetime, ttl_annotations: Sequence[str]
) -> Release | None:
    info = cycle.cluster.nodes[verdict.node]
    ends = {id(p): end_of(p, cycle.cluster, ttl_annotations) for p in info.pods}
    lacking = tuple(s for s in verdict.shortfalls if not s.permanent)
    leaving = sorted(
        (p for p in info.pods if _ends_some_day(p)),
        key=lambda p: (
            (ends[id(p)] or (_NEVER, ""))[0],
            -max((requests(p).get(s.subject, 0) for s in lacking if s.requested), default=0),
            priority(p),
            p.namespace,
            p.name,
        ),
    )
    chosen = _enough(cycle, info, leaving)
    if not chosen:
        return None
    known = [ends[id(p)] for p in chosen]
    at: dt.datetime | None = None
    why = ""
    if all(k is not None for k in known):
        at, reason = max(k for k in known if k is not None)
        why = reason if reason == "terminating" else f"{reason} {clock(at, now)}"
    events = tuple(dict.fromkeys(s.until for s in verdict.shortfalls if s.until))
    return Release(verdict.node, chosen, at, why, lacking, events)


def _enough(cycle: Cycle, info: NodeInfo, leaving: list[Pod]) -> tuple[Pod, ...]:
    """The first pods in the order of leaving that suffice, without those that need not go."""
    trial = cycle.what_if(info)
    gone: list[Pod] = []
    for pod in leaving:
        trial.remove((pod,))
        gone.append(pod)
        if not _still_lacks(trial.shortfalls()):
            break
    else:
        return ()
    for pod in gone[:-1]:
        trial.put_back(pod)
        if _still_lacks(trial.shortfalls()):
            trial.remove((pod,))
        else:
            gone = [p for p in gone if p is not pod]
    return tuple(gone)


def _still_lacks(shortfalls: tuple[Shortfall, ...]) -> bool:
    return any(not s.until for s in shortfalls)


def _ends_some_day(pod: Pod) -> bool:
    """Pods of DaemonSets and static pods come back at once."""
    return not any(
        o.controller and o.kind in ("DaemonSet", "Node") for o in pod.metadata.ownerReferences or ()
    )


def clock(at: dt.datetime, now: dt.datetime) -> str:
    """``14:20 UTC`` today, ``2026-11-30 14:20 UTC`` otherwise."""
    at, now = at.astimezone(dt.UTC), now.astimezone(dt.UTC)
    return at.strftime("%H:%M UTC" if at.date() == now.date() else "%Y-%m-%d %H:%M UTC")


def sentences(
    cycle: Cycle,
    verdicts: Sequence[NodeVerdict],
    found: Sequence[Release],
    candidate: Candidate | None,
    *,
    unsure: str = "",
) -> tuple[str, ...]:
    """What a person may wait for: what preemption gives now, then what ends, the soonest first.

    ``unsure`` replaces what PDBs would say.
    """
    lines: list[str] = []
    by_preemption = _preempting(cycle, candidate, unsure) if candidate is not None else ""
    told = False
    for release in found:
        if len(lines) == SENTENCES:
            break
        line = (
            f"{_what(release)} on {release.node} free when {_names(cycle, release.pods)} "
            f"{'ends' if len(release.pods) == 1 else 'end'}"
        )
        if release.why:
            line += f" ({release.why})"
        if release.events:
            line += f", once {' and '.join(release.events)}"
        if candidate is not None and candidate.node == release.node:
            told = True
            if all(pod.metadata.deletionTimestamp for pod in release.pods):
                lines.insert(0, line)  # room is being made already, by preemption or otherwise
                continue
            same = {id(p) for p in candidate.victims} == {id(p) for p in release.pods}
            whom = "it" if len(release.pods) == 1 else "them"
            victims = whom if same else _names(cycle, candidate.victims)
            lines.insert(0, f"{line}, or now by preempting {victims} {by_preemption}")
        else:
            lines.append(line)
    if candidate is not None and not told:
        lines.insert(
            0,
            f"{candidate.node} takes it now by preempting {_names(cycle, candidate.victims)} "
            f"{by_preemption}",
        )
    lines += _events(verdicts)
    return tuple(lines[: SENTENCES + 1])


def for_claims(cycle: Cycle, verdicts: Sequence[NodeVerdict]) -> tuple[str, ...]:
    """Whose ResourceClaims would have to let go of devices: ``n1 serves it once claim …``."""
    if cycle.dra is None:
        return ()
    lines: list[str] = []
    only_devices = [
        v
        for v in verdicts
        if v.shortfalls and all(s.code == "placement/no-devices" for s in v.shortfalls)
    ]
    for verdict in only_devices[:NODES_LOOKED_AT]:
        claims = cycle.dra.holders(cycle.cluster.nodes[verdict.node])
        if claims:
            named = [_claim(claim) for claim in claims]
            listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
            lines.append(
                f"{verdict.node} serves it once {listed} {'lets' if len(named) == 1 else 'let'} go"
                " of the devices"
            )
        if len(lines) == SENTENCES:
            break
    return tuple(lines)


def _claim(claim: Claim) -> str:
    """``claim team-a/gpu (pod train-0)``."""
    users = [one.name for one in claim.reserved_for]
    if not users:
        return f"claim {claim} (no pod uses it)"
    more = f" and {len(users) - 1} more" if len(users) > 1 else ""
    return f"claim {claim} (pod {users[0]}{more})"


def _events(verdicts: Sequence[NodeVerdict]) -> list[str]:
    """Nodes that take the pod as soon as something is done to them, folded by what that is."""
    by_event: dict[str, list[str]] = {}
    for v in verdicts:
        if v.shortfalls and all(s.until for s in v.shortfalls):
            event = " and ".join(dict.fromkeys(s.until for s in v.shortfalls))
            by_event.setdefault(event, []).append(v.node)
    lines = []
    for event, nodes in by_event.items():
        who = nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes, first {nodes[0]},"
        take = "takes" if len(nodes) == 1 else "take"
        lines.append(f"{who} {take} it once {event}")
    return lines


def _preempting(cycle: Cycle, candidate: Candidate, unsure: str) -> str:
    highest = max(priority(v) for v in candidate.victims)
    if unsure:
        budget = unsure
    elif candidate.violations:
        budget = f"against the PDB of {candidate.violations}"
    else:
        budget = "PDB allows"
    return f"(priority {highest} < {priority(cycle.pod)}, {budget})"


def _what(release: Release) -> str:
    """``8 nvidia.com/gpu``, or ``a place`` where no counted resource is lacking."""
    packed = [s for s in release.lacking if s.requested and s.filter == "NodeResourcesFit"]
    gpus = [s for s in packed if "/" in s.subject] or packed
    if not gpus or gpus[0].subject in ("cpu", "memory", "ephemeral-storage", "pods"):
        return "room"
    return f"{gpus[0].requested} {gpus[0].subject}"


def _names(cycle: Cycle, pods: Sequence[Pod]) -> str:
    own = cycle.pod.namespace
    names = [p.name if p.namespace == own else f"{p.namespace}/{p.name}" for p in pods]
    if len(names) <= 3:
        return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]
    return f"{', '.join(names[:2])} and {len(names) - 2} more"
