"""Proposes changes that somebody else makes: a larger quota, a namespace, an uncordoned node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import structs

from kubectl_gpuadmit.judge import State
from kubectl_gpuadmit.kube.objects import Namespace, ObjectMeta, ResourceQuota
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
                t
                for t in node.spec.taints or ()
                if t.key != "node.kubernetes.io/unschedulable"
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


def quota_raised(case: Case) -> Iterator[Proposal]:
    """Every exceeded quota of the namespace, raised to what this workload would use."""
    raised: dict[str, dict[str, str]] = {}
    for finding in case.verdict.findings:
        if finding.reason == "quota/exceeded":
            for name, key, wanted in _needs(case, finding):
                raised.setdefault(name, {})[key] = wanted
    raise NotImplementedError


def _applied(obj: Namespace | ResourceQuota) -> Callable[[State], State]:
    def change(state: State) -> State:
        state.cluster.apply(obj)
        state.ledger.apply(obj)
        return state

    return change
