"""Queues and other schedulers: Kueue, Volcano, KAI, Run:ai, YuniKorn, HAMi in their own words.

Texts of Kueue 0.6 to 0.15 and Volcano 1.8 to 1.12 as their events carry them. Their rules are their
own: what
they say is repeated with its numbers, not judged.
"""

from __future__ import annotations

from kubectl_gpuadmit.diagnosis.cause import QUANTITY, Phrase, table
from kubectl_gpuadmit.verdict import Evidence

REASONS = {
    "why/queue-full": "The queue has too little quota left for the workload now. Wait until"
    " others end, or"
    " have the queue's quota raised.",
    "why/queue-too-small": "The workload asks for more than its queue could ever give. Ask for"
    " less, or have"
    " the queue's quota raised.",
    "why/queue-missing": "The queue that the workload names does not exist or is not active."
    " Correct the"
    " kueue.x-k8s.io/queue-name label, or ask who runs the queues.",
    "why/queue-flavor": "The queue has no flavor whose nodes take the workload's selectors and"
    " tolerations,"
    " or none for the resource.",
    "why/queue-preempted": "The queue ended the workload to make room for another one. It is"
    " queued again.",
    "why/queue-waiting": "The workload is queued and waits for its turn.",
    "why/vendor-filter": "A device sharing scheduler found no node whose devices fit by its own"
    " counting of"
    " memory and cores. Look at its log and at the node's annotations.",
}

KUEUE = "kubectl get clusterqueues,localqueues,workloads -A"
VOLCANO = "kubectl get podgroups,queues"

hear = table(
    "queue",
    (
        Phrase.of(
            r"insufficient (?:unused)? quota (?:in cohort)? for <resource:RESOURCE> in flavor"
            r" <flavor:NAME> ,"
            r" (?:request > maximum capacity|request \> maximum capacity|previously considered"
            r" podsets"
            r" requests) \(? (?P<numbers>[^)]*)? \)?",
            "why/queue-too-small",
            "user",
            "Kueue: more {resource} of flavor {flavor} is asked than the queue could ever give"
            " ({numbers})",
            KUEUE,
        ),
        Phrase.of(
            rf"insufficient (?:unused)? quota (?:in cohort)? for <resource:RESOURCE> (?:in)?"
            rf" flavor <flavor:NAME> ,"
            rf" (?P<more>{QUANTITY}) more needed (?:after preemption)?",
            "why/queue-full",
            "wait",
            "Kueue: {more} more {resource} of flavor {flavor} would have to be free in the queue",
            KUEUE,
            evidence=lambda hit: (
                Evidence(
                    "queue",
                    f"{hit['resource']} short",
                    hit["more"],
                    "0",
                    "the queue's message",
                    "most",
                ),
            ),
        ),
        Phrase.of(
            r"insufficient quota for <resource:RESOURCE> (?:in)? flavor <flavor:NAME> , request >"
            r" (?P<most>maximum capacity|nominal quota)",
            "why/queue-too-small",
            "user",
            "Kueue: more {resource} of flavor {flavor} is asked than the queue could ever give",
            KUEUE,
        ),
        Phrase.of(
            r"(?:LocalQueue|ClusterQueue) <queue:NAME> (?P<how>doesn't exist|does not exist|is"
            r" inactive|is stopped)",
            "why/queue-missing",
            "user",
            "Kueue: queue {queue} {how}",
            KUEUE,
        ),
        Phrase.of(
            r"resource <resource:RESOURCE> (?:unavailable in ClusterQueue|is not supported in"
            r" ClusterQueue)",
            "why/queue-flavor",
            "platform",
            "Kueue: the queue covers no {resource}",
            KUEUE,
        ),
        Phrase.of(
            r"flavor <flavor:NAME> (?:doesn't match node affinity|doesn't match with the"
            r" tolerations"
            r"|not found)|untolerated taint \{(?P<taint>[^}]*)\} in flavor"
            r" (?P<tainted>(?-i:[a-z0-9][-a-z0-9.]*))",
            "why/queue-flavor",
            "user",
            "Kueue: the pod may not use the nodes of flavor {flavor}{tainted}",
            KUEUE,
        ),
        Phrase.of(
            r"couldn't assign flavors to pod set (?P<set>[-a-z0-9.]{1,253}?) :"
            r" (?! .{0,400}? (?:more needed|maximum capacity|untolerated taint|doesn't match))"
            r" (?=(?P<why>.+))",
            "why/queue-full",
            "wait",
            "Kueue: pod set {set} does not get its quota: {why}",
            KUEUE,
        ),
        Phrase.of(
            r"Preempted to accommodate a (?:workload|higher priority"
            r" Workload)[^.;]*|EvictedDueToPreempted",
            "why/queue-preempted",
            "wait",
            "Kueue ended the workload to make room for another; it is queued again",
            KUEUE,
        ),
        Phrase.of(
            r"\bQuotaReserved\b .{0,40}? (?:false|Pending) | Waiting for (?:the)? quota |"
            r" workload is queued",
            "why/queue-waiting",
            "wait",
            "the workload waits in its Kueue queue",
            KUEUE,
        ),
        Phrase.of(
            r"queue resource quota insufficient (?: : (?P<why>.+?))? (?=$|\.)|queue .{0,60}?"
            r" overused",
            "why/queue-full",
            "wait",
            "Volcano: the queue's share is used up {why}",
            "kubectl get queues.scheduling.volcano.sh",
        ),
        Phrase.of(
            r"(?P<ready>\d{1,9})/(?P<all>\d{1,9}) tasks in gang unschedulable (?: :"
            r" (?P<why>.+?))? (?=$|\.)",
            "why/gang-waiting",
            "wait",
            "Volcano: {ready} of {all} pods of the group cannot be placed, so none starts",
            VOLCANO,
            evidence=lambda hit: (
                Evidence(
                    "pod group",
                    "pods that cannot be placed",
                    int(hit["ready"]),
                    0,
                    "the event",
                    "most",
                ),
            ),
        ),
        Phrase.of(
            r"pod group is not ready, (?P<state>[^.;]+)",
            "why/gang-waiting",
            "wait",
            "Volcano: the group does not start before enough of its pods fit ({state})",
            VOLCANO,
        ),
        Phrase.of(
            r"no available (?:vgpu)? node (?:, all node scores do not meet)?|all node scores do"
            r" not meet"
            r"|FilteringFailed",
            "why/vendor-filter",
            "wait",
            "HAMi: no node's devices have the memory and cores left that the pod asks",
            "kubectl -n kube-system logs -l app.kubernetes.io/component=hami-scheduler --tail=50",
        ),
        Phrase.of(
            r"(?:non-preemptible workload is over quota|over quota|exceeded deserved"
            r" quota|project .{0,60}? over quota)"
            r" [^.;]{0,120}",
            "why/queue-full",
            "wait",
            "KAI or Run:ai: the project's or queue's GPU quota is used up",
            "kubectl get queues.scheduling.run.ai",
        ),
    ),
)
