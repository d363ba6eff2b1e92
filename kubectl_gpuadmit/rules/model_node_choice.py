"""Rule model/node-choice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import serving
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy

if TYPE_CHECKING:
    from kubectl_gpuadmit.sizing.fitting import EngineFit


@rule(
    "model/node-choice",
    reasons={
        "model/node-choice": "The model fits the GPUs of some nodes that the pod may land on, and "
        "not those of others, so the scheduler's choice decides whether it runs. Select the "
        "product that is large enough.",
        "model/alternative": "A claim names alternatives, and the model does not fit one of them: "
        "whether it runs depends on which devices are free when the pod is scheduled. Leave that "
        "alternative out, or let it ask for more.",
    },
    reads={"Node", "ConfigMap", "DeviceClass", "ResourceClaim", "ResourceSlice"},
    level="warn",
)
def model_node_choice(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Pods that may land where their model does not fit, though it fits elsewhere.

    Counted are the nodes that the pod's selectors and tolerations leave open and that have as many
    of the GPUs, whoever holds them now. Of a claim with alternatives (``firstAvailable``) each node
    counts with the one that it would give; those that none of them is enough for are named.
    """
    for engine in serving.engines(ask, cluster):
        yield from _alternatives(ask, engine)
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


def _alternatives(ask: Ask, engine: EngineFit) -> Iterator[Found]:
    """Alternatives of a claim that the model does not fit, though it fits others."""
    if all(one.fits == "exceeds" for one in (*engine.alternatives, *engine.on)):
        return
    from kubectl_gpuadmit.policy import serving_words as words

    for one in engine.alternatives:
        if one.fits != "exceeds":
            continue
        burst = words.burst(one)
        which = one.devices.how.partition(",")[0]
        if one.too_few:
            world = engine.recognised.serving.world_size
            has = one.devices.count * engine.pods
            why = f"{engine.recognised.engine} is told to use {world} GPUs, and it brings {has}"
        elif burst is not None:
            why = words.sentence(engine, one, burst)
        else:
            continue  # the layout alone is wrong: model/divisibility says that
        yield Finding(
            reason="model/alternative",
            detail=f"{which} is too small: {why}",
            evidence=words.evidence(engine, one) if not one.too_few else (),
            field=ask.field("/spec/resourceClaims"),
        )
