"""Rule static/taints."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube import gpus, selectors
from kubectl_gpuadmit.kube.objects import Taint, Toleration
from kubectl_gpuadmit.policy import RequiredTaint, TemplateChange
from kubectl_gpuadmit.policy.edits import operations
from kubectl_gpuadmit.policy.matching import match_pod
from kubectl_gpuadmit.policy.usage import admitted_nodes
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy, Unknown


@rule(
    "static/taints",
    reasons={
        "static/node-without-taint": "A node that the pod may use does not carry the taint that "
        "the policy requires there, so that other work could land on it too. Select other nodes, "
        "or taint the node.",
        "static/taint-not-tolerated": "The pod does not tolerate the taint that the nodes meant "
        "for it carry. Add the toleration.",
    },
    reads={"Node"},
    level="deny",
)
def static_taints(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Nodes that a pod selects must carry the ``requiredTaints``, and the pod must tolerate them.

    Looked at are the nodes that node selector, required affinity and nodeName leave open and that
    have the GPUs asked for. A toleration for a taint that no node carries protects nobody: the
    nodes are open to everyone. Every entry has its own level and bears its own name,
    ``static/NAME``.
    """
    for entry in ask.policy.static:
        if not entry.requiredTaints:
            continue
        found = match_pod(
            entry.match,
            ask.pod,
            kind=ask.workload.ref.kind,
            namespace=ask.namespace,
            policy=ask.policy,
            cluster=cluster,
        )
        if found.holds is False:
            continue
        if found.holds is None or not cluster.knows("Node"):
            missing = found.missing or "taints of the selected nodes: no Node objects given"
            yield Unknown(rule=entry.rule, missing=missing)
            continue
        asked = [name for name in gpus.pod_gpus(ask.pod, ask.policy.gpu_patterns) if "/" in name]
        nodes = [
            node
            for node in admitted_nodes(cluster, ask.pod)
            if all(node.allocatable.get(name, 0) for name in asked)
        ]
        for wanted in entry.requiredTaints:
            yield from _one(ask, entry.rule, wanted, nodes)


def _one(ask: Ask, name: str, wanted: RequiredTaint, nodes: list[NodeInfo]) -> Iterator[Found]:
    bare = [node.name for node in nodes if not any(wanted.is_met_by(t) for t in node.taints)]
    if bare:
        yield Finding(
            reason="static/node-without-taint",
            detail=f"{len(bare)} of {len(nodes)} nodes that the pod may use do not carry the taint "
            f"{wanted}: {', '.join(bare[:3])}{' …' * (len(bare) > 3)}",
            evidence=tuple(
                Evidence(f"Node {node}", f"taint {wanted.key}", None, str(wanted)) for node in bare
            ),
            field=ask.field("/spec/nodeSelector") if ask.pod.spec.nodeSelector else "",
            rule=name,
        )
    carried = {t for node in nodes for t in node.taints if wanted.is_met_by(t)}
    expected = sorted(carried, key=selectors.taint_text) or [
        Taint(wanted.key, wanted.effect or "NoSchedule", wanted.value or None)
    ]
    refused = [
        taint
        for taint in expected
        if taint.effect != "PreferNoSchedule"
        and not selectors.tolerated(ask.pod.spec.tolerations, taint)
    ]
    if refused:
        tolerations = tuple(
            Toleration(key=t.key, operator="Equal", value=t.value, effect=t.effect)
            if t.value
            else Toleration(key=t.key, operator="Exists", effect=t.effect)
            for t in refused
        )
        ops = operations(TemplateChange(tolerations=tolerations), ask.group.template, ask.pod)
        texts = ", ".join(selectors.taint_text(t) for t in refused)
        yield Finding(
            reason="static/taint-not-tolerated",
            detail=f"the pod does not tolerate the taint {texts}",
            evidence=tuple(
                Evidence("pod", "toleration", None, selectors.taint_text(t)) for t in refused
            ),
            field=ask.field("/spec/tolerations") if ask.pod.spec.tolerations else "",
            suggest=(Remedy(f"tolerate {texts}", patch=ask.manifest_patch(ops), cost=5),),
            rule=name,
        )
