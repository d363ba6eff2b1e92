"""Rule model/node-choice."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import serving
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy


@rule(
    "model/node-choice",
    reasons={
        "model/node-choice": "The model fits the GPUs of some nodes that the pod may land on, and "
        "not those of others, so the scheduler's choice decides whether it runs. Select the "
        "product that is large enough."
    },
    reads={"Node", "ConfigMap"},
    level="warn",
)
def model_node_choice(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Pods that may land where their model does not fit, though it fits elsewhere.

    Counted are the nodes that the pod's selectors and tolerations leave open and that have as many
    of the GPUs, whoever holds them now.
    """
    for engine in serving.engines(ask, cluster):
        good = [one.devices for one in engine.on if one.fits == "fits"]
        bad = [one.devices for one in engine.on if one.fits == "exceeds"]
        if not good or not bad:
            continue
        product = good[0].product
        others = {one.product for one in (*bad, *good[1:])}
        suggest: tuple[Remedy, ...] = ()
        if product and product not in others:
            selector = {**(ask.pod.spec.nodeSelector or {}), "nvidia.com/gpu.product": product}
            op = {"op": "add", "path": "/spec/nodeSelector", "value": selector}
            if patch := ask.manifest_patch([op]):
                suggest = (Remedy(f"nodes with {product} only", patch=patch, cost=10),)
        names = ", ".join(dict.fromkeys(one.product or one.nodes[0] for one in bad))
        fitting = ", ".join(dict.fromkeys(one.product or one.nodes[0] for one in good))
        count = sum(len(one.nodes) for one in bad)
        yield Finding(
            reason="model/node-choice",
            detail=f"{engine.recognised.model} fits {fitting}, but the pod may also land on "
            f"{count} node{'' if count == 1 else 's'} with {names}, where it does not fit",
            evidence=tuple(
                Evidence(
                    one.product or one.nodes[0], "nodes where it does not fit", len(one.nodes), 0
                )
                for one in bad
            ),
            field=ask.field("/spec/nodeSelector" if ask.pod.spec.nodeSelector else "/spec"),
            suggest=suggest,
        )
