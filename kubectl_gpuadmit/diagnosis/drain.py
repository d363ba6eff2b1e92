"""What stops a drain or an eviction, and whom a 429 comes from; evicts nothing.

Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/storage/eviction.go and k8s.io/kubectl
v0.37.2
pkg/drain. Names of flags of older kubectl are read too.
"""

from __future__ import annotations

from kubectl_gpuadmit.diagnosis.cause import Cause, Hit, Phrase, pattern, table
from kubectl_gpuadmit.verdict import Evidence

REASONS = {
    "why/disruption-budget": "A PodDisruptionBudget does not let the pod go now. With one replica"
    " and"
    " minAvailable 1 waiting never helps: start a second replica elsewhere, or change the budget.",
    "why/budget-settling": "The PodDisruptionBudget is still being counted. Try again in a moment.",
    "why/budgets-overlap": "Several PodDisruptionBudgets cover the pod, so it cannot be evicted."
    " Leave"
    " one.",
    "why/budget-broken": "A PodDisruptionBudget has no sound status. Look at its conditions.",
    "why/drain-daemonset": "kubectl drain stops at pods of DaemonSets. --ignore-daemonsets leaves"
    " them.",
    "why/drain-local-storage": "kubectl drain stops at pods with emptyDir volumes, and a"
    " memory-backed"
    " /dev/shm is one. --delete-emptydir-data (once --delete-local-data) lets their content go.",
    "why/drain-unmanaged": "kubectl drain stops at pods without a controller that it knows."
    " --force deletes"
    " them; whether they come back depends on who made them.",
    "why/drain-timeout": "A drain ended by its timeout while pods were still there. Look at what"
    " keeps"
    " them: a budget, a finalizer, a DRA driver that is gone.",
    "why/drain-by-operator": "The GPU operator's driver manager drains the node itself to upgrade"
    " the"
    " driver, and was stopped. Look at the node's nvidia.com/gpu.deploy labels.",
}

BUDGETS = "kubectl get poddisruptionbudgets -A"
_AGAIN = r"(?: \(will retry after [^)]*\) )?"
_EVICTING = (
    r"(?: error when evicting pods?/?\"(?P<pod>[^\"]{1,400})\" (?: -n"
    r" \"(?P<namespace>[^\"]{1,400})\" )?" + _AGAIN + r" : )?"
)

_PODS = r"(?P<pods>(?-i:[-a-z0-9./]{1,316})(?:,(?!cannot)(?-i:[-a-z0-9./]{1,316}))*)"
_NEEDS = pattern(
    r"(?:(?:Cannot evict pod as it would violate the pod's disruption budget\.?) [^\"]{0,40}?)?"
    r" The disruption budget (?P<budget>[-a-z0-9./]{1,316}?) needs (?P<needs>\d+) healthy pods"
    r" and has"
    r" (?P<has>\d+) currently"
)


def _budget(hit: Hit) -> Cause:
    needs, has = int(hit["needs"]), int(hit["has"])
    if has < needs:
        detail = "pods of it are not ready: it lets none go before they are"
    else:
        detail = "it lets one go when one more is ready"
    return Cause(
        "why/disruption-budget",
        f"PodDisruptionBudget {hit['budget']} needs {needs:,} healthy pods, has {has:,}: {detail}",
        "wait" if needs > 1 else "user",
        BUDGETS,
        (Evidence(hit["budget"], "healthy pods", has, needs, "the eviction's answer", "least"),),
    )


hear = table(
    "drain",
    (
        Phrase(_NEEDS, _budget),
        Phrase.of(
            r"The disruption budget (?P<budget>[-a-z0-9./]{1,316}?) is still being processed by"
            r" the server",
            "why/budget-settling",
            "wait",
            "PodDisruptionBudget {budget} is still being counted",
            BUDGETS,
        ),
        Phrase.of(
            r"The disruption budget (?P<budget>[-a-z0-9./]{1,316}?) does not allow evicting pods"
            r" currently"
            r" (?: because it failed sync: (?P<sync>.+) | [:(] (?P<why>.+))",
            "why/budget-broken",
            "platform",
            "PodDisruptionBudget {budget} lets no pod go: {sync}{why}",
            BUDGETS,
        ),
        Phrase.of(
            _EVICTING + r" Cannot evict pod as it would violate the pod's disruption budget"
            r" (?! .{0,60}? The disruption budget)",
            "why/disruption-budget",
            "user",
            "a PodDisruptionBudget does not let the pod {pod} go. If it allows 0 disruptions with"
            " all pods"
            " healthy (one replica, minAvailable 1), waiting never helps: start a second replica"
            " elsewhere"
            " (a GPU more), or change the budget",
            BUDGETS,
        ),
        Phrase.of(
            r"This pod has more than one PodDisruptionBudget , which the eviction subresource"
            r" does not support",
            "why/budgets-overlap",
            "user",
            "several PodDisruptionBudgets cover the pod, and it can be evicted under one only",
            BUDGETS,
        ),
        Phrase.of(
            r"pdb disruptions allowed is negative|DisruptedPods map too big"
            r"|couldn't update PodDisruptionBudget \"?(?P<budget>[-a-z0-9.]+)\"? due to conflicts",
            "why/budget-broken",
            "platform",
            "a PodDisruptionBudget's status is not sound or not settled",
            BUDGETS,
        ),
        Phrase.of(
            r"(?:cannot delete)? DaemonSet-managed Pods \(use --ignore-daemonsets to ignore\)"
            r" (?: : " + _PODS + r")?",
            "why/drain-daemonset",
            "user",
            "kubectl drain stops at pods of DaemonSets: {pods}",
            "kubectl drain NODE --ignore-daemonsets --dry-run=client",
        ),
        Phrase.of(
            r"Pods with local storage \(use --delete-(?:emptydir|local)-data to override\) (?: :"
            r" " + _PODS + r")?",
            "why/drain-local-storage",
            "user",
            "kubectl drain stops at pods with emptyDir volumes, /dev/shm included: {pods}",
            "kubectl drain NODE --ignore-daemonsets --delete-emptydir-data --dry-run=client",
        ),
        Phrase.of(
            r"(?:Pods that declare no controller|pods not managed by [A-Za-z, ]+?) \(use --force"
            r" to override\)"
            r" (?: : " + _PODS + r")?",
            "why/drain-unmanaged",
            "user",
            "kubectl drain knows no controller of these pods and would need --force; whether they"
            " come back"
            " depends on who made them: {pods}",
            "kubectl get pod NAME -o jsonpath='{{.metadata.ownerReferences}}'",
        ),
        Phrase.of(
            r"error when (?:evicting|waiting for) pods?/?\"(?P<pod>[^\"]{1,400})\" .{0,80}?"
            r" (?:global timeout reached: (?P<time>[0-9hms.]+)|timed out)",
            "why/drain-timeout",
            "user",
            "the drain's timeout {time} came before pod {pod} was gone",
            BUDGETS,
        ),
        Phrase.of(
            r"k8s-driver-manager (?: .{0,1000}? draining fails)?",
            "why/drain-by-operator",
            "platform",
            "the GPU operator drains the node itself to upgrade its driver, and was stopped there",
            "kubectl get nodes -L nvidia.com/gpu.deploy.driver,nvidia.com/gpu-driver-upgrade-state",
        ),
        Phrase.of(
            r"pod (?:s)? .{0,60}? terminating namespace",
            "namespace/terminating",
            "wait",
            "the pod's namespace is being deleted",
            "kubectl get namespaces",
        ),
    ),
)
