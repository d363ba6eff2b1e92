"""Proposes corrections of a selector that fails on a device: another name, or a guard."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.admission import chain
from kubectl_gpuadmit.devices.allocator.outcome import FailedSelector
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.devices.pod_claims import of_pod
from kubectl_gpuadmit.placement import failing_selector
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.proposals import Case, Proposal
from kubectl_gpuadmit.proposals.claims import changed, command, requests


def corrected(case: Case) -> Iterator[Proposal]:
    """Of the claim's own selectors; a DeviceClass belongs to somebody else."""
    if "placement/attribute-missing" not in case.verdict.blockers:
        return
    cluster, home = case.before.cluster, case.workload.ref.namespace
    for group in case.workload.groups:
        if not group.count or not group.pod.spec.resourceClaims:
            continue
        pod = chain.mutate(group.pod, cluster, kubernetes=case.terms.kubernetes).pod
        cycle = Cycle(cluster, pod, kubernetes=case.terms.kubernetes)
        failed = failing_selector.of(cycle, case.verdict.nodes)
        if failed is None or failed.device_class:
            continue
        for entry in of_pod(pod, home, cluster):
            for at, request in requests(case, entry, home):
                if request != failed.request:
                    continue
                path = f"{at}/selectors/{failed.number}/cel/expression"
                for cost, text, summary in _expressions(failed, case):
                    ops = ({"op": "replace", "path": path, "value": text},)
                    where = f"{entry.kind} {entry.object}"
                    yield Proposal(
                        summary=f"in {where}: {summary}",
                        topic=f"claim {where} {request}",
                        cost=cost,
                        command=command(entry, home, ops),
                        change=changed(entry, home, ops),
                    )


def _expressions(failed: FailedSelector, case: Case) -> Iterator[tuple[int, str, str]]:
    """(cost, expression, what it changes)."""
    key = failing_selector.missing(failed)
    for text, change in failing_selector.corrections(failed):
        yield 0, text, change
    every = (d for s in Inventory.of(case.before.cluster).slices for d in s.devices)
    if guard := failing_selector.guarded(failed, every):
        yield 5, guard[0], f".{guard[1]} instead of .{key}: some devices do not have it"
