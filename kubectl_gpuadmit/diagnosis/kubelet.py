"""What the kubelet refuses or cannot start after the scheduler chose its node; knows no node.

Source: k8s.io/kubernetes v1.37.2 pkg/kubelet/lifecycle/predicate.go, cm/admission/errors.go,
cm/devicemanager/manager.go, cm/topologymanager. A pod refused so is Failed for good: its controller
makes
another one, nothing moves it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubectl_gpuadmit.diagnosis.cause import Cause, Heard, Hit, Phrase, pattern, table
from kubectl_gpuadmit.diagnosis.pasted import Statement
from kubectl_gpuadmit.verdict import Evidence

REASONS = {
    "why/numa-alignment": "The kubelet's topology manager found no NUMA placement for the pod's"
    " devices and"
    " cores; the scheduler does not know NUMA. The pod is Failed for good and its controller"
    " makes another,"
    " possibly without end: stop that, then ask for what fits one NUMA node, or relax the policy.",
    "why/gpu-lost": "A GPU fell off the bus: a hardware or driver fault of the node. Drain the"
    " node and reset"
    " or replace the GPU; no change of the pod helps.",
    "why/devices-unavailable": "The scheduler thought that devices were free and the kubelet"
    " disagrees: its"
    " books, not a quota. The pod stays Failed; look at the kubelet and the device plugin of that"
    " node.",
    "why/devices-unhealthy": "The device plugin of the node reports no healthy device: not"
    " registered"
    " again, or the GPUs are unhealthy. Look at the plugin's log on that node.",
    "why/plugin-not-registered": "The kubelet had no device plugin for the resource when the pod"
    " came, e.g."
    " just after the node started. A controller's next pod usually runs; the Failed one can be"
    " deleted.",
    "why/node-full": "The node had less left than the pod asks when it came to the kubelet, e.g."
    " because two"
    " pods were bound at once. The controller's next pod goes elsewhere; the Failed one can be"
    " deleted.",
    "why/allocate-race": "A device sharing plugin took this pod for another one that came at the"
    " same time."
    " Try again: the next pod usually runs.",
    "why/allocate-failed": "The device plugin could not hand out the devices. Its own words say"
    " why; look at"
    " its log on that node.",
    "why/predicate-failed": "The node no longer matched the pod when it came to the kubelet, e.g."
    " a label"
    " had changed. The controller's next pod is scheduled anew.",
    "why/volume-mount": "A volume of the pod could not be attached or mounted on its node. The"
    " text names it;"
    " look at the claim and at the storage driver.",
    "why/volume-elsewhere": "A volume is still attached to another node, and can be on one only."
    " Wait until"
    " the old pod is gone.",
    "why/sandbox": "The container runtime could not start the pod's sandbox. Look at the runtime,"
    " and at the"
    " RuntimeClass's handler, on that node.",
    "why/evicted": "The kubelet ended the pod because the node ran out of a resource. Ask for"
    " what it really"
    " uses, and look at the node's conditions.",
}

PLUGIN = "kubectl get pods -A -o wide --field-selector spec.nodeName=NODE"

_OUT_OF = pattern(
    r"Node didn't have enough (?:resource|capacity) : <resource:RESOURCE> , requested:"
    r" (?P<requested>\d+)"
    r" , used: (?P<used>\d+) , capacity: (?P<capacity>\d+)"
)


def _out_of(hit: Hit) -> Cause:
    numbers = {name: int(hit[name]) for name in ("requested", "used", "capacity")}
    resource = hit["resource"]
    evidence = tuple(
        Evidence("node", f"{resource} {role}", numbers[name], None, "the kubelet's message")
        for name, role in (("requested", "asked"), ("used", "used"), ("capacity", "capacity"))
    )
    row = (
        f"{resource} asked {numbers['requested']:,} · used {numbers['used']:,}"
        f" · capacity {numbers['capacity']:,}"
    )
    if numbers["capacity"] == 0:
        return Cause(
            "why/plugin-not-registered",
            f"{row}: the node is not full, its device plugin had not registered yet; the Failed"
            f" pod is"
            " harmless and its controller makes another",
            "wait",
            "kubectl get pods --field-selector status.phase=Failed",
            evidence,
        )
    left = numbers["capacity"] - numbers["used"]
    never = numbers["requested"] > numbers["capacity"]
    return Cause(
        "why/node-full",
        f"{row}, {max(left, 0):,} left; the pod stays Failed, its controller makes another"
        + (" which this node can never hold" if never else ""),
        "user" if never else "wait",
        "kubectl get pods --field-selector status.phase=Failed",
        evidence,
    )


_UNAVAILABLE = pattern(
    r"requested number of devices unavailable for <resource:RESOURCE> \. Requested:"
    r" (?P<requested>\d+)"
    r" , Available: (?P<available>\d+)"
)


def _unavailable(hit: Hit) -> Cause:
    return Cause(
        "why/devices-unavailable",
        f"the scheduler chose the node, but its kubelet has {int(hit['available']):,} of"
        f" {int(hit['requested']):,} {hit['resource']} left: its books or the device plugin, not"
        f" a quota;"
        " the pod stays Failed",
        "fault",
        PLUGIN,
        (
            Evidence(
                "node",
                f"{hit['resource']} available",
                int(hit["available"]),
                int(hit["requested"]),
                "the kubelet's message",
                "least",
            ),
        ),
    )


_DEVICES = table(
    "kubelet",
    (
        Phrase.of(
            r"(?:Pod Scope)? Resources cannot be allocated with Topology locality"
            r"|Topology Affinity Error",
            "why/numa-alignment",
            "user",
            "the node's topology manager finds no NUMA placement for the pod; the scheduler"
            " cannot know."
            " Failed pods stay, and a controller makes new ones without end: scale it to 0 first",
            "kubectl get pods --field-selector status.phase=Failed",
        ),
        Phrase.of(
            r"(?:error creating nvml\.Device (?P<device>\d+) : )? (?:nvml: )? GPU is lost"
            r"|GPU has fallen off the bus",
            "why/gpu-lost",
            "fault",
            "GPU {device} of the node is lost (hardware or driver): drain the node and reset it; no"
            " change of the pod helps",
            "kubectl drain NODE --ignore-daemonsets --delete-emptydir-data --dry-run=client",
            evidence=lambda hit: (
                (
                    Evidence(
                        "node", "lost GPU index", int(hit["device"]), None, "the plugin's message"
                    ),
                )
                if hit["device"]
                else ()
            ),
        ),
        Phrase(_UNAVAILABLE, _unavailable),
        Phrase.of(
            r"(?P<why>no healthy devices present|previously allocated devices are no longer"
            r" healthy) ;"
            r" cannot allocate unhealthy devices <resource:RESOURCE> (?-i:(?=, | $ |"
            r" [^-a-z0-9./_]))",
            "why/devices-unhealthy",
            "fault",
            "the node's device plugin has no healthy {resource}: it did not register again, or"
            " the devices"
            " are unhealthy",
            PLUGIN,
        ),
        Phrase.of(
            r"cannot allocate unregistered device <resource:RESOURCE> (?-i:(?=, | $ |"
            r" [^-a-z0-9./_]))",
            "why/plugin-not-registered",
            "wait",
            "no device plugin for {resource} had registered when the pod came to the node",
            PLUGIN,
        ),
        Phrase(_OUT_OF, _out_of),
        Phrase.of(
            r"device number not matched",
            "why/allocate-race",
            "wait",
            "the sharing plugin took the pod for another one that came at the same time; the next"
            " try"
            " usually works",
            "kubectl delete pod NAME",
        ),
        Phrase.of(
            r"Update plugin resources failed due to (?P<why>.{1,1000}?) , which is unexpected",
            "why/allocate-failed",
            "fault",
            "the kubelet could not bring its device books up to date: {why}",
            PLUGIN,
        ),
        Phrase.of(
            r"Allocate failed due to (?P<why>.{1,1000}?) , which is unexpected",
            "why/allocate-failed",
            "fault",
            "the device plugin could not hand out the devices: {why}",
            PLUGIN,
        ),
        Phrase.of(
            r"Predicate (?P<name>[A-Z]\w+?) failed (?: : (?P<why>[^.,]+))?",
            "why/predicate-failed",
            "wait",
            "the node no longer matched the pod when it came to the kubelet ({name}); the pod"
            " stays Failed",
            "kubectl get pods --field-selector status.phase=Failed",
        ),
        Phrase.of(
            r"Pod requires node features that are not available: (?P<what>.+)",
            "why/node-features",
            "platform",
            "the node's kubelet lacks features that the pod needs: {what}",
            "kubectl get nodes",
        ),
        Phrase.of(
            r"The node was low on resource: (?P<resource>[-a-z0-9./]{1,316}?) (?: \. (?P<rest>.*)"
            r" )? $",
            "why/evicted",
            "user",
            "the node ran low on {resource} and its kubelet ended the pod",
            "kubectl describe node NODE",
        ),
        Phrase.of(
            r"Multi-Attach error for volume \"(?P<volume>[^\"]{1,400})\"",
            "why/volume-elsewhere",
            "wait",
            "volume {volume} is still attached to another node",
            "kubectl get volumeattachments",
        ),
        Phrase.of(
            r"(?:MountVolume\.\w+ failed for volume \"(?P<volume>[^\"]{1,400})\" : (?P<why>.+)"
            r"|Unable to attach or mount volumes: (?P<rest>.+)"
            r"|AttachVolume\.\w+ failed for volume \"(?P<attached>[^\"]{1,400})\" :"
            r" (?P<reason>.+))",
            "why/volume-mount",
            "platform",
            "a volume could not be mounted: {volume}{attached}: {why}{rest}{reason}",
            "kubectl describe pvc",
        ),
        Phrase.of(
            r"Node has reached its volume attachment limit",
            "placement/volume-limit",
            "wait",
            "the node has attached as many volumes as it can",
            "kubectl get volumeattachments",
        ),
        Phrase.of(
            r"Failed to create pod sandbox: (?P<why>.+)",
            "why/sandbox",
            "platform",
            "the container runtime could not start the pod: {why}",
            "kubectl get runtimeclasses",
        ),
    ),
)

_STATUS = table(
    "kubelet",
    (
        Phrase.of(
            r"TopologyAffinityError",
            "why/numa-alignment",
            "user",
            "the node's topology manager finds no NUMA placement for the pod; the scheduler"
            " cannot know."
            " Failed pods stay, and a controller makes new ones without end: scale it to 0 first",
            "kubectl get pods --field-selector status.phase=Failed",
        ),
        Phrase.of(
            r"OutOf(?P<resource>cpu|memory|pods|ephemeral-storage|(?-i:[a-z0-9.-]+\.[a-z]+/[a-z0-9.-]+))",
            "why/node-full",
            "wait",
            "the node had too little {resource} left when the pod came to the kubelet; the pod"
            " stays"
            " Failed, its controller makes another",
            "kubectl get pods --field-selector status.phase=Failed",
        ),
        Phrase.of(
            r"UnexpectedAdmissionError",
            "why/allocate-failed",
            "fault",
            "the node's kubelet could not admit the pod; the reason stands in the pod's"
            " status.message",
            "kubectl get pod NAME -o jsonpath='{{.status.message}}'",
        ),
    ),
)
"""Reasons alone, as ``kubectl get pods`` shows them: read where no message says more."""


def hear(statement: Statement) -> Iterator[Heard]:
    yield from _DEVICES(statement)


def hear_status(statement: Statement) -> Iterator[Heard]:
    """Status words, worth something only in a paste that holds no message of the kubelet."""
    if re.search("OutOf|Topology|UnexpectedAdmission", statement.bare):
        yield from _STATUS(statement)
