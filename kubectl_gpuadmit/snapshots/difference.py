"""Two snapshots compared by verdict: whose changed, by which finding, because of which object.

An object is responsible if the verdict of the first snapshot becomes that of the second when it,
and nothing else, is changed as it was. Which one that is, is found by trying on the engine, never
guessed. Besides objects the moment, the policy, the kinds that were exported and the workload
itself may differ.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from msgspec import Struct, structs

from kubectl_gpuadmit import brought_along
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.engine import evaluate, judged_alone
from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.kube.objects import KubeObject, Pod
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.snapshots.fields import FieldChange, changed_fields
from kubectl_gpuadmit.snapshots.narrowing import Tries, smallest
from kubectl_gpuadmit.snapshots.running import Running, running
from kubectl_gpuadmit.verdict import Finding, Ref, Report, Skipped, Source, Unknown, Verdict

TRIES_FOR_EACH = 64
TRIES_IN_ALL = 1_024

What = Literal["added", "removed", "changed", "policy", "time", "exported", "workload"]


class Side(Struct, frozen=True):
    """One of the two: a cluster, the moment, and the policy that holds then."""

    cluster: Cluster
    now: dt.datetime
    policy: Policy
    source: Source


class Change(Struct, frozen=True):
    """One difference between the two sides. ``ref`` is None where it is no object."""

    what: What
    ref: Ref | None = None
    detail: str = ""
    fields: tuple[FieldChange, ...] = ()


class Flip(Struct, frozen=True):
    """A workload whose verdict is another now."""

    before: Verdict
    after: Verdict
    appeared: tuple[Finding, ...]
    gone: tuple[Finding, ...]
    unknown: tuple[Unknown, ...]
    """What was known and is not any more."""
    causes: tuple[Change, ...]
    """Together they make the difference; empty where nothing was found."""
    minimal: bool
    """True: with any one of them less, the verdict is not the new one."""

    @property
    def worse(self) -> bool:
        """It was admitted and had a place, and has lost one of the two."""
        return _well(self.before) and not _well(self.after)


class Difference(Struct, frozen=True):
    """Everything that ``diff`` says."""

    before: Source
    after: Source
    before_as_of: str
    after_as_of: str
    compared: int
    changes: int
    """Objects that differ."""
    flips: tuple[Flip, ...]
    appeared: tuple[Verdict, ...] = ()
    """Running workloads that the first snapshot does not have, as judged in the second."""
    gone: tuple[Ref, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    """Of the manifests: what was not judged."""


Documents = Sequence["Document | BadManifest"]


def of_manifests(
    documents: Documents, before: Side, after: Side, *, namespace: str, kubernetes: str
) -> Difference:
    """The workloads of some manifests, each as if it alone were applied to either cluster, together
    with what the manifests bring along (quotas, namespaces …)."""
    brought = [d for d in documents if isinstance(d, Document) and brought_along.is_one(d)]

    def judge_with(more: Documents, side: Side) -> Report:
        return evaluate(
            [*brought, *more],
            side.cluster,
            side.policy,
            now=side.now,
            source=side.source,
            namespace=namespace,
            with_remedies=False,
            kubernetes=kubernetes,
        )

    def judge(ref: Ref, more: Documents) -> _Judge:
        return lambda side, moved: _find(judge_with(more, side), ref)

    pairs: dict[Ref, _Pair] = {}
    skipped: dict[tuple[Ref, str], Skipped] = {}
    alone = [d for d in documents if isinstance(d, BadManifest) or not brought_along.is_one(d)]
    for more in [[d] for d in alone] or [[]]:
        first, second = judge_with(more, before), judge_with(more, after)
        skipped |= {(one.ref, one.location): one for one in second.skipped}
        for verdict in second.workloads:
            old = _find(first, verdict.ref)
            if old is not None:
                pairs.setdefault(verdict.ref, _Pair(old, verdict, judge(verdict.ref, more)))
    made = _difference(before, after, list(pairs.values()))
    return structs.replace(made, skipped=tuple(skipped.values()))


def of_running(before: Side, after: Side, *, kubernetes: str) -> Difference:
    """The GPU workloads that run in both, each as if it were applied now, its own pods away."""

    def judge(one: Running, other: Running) -> Callable[..., Verdict]:
        def judged(side: Side, *, moved: bool) -> Verdict:
            subject = other if moved else one
            own = {(p.namespace, p.name): p for r in (one, other) for p in r.pods}
            present = [
                pod
                for namespace, name in own
                if isinstance(pod := side.cluster.get("Pod", namespace, name), Pod)
            ]
            return judged_alone(
                subject.workload,
                side.cluster,
                side.policy,
                now=side.now,
                without=present,
                kubernetes=kubernetes,
            )

        return judged

    olds = running(before.cluster, before.policy)
    news = running(after.cluster, after.policy)
    pairs: list[_Pair] = []
    appeared: list[Verdict] = []
    for ref, new in news.items():
        old = olds.get(ref, new)
        ask = judge(old, new)
        verdict = ask(after, moved=True)
        if ref in olds:
            moved = old.workload != new.workload
            pairs.append(_Pair(ask(before, moved=False), verdict, ask, moved))
        else:
            appeared.append(verdict)
    made = _difference(before, after, pairs)
    gone = tuple(ref for ref in olds if ref not in news)
    return structs.replace(made, appeared=tuple(appeared), gone=gone)


class _Judge(Protocol):
    """The verdict on one workload; ``moved``: on what it is in the second snapshot."""

    def __call__(self, side: Side, *, moved: bool) -> Verdict | None: ...


class _Pair(Struct):
    before: Verdict
    after: Verdict
    judge: _Judge
    moved: bool = False
    """The workload itself is not the same in both."""


def _find(report: Report, ref: Ref) -> Verdict | None:
    return next((verdict for verdict in report.workloads if verdict.ref == ref), None)


def _well(verdict: Verdict) -> bool:
    return verdict.admission in ("admitted", "mutated") and verdict.placement == "fits"


# -- one flip --------------------------------------------------------------------------------------


def _difference(before: Side, after: Side, pairs: list[_Pair]) -> Difference:
    between = _Between(before, after)
    tries = Tries(TRIES_IN_ALL)
    flips = [_flip(pair, between, tries) for pair in pairs if _flipped(pair.before, pair.after)]
    return Difference(
        before=before.source,
        after=after.source,
        before_as_of=_stamp(before.now),
        after_as_of=_stamp(after.now),
        compared=len(pairs),
        changes=sum(1 for change in between.changes if change.ref is not None),
        flips=tuple(sorted(flips, key=lambda f: (not f.worse, f.after.ref))),
    )


def _flipped(before: Verdict, after: Verdict) -> bool:
    return (before.outcome, before.blockers) != (after.outcome, after.blockers)


def _flip(pair: _Pair, between: _Between, budget: Tries) -> Flip:
    own = [_Step(Change("workload", pair.after.ref, _moved(pair)))] if pair.moved else []
    steps = [*own, *between.steps(pair.after.ref.namespace)]

    def holds(chosen: Sequence[_Step]) -> bool:
        side = between.side([step for step in chosen if step.change.what != "workload"])
        moved = any(step.change.what == "workload" for step in chosen)
        verdict = pair.judge(side, moved=moved)
        return verdict is not None and not _flipped(verdict, pair.after)

    tries = Tries(min(TRIES_FOR_EACH, budget.left))
    granted = tries.left
    causes: tuple[_Step, ...] = ()
    minimal = False
    if steps and tries.take() and holds(steps):
        causes, minimal = smallest(steps, holds, tries)
    budget.left -= granted - max(tries.left, 0)
    return Flip(
        before=pair.before,
        after=pair.after,
        appeared=_only_in(pair.after.findings, pair.before.findings),
        gone=_only_in(pair.before.findings, pair.after.findings),
        unknown=tuple(u for u in pair.after.unknowns if u not in pair.before.unknowns),
        causes=tuple(between.described(step.change) for step in causes),
        minimal=minimal,
    )


def _moved(pair: _Pair) -> str:
    if pair.before.pods != pair.after.pods:
        return f"{pair.before.pods:,} → {pair.after.pods:,} pods"
    return "its pods are made otherwise"


def _only_in(these: Iterable[Finding], those: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings that the other verdict has not, whatever their numbers."""
    keys = {_key(finding) for finding in those}
    return tuple(finding for finding in these if _key(finding) not in keys)


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.rule, finding.reason, finding.level


# -- what differs between the two ------------------------------------------------------------------


class _Step(Struct, frozen=True):
    """A change, and the object as it is afterwards; None takes it away."""

    change: Change
    obj: KubeObject | None = None


_FIRST = (
    "Namespace",
    "ResourceQuota",
    "LimitRange",
    "PriorityClass",
    "RuntimeClass",
    "ServiceAccount",
    "StorageClass",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "Node",
    "Pod",
    "PodDisruptionBudget",
)
"""Kinds in the order in which they are suspected."""


class _Between:
    """The changes from one side to the other, and any mixture of the two."""

    def __init__(self, before: Side, after: Side) -> None:
        self._before, self._after = before, after
        self._olds, self._news = _objects(before.cluster), _objects(after.cluster)
        self._all = list(self._steps())
        self.changes = [step.change for step in self._all]

    def steps(self, namespace: str) -> list[_Step]:
        """All of them, the likelier before the others: those of the namespace, then by kind."""
        rank = {kind: number for number, kind in enumerate(_FIRST)}

        def suspicion(step: _Step) -> tuple[bool, bool, int]:
            ref = step.change.ref
            if ref is None:
                return (False, False, 0)
            return (True, ref.namespace not in ("", namespace), rank.get(ref.kind, len(rank)))

        return sorted(self._all, key=suspicion)

    def side(self, steps: Iterable[_Step]) -> Side:
        """The first side with these steps taken."""
        side = self._before
        objects = dict(self._olds)
        known = set(side.cluster.known_kinds())
        for step in steps:
            match step.change:
                case Change(what="policy"):
                    side = structs.replace(side, policy=self._after.policy)
                case Change(what="time"):
                    side = structs.replace(side, now=self._after.now)
                case Change(what="exported"):
                    known = set(self._after.cluster.known_kinds())
                case Change(ref=Ref() as ref):
                    objects.pop((ref.kind, ref.namespace, ref.name), None)
                    if step.obj is not None:
                        objects[ref.kind, ref.namespace, ref.name] = step.obj
        return structs.replace(side, cluster=Cluster.restored(objects.values(), known))

    def described(self, change: Change) -> Change:
        """With the fields that differ, worked out only for what is shown."""
        if change.what != "changed" or change.ref is None:
            return change
        key = (change.ref.kind, change.ref.namespace, change.ref.name)
        return structs.replace(change, fields=changed_fields(self._olds[key], self._news[key]))

    def _steps(self) -> Iterable[_Step]:
        before, after = self._before, self._after
        if before.policy != after.policy:
            yield _Step(Change("policy", detail=f"{before.policy.name} → {after.policy.name}"))
        if before.now != after.now:
            yield _Step(Change("time", detail=f"{_stamp(before.now)} → {_stamp(after.now)}"))
        olds, news = set(before.cluster.known_kinds()), set(after.cluster.known_kinds())
        if olds != news:
            said = [f"{k} no more" for k in sorted(olds - news)]
            said += [f"{k} now" for k in sorted(news - olds)]
            yield _Step(Change("exported", detail=", ".join(said)))
        for key in sorted(self._olds.keys() | self._news.keys()):
            old, new = self._olds.get(key), self._news.get(key)
            what: What
            if new is None:
                what = "removed"
            elif old is None:
                what = "added"
            elif old == new or _alike(old, new):
                continue
            else:
                what = "changed"
            some = new or old
            assert some is not None
            yield _Step(Change(what, Ref(some.apiVersion, *key)), new)


def _objects(cluster: Cluster) -> dict[tuple[str, str, str], KubeObject]:
    return {
        (kind, obj.namespace, obj.name): obj
        for kind in cluster.kinds()
        for obj in cluster.every(kind)
    }


def _alike(old: KubeObject, new: KubeObject) -> bool:
    """Equal in what the engine reads, the version aside that every write counts up."""
    return not changed_fields(old, new)


def _stamp(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
