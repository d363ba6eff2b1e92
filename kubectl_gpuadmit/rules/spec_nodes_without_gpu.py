"""Rule spec/nodes-without-gpu."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.policy.usage import admitted_nodes
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding


@rule(
    "spec/nodes-without-gpu",
    reasons={
        "spec/nodes-without-gpu": "The pod asks for a GPU and its selectors leave only nodes that "
        "have none of that kind. Correct the selector, or ask for what those nodes have."
    },
    needs={"Node"},
    fidelity="exact",
    level="warn",
)
def spec_nodes_without_gpu(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """GPU pods that select nodes without that GPU.

    A copied ``nodeSelector`` for CPU nodes, or one for the MIG pool under a request for whole GPUs:
    the nodes exist, others have the resource, but none has both.
    """
    spec = ask.pod.spec
    if not (spec.nodeSelector or spec.affinity or spec.nodeName):
        return
    wanted = gpus.pod_gpus(ask.pod, ask.policy.gpu_patterns)
    if not wanted:
        return
    chosen = admitted_nodes(cluster, ask.pod)
    for name in wanted:
        if not chosen or any(node.allocatable.get(name) for node in chosen):
            continue
        have = [node for node in cluster.nodes.values() if node.allocatable.get(name)]
        if not have:
            continue
        others = sorted(
            {
                other
                for node in chosen
                for other, amount in node.allocatable.items()
                if amount and gpus.is_gpu(other, ask.policy.gpu_patterns)
            }
        )
        instead = f"they have {', '.join(others)}" if others else "they have no GPU"
        one = len(chosen) == 1
        yield Finding(
            reason="spec/nodes-without-gpu",
            detail=f"the pod asks for {wanted[name]} {name} and selects {len(chosen)} "
            f"node{'' if one else 's'} without it; {instead}",
            evidence=(
                Evidence("selected nodes", name, 0, wanted[name], "status.allocatable", "least"),
                Evidence("all nodes", f"nodes with {name}", len(have), None, "status.allocatable"),
            ),
            field=ask.field("/spec/nodeSelector" if spec.nodeSelector else "/spec/affinity"),
        )
