"""From chosen devices to the allocation that the scheduler writes, and the nodes that can use it.

Source: k8s.io/dynamic-resource-allocation v0.37.2 structured/internal/incubating
(allocator_incubating.go: Allocate, createNodeSelector). Configuration is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_gpuadmit.devices.allocator.features import Features
from kubectl_gpuadmit.devices.allocator.given import Chosen
from kubectl_gpuadmit.devices.allocator.outcome import Fatal
from kubectl_gpuadmit.devices.model import Allocation, Allotted
from kubectl_gpuadmit.kube.objects import (
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorTerm,
)


def allocation(chosen: Sequence[Chosen], node: str, features: Features) -> Allocation:
    """Raises Fatal for a slice whose node selector has several terms."""
    return Allocation(
        tuple(
            Allotted(
                one.request,
                one.item.device.id,
                admin_access=bool(one.want.admin_access),
                share=f"share-{number}" if one.consumed is not None else "",
                consumed=one.consumed or None,
                tolerations=one.want.tolerations,
                binding_conditions=one.item.device.binding_conditions
                if features.binding_conditions
                else (),
                binding_failure_conditions=(one.item.device.raw.bindingFailureConditions or ())
                if features.binding_conditions
                else (),
                skips=one.item.device.slice.skips if features.allocator == "experimental" else (),
            )
            for number, one in enumerate(chosen)
        ),
        node_selector(chosen, node, binds=features.binds_to_node),
    )


def node_selector(
    chosen: Sequence[Chosen], node: str, *, binds: bool = True
) -> NodeSelector | None:
    """From which nodes the devices can be reached; None: from all."""
    fields: list[LabelSelectorRequirement] = []
    expressions: list[LabelSelectorRequirement] = []
    for one in chosen:
        device = one.item.device
        place = device.raw if device.slice.per_device else device.slice.raw.spec
        if place.nodeName or (binds and device.raw.bindsToNode):
            only = LabelSelectorRequirement("metadata.name", "In", (node,))
            return NodeSelector((NodeSelectorTerm(matchFields=(only,)),))
        terms = place.nodeSelector.nodeSelectorTerms or () if place.nodeSelector else ()
        if len(terms) > 1:
            raise Fatal(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add_new(term.matchFields, fields)
            _add_new(term.matchExpressions, expressions)
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions) or None, tuple(fields) or None),))


def _add_new(
    more: tuple[LabelSelectorRequirement, ...] | None, to: list[LabelSelectorRequirement]
) -> None:
    for one in more or ():
        values = set(one.values or ())
        if not any(
            (other.key, other.operator) == (one.key, one.operator)
            and set(other.values or ()) == values
            for other in to
        ):
            to.append(one)
