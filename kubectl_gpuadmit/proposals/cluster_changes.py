"""Proposes changes that somebody else makes: a larger quota, a namespace, an uncordoned node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import structs
from msgspec.json import encode

from kubectl_gpuadmit import occupants
from kubectl_gpuadmit.admission import chain
from kubectl_gpuadmit.admission.pod_security import levels, mend
from kubectl_gpuadmit.judge import State
from kubectl_gpuadmit.kube.dra import DeviceClass
from kubectl_gpuadmit.kube.gpus import pod_gpus
from kubectl_gpuadmit.kube.objects import KubeObject, Namespace, ObjectMeta
from kubectl_gpuadmit.kube.quantity import Quantity
from kubectl_gpuadmit.placement import shortage
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.proposals import Case, Proposal


def namespace_created(case: Case) -> Iterator[Proposal]:
    """The namespace, where it is missing and the cluster's namespaces are known."""
    name = case.workload.ref.namespace
    cluster = case.before.cluster
    if cluster.knows("Namespace") and cluster.namespace(name) is None:
        yield Proposal(
            summary=f"create namespace {name}",
            topic="namespace",
            cost=50,
            command=f"kubectl create namespace {name}",
            change=_applied(Namespace(apiVersion="v1", metadata=ObjectMeta(name=name))),
        )


def pod_security_lowered(case: Case) -> Iterator[Proposal]:
    """A lower Pod Security level of the namespace, where settings alone do not do: the pod uses
    host paths, the node's network, capabilities."""
    refused = [f for f in case.verdict.findings if f.reason == "pod-security/violates"]
    home = case.before.cluster.namespace(case.workload.ref.namespace)
    settled = all(any(r.cost == mend.HARDENING for r in f.suggest) for f in refused)
    if home is None or not refused or settled:
        return
    enforced = levels.read(home.labels).enforce.level
    for level in levels.LEVELS[: levels.LEVELS.index(enforced)]:
        labels = {**home.labels, levels.ENFORCE: level}
        relabelled = structs.replace(home, metadata=structs.replace(home.metadata, labels=labels))
        yield Proposal(
            summary=f"let namespace {home.name} enforce Pod Security level {level}",
            topic="pod-security",
            cost=95 if level == "baseline" else 98,
            command=f"kubectl label --overwrite namespace {home.name} {levels.ENFORCE}={level}",
            change=_applied(relabelled),
        )


def node_uncordoned(case: Case) -> Iterator[Proposal]:
    """Each node that lacks nothing but being uncordoned."""
    for verdict in case.verdict.nodes:
        only_cordon = verdict.shortfalls and all(
            s.until == "uncordoned" for s in verdict.shortfalls
        )
        info = case.before.cluster.nodes.get(verdict.node)
        if only_cordon and info is not None:
            node = info.node
            taints = tuple(
                t for t in node.spec.taints or () if t.key != "node.kubernetes.io/unschedulable"
            )
            opened = structs.replace(
                node, spec=structs.replace(node.spec, unschedulable=None, taints=taints)
            )
            yield Proposal(
                summary=f"uncordon {info.name}",
                topic="cordon",
                cost=55,
                command=f"kubectl uncordon {info.name}",
                change=_applied(opened),
            )


def class_serves_resource(case: Case) -> Iterator[Proposal]:
    """A DeviceClass that serves the GPU resource which no node advertises, so that manifests may
    stay as they are (DRAExtendedResource)."""
    if "placement/no-such-resource" not in case.verdict.blockers:
        return
    cluster, kubernetes = case.before.cluster, case.terms.kubernetes
    for group in case.workload.groups:
        pod = chain.mutate(group.pod, cluster, kubernetes=kubernetes).pod
        for resource in pod_gpus(pod):
            for name in shortage.by_claims(Cycle(cluster, pod, kubernetes=kubernetes), resource):
                class_ = cluster.get("DeviceClass", "", name)
                if not isinstance(class_, DeviceClass) or class_.spec.extendedResourceName:
                    continue
                spec = structs.replace(class_.spec, extendedResourceName=resource)
                patch = encode({"spec": {"extendedResourceName": resource}}).decode()
                yield Proposal(
                    summary=f"let DeviceClass {name} serve {resource}",
                    topic=f"served {resource}",
                    cost=60,
                    command=f"kubectl patch deviceclass {name} --type merge -p '{patch}'",
                    change=_applied(structs.replace(class_, spec=spec)),
                )


def quota_raised(case: Case) -> Iterator[Proposal]:
    """Every exceeded quota of the namespace, raised to what this workload would use of it."""
    if "quota/exceeded" not in case.verdict.blockers:
        return
    namespace = case.workload.ref.namespace
    cluster = case.before.cluster
    ledger = case.before.ledger.fork()
    for pod in occupants.replaced_by(case.workload, cluster):
        ledger.release(pod)
    pods = {share.role: share.pods for share in case.verdict.groups}
    limits: dict[str, dict[str, Quantity]] = {}
    for group in case.workload.groups:
        pod = chain.mutate(
            group.pod, cluster, kubernetes=case.terms.kubernetes, plugins=case.terms.plugins
        ).pod
        count = pods.get(group.role, 0)
        for quota, keys in ledger.needed(pod, namespace, count).items():
            limits.setdefault(quota, {}).update(keys)
            ledger.raise_limits(namespace, quota, keys)
        ledger.admit_pods(pod, namespace, count)
    if limits:
        words = ", ".join(
            f"{quota} to {key}={limit}"
            for quota, keys in sorted(limits.items())
            for key, limit in sorted(keys.items())
        )
        yield Proposal(
            summary=f"raise ResourceQuota {words}",
            topic="quota",
            cost=90,
            command=" && ".join(
                _patch_command(namespace, quota, keys) for quota, keys in sorted(limits.items())
            ),
            change=_raised(namespace, limits),
            again=quota_raised,
        )


def _patch_command(namespace: str, quota: str, keys: dict[str, Quantity]) -> str:
    hard = {key: str(limit) for key, limit in sorted(keys.items())}
    patch = encode({"spec": {"hard": hard}}).decode()
    return f"kubectl -n {namespace} patch resourcequota {quota} --type merge -p '{patch}'"


def _raised(namespace: str, limits: dict[str, dict[str, Quantity]]) -> Callable[[State], State]:
    def change(state: State) -> State:
        for quota, keys in limits.items():
            state.ledger.raise_limits(namespace, quota, keys)
        return state

    return change


def _applied(obj: KubeObject) -> Callable[[State], State]:
    def change(state: State) -> State:
        state.cluster.apply(obj)
        return state

    return change
