"""One verdict of what was found of each pod group: the gravest answers, each reason once.

Finds nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.json import encode

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices.claimed import Claimed, total
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.workloads import Workload
from kubectl_gpuadmit.placement.place import Placed
from kubectl_gpuadmit.pod_names import PodNames
from kubectl_gpuadmit.verdict import (
    Admission,
    Finding,
    Mutation,
    Placement,
    PodPlace,
    Running,
    ServedModel,
    Unknown,
    Verdict,
)
from kubectl_gpuadmit.verdict import Group as Share

GRAVEST_PLACEMENT: tuple[Placement, ...] = ("never", "waits", "unknown", "fits")
GRAVEST_RUNNING: tuple[Running, ...] = ("exceeds", "unknown", "fits", "not-a-model")


class Judged(Struct):
    """What became of one pod group."""

    role: str
    pods: int
    admitted: int
    placed: Placed
    gpus: dict[str, int]
    devices: Claimed
    findings: list[Finding]
    unknowns: list[Unknown]
    mutations: list[Mutation]
    ops: list[dict[str, Any]]
    names: PodNames
    pod: Pod
    """One of them, as it would be stored."""
    after: Cluster
    """The cluster with those pods of the group placed that are admitted and find a node."""
    running: Running
    models: tuple[ServedModel, ...]


def denies(found: Finding) -> bool:
    """Whether it keeps the workload out, not only off the nodes."""
    return found.level == "deny" and not _places(found)


_Item = TypeVar("_Item", Finding, Unknown)


def unique(items: Iterable[_Item]) -> tuple[_Item, ...]:
    """In order, each once: several pod groups of one workload often meet the same obstacle."""
    seen: dict[bytes, _Item] = {}
    for item in items:
        seen.setdefault(encode(item), item)
    return tuple(seen.values())


def conclude(
    workload: Workload,
    groups: list[Judged],
    findings: tuple[Finding, ...],
    unknowns: tuple[Unknown, ...],
    of_object: list[Mutation],
) -> Verdict:
    """The whole answer. ``findings`` and ``unknowns`` come each once, in the order of telling."""
    gpus: dict[str, int] = {}
    for one in groups:
        for name, amount in one.gpus.items():
            gpus[name] = gpus.get(name, 0) + amount
    devices = total((one.devices, one.pods) for one in groups)
    worst = min(groups, key=lambda one: GRAVEST_PLACEMENT.index(one.placed.placement), default=None)
    mutations = (*of_object, *_unique_mutations(m for one in groups for m in one.mutations))
    objects = [m for m in mutations if m.of == "object" and m.level == "deny"]
    ops = [op for one in groups for op in one.ops]
    return Verdict(
        ref=workload.ref,
        location=workload.location,
        pods=sum(one.pods for one in groups),
        gpus=dict(sorted(gpus.items())),
        admission=_admission(findings, unknowns, mutated=bool(ops or objects)),
        placement=_placement(workload, worst),
        running=min(
            (one.running for one in groups), key=GRAVEST_RUNNING.index, default="not-a-model"
        ),
        blockers=_blockers(findings),
        findings=findings,
        unknowns=unknowns,
        patch=tuple(next((one.ops for one in groups if one.ops), ())),
        mutations=mutations,
        nodes=worst.placed.nodes if worst else (),
        places=tuple(
            PodPlace(pod=name, role=one.role, node=node)
            for one in groups
            for name, node in zip(one.names, one.placed.places, strict=False)
        ),
        waits_for=tuple(dict.fromkeys(w for one in groups for w in one.placed.waits_for)),
        decided_by=workload.queue or (worst.placed.decided_by if worst else ""),
        groups=tuple(
            Share(
                one.role,
                one.pods,
                {name: n // max(one.pods, 1) for name, n in one.gpus.items()},
                len(one.pod.spec.resourceClaims or ()),
                one.devices.own,
                one.devices.in_common,
            )
            for one in groups
        ),
        models=tuple(model for one in groups for model in one.models),
        devices=devices,
        object_patch=tuple(op for m in objects if m.rule for op in m.ops),
        events=tuple(m.event for m in objects if m.event is not None),
    )


def _placement(workload: Workload, worst: Judged | None) -> Placement:
    """The gravest of the groups; of a workload scaled to zero nothing has to be placed."""
    if any(u.stage == "placement" for u in workload.unknowns):
        return "unknown"
    if worst is None:
        return "fits" if workload.groups else "unknown"
    return worst.placed.placement


def _admission(
    findings: tuple[Finding, ...], unknowns: tuple[Unknown, ...], *, mutated: bool
) -> Admission:
    if any(denies(found) for found in findings):
        return "denied"
    if any(u.stage == "admission" and _leaves_open(u) for u in unknowns):
        return "unknown"
    return "mutated" if mutated else "admitted"


def _leaves_open(unknown: Unknown) -> bool:
    """Without this fact nobody can say that the pod is admitted.

    Webhooks and policies of others are named, but can never be known from objects.
    """
    return unknown.level == "deny" or (
        unknown.level == "warn" and unknown.rule in _CHECKS_THAT_NEED_OBJECTS
    )


_CHECKS_THAT_NEED_OBJECTS = frozenset(
    {
        "admission/priority",
        "admission/quota",
        "admission/runtime-class",
        "admission/service-account",
    }
)


def _blockers(findings: tuple[Finding, ...]) -> tuple[str, ...]:
    """Reason codes of what refuses or keeps waiting, permanent ones first, each once."""
    blocking = [f for f in findings if f.level == "deny" or (not f.permanent and _places(f))]
    ordered = sorted(blocking, key=lambda f: not f.permanent)
    return tuple(dict.fromkeys(f.reason for f in ordered))


def _places(found: Finding) -> bool:
    return found.reason.startswith("placement/")


def _unique_mutations(mutations: Iterable[Mutation]) -> tuple[Mutation, ...]:
    seen: dict[bytes, Mutation] = {}
    for mutation in mutations:
        seen.setdefault(encode(mutation), mutation)
    return tuple(seen.values())
