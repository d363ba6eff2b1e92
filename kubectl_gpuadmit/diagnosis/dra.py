"""ResourceClaims, slices and drivers: allocation, preparing on a node, and letting go; reads no
object.

Source: k8s.io/kubernetes v1.37.2 pkg/scheduler/framework/plugins/dynamicresources,
pkg/controller/resourceclaim,
pkg/kubelet/cm/dra; k8s.io/dynamic-resource-allocation v0.37.2.
"""

from __future__ import annotations

from kubectl_gpuadmit.diagnosis.cause import Phrase, table
from kubectl_gpuadmit.verdict import Evidence

REASONS = {
    "why/claim-allocating": "The pod's ResourceClaim is being allocated for another pod. Wait.",
    "why/claim-missing": "A ResourceClaim or template that the pod names does not exist. Create"
    " it, or"
    " correct the name.",
    "why/claim-not-created": "The ResourceClaim that a template is to give the pod does not exist"
    " yet. If"
    " it stays so, look at the pod's events for FailedResourceClaimCreation.",
    "why/claim-deleting": "The pod's ResourceClaim is being deleted. Wait until it is gone and"
    " made anew.",
    "why/claim-owner": "A ResourceClaim of the expected name belongs to another pod. Delete the"
    " older one,"
    " or rename the pod.",
    "why/claim-creation-failed": "The API server refused the claim that the pod's template makes,"
    " so the"
    " pod waits although it was admitted. Its own message says why.",
    "why/device-class-missing": "The DeviceClass that a claim names does not exist. Correct the"
    " name, or"
    " install the driver that brings it.",
    "why/selector-error": "A CEL selector of a claim or class failed on a device, which stops every"
    " allocation of the pod. Test that an attribute exists before it is read.",
    "why/pool-updating": "A claim asks for all devices of a pool whose driver is just publishing"
    " it. Wait;"
    " if it stays, the driver publishes too few slices.",
    "why/claim-too-large": "A claim asks for more devices than one claim may hold (32). Split it.",
    "why/claim-constraint": "The devices that are free do not agree as the claim's constraint"
    " demands."
    " Loosen the constraint, or free devices of one group.",
    "why/claim-timeout": "The scheduler gave up looking for a combination of devices. Ask for fewer"
    " devices or simpler constraints.",
    "why/claim-zombie": "ResourceClaims are deleted and still allocated: their devices count as"
    " taken, not"
    " as free. Find what still reserves them; the driver must unprepare them.",
    "why/claim-gate": "A claim uses a feature that is not switched on in this cluster.",
    "why/driver-missing": "The kubelet of the pod's node does not know the DRA driver, so the"
    " claim cannot be"
    " prepared there. Look at that driver's kubelet plugin on that node.",
    "why/driver-gone": "A pod with a claim cannot end because its DRA driver is gone: the kubelet"
    " must ask"
    " the driver to let go. Install the driver again; draining such a node hangs for the same"
    " reason.",
    "why/driver-too-old": "The DRA driver's library is older than the cluster: it looks for"
    " claims by a"
    " name that generated claims do not have. Upgrade the driver; this is no lack of GPUs.",
    "why/mig-placement": "The node could not make the MIG device that was allocated: its place on"
    " the card"
    " is taken. Not the scheduler's doing; look at the node's MIG layout.",
    "why/prepare-failed": "The DRA driver could not prepare the claim on the pod's node. Its own"
    " words say"
    " why; look at its log there.",
    "why/unprepare-failed": "The DRA driver could not let go of a claim on the node, so the pod"
    " cannot end.",
    "why/unprepare-stuck": "A pod whose claims could only in part be prepared cannot be deleted:"
    " a kubelet"
    " bug; the claim had existed. Restart the kubelet on that node.",
    "why/device-tainted": "A taint on a device ends the pods that use it; PodDisruptionBudgets do"
    " not count"
    " here. Look at the DeviceTaintRules.",
}

CLAIMS = "kubectl get resourceclaims"
SLICES = "kubectl get resourceslices"
CLASSES = "kubectl get deviceclasses"
DRIVER = "kubectl get pods -A -o wide --field-selector spec.nodeName=NODE"

hear = table(
    "DRA",
    (
        Phrase.of(
            r"unprepare dynamic resources: (?:pod \"?(?P<pod>[-a-z0-9./]+)\"? : )? ResourceClaim"
            r" not created yet",
            "why/unprepare-stuck",
            "fault",
            "the pod cannot be deleted: a kubelet bug after a claim was prepared only in part;"
            " the claim had"
            " existed, whatever the text says",
            "kubectl get pod NAME -o jsonpath='{{.spec.nodeName}}'",
        ),
        Phrase.of(
            r"pod \"?(?P<pod>[-a-z0-9./]+)\"? : ResourceClaim not created yet"
            r"|waiting for (?:dynamic)? resource ?claim .{0,80}? to be created",
            "why/claim-not-created",
            "wait",
            "the claim that the pod's template makes does not exist yet",
            "kubectl get events --field-selector reason=FailedResourceClaimCreation",
        ),
        Phrase.of(
            r"(?:resource claim template \"[^\"]{1,400}\" : )?"
            r" resourceclaimtemplates?(?:\.resource\.k8s\.io)? \"(?P<template>[^\"]{1,400})\" not"
            r" found",
            "why/claim-missing",
            "user",
            "ResourceClaimTemplate {template} does not exist in the pod's namespace",
            "kubectl get resourceclaimtemplates",
        ),
        Phrase.of(
            r"resourceclaims?(?:\.resource\.k8s\.io)? \"(?P<claim>[^\"]{1,400})\" not found",
            "why/claim-missing",
            "user",
            "ResourceClaim {claim} does not exist in the pod's namespace",
            CLAIMS,
        ),
        Phrase.of(
            r"resourceclaim \"(?P<claim>[^\"]{1,400})\" is being deleted",
            "why/claim-deleting",
            "wait",
            "ResourceClaim {claim} is being deleted",
            "kubectl get resourceclaim {claim} -o yaml",
        ),
        Phrase.of(
            r"resource claim <claim:WORD> is in the process of being allocated",
            "why/claim-allocating",
            "wait",
            "ResourceClaim {claim} is being allocated",
            CLAIMS,
        ),
        Phrase.of(
            r"ResourceClaim (?P<claim>[-a-z0-9./]{1,316}?) was not created for (?:Pod|PodGroup)"
            r" (?P<pod>[-a-z0-9./]{1,316}?)"
            r" \((?:Pod|PodGroup|neither)[^)]*\)",
            "why/claim-owner",
            "user",
            "ResourceClaim {claim} belongs to another pod than {pod}",
            "kubectl get resourceclaims -o yaml",
        ),
        Phrase.of(
            r"(?:request <request:NAME> :)? (?:could not retrieve)? device class <class:NAME> (?:"
            r" does not exist"
            r" | : [^.,]*not found)",
            "why/device-class-missing",
            "user",
            "DeviceClass {class} does not exist",
            CLASSES,
        ),
        Phrase.of(
            r"deviceclass(?:es)?(?:\.resource\.k8s\.io)? \"(?P<class>[^\"]{1,400})\" not found",
            "why/device-class-missing",
            "user",
            "DeviceClass {class} does not exist",
            CLASSES,
        ),
        Phrase.of(
            r"(?P<what>class|claim) (?P<name>[-a-z0-9./]{1,316}?) : selector \\?#(?P<index>\d+)"
            r" (?:on device (?P<device>[-a-z0-9./]{1,316}?))? : CEL (?P<when>runtime|compile)"
            r" error: (?P<why>.+?)"
            r" (?=\.?(?:preemption:|stillnot|nonewclaims)|$)",
            "why/selector-error",
            "user",
            "selector {index} (counted from 0) of {what} {name} fails: {why}",
            "kubectl get resourceclaims,deviceclasses -o yaml",
            evidence=lambda hit: (
                Evidence(hit["name"], "selector", int(hit["index"]), None, hit.said("device")),
            ),
        ),
        Phrase.of(
            r"asks for all devices, but resource pool (?P<pool>[-a-z0-9./]{1,316}?) is currently"
            r" being updated",
            "why/pool-updating",
            "wait",
            "the claim asks for all devices of pool {pool}, which its driver is just publishing",
            SLICES,
        ),
        Phrase.of(
            r"asks for all devices, but resource pool (?P<pool>[-a-z0-9./]{1,316}?) is currently"
            r" invalid",
            "why/claim-pool-invalid",
            "fault",
            "the driver's ResourceSlices of pool {pool} contradict each other",
            SLICES,
        ),
        Phrase.of(
            r"(?:number of requested devices (?P<asked>\d+) exceeds the claim limit of"
            r" (?P<limit>\d+)"
            r" | adding (?P<more>\d+) devices exceeds the claim limit of (?P<most>\d+))",
            "why/claim-too-large",
            "user",
            "the claim asks for more devices than one claim may hold (asked {asked}{more} · limit"
            " {limit}{most})",
            "kubectl get resourceclaims -o yaml",
        ),
        Phrase.of(
            r"cannot add device (?P<device>[-a-z0-9./]{1,316}?) because a claim constraint would"
            r" not be satisfied",
            "why/claim-constraint",
            "user",
            "device {device} does not agree with the claim's constraint",
            SLICES,
        ),
        Phrase.of(
            r"(?:node <node> : )? timed out trying to allocate devices",
            "why/claim-timeout",
            "user",
            "the scheduler found no combination of devices in time",
            CLAIMS,
        ),
        Phrase.of(
            r"(?P<what>admin access is requested|has subrequests|has capacity requests"
            r"|template includes a prioritized list of subrequests) , but the (?:\w+)? feature is"
            r" disabled",
            "why/claim-gate",
            "platform",
            "the claim uses a feature that is off in this cluster ({what})",
            CLAIMS,
        ),
        Phrase.of(
            r"(?:PodResourceClaim|PodGroupResourceClaim) <claim:NAME> : (?! .{0,400}? (?:exceeded"
            r" quota|not found))"
            r" (?=(?P<why>.+))",
            "why/claim-creation-failed",
            "user",
            "the claim {claim} of the pod's template could not be made: {why}",
            "kubectl get resourceclaimtemplates",
        ),
        Phrase.of(
            r"DRA driver (?P<driver>[-a-z0-9.]{1,253}?) is not registered",
            "why/driver-missing",
            "platform",
            "the pod has a node, but the kubelet there does not know the driver {driver}, so the"
            " claim"
            " cannot be prepared",
            DRIVER,
        ),
        Phrase.of(
            r"(?:MIG device allocation failed|error creating MIG device) .{0,300}? (?:GPU"
            r" instance for"
            r" '?(?P<profile>[0-9a-z.+]+)'? : )? Insufficient Resources",
            "why/mig-placement",
            "fault",
            "the node could not make the MIG device {profile} that was allocated: its place on"
            " the card is"
            " taken; not the scheduler's doing",
            "kubectl get resourceslices -o yaml",
        ),
        Phrase.of(
            r"NodePrepareResources (?:failed for ResourceClaim <claim:NAME>)? : (?P<why>.+)",
            "why/prepare-failed",
            "fault",
            "the driver could not prepare the claim on the pod's node: {why}",
            DRIVER,
        ),
        Phrase.of(
            r"NodeUnprepareResources (?:failed for ResourceClaim <claim:NAME>)? : (?P<why>.+)",
            "why/unprepare-failed",
            "fault",
            "the driver could not let go of the claim, so the pod cannot end: {why}",
            DRIVER,
        ),
        Phrase.of(
            r"old ResourceClaim with same name (?P<claim>[-a-z0-9.]{1,253}?) and different UID",
            "why/claim-owner",
            "wait",
            "the kubelet still holds an older claim {claim} of a pod that was deleted by force",
            CLAIMS,
        ),
        Phrase.of(
            r"ResourceClaim (?P<claim>[-a-z0-9.]{1,253}?) is being unprepared",
            "why/claim-deleting",
            "wait",
            "the driver is just letting go of ResourceClaim {claim}",
            CLAIMS,
        ),
        Phrase.of(
            r"error preparing devices for claim (?P<claim>[-a-z0-9./]{1,316}?) \.* : (?P<why>.+)",
            "why/prepare-failed",
            "fault",
            "the driver could not prepare the claim: {why}",
            DRIVER,
        ),
        Phrase.of(
            r"Failed to prepare dynamic resources: (?P<why>.+)",
            "why/prepare-failed",
            "fault",
            "the claim could not be prepared on the pod's node: {why}",
            DRIVER,
        ),
        Phrase.of(
            r"deleted,allocated(?:,reserved)?",
            "why/claim-zombie",
            "platform",
            "ResourceClaims are deleted and still allocated: their devices count as taken, not as"
            " free",
            "kubectl get resourceclaims -A -o yaml",
        ),
        Phrase.of(
            r"Found no pending pod claims",
            "why/driver-too-old",
            "platform",
            "the driver's controller finds none of the pod's claims: its library is older than"
            " the cluster and"
            " looks for other names; no lack of GPUs",
            "kubectl get deployments,daemonsets -A -o wide",
        ),
        Phrase.of(
            r"(?:Device Taint manager: deleting due to NoExecute taint|DeviceTaintManagerEviction)",
            "why/device-tainted",
            "platform",
            "a device that the pod uses is tainted NoExecute, so the pod was deleted; budgets do"
            " not count",
            "kubectl get devicetaintrules",
        ),
        Phrase.of(
            r"DRA driver (?:DaemonSet)? .{0,40}? (?:was|is) (?:removed|gone|uninstalled)",
            "why/driver-gone",
            "platform",
            "the pod cannot end because its DRA driver is gone: install it again, or drain before"
            " removing it",
            "kubectl get pods -A -o wide --field-selector spec.nodeName=NODE",
        ),
        Phrase.of(
            r"deallocation (?:and deletion)? of (?:PodGroup)? ResourceClaims? completed"
            r"|deletion of ResourceClaim completed",
            "why/claim-allocating",
            "wait",
            "the scheduler gave the pod's claim back to allocate it anew on another node",
            CLAIMS,
        ),
    ),
)
