"""Judges one workload against one state of the cluster: the order of stages, and nothing else.

The order is the API server's own (facts: NamespaceLifecycle … LimitRanger … mutating policies,
validation, validating policies, ResourceQuota last), then the scheduler's. A mutated template goes
through the API server's own mutators again: they are re-run after a webhook that changed something.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from kubectl_gpuadmit import asking, occupants, templates
from kubectl_gpuadmit.admission import chain, decoding, native
from kubectl_gpuadmit.admission.quota import Ledger
from kubectl_gpuadmit.asking import Terms
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.concluding import Judged, conclude, denies, unique
from kubectl_gpuadmit.devices.claimed import Claimed, claimed
from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.gpus import pod_gpus
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.kube.objects import OwnerReference, Pod
from kubectl_gpuadmit.kube.workloads import PodGroup, Workload, expand
from kubectl_gpuadmit.mutated import Changed, mutated
from kubectl_gpuadmit.placement import daemons
from kubectl_gpuadmit.placement.place import Placed, place
from kubectl_gpuadmit.pod_names import PodNames, pod_names
from kubectl_gpuadmit.policy import serving
from kubectl_gpuadmit.verdict import (
    Finding,
    Mutation,
    Running,
    ServedModel,
    Unknown,
    Verdict,
)

if TYPE_CHECKING:
    from kubectl_gpuadmit.admission.native.told import Policies

__all__ = ["PENDING_KEPT", "State", "Terms", "judge"]

PENDING_KEPT = 2_000
"""Pods that wait are kept as objects up to this number a group; no rule has a higher limit."""

Mates = tuple[tuple[Pod, int], ...]
"""Pods of a workload's other groups, with their numbers."""


class State(Struct, frozen=True):
    """What the cluster holds at one moment of a run, and what its quotas have been charged."""

    cluster: Cluster
    ledger: Ledger

    def fork(self) -> State:
        return State(self.cluster.fork(), self.ledger.fork())


def judge(workload: Workload, before: State, terms: Terms) -> tuple[Verdict, State]:
    """The verdict on ``workload``, and the state that later workloads of the run meet."""
    state = before.fork()
    read = decoding.of_workload(workload, kubernetes=terms.kubernetes)
    workload, of_object = _by_policies(workload, state.cluster, terms)
    findings = [
        f for told in (*read, *workload.findings) for f in asking.levelled(told, terms, workload)
    ]
    unknowns = list(workload.unknowns)

    running = occupants.replaced_by(workload, state.cluster)
    state.cluster.remove_pods(running)
    for pod in running:
        state.ledger.release(pod)

    namespace = workload.ref.namespace
    charged = state.ledger.admit_objects(namespace, _created(workload, state.cluster, running))
    findings += charged[0]
    unknowns += charged[1]
    findings += of_object.findings
    unknowns += of_object.unknowns
    refused = any(denies(f) for f in findings)

    groups: list[Judged] = []
    for group in workload.groups:
        if group.count == 0:
            continue
        mates = tuple((one.pod, one.pods) for one in groups)
        one = _judge_group(
            workload, group, state, terms, refused=refused, running=running, mates=mates
        )
        groups.append(one)
        state = State(one.after, state.ledger)

    findings += [f for one in groups for f in one.findings]
    unknowns += [u for one in groups for u in one.unknowns]
    verdict = conclude(workload, groups, unique(findings), unique(unknowns), of_object.mutations)
    return verdict, state if _takes_effect(workload, groups, running, refused=refused) else before


class _OfObject(Struct):
    """What policies of the cluster made and said of the workload's own object."""

    mutations: list[Mutation]
    findings: list[Finding]
    unknowns: list[Unknown]


def _by_policies(workload: Workload, cluster: Cluster, terms: Terms) -> tuple[Workload, _OfObject]:
    """The workload as MutatingAdmissionPolicies leave it and what is made of it on the way to the
    pods: its controller sees no other."""
    made = _OfObject([], [], [])
    if not native.present(cluster):
        return workload, made
    from kubectl_gpuadmit.admission.native import told
    from kubectl_gpuadmit.admission.native.who import Makers

    makers = Makers.of_object(terms.requester)
    said = told.workload_policies(workload, makers, cluster, kubernetes=terms.kubernetes)
    workload = _followed(workload, said, made, cluster, terms)
    said = told.between_policies(workload, cluster, kubernetes=terms.kubernetes)
    return _followed(workload, said, made, cluster, terms), made


def _followed(
    workload: Workload, said: Policies, made: _OfObject, cluster: Cluster, terms: Terms
) -> Workload:
    """The workload after the mutations that policies have said; adds all of it to ``made``."""
    made.findings += said.findings
    made.unknowns += said.unknowns
    after = workload.manifest
    for mutation in said.mutations:
        before = templates.present(after, mutation.ops)
        made.mutations.append(structs.replace(mutation, before=before))
        after = templates.changed(after, mutation.ops)
    if not said.mutations:
        return workload
    again: object
    try:
        again = expand(
            Document(workload.location, 0, 0, after),
            declared=terms.policy.declared_kinds,
            namespace=workload.ref.namespace,
            cluster=cluster,
        )
    except BadManifest as problem:
        again = problem
    if isinstance(again, Workload):
        return again
    policies = " and ".join(mutation.summary for mutation in said.mutations)
    missing = f"what becomes of the {workload.ref.kind} that {policies} make: {again}"
    made.unknowns.append(Unknown("admission/policy", missing, "deny"))
    return workload


def _takes_effect(
    workload: Workload, groups: list[Judged], running: tuple[Pod, ...], *, refused: bool
) -> bool:
    """Whether anything of the workload is left for those after it to meet.

    Not where the object itself is refused, where a gang is not complete, or where running pods stay
    because none of those that should replace them is let in.
    """
    if refused:
        return False
    if workload.gang:
        return all(one.pods == one.admitted == len(one.placed.places) for one in groups)
    return not running or not groups or any(one.admitted for one in groups)


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
    mates: Mates,
) -> Judged:
    cluster = state.cluster
    changed = mutated(workload, group, cluster, terms, running)
    group, pod = changed.group, changed.stored.pod
    if changed.scaled_to_zero:
        return _without_pods(changed, cluster, terms, running)
    second = chain.validate(pod, cluster, owner=workload.ref.kind, kubernetes=terms.kubernetes)
    findings = [*changed.stored.findings, *second.findings]
    unknowns = [*changed.unknowns, *changed.stored.unknowns, *second.unknowns]
    if native.present(cluster):
        from kubectl_gpuadmit.admission.native import told
        from kubectl_gpuadmit.admission.native.who import Makers

        makers = Makers.of_pods(workload, terms.requester)
        said = told.pod_findings(group, pod, makers, cluster, kubernetes=terms.kubernetes)
        findings += said[0]
        unknowns += said[1]
    of_rules = [*changed.findings]
    ask = asking.about(workload, group, pod, terms, running)
    for rule in terms.of_stage("validate"):
        for found in asking.asked(rule, ask, cluster, terms):
            if isinstance(found, Finding):
                of_rules.append(found)
            elif isinstance(found, Unknown):
                unknowns.append(found)

    most = len(cluster.nodes) if group.scheduled_by_daemonset else group.count
    names = pod_names(group, most, cluster, workload.ref.kind)
    asking_pod = _owned(pod, workload)
    placed = _place(cluster, asking_pod, names, workload, group, terms, mates)
    if group.scheduled_by_daemonset:
        names = names.first(placed.asked)
    admitted = 0 if refused or any(denies(f) for f in (*findings, *of_rules)) else len(names)
    after_rules: list[Finding] = []  # in the API server's order: quota last, then the scheduler
    if admitted:
        admitted, over, unsure = state.ledger.admit_pods(pod, ask.namespace, admitted)
        after_rules += over
        unknowns += unsure
    after = placed.cluster
    if admitted == 0:
        after = cluster
    elif admitted < len(placed.places):
        after = _place(
            cluster, asking_pod, names.first(admitted), workload, group, terms, mates
        ).cluster
    else:
        promised = [at for pod in running if (at := pod.status.nominatedNodeName)]
        _leave_pending(after, asking_pod, names, len(placed.places), admitted, promised)
    after_rules += placed.findings
    unknowns += placed.unknowns
    running_there, models = _running(workload, group, pod, placed, cluster, terms)
    return Judged(
        role=group.role,
        pods=len(names),
        admitted=admitted,
        placed=placed,
        gpus={name: n * len(names) for name, n in pod_gpus(pod).items()},
        devices=claimed(asking_pod, cluster),
        findings=[
            *(templates.rooted(f, group) for f in findings),
            *of_rules,
            *(templates.rooted(f, group) for f in after_rules),
        ],
        unknowns=unknowns,
        mutations=changed.mutations,
        ops=changed.ops,
        names=names,
        pod=asking_pod,
        after=after,
        running=running_there,
        models=models,
    )


def _without_pods(
    changed: Changed, cluster: Cluster, terms: Terms, running: tuple[Pod, ...]
) -> Judged:
    """A group that a rule has scaled to zero: nothing of it is admitted or placed. What the rules
    about its model say is told as the reason, and refuses nothing any more."""
    workload, group, pod = changed.workload, changed.group, changed.stored.pod
    ask = asking.about(workload, group, pod, terms, running)
    findings = [*changed.findings]
    unknowns = [*changed.unknowns]
    for rule in terms.of_stage("validate"):
        if rule.family != "model":
            continue
        for found in asking.asked(rule, ask, cluster, terms):
            if isinstance(found, Finding):
                level = "warn" if found.level == "deny" else found.level
                findings.append(structs.replace(found, level=level, suggest=()))
            elif isinstance(found, Unknown):
                unknowns.append(found)
    none = Placed((), (), cluster, "fits")
    stands, models = _running(workload, group, pod, none, cluster, terms)
    return Judged(
        role=group.role,
        pods=0,
        admitted=0,
        placed=none,
        gpus={},
        devices=Claimed(),
        findings=findings,
        unknowns=unknowns,
        mutations=changed.mutations,
        ops=changed.ops,
        names=PodNames(group, 0),
        pod=_owned(pod, workload),
        after=cluster,
        running=stands,
        models=models,
    )


def _running(
    workload: Workload,
    group: PodGroup,
    pod: Pod,
    placed: Placed,
    cluster: Cluster,
    terms: Terms,
) -> tuple[Running, tuple[ServedModel, ...]]:
    """Whether what the pods serve fits where they would go, and what was recognised."""
    if not serving.may_serve(pod, terms.policy):
        return "not-a-model", ()
    from kubectl_gpuadmit.policy import serving_words

    found = serving.pod_fit(
        workload, group, pod, cluster, terms.policy, now=terms.now, kubernetes=terms.kubernetes
    )
    nodes = frozenset(placed.places)
    return found.standing(nodes), serving_words.served(group.role, found, nodes)


def _owned(pod: Pod, workload: Workload) -> Pod:
    """The pod as its workload's own: the same object later in the run replaces it."""
    ref = workload.ref
    if ref.kind == "Pod":
        return pod
    owner = OwnerReference(ref.apiVersion, ref.kind, ref.name, controller=True)
    return structs.replace(pod, metadata=structs.replace(pod.metadata, ownerReferences=(owner,)))


def _leave_pending(
    cluster: Cluster,
    pod: Pod,
    names: PodNames,
    placed: int,
    admitted: int,
    promised: Sequence[str],
) -> None:
    """Admitted pods that find no node stay behind: they count for whoever asks how many wait.

    ``promised`` are nodes on which pods of this very workload have preempted others already: what
    replaces them in this run keeps the promise.
    """
    if pod.spec.nodeName:
        return  # no scheduler holds it: the kubelet of that node fails it
    for number in range(placed, min(admitted, placed + PENDING_KEPT)):
        metadata = structs.replace(pod.metadata, name=names[number])
        left = structs.replace(pod, metadata=metadata)
        if number - placed < len(promised):
            status = structs.replace(pod.status, nominatedNodeName=promised[number - placed])
            left = structs.replace(left, status=status)
        cluster.apply(left)


def _place(
    cluster: Cluster,
    pod: Pod,
    names: PodNames,
    workload: Workload,
    group: PodGroup,
    terms: Terms,
    mates: Mates,
) -> Placed:
    """As many pods as there are names; of a DaemonSet one for each of its nodes at most."""
    if group.scheduled_by_daemonset:
        return daemons.place_on_each(
            cluster,
            pod,
            names=names,
            now=terms.now,
            decided_by=workload.queue,
            ttl_annotations=terms.policy.ttl_annotations,
            kubernetes=terms.kubernetes,
            policy=terms.policy,
        )
    return place(
        cluster,
        pod,
        len(names),
        names=names,
        now=terms.now,
        decided_by=workload.queue,
        ttl_annotations=terms.policy.ttl_annotations,
        mates=mates,
        kubernetes=terms.kubernetes,
        policy=terms.policy,
    )
