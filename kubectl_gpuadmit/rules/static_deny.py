"""Rule static/deny."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy.matching import match_pod
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Finding, Unknown


@rule(
    "static/deny",
    reasons={
        "static/denied": "An entry of the policy's static list refuses pods like this one. "
        "Its message says why; the evidence says what it matched."
    },
    reads={"Node"},
    level="deny",
)
def static_deny(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Refuses the pods that the policy's ``static`` entries with ``deny`` match.

    ``match.resources`` compares what one pod asks for: a resource name (``nvidia.com/gpu: ">=4"``),
    a pattern (``nvidia.com/mig-*``, summed) or ``gpuMemoryGB``: all the GPU memory that the pod
    could get, number of devices times the memory of one, in GB as product names count (MiB / 1024,
    so that an A100-40GB has 40 and an H100-80GB 79.6). It holds if it holds on any node that the
    pod's selectors admit. Every entry has its own level and bears its own name, ``static/NAME``.
    """
    for entry in ask.policy.static:
        if entry.deny is None:
            continue
        found = match_pod(
            entry.match,
            ask.pod,
            kind=ask.workload.ref.kind,
            namespace=ask.namespace,
            policy=ask.policy,
            cluster=cluster,
        )
        if found.holds is None:
            yield Unknown(rule=entry.rule, missing=found.missing)
        elif found.holds:
            yield Finding(
                reason="static/denied",
                detail=f"{entry.name}: {entry.deny.strip().rstrip('.')}",
                evidence=found.evidence,
                rule=entry.rule,
            )
