"""Rule static/mutate."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import TemplateChange
from kubectl_gpuadmit.policy.edits import applied, merged, operations, summary, with_change
from kubectl_gpuadmit.policy.matching import match_pod
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Mutation, Unknown


@rule("static/mutate", reasons={}, stage="mutate", reads={"Node"}, level="deny")
def static_mutate(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Writes what the policy's ``static`` entries say into the pods that they match.

    Node selector, tolerations, labels, annotations, priority class and scheduling gates. A value of
    the same key gives way; what is there already is left alone, so asking again changes nothing.
    Entries apply in the order of the file, each to what the ones before it made of the pod; of two
    that set the same key the first one counts. Every entry has its own level and bears its own
    name, ``static/NAME``; what an entry below ``deny`` would change is reported, not done, and the
    entries after it do not see it.
    """
    pod, template = ask.pod, ask.group.template
    made = TemplateChange()
    for entry in ask.policy.static:
        if entry.mutate is None:
            continue
        level = ask.policy.level(entry.rule, namespace=ask.namespace, pool=ask.pool)
        if level == "off":
            continue
        found = match_pod(
            entry.match,
            pod,
            kind=ask.workload.ref.kind,
            namespace=ask.namespace,
            policy=ask.policy,
            cluster=cluster,
        )
        if found.holds is None:
            yield Unknown(rule=entry.rule, missing=found.missing)
        elif found.holds:
            change = merged(made, entry.mutate)
            if pod.spec.nodeName:
                # The API server refuses scheduling gates on a pod that has its node already.
                change = msgspec.structs.replace(change, schedulingGates=())
            if ops := operations(change, template, pod):
                yield Mutation(ops=ops, summary=summary(ops), rule=entry.rule)
                if level == "deny":
                    template, pod = applied(template, ops), with_change(pod, change)
            if level == "deny":
                made = change
