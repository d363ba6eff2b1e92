"""Refusals of the API server itself: namespace, service account, classes, PodSecurity, object
validation.

Source: k8s.io/kubernetes v1.37.2 plugin/pkg/admission and pkg/apis/core/validation,
k8s.io/pod-security-admission v0.37.2. Quotas and limits are ``quota``'s.
"""

from __future__ import annotations

from kubectl_gpuadmit.diagnosis.cause import Cause, Hit, Phrase, pattern, table
from kubectl_gpuadmit.verdict import Evidence

REASONS = {
    "why/pod-security": "The namespace's PodSecurity level forbids a field of the pod. Set the"
    " fields that"
    " the text names, or have the workload moved to a namespace with another level.",
    "why/pod-security-warning": "PodSecurity warns about the pod and lets it in. Set the fields"
    " that the"
    " text names before the level is enforced.",
    "why/node-restriction": "A kubelet asked for something that belongs to another node. Check"
    " that the"
    " component uses its own node's credentials.",
    "why/node-selector-conflict": "The pod's node selector contradicts the one that its namespace"
    " prescribes. Leave that label out, or use another namespace.",
    "why/toleration-forbidden": "The namespace's list of allowed tolerations does not hold one of"
    " the"
    " pod's. Remove it, or have the namespace's list extended.",
    "why/secret-not-referenced": "The service account may use only secrets that it references."
    " Add the"
    " secret to it, or use another account.",
}

SECURITY = "kubectl get namespace NAMESPACE --show-labels"

_FIELD = r"(?P<field>(?:spec|metadata|template)[-A-Za-z0-9_.\[\]/\"]{0,250}?)"


def _invalid(words: str, reason: str, detail: str) -> Phrase:
    """One message of object validation, with the field that stands before it if it is there."""
    return Phrase.of(
        rf"(?:{_FIELD} : (?:Invalid value|Required value|Unsupported value|Forbidden|Duplicate"
        rf" value)"
        rf" : (?:[^:]{{0,120}}?:)?? )? {words}",
        reason,
        "user",
        detail,
        "kubectl gpu-admit explain -f FILE",
    )


_KINDS = (
    "Invalid value",
    "Required value",
    "Unsupported value",
    "Forbidden",
    "Duplicate value",
    "Too many",
    "Too long",
    "Not found",
)


def _field(hit: Hit) -> Cause:
    field = hit["field"]
    said = hit.match["kind"].lower()
    kind = next(words for words in _KINDS if words.replace(" ", "").lower() == said)
    value = hit.said("value")
    code = "invalid/required" if kind == "Required value" else "invalid/value"
    for part, other in (
        ("resources", "invalid/requests-limits"),
        ("tolerations", "invalid/toleration"),
        ("affinity", "invalid/affinity"),
        ("topologySpread", "invalid/topology-spread"),
        ("resourceClaims", "invalid/resource-claims"),
        ("restartPolicy", "invalid/restart-policy"),
        ("schedulingGates", "invalid/scheduling-gate"),
        ("olume", "invalid/volumes"),
        ("labels", "invalid/labels"),
        ("metadata.name", "invalid/name"),
    ):
        if part in field:
            code = other
            break
    return Cause(
        code,
        f"{field}: {kind.lower()}: {value}".rstrip(". :"),
        "user",
        "kubectl gpu-admit explain -f FILE",
        (Evidence(field, kind, value[:200], None, "the message"),),
    )


hear = table(
    "API server",
    (
        Phrase.of(
            r"unable to create new content in namespace <namespace> because it is being terminated",
            "namespace/terminating",
            "wait",
            "namespace {namespace} is being deleted and takes nothing new",
            "kubectl get namespace {namespace} -o yaml",
        ),
        Phrase.of(
            r"namespaces? \"<namespace>\" not found",
            "namespace/missing",
            "user",
            "namespace {namespace} does not exist",
            "kubectl create namespace {namespace}",
        ),
        Phrase.of(
            r"error looking up service account <namespace>/<account> : serviceaccount"
            r" \"[^\"]*\" not found",
            "service-account/missing",
            "user",
            "service account {account} does not exist in namespace {namespace}",
            "kubectl -n {namespace} get serviceaccounts",
        ),
        Phrase.of(
            r"no service account specified for pod|serviceaccount \"(?P<account>[^\"]*)\" not"
            r" found",
            "service-account/missing",
            "user",
            "the pod's service account {account} does not exist",
            "kubectl get serviceaccounts",
        ),
        Phrase.of(
            r"because service account <account> does not reference that (?:secret|imagePullSecret)",
            "why/secret-not-referenced",
            "user",
            "service account {account} does not reference the secret that the pod uses",
            "kubectl get serviceaccount {account} -o yaml",
        ),
        Phrase.of(
            r"no PriorityClass with name <class> was found",
            "priority/no-class",
            "user",
            "PriorityClass {class} does not exist",
            "kubectl get priorityclasses",
        ),
        Phrase.of(
            r"the integer value of priority \((?P<given>-?\d+)\) must not be provided in pod spec;"
            r" priority admission controller computed (?P<computed>-?\d+)",
            "priority/mismatch",
            "user",
            "the pod sets priority {given}, its PriorityClass says {computed}: leave"
            " spec.priority out",
            "kubectl get priorityclasses",
            evidence=lambda hit: (
                Evidence(
                    "pod", "spec.priority", int(hit["given"]), int(hit["computed"]), "the message"
                ),
            ),
        ),
        Phrase.of(
            r"the string value of PreemptionPolicy \((?P<given>\w+)\) must not be provided in pod"
            r" (?:group)? spec; priority admission controller computed"
            r" (?P<computed>Never|PreemptLowerPriority)?",
            "priority/preemption-policy",
            "user",
            "the pod sets preemptionPolicy {given}, its PriorityClass says {computed}",
            "kubectl get priorityclasses",
        ),
        Phrase.of(
            r"(?:pod rejected:)? RuntimeClass \"(?P<class>[^\"]{1,400})\" not found",
            "runtime-class/missing",
            "user",
            "RuntimeClass {class} does not exist",
            "kubectl get runtimeclasses",
        ),
        Phrase.of(
            r"Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            r"|Pod Overhead set without corresponding RuntimeClass defined Overhead",
            "runtime-class/overhead",
            "user",
            "the pod sets spec.overhead otherwise than its RuntimeClass: leave it out",
            "kubectl get runtimeclasses -o yaml",
        ),
        Phrase.of(
            r"conflict: runtimeClass\.scheduling\.nodeSelector\[<key:WORD>\] = (?P<theirs>[^;]*);"
            r" pod\.spec\.nodeSelector\[[^\]]+\] = (?P<own>[-A-Za-z0-9_.]*)",
            "runtime-class/node-selector",
            "user",
            "the RuntimeClass selects nodes with {key}={theirs}, the pod with {own}",
            "kubectl get runtimeclasses -o yaml",
        ),
        Phrase.of(
            r"would violate PodSecurity \"(?P<level>[^\"]{1,400})\" : (?P<what>.+)",
            "why/pod-security-warning",
            "user",
            "PodSecurity {level} would forbid: {what}",
            SECURITY,
        ),
        Phrase.of(
            r"violates PodSecurity \"(?P<level>[^\"]{1,400})\" (?: : (?P<what>.+))?",
            "why/pod-security",
            "user",
            "the namespace's PodSecurity level {level} forbids: {what}",
            SECURITY,
        ),
        Phrase.of(
            r"pod node label selector (?:labels)? conflicts? with its namespace"
            r" (?:node label selector|whitelist)",
            "why/node-selector-conflict",
            "user",
            "the pod's node selector contradicts the one that its namespace prescribes",
            "kubectl get namespace NAMESPACE -o yaml",
        ),
        Phrase.of(
            r"pod tolerations (?:\(possibly merged with namespace default tolerations\))?"
            r" conflict with"
            r" its (?P<whose>namespace|cluster) whitelist",
            "why/toleration-forbidden",
            "user",
            "a toleration of the pod is not on the {whose}'s list of allowed ones",
            "kubectl get namespace NAMESPACE -o yaml",
        ),
        Phrase.of(
            r"node \"?<node>\"? (?:is not allowed to modify node \"?(?P<other>(?-i:[-a-z0-9.]+))\"?"
            r"|cannot update resource claim stat\w+|can only \w+ (?:and \w+)? (?:mirror)? pods"
            r" .{0,80})"
            r"|can only create ResourceSlice with the same NodeName as the requesting node",
            "why/node-restriction",
            "platform",
            "a kubelet or node plugin asked for what belongs to another node (NodeRestriction)",
            "kubectl auth whoami",
        ),
        _invalid(
            r"Limit must be set for non overcommitable resources",
            "invalid/requests-limits",
            "a GPU is asked for in requests alone ({field}): write it in limits",
        ),
        _invalid(
            r"must be equal to <resource:RESOURCE> limit (?:of"
            r" (?P<limit>[0-9.]+[a-zA-Z]{0,2}))?(?-i:(?=$|[^a-z0-9./]))",
            "invalid/requests-limits",
            "requests and limits of {resource} differ ({field}): leave the request out, or make"
            " them equal",
        ),
        Phrase.of(
            r"must be less than or equal to <resource:RESOURCE> limit",
            "invalid/requests-limits",
            "user",
            "the request of {resource} is larger than its limit",
            "kubectl gpu-admit explain -f FILE",
        ),
        _invalid(
            r"must be an integer",
            "invalid/quantity",
            "a device can only be asked for in whole numbers ({field})",
        ),
        _invalid(
            r"quantities must match the regular expression",
            "invalid/quantity",
            "an amount is no Kubernetes quantity",
        ),
        _invalid(
            r"doesn't follow extended resource name standard"
            r"|must be a standard resource (?:type|for quota|for limits|name)?[^.,;]{0,40}",
            "invalid/resource-name",
            "no resource can have such a name ({field}): GPUs are nvidia.com/gpu, or what the nodes"
            " advertise",
        ),
        Phrase(
            pattern(
                rf"{_FIELD} : (?P<kind>{'|'.join(_KINDS)}) (?: : (?P<value>.+?))?"
                r"(?= , (?:spec|metadata)\. | \] $ | $)"
            ),
            _field,
        ),
        Phrase.of(
            r"strict decoding error: (?P<what>.+)|unknown field \"(?P<unknown>[^\"]{1,400})\"",
            "invalid/value",
            "user",
            "the manifest has a field that the API does not know: {what}{unknown}",
            "kubectl explain pod.spec --recursive",
        ),
    ),
)
