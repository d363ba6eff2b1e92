"""Judges one workload against one state of the cluster: the order of stages, and nothing else.

The order is the API server's own (facts: NamespaceLifecycle … LimitRanger … mutating policies,
validation, validating policies, ResourceQuota last), then the scheduler's. A mutated template goes
through the API server's own mutators again: they are re-run after a webhook that changed something.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

from msgspec import Struct, convert, structs
from msgspec.json import encode

from kubectl_gpuadmit import occupants
from kubectl_gpuadmit.admission import chain
from kubectl_gpuadmit.admission.quota import Ledger
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.kube.gpus import pod_gpus
from kubectl_gpuadmit.kube.new_pods import NewPod
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.workloads import PodGroup, Workload
from kubectl_gpuadmit.placement import daemons
from kubectl_gpuadmit.placement.place import Placed, place
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.rule import Ask, Found, Rule
from kubectl_gpuadmit.verdict import (
    Admission,
    Finding,
    Level,
    Mutation,
    Placement,
    PodPlace,
    Unknown,
    Verdict,
)
from kubectl_gpuadmit.verdict import Group as Share

PENDING_KEPT = 2_000
"""Pods that wait are kept as objects up to this number a group; no rule has a higher limit."""

GRAVEST_PLACEMENT: tuple[Placement, ...] = ("never", "waits", "unknown", "fits")


class State(Struct, frozen=True):
    """What the cluster holds at one moment of a run, and what its quotas have been charged."""

    cluster: Cluster
    ledger: Ledger

    def fork(self) -> State:
        return State(self.cluster.fork(), self.ledger.fork())


class Terms(Struct, frozen=True):
    """What does not change during a run."""

    policy: Policy
    now: dt.datetime
    rules: tuple[Rule, ...]
    """Every rule that is asked, in the order of asking."""
    kubernetes: str = "1.37"
    """Version of the API server whose defaults are applied."""


class PodNames(Sequence[str]):
    """The names of a group's first ``count`` pods, made when asked for: counts reach 2**31 - 1."""

    def __init__(self, group: PodGroup, count: int) -> None:
        self._group = group
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._group.name(number) for number in range(self._count)[index]]
        return self._group.name(range(self._count)[index])


class _Group(Struct):
    """What became of one pod group."""

    role: str
    pods: int
    admitted: int
    placed: Placed
    gpus: dict[str, int]
    findings: list[Finding]
    unknowns: list[Unknown]
    mutations: list[Mutation]
    ops: list[dict[str, Any]]
    names: PodNames
    after: Cluster
    """The cluster with those pods of the group placed that are admitted and find a node."""


def judge(workload: Workload, before: State, terms: Terms) -> tuple[Verdict, State]:
    """The verdict on ``workload``, and the state that later workloads of the run meet."""
    state = before.fork()
    findings = [_levelled(f, terms, workload, pool="") for f in workload.findings]
    unknowns = list(workload.unknowns)

    running = occupants.replaced_by(workload, state.cluster)
    for pod in running:
        state.cluster.remove("Pod", pod.namespace, pod.name)
        state.ledger.release(pod)

    namespace = workload.ref.namespace
    charged = state.ledger.admit_objects(namespace, _created(workload, state.cluster, running))
    findings += charged[0]
    unknowns += charged[1]
    refused = any(_denies(f) for f in findings)

    groups: list[_Group] = []
    for group in workload.groups:
        if group.count == 0:
            continue
        one = _judge_group(workload, group, state, terms, refused=refused, running=running)
        groups.append(one)
        state = State(one.after, state.ledger)

    findings += [f for one in groups for f in one.findings]
    unknowns += [u for one in groups for u in one.unknowns]
    verdict = _verdict(workload, groups, _unique(findings), _unique(unknowns))
    all_or_nothing = workload.gang and (
        verdict.admission == "denied" or verdict.placement != "fits"
    )
    return verdict, before if all_or_nothing else state


def _created(workload: Workload, cluster: Cluster, running: tuple[Pod, ...]) -> dict[str, int]:
    """What count quotas are charged: of an object that is there already, an update charges nothing
    for the object itself, only for what its controller makes anew."""
    ref = workload.ref
    there = bool(running) or cluster.get(ref.kind, ref.namespace, ref.name) is not None
    return dict(workload.creates[1:] if there else workload.creates)


def _judge_group(
    workload: Workload,
    group: PodGroup,
    state: State,
    terms: Terms,
    *,
    refused: bool,
    running: tuple[Pod, ...],
) -> _Group:
    cluster = state.cluster
    findings: list[Finding] = []
    unknowns: list[Unknown] = []
    mutations: list[Mutation] = []
    ops: list[dict[str, Any]] = []
    of_rules: list[Finding] = []
    template = group.template

    first = chain.mutate(group.pod, cluster, kubernetes=terms.kubernetes)
    pod = first.pod
    ask = _ask(workload, group, pod, terms, running)
    for rule in _of_stage("mutate", terms):
        for found in _asked(rule, ask, cluster, terms):
            name = found.rule or rule.name
            level = terms.policy.level(name, namespace=ask.namespace, pool=ask.pool)
            match found:
                case _ if level == "off":
                    continue  # an entry of its own level within a rule that is on
                case Mutation():
                    change = structs.replace(
                        found,
                        rule=name,
                        level=level,
                        at="" if group.pointer == "-" else group.pointer,
                        before=_before(template, found.ops),
                    )
                    mutations.append(change)
                    if level == "deny":
                        template = _patched(template, change.ops)
                        ops += change.ops
                        group = structs.replace(
                            group, template=template, pod=_decoded(template, group.pod)
                        )
                case Finding():
                    of_rules.append(_stamped(found, rule, level, terms, ask))
                case Unknown():
                    unknowns.append(_unknown(found, rule, terms))
        if group is not ask.group:  # the next rule sees what this one has made of the pod
            pod = chain.mutate(group.pod, cluster, kubernetes=terms.kubernetes).pod
            ask = structs.replace(ask, group=group, pod=pod)
    if ops:
        first = chain.mutate(group.pod, cluster, kubernetes=terms.kubernetes)
        pod = first.pod
    findings += first.findings
    unknowns += first.unknowns

    second = chain.validate(pod, cluster, owner=workload.ref.kind, kubernetes=terms.kubernetes)
    findings += second.findings
    unknowns += second.unknowns

    ask = _ask(workload, group, pod, terms, running)
    for rule in _of_stage("validate", terms):
        for found in _asked(rule, ask, cluster, terms):
            name = found.rule or rule.name
            level = terms.policy.level(name, namespace=ask.namespace, pool=ask.pool)
            match found:
                case _ if level == "off":
                    continue
                case Finding():
                    of_rules.append(_stamped(found, rule, level, terms, ask))
                case Unknown():
                    unknowns.append(_unknown(found, rule, terms))
                case Mutation():
                    raise TypeError(f"rule {rule.name} validates, yet wants to change the pod")

    count = group.count
    if group.scheduled_by_daemonset:
        placed = daemons.place_on_each(
            cluster,
            pod,
            now=terms.now,
            decided_by=workload.queue,
            ttl_annotations=terms.policy.ttl_annotations,
        )
        count = placed.asked
    names = PodNames(group, count)
    admitted = 0 if refused or any(_denies(f) for f in (*findings, *of_rules)) else count
    if admitted:
        admitted, over, unsure = state.ledger.admit_pods(pod, ask.namespace, count)
        findings += over
        unknowns += unsure
    if not group.scheduled_by_daemonset:
        placed = _place(cluster, pod, names, workload, terms)
    after = placed.cluster
    if admitted == 0:
        after = cluster
    elif admitted < len(placed.places):
        after = _place(cluster, pod, PodNames(group, admitted), workload, terms).cluster
    else:
        _leave_pending(after, pod, names, len(placed.places), admitted)
    findings += placed.findings
    unknowns += placed.unknowns
    return _Group(
        role=group.role,
        pods=count,
        admitted=admitted,
        placed=placed,
        gpus={name: n * count for name, n in pod_gpus(pod).items()},
        findings=[*(_rooted(f, group) for f in findings), *of_rules],
        unknowns=unknowns,
        mutations=mutations,
        ops=ops,
        names=names,
        after=after,
    )


def _leave_pending(cluster: Cluster, pod: Pod, names: PodNames, placed: int, admitted: int) -> None:
    """Admitted pods that find no node stay behind: they count for whoever asks how many wait."""
    for number in range(placed, min(admitted, placed + PENDING_KEPT)):
        metadata = structs.replace(pod.metadata, name=names[number])
        cluster.apply(structs.replace(pod, metadata=metadata))


def _place(cluster: Cluster, pod: Pod, names: PodNames, workload: Workload, terms: Terms) -> Placed:
    return place(
        cluster,
        pod,
        len(names),
        now=terms.now,
        names=names,
        decided_by=workload.queue,
        ttl_annotations=terms.policy.ttl_annotations,
    )


def _of_stage(stage: str, terms: Terms) -> Iterator[Rule]:
    return (rule for rule in terms.rules if rule.stage == stage)


def _asked(rule: Rule, ask: Ask, cluster: Cluster, terms: Terms) -> Iterator[Found]:
    """What one rule found. A rule that raises is unknown, and takes nobody with it."""
    if terms.policy.level(rule.name, namespace=ask.namespace, pool=ask.pool) == "off":
        return
    missing = sorted(kind for kind in rule.needs if not cluster.knows(kind))
    if missing:
        kinds = ",".join(kind.lower() + "s" for kind in missing)
        yield Unknown(
            rule=rule.name,
            missing=f"{', '.join(missing)} objects: not in the source",
            hint=f"kubectl get {kinds} -A -o json",
        )
        return
    try:
        yield from rule.ask(ask, cluster, terms.policy.settings(rule.name))
    except Exception as problem:  # the one broad except: see architecture, "our program failed"
        yield Unknown(rule=rule.name, missing=f"the rule raised {problem!r}")


def _ask(
    workload: Workload, group: PodGroup, pod: Pod, terms: Terms, running: tuple[Pod, ...]
) -> Ask:
    return Ask(
        workload=workload,
        group=group,
        pod=pod,
        namespace=workload.ref.namespace,
        now=terms.now,
        policy=terms.policy,
        pool=terms.policy.pool_of_pod(pod),
        running=running,
    )


def _stamped(found: Finding, rule: Rule, level: Level, terms: Terms, ask: Ask) -> Finding:
    name = found.rule or rule.name
    stamped = structs.replace(found, rule=name, level=level, fidelity=rule.fidelity)
    return _excepted(stamped, terms, ask.workload, ask.pod.labels)


def _levelled(found: Finding, terms: Terms, workload: Workload, *, pool: str) -> Finding:
    """Findings of the expansion carry the name of the rule whose level they take, if any."""
    if not found.rule:
        return found
    level = terms.policy.level(
        found.rule, namespace=workload.ref.namespace, pool=pool, default=found.level
    )
    return _excepted(structs.replace(found, level=level), terms, workload, {})


def _excepted(
    found: Finding, terms: Terms, workload: Workload, pod_labels: Mapping[str, str]
) -> Finding:
    """An exception in force turns a refusal into a record; it never hides it."""
    if found.level not in ("warn", "deny"):
        return found
    metadata = workload.manifest.get("metadata")
    own = metadata.get("labels") if isinstance(metadata, dict) else None
    granted = terms.policy.exception_for(
        found.rule, found.reason, workload.ref, terms.now, labels={**pod_labels, **(own or {})}
    )
    if granted is None:
        return found
    until = times.stamp(granted.expires)
    note = f"{found.detail} (excepted until {until} by {granted.owner}: {granted.reason})"
    return structs.replace(found, level="audit", detail=note)


def _unknown(found: Unknown, rule: Rule, terms: Terms) -> Unknown:
    name = found.rule or rule.name
    return structs.replace(found, rule=name, level=terms.policy.if_missing(name))


def _denies(found: Finding) -> bool:
    return found.level == "deny" and not _places(found)


def _before(template: dict[str, Any], ops: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What stands now where the operations write, by path: a list may only be made longer."""
    from jsonpointer import JsonPointer, JsonPointerException

    before: dict[str, Any] = {}
    for op in ops:
        if op["op"] in ("add", "replace", "remove"):
            try:
                before[op["path"]] = JsonPointer(op["path"]).resolve(template)
            except JsonPointerException:
                continue
    return before


def _patched(template: dict[str, Any], ops: Iterable[dict[str, Any]]) -> dict[str, Any]:
    import jsonpatch

    patched: dict[str, Any] = jsonpatch.apply_patch(template, list(ops), in_place=False)
    return patched


def _decoded(template: dict[str, Any], before: Pod) -> Pod:
    """The patched template as a pod; identity (names, namespace, owner) stays the controller's."""
    pod = convert({"apiVersion": "v1", **template, "kind": "Pod"}, NewPod)
    meta = structs.replace(
        before.metadata, labels=pod.metadata.labels, annotations=pod.metadata.annotations
    )
    return structs.replace(pod, metadata=meta)


def _rooted(found: Finding, group: PodGroup) -> Finding:
    """Pod-rooted pointers become pointers into the user's manifest, in suggested patches too."""
    root = group.pointer
    if not root:
        return found

    def rooted(path: str) -> str:
        if not path or (root != "-" and path.startswith(f"{root}/")):
            return path
        return group.in_manifest(path) or ""

    suggest = []
    for remedy in found.suggest:
        patch = tuple({**op, "path": rooted(op["path"])} for op in remedy.patch)
        if all(op["path"] for op in patch):
            suggest.append(structs.replace(remedy, patch=patch))
    return structs.replace(found, field=rooted(found.field), suggest=tuple(suggest))


_Item = TypeVar("_Item", Finding, Unknown)


def _unique(items: Iterable[_Item]) -> tuple[_Item, ...]:
    """In order, each once: several pod groups of one workload often meet the same obstacle."""
    seen: dict[bytes, _Item] = {}
    for item in items:
        seen.setdefault(encode(item), item)
    return tuple(seen.values())


def _verdict(
    workload: Workload,
    groups: list[_Group],
    findings: tuple[Finding, ...],
    unknowns: tuple[Unknown, ...],
) -> Verdict:
    gpus: dict[str, int] = {}
    for one in groups:
        for name, amount in one.gpus.items():
            gpus[name] = gpus.get(name, 0) + amount
    worst = min(groups, key=lambda one: GRAVEST_PLACEMENT.index(one.placed.placement), default=None)
    ops = [op for one in groups for op in one.ops]
    return Verdict(
        ref=workload.ref,
        location=workload.location,
        pods=sum(one.pods for one in groups),
        gpus=dict(sorted(gpus.items())),
        admission=_admission(findings, unknowns, mutated=bool(ops)),
        placement=_placement(workload, worst),
        running="unknown" if gpus else "not-a-model",
        blockers=_blockers(findings),
        findings=findings,
        unknowns=unknowns,
        patch=tuple(next((one.ops for one in groups if one.ops), ())),
        mutations=_unique_mutations(m for one in groups for m in one.mutations),
        nodes=worst.placed.nodes if worst else (),
        places=tuple(
            PodPlace(pod=name, role=one.role, node=node)
            for one in groups
            for name, node in zip(one.names, one.placed.places, strict=False)
        ),
        waits_for=tuple(dict.fromkeys(w for one in groups for w in one.placed.waits_for)),
        decided_by=workload.queue or (worst.placed.decided_by if worst else ""),
        groups=tuple(
            Share(one.role, one.pods, {name: n // max(one.pods, 1) for name, n in one.gpus.items()})
            for one in groups
        ),
    )


def _placement(workload: Workload, worst: _Group | None) -> Placement:
    """The gravest of the groups; of a workload scaled to zero nothing has to be placed."""
    if any(u.stage == "placement" for u in workload.unknowns):
        return "unknown"
    if worst is None:
        return "fits" if workload.groups else "unknown"
    return worst.placed.placement


def _admission(
    findings: tuple[Finding, ...], unknowns: tuple[Unknown, ...], *, mutated: bool
) -> Admission:
    if any(_denies(found) for found in findings):
        return "denied"
    if any(u.level == "deny" and u.stage == "admission" for u in unknowns):
        return "unknown"
    return "mutated" if mutated else "admitted"


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
