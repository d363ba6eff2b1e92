"""Pods that kubelets refuse one after the other, told as the one thing that it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubectl_gpuadmit.happened.history import History, created
from kubectl_gpuadmit.happened.told import KUBELET
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.verdict import Evidence, Finding, Verdict

RUNAWAY = 3
"""Failed pods of one workload and one reason from which on nobody waits for luck."""

_STOP = {
    "Deployment": "scale deployment/{name} --replicas=0",
    "ReplicaSet": "scale replicaset/{name} --replicas=0",
    "ReplicationController": "scale rc/{name} --replicas=0",
    "StatefulSet": "scale statefulset/{name} --replicas=0",
    "Job": 'patch job/{name} --type=merge -p \'{{"spec":{{"suspend":true}}}}\'',
    "CronJob": 'patch cronjob/{name} --type=merge -p \'{{"spec":{{"suspend":true}}}}\'',
}
"""Kind -> what keeps its controller from making more pods."""


def runaway(history: History, verdict: Verdict) -> Iterator[Finding]:
    """Pods that kubelets refuse one after the other, told as the one thing that it is."""
    if verdict.ref.kind == "Pod":
        return
    by_reason: dict[str, list[dict[str, Any]]] = {}
    for pod in history.pods:
        status = pod.get("status") or {}
        reason = str(status.get("reason") or "")
        if status.get("phase") == "Failed" and KUBELET.fullmatch(reason):
            by_reason.setdefault(reason.replace(" ", ""), []).append(pod)
    for reason, pods in sorted(by_reason.items()):
        if len(pods) < RUNAWAY or len(pods) <= verdict.pods:
            continue
        nodes: dict[str, int] = {}
        for pod in pods:
            node = str((pod.get("spec") or {}).get("nodeName") or "a node")
            nodes[node] = nodes.get(node, 0) + 1
        most = max(nodes, key=lambda node: (nodes[node], node))
        where = f"all on {most}" if len(nodes) == 1 else f"{nodes[most]} of them on {most}"
        numa = " NUMA" if reason == "TopologyAffinityError" else " what its kubelet knows"
        yield Finding(
            "live/runaway",
            f"{len(pods)} pods {_within(pods)}ended {reason}, {where}: the scheduler does not see"
            f"{numa}, to it the node looks free, and it sends the next one there again; waiting"
            " does not end this",
            (
                *(
                    Evidence(f"Node {node}", "pods that its kubelet refused", nodes[node], None)
                    for node in sorted(nodes, key=lambda node: (-nodes[node], node))[:3]
                ),
                *_ways_out(verdict, most),
            ),
            permanent=False,
            rule="live",
            level="warn",
        )


def _within(pods: list[dict[str, Any]]) -> str:
    """``within 90 s ``, '' where their times are not known."""
    instants = []
    for pod in pods:
        try:
            instants.append(times.parse_instant(created(pod)))
        except times.TimeError:
            return ""
    return f"within {times.spell(max(instants) - min(instants))} "


def _ways_out(verdict: Verdict, node: str) -> Iterator[Evidence]:
    ref = verdict.ref
    at = f"kubectl -n {ref.namespace or 'default'}"
    if stop := _STOP.get(ref.kind):
        yield Evidence("next", "stop it", f"{at} {stop.format(name=ref.name)}", None)
    yield Evidence(
        "next", "then clear up", f"{at} delete pods --field-selector status.phase=Failed", None
    )
    yield Evidence(
        "next",
        "then mend it",
        f"keep off {node}: node affinity kubernetes.io/hostname NotIn [{node}]; or ask for what one"
        " of its NUMA nodes has free",
        None,
    )
