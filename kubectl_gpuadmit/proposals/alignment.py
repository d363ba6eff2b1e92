"""Proposes what passes a kubelet that wants a pod's devices and CPUs on one NUMA node.

Fewer CPUs, CPUs that are not pinned, another scope or policy of the kubelet, a pod there that makes
room. Fewer GPUs, other pools and other nodes are proposed elsewhere for any lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from kubectl_gpuadmit.admission import chain
from kubectl_gpuadmit.judge import State
from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.workloads import PodGroup
from kubectl_gpuadmit.placement.kubelet import FILTER
from kubectl_gpuadmit.proposals import Case, Proposal

if TYPE_CHECKING:
    from kubectl_gpuadmit.placement.kubelet.verdicts import Judged
    from kubectl_gpuadmit.topology import kubelets

NODES_LOOKED_AT = 3
_RESTART = (
    "edit the kubelet's configuration on {node}, drain it, delete"
    " /var/lib/kubelet/cpu_manager_state and memory_manager_state, restart the kubelet"
)


def aligned(case: Case) -> Iterator[Proposal]:
    """For the nodes whose kubelets alone stand in the way."""
    names = [v.node for v in case.verdict.nodes if any(s.filter == FILTER for s in v.shortfalls)]
    if not names:
        return
    from kubectl_gpuadmit.placement.kubelet.verdicts import Kubelets  # costs start-up time

    cluster = case.before.cluster
    known = Kubelets(cluster, case.terms.policy, case.terms.now)
    for group in case.workload.groups:
        pod = chain.mutate(
            group.pod, cluster, kubernetes=case.terms.kubernetes, plugins=case.terms.plugins
        ).pod
        gates = known.for_pod(pod)
        if gates is None:
            continue
        for name in names[:NODES_LOOKED_AT]:
            info = cluster.nodes.get(name)
            judged = gates.judge(info) if info is not None else None
            if info is None or judged is None or judged.says != "refuses":
                continue
            yield from _fewer_cpus(group, judged)
            yield from _shared_cpus(group, judged)
            told, _ = known.told(info)
            if told is not None:
                yield from _other_settings(told, judged, name)


def _fewer_cpus(group: PodGroup, judged: Judged) -> Iterator[Proposal]:
    """As many CPUs as are free beside the devices, where one container asks for all of them."""
    wanted, free = dict(judged.wanted), {name: dict(counts) for name, counts in judged.free}
    cpus = wanted.pop("cpu", 0)
    most = max(
        (
            count
            for zone, count in free.get("cpu", {}).items()
            if all(free.get(name, {}).get(zone, 0) >= n for name, n in wanted.items())
        ),
        default=0,
    )
    if not 0 < most < cpus:
        return
    patch = _with_cpus(group, cpus, most)
    if patch:
        yield Proposal(
            summary=f"{most} CPUs a pod instead of {cpus}",
            topic="cpus",
            less=True,
            cost=38,
            patch=patch,
        )


def _with_cpus(group: PodGroup, asked: int, count: int) -> tuple[dict[str, Any], ...]:
    ops: list[dict[str, Any]] = []
    for index, part, amount in _cpu_amounts(group):
        if quantity.parse(amount).nano != asked * quantity.NANO:
            continue
        value = str(count) if isinstance(amount, str) else count
        at = f"/spec/containers/{index}/resources/{part}/cpu"
        ops.append({"op": "replace", "path": at, "value": value})
    return _in_manifest(group, ops)


def _shared_cpus(group: PodGroup, judged: Judged) -> Iterator[Proposal]:
    """Without a CPU limit the pod is no longer Guaranteed, and its CPUs are those of everybody."""
    if "cpu" not in dict(judged.wanted):
        return
    limits = {index: amount for index, part, amount in _cpu_amounts(group) if part == "limits"}
    requested = {index for index, part, _ in _cpu_amounts(group) if part == "requests"}
    ops: list[dict[str, Any]] = []
    for index, amount in limits.items():
        at = f"/spec/containers/{index}/resources"
        ops.append({"op": "remove", "path": f"{at}/limits/cpu"})
        if index in requested:
            continue
        there = group.template["spec"]["containers"][index]["resources"].get("requests")
        below = {"cpu": amount} if there is None else amount
        path = f"{at}/requests" + ("" if there is None else "/cpu")
        ops.append({"op": "add", "path": path, "value": below})
    patch = _in_manifest(group, ops)
    if patch:
        yield Proposal(
            summary="no CPU limit: the pod shares CPUs and is not pinned to some",
            topic="pinning",
            cost=46,
            patch=patch,
        )


def _cpu_amounts(group: PodGroup) -> Iterator[tuple[int, str, Any]]:
    containers = (group.template.get("spec") or {}).get("containers") or ()
    for index, container in enumerate(containers):
        resources = container.get("resources") or {}
        for part in ("limits", "requests"):
            amount = (resources.get(part) or {}).get("cpu")
            if amount is not None:
                yield index, part, amount


def _in_manifest(group: PodGroup, ops: list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    paths = [group.in_manifest(op["path"]) for op in ops]
    if None in paths:
        return ()
    return tuple({**op, "path": path} for op, path in zip(ops, paths, strict=True))


def _other_settings(told: kubelets.Told, judged: Judged, node: str) -> Iterator[Proposal]:
    """The scope by container, then a policy that prefers and does not refuse."""
    changes = []
    if judged.scope == "pod":
        changes.append(("topologyManagerScope", "container", 85))
    changes.append(("topologyManagerPolicy", "best-effort", 97))
    for field, value, cost in changes:
        yield Proposal(
            summary=f"{field} {value} on {node} instead of"
            f" {judged.scope if field.endswith('Scope') else judged.policy}",
            topic="kubelet",
            less=True,
            cost=cost,
            command=f"# {_RESTART.format(node=node)}",
            change=_set(told, node, field, value),
        )


def _set(told: kubelets.Told, node: str, field: str, value: str) -> Callable[[State], State]:
    from kubectl_gpuadmit.topology import kubelets

    def change(state: State) -> State:
        state.cluster.apply(kubelets.as_object(told, node, **{field: value}))
        return state

    return change
