"""What the scheduler's filters say of a node, a row each, old texts beside new; counts no nodes.

Source: k8s.io/kubernetes v1.37.2 pkg/scheduler/framework/plugins, and the texts of 1.28 to 1.36.
"""

from __future__ import annotations

import re

from msgspec import Struct

from kubectl_gpuadmit.diagnosis.cause import RESOURCE, Who

REASONS = {
    "why/scheduler-affinity": "A DaemonSet's pod is for one node only, and that node is not among"
    " those that were looked at. Nothing is wrong with the other nodes; look at the pod's own one.",
    "why/node-features": "The pod needs a kubelet feature that the node does not have. Upgrade the"
    " nodes, or leave the feature out.",
    "why/left-out": "A plugin narrowed the choice to some nodes before the filters looked, e.g."
    " because the pod names a node or its volume is local. The other nodes were not judged at all.",
    "why/extender-refused": "A scheduler extender or a vendor's plugin refused the nodes by rules"
    " of"
    " its own, which are no Kubernetes objects. Look at its configuration and log.",
    "why/claim-devices": "No node has devices left that the pod's ResourceClaims ask for. Wait"
    " until"
    " claims are released, or loosen the selectors.",
    "why/claim-elsewhere": "The pod's ResourceClaim is allocated on another node. Run the pod"
    " there,"
    " or give it a claim of its own with a template.",
    "why/claim-in-use": "The pod's ResourceClaim is used by as many pods as it may be. Wait until"
    " one"
    " ends, or give the pod a claim of its own.",
    "why/claim-extended": "A resource that is to come from a DRA driver is neither advertised by"
    " the"
    " node nor mapped to its devices. Check the DeviceClass's extendedResourceName and the driver.",
    "why/claim-pool-invalid": "A DRA driver published devices that contradict each other. Restart"
    " the"
    " driver on that node and read its log.",
    "why/claim-node-operations": "The claim's devices need a kubelet feature that the node does not"
    " have. Upgrade the node's kubelet, or name another class.",
}

LOOK = "kubectl gpu-admit explain pod/{pod}"
NODES = "kubectl get nodes -L <the labels that the pod selects>"
DEVICES = "kubectl get resourceslices"
CLAIM = "kubectl describe resourceclaims"
VOLUMES = "kubectl describe pvc"


class NodeReason(Struct, frozen=True):
    """One reason. ``says`` follows ``4 of 12 nodes``; ``{…}`` are groups of the pattern."""

    pattern: re.Pattern[str]
    code: str
    who: Who
    says: str
    next: str
    permanent: bool = True
    """Kubernetes' UnschedulableAndUnresolvable: taking pods off the node would not help."""


def _row(
    text: str, code: str, who: Who, says: str, next: str = LOOK, *, permanent: bool = True
) -> NodeReason:
    made = re.sub(r"(?<!P)<(\w+)>", lambda m: f"(?P<{m[1]}>{RESOURCE})", re.sub(r"\s", "", text))
    return NodeReason(re.compile(made, re.IGNORECASE), code, who, says, next, permanent)


_VENDOR = (
    "ExceedsGPUQuota|ExceedsQuota|NodeUnfitPod|NodeInsufficientDevice|AllocatedCardsInsufficientRequest"
    "|Card[A-Z][A-Za-z]+|NumaNotFit|ExclusiveDeviceAllocateConflict|NoEnoughGPU\\w*|GPUNotEnough\\w*"
    "|InsufficientGPU\\w*"
)

NODE_REASONS: tuple[NodeReason, ...] = (
    _row(
        r"node\(s\)had(?:a)?(?:untolerated)?taint(?:\(s\))?"
        r"(?:\{(?P<taint>[^}]*)\})?(?:,?that(?:the)?pod(?:didn't|doesn't|did not)tolerate)?",
        "placement/taint",
        "user",
        "tainted{taint}, and the pod does not tolerate it",
        "kubectl describe nodes | grep -A2 -e ^Name: -e ^Taints:",
    ),
    _row(
        r"node\(s\)hadtaintsthatthepoddidn'ttolerate",
        "placement/taint",
        "user",
        "tainted, and the pod does not tolerate it",
        "kubectl describe nodes | grep -A2 -e ^Name: -e ^Taints:",
    ),
    _row(
        r"insufficient<resource>",
        "placement/insufficient",
        "wait",
        "too little free {resource}",
        permanent=False,
    ),
    _row(
        r"toomanypods",
        "placement/too-many-pods",
        "wait",
        "as many pods as the node may run",
        "kubectl describe node {node}",
        permanent=False,
    ),
    _row(
        r"node\(s\)wereunschedulable",
        "placement/cordoned",
        "platform",
        "cordoned",
        "kubectl get nodes",
    ),
    _row(
        r"node\(s\)didn'tmatch(?:Pod's)?nodeaffinity(?:/selector)?"
        r"|node\(s\)didn'tmatch(?:Pod's)?nodeselector",
        "placement/node-affinity",
        "user",
        "labels do not match the pod's node selector or affinity",
        "kubectl get nodes --show-labels",
    ),
    _row(
        r"node\(s\)didn'tmatchscheduler-enforcednodeaffinity",
        "why/scheduler-affinity",
        "user",
        "not the node that this DaemonSet pod is for",
        "kubectl describe node {node}",
    ),
    _row(
        r"node\(s\)didn'tmatchtherequestednodename|node\(s\)didn'tmatchtherequestedhostname",
        "placement/node-name",
        "user",
        "not the node that spec.nodeName names",
    ),
    _row(
        r"node\(s\)didn'thavefreeportsfortherequestedpodports",
        "placement/host-port",
        "wait",
        "the host port is taken",
        permanent=False,
    ),
    _row(
        r"node\(s\)didn'tmatchpodtopologyspreadconstraints\(missingrequiredlabel\)",
        "placement/spread-label",
        "user",
        "without the topologyKey label of the spread constraint",
        "kubectl get nodes --show-labels",
    ),
    _row(
        r"node\(s\)didn'tmatchpodtopologyspreadconstraints",
        "placement/spread",
        "wait",
        "one more pod there would break the spread constraint (maxSkew)",
        permanent=False,
    ),
    _row(
        r"node\(s\)didn'tmatchpodaffinity/anti-affinity(?:rules)?",
        "placement/pod-affinity",
        "wait",
        "the pod's affinity to other pods does not hold there",
        permanent=False,
    ),
    _row(
        r"node\(s\)didn'tmatchpodaffinityrules",
        "placement/pod-affinity",
        "user",
        "no pod that the pod's podAffinity asks for",
    ),
    _row(
        r"node\(s\)didn'tmatchpodanti-affinityrules",
        "placement/pod-anti-affinity",
        "wait",
        "a pod there that the pod's podAntiAffinity avoids",
        permanent=False,
    ),
    _row(
        r"node\(s\)didn'tsatisfyexistingpodsanti-affinityrules",
        "placement/existing-anti-affinity",
        "wait",
        "a pod there refuses this one by its own podAntiAffinity",
        permanent=False,
    ),
    _row(
        r"node\(s\)didn'tmatchPod'srequiredfeatures",
        "why/node-features",
        "platform",
        "without a kubelet feature that the pod needs",
    ),
    _row(
        r"node\(s\)exceedmaxvolumecount",
        "placement/volume-limit",
        "wait",
        "as many volumes of this driver as the node can attach",
        VOLUMES,
        permanent=False,
    ),
    _row(
        r"node\(s\)didn'tfindavailablepersistentvolumestobind",
        "placement/volume-no-match",
        "platform",
        "no free volume matches the claim there",
        VOLUMES,
    ),
    _row(
        r"node\(s\)(?:didn'tmatchPersistentVolume'snodeaffinity|hadvolumenodeaffinityconflict)",
        "placement/volume-affinity",
        "user",
        "the claim's volume can be reached from other nodes only",
        VOLUMES,
    ),
    _row(
        r"node\(s\)didnothaveenoughfreestorage",
        "placement/volume-no-match",
        "platform",
        "too little free storage for the claim",
        VOLUMES,
    ),
    _row(
        r"node\(s\)unavailableduetooneormorepvc\(s\)boundtonon-existentpv\(s\)",
        "placement/volume-gone",
        "fault",
        "a claim is bound to a volume that does not exist any more",
        VOLUMES,
    ),
    _row(
        r"node\(s\)hadnoavailablevolumezone",
        "placement/volume-zone",
        "user",
        "the claim's volume lies in another zone",
        VOLUMES,
    ),
    _row(
        r"node\(s\)hadnoavailabledisk",
        "placement/volume-conflict",
        "wait",
        "a pod there mounts the same disk",
        VOLUMES,
        permanent=False,
    ),
    _row(
        r"node\(s\)unavailableduetoPersistentVolumeClaimwithReadWriteOncePodaccessmodealready"
        r"in-usebyanotherpod",
        "placement/volume-in-use",
        "wait",
        "a ReadWriteOncePod claim is used by another pod",
        VOLUMES,
        permanent=False,
    ),
    _row(
        r"cannotallocateallclaims",
        "why/claim-devices",
        "wait",
        "no devices left that the pod's ResourceClaims ask for",
        DEVICES,
        permanent=False,
    ),
    _row(
        r"resourceclaimnotavailableonthenode",
        "why/claim-elsewhere",
        "user",
        "the pod's ResourceClaim is allocated elsewhere",
        CLAIM,
    ),
    _row(
        r"resourceclaiminuse",
        "why/claim-in-use",
        "wait",
        "the pod's ResourceClaim is used by as many pods as it may be",
        CLAIM,
        permanent=False,
    ),
    _row(
        r"cannotscheduleextendedresourceclaim|cannotfitresource",
        "why/claim-extended",
        "platform",
        "neither a device plugin nor a DRA driver offers the resource",
        "kubectl get deviceclasses -o custom-columns=NAME:.metadata.name,RESOURCE:"
        ".spec.extendedResourceName",
    ),
    _row(
        r"invalidresourcepoolswereencountered",
        "why/claim-pool-invalid",
        "fault",
        "the DRA driver's ResourceSlices there contradict each other",
        DEVICES,
    ),
    _row(
        r"resourceclaim\S*allocationrequiresDRAOptionalNodeOperationsfeatureonthenode",
        "why/claim-node-operations",
        "platform",
        "the kubelet lacks a feature that the claim's devices need",
        DEVICES,
    ),
    _row(
        r"node\(s\)didn'tsatisfyplugin\(s\)\[(?P<plugins>[^\]]*)\](?:simultaneously)?",
        "why/left-out",
        "user",
        "left out beforehand by {plugins}, e.g. because the pod names other nodes",
    ),
    _row(
        rf"(?P<vendor>{_VENDOR})",
        "why/extender-refused",
        "platform",
        "refused by a scheduler extender ({vendor}), not by a Kubernetes ResourceQuota or filter",
        "kubectl -n kube-system logs -l app=<the extender> --tail=50",
    ),
)


def taint_words(text: str) -> str:
    """``gpu:`` of ``{gpu: }``, an empty value, as ``gpu``; ``key: value`` as ``key=value``."""
    key, _, value = text.partition(":")
    return f"{key}={value}" if value else key


UNFINISHED = 12
"""Characters that a reason which the text's end cut off must have to be taken for the whole one."""


def reason_of(item: str, *, cut: bool = False) -> tuple[NodeReason, re.Match[str]] | None:
    """The row for one item, ``None`` if no row says it. ``cut``: the text ended within the item."""
    for row in NODE_REASONS:
        if match := row.pattern.fullmatch(item):
            return row, match
    if cut and len(item) >= UNFINISHED:
        known = [
            (row, match)
            for row, text in _CUT_TEXTS
            if text.startswith(item.lower()) and (match := row.pattern.fullmatch(text))
        ]
        if len({row.code for row, _ in known}) == 1:
            return known[0]
    return None


def _plain(row: NodeReason, text: str) -> tuple[NodeReason, str]:
    return row, re.sub(r"\s", "", text).lower()


def _by_text(text: str) -> tuple[NodeReason, str]:
    bare = re.sub(r"\s", "", text)
    return _plain(next(row for row in NODE_REASONS if row.pattern.fullmatch(bare)), text)


_CUT_TEXTS = tuple(
    _by_text(text)
    for text in (
        "node(s) had untolerated taint(s)",
        "node(s) had taints that the pod didn't tolerate",
        "node(s) had taint, that the pod didn't tolerate",
        "node(s) were unschedulable",
        "node(s) didn't match Pod's node affinity/selector",
        "node(s) didn't match node selector",
        "node(s) didn't match pod topology spread constraints",
        "node(s) didn't match pod affinity rules",
        "node(s) didn't match pod anti-affinity rules",
        "node(s) didn't satisfy existing pods anti-affinity rules",
        "node(s) didn't have free ports for the requested pod ports",
        "node(s) exceed max volume count",
        "node(s) didn't find available persistent volumes to bind",
        "node(s) had volume node affinity conflict",
        "node(s) had no available volume zone",
        "cannot allocate all claims",
        "resourceclaim not available on the node",
    )
)
