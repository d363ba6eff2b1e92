"""The messages of Kubernetes that generated cases must bring about, and who says which.

A family in which one of these never occurs proves nothing about it: the conformance run counts them
and names those that are missing. Patterns are searched in the referee's own words (1.37.2).

Left out, because no object of a snapshot brings them about: "insufficient quota to consume" and
"insufficient quota to match these scopes" (configuration of the admission plugin), "status unknown
for quota" and time-outs of quota (states of caches), texts of webhooks and policies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

PLACEMENT = (
    # pkg/scheduler/framework/plugins: one filter a line, in the order in which they are asked
    r"^node\(s\) were unschedulable$",
    r"^node\(s\) had untolerated taint\(s\)$",
    r"^node\(s\) didn't match Pod's node affinity/selector$",
    r"^node\(s\) didn't have free ports for the requested pod ports$",
    r"^Insufficient nvidia\.com/gpu$",
    r"^Insufficient cpu$",
    r"^Insufficient memory$",
    r"^Insufficient ephemeral-storage$",
    r"^Too many pods$",
    r"^node\(s\) had no available disk$",
    r"^node\(s\) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode",
    r"^node\(s\) exceed max volume count$",
    r"^pod has unbound immediate PersistentVolumeClaims$",
    r'^persistentvolumeclaim "[^"]+" not found$',
    r'^persistentvolumeclaim "[^"]+" is being deleted$',
    r'^persistentvolumeclaim "[^"]+" bound to non-existent persistentvolume "[^"]+"$',
    r'^persistentvolume "[^"]+" not found$',
    r"^PVC \S+ was not created for pod \S+ \(pod is not owner\)$",
    r"^node\(s\) didn't find available persistent volumes to bind$",
    r"^node\(s\) didn't match PersistentVolume's node affinity$",
    r"^node\(s\) did not have enough free storage$",
    r"^node\(s\) had no available volume zone$",
    r"^node\(s\) didn't match pod topology spread constraints$",
    r"^node\(s\) didn't match pod topology spread constraints \(missing required label\)$",
    r"^node\(s\) didn't match pod affinity rules$",
    r"^node\(s\) didn't match pod anti-affinity rules$",
    r"^node\(s\) didn't satisfy existing pods anti-affinity rules$",
    # pkg/scheduler/framework/types.go, FitError
    r"^0/\d+ nodes are available: \d+ ",
    r"^0/\d+ nodes are available: pod has unbound",
    r"node\(s\) didn't satisfy plugin\(s\) \[NodeAffinity\]",
)

PREEMPTION = (
    r"No preemption victims found for incoming pod",
    r"^Insufficient nvidia\.com/gpu$",
    r"^Too many pods$",
    r"^node\(s\) didn't have free ports for the requested pod ports$",
)

LIMIT_RANGE = (
    # plugin/pkg/admission/limitranger/admission.go. A stored LimitRange always has defaults for a
    # Container's keys (SetDefaults_LimitRange): "No request is specified" is for Pods. "minimum …
    # but limit is" and "maximum … but request is" want a limit below its request: refused before.
    r"minimum \S+ usage per Container is [^ ]+, but request is ",
    r"maximum \S+ usage per Container is [^ ]+, but limit is ",
    r"minimum \S+ usage per Pod is [^ ]+\.  No request is specified",
    r"minimum \S+ usage per Pod is [^ ]+, but request is ",
    r"maximum \S+ usage per Pod is [^ ]+\.  No limit is specified",
    r"maximum \S+ usage per Pod is [^ ]+, but limit is ",
    r"\S+ max limit to request ratio per Container is \S+, but provided ratio is ",
    r"\S+ max limit to request ratio per \w+ is \S+, but no request is specified or request is 0",
)

ADMISSION = (
    r"unable to create new content in namespace \S+ because it is being terminated",
    r'namespaces "[^"]+" not found',
    r'error looking up service account \S+: serviceaccount "[^"]+" not found',
    r"no PriorityClass with name \S+ was found",
    r"the integer value of priority \(-?\d+\) must not be provided in pod spec",
    r"the string value of PreemptionPolicy \(\w+\) must not be provided in pod spec",
    r'pod rejected: RuntimeClass "[^"]+" not found',
    r"pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    r"conflict: runtimeClass\.scheduling\.nodeSelector\[",
    r'violates PodSecurity "restricted:',
    r'violates PodSecurity "baseline:',
    r"exceeded quota: \S+, requested: \S*requests\.nvidia\.com/gpu=",
    r"exceeded quota: \S+, requested: \S*\bpods=",
    r"exceeded quota: \S+, requested: \S*limits\.cpu=",
    r"failed quota: \S+: must specify \S*limits\.cpu for: ",
    r"failed quota: \S+: must specify \S*requests\.memory for: ",
    *LIMIT_RANGE,
    # pkg/apis/core/validation/validation.go
    r"Limit must be set for non overcommitable resources",
    r"must be equal to nvidia\.com/gpu limit of ",
    r"limits\[nvidia\.com/gpu\]: Invalid value: \S+ must be an integer",
    r"must be one of the names in pod\.spec\.resourceClaims",
    r"at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
    r"must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
    r"must be less than or equal to cpu limit of ",
    r"is not positive integer multiple of ",
    r"spec\.containers: Required value",
    r"schedulingGates\[\d+\]: Duplicate value",
    r"topologyKey: Required value: can not be empty",
    r"maxSkew: Invalid value: -?\d+: must be greater than zero",
    r"activeDeadlineSeconds: Invalid value: ",
)

OBJECTS = (
    r"minimum storage usage per PersistentVolumeClaim is [^ ]+, but request is ",
    r"maximum storage usage per PersistentVolumeClaim is [^ ]+, but request is ",
    r"exceeded quota: \S+, requested: \S*persistentvolumeclaims=",
    r"exceeded quota: \S+, requested: \S*requests\.storage=",
    r"exceeded quota: \S+, requested: \S*count/\w+",
    r"exceeded quota: \S+, requested: \S*services\.nodeports=",
    r"exceeded quota: \S+, requested: \S*services\.loadbalancers=",
    r"exceeded quota: \S+, requested: \S*\.deviceclass\.resource\.k8s\.io/devices=",
    r"exceeded quota: \S+, requested: \S*requests\.deviceclass\.resource\.kubernetes\.io/",
    r"exceeded quota: \S+, requested: \S*requests\.nvidia\.com/gpu=",
)

DRA = (
    # pkg/scheduler/framework/plugins/dynamicresources and k8s.io/dynamic-resource-allocation
    r"^cannot allocate all claims$",
    r"^resourceclaim not available on the node$",
    r"^invalid resource pools were encountered$",
    r"^cannot schedule extended resource claim$",
    r'^could not find ResourceClaim "',
    r'^resourceclaim "[^"]+" is being deleted$',
    r"was not created for Pod \S+ \(Pod is not owner\)$",
    r": ResourceClaim not created yet$",
    r"^request \S+: device class \S+ does not exist$",
    r"selector #\d+ on device \S+: CEL runtime error: no such key: ",
    r"selector #\d+: CEL compile error: ",
    r"asks for all devices, but resource pool \S+ is currently being updated",
    r"asks for all devices, but resource pool \S+ is currently invalid",
    r"cannot add device \S+ because a claim constraint would not be satisfied",
    r"adding \d+ devices exceeds the claim limit of 32, with \d+ already accounted for",
)

NUMA = (
    # pkg/kubelet/cm/topologymanager/topology_manager.go and scope_*.go
    r"^Resources cannot be allocated with Topology locality$",
    r"^Pod Scope pod with pod-level resources failed admission with a container-level topology",
    r"^Pod Scope pod with pod-level resources failed admission under pod-scope topology manager$",
    # devicemanager/manager.go; "unregistered", "no longer healthy" and "changed request" speak of
    # kubelets that restart
    r"^Allocate failed due to requested number of devices unavailable for \S+ Requested: \d+",
    r"^Allocate failed due to no healthy devices present; cannot allocate unhealthy devices ",
    # cpumanager/policy_static.go and cpu_assignment.go
    r"^Allocate failed due to not enough cpus available to satisfy request: requested=\d+, avail",
    r"^SMT Alignment Error: requested \d+ cpus not multiple cpus per core = \d+$",
    r"^SMT Alignment Error: not enough free physical CPUs: available physical CPUs = \d+, req",
    r"^pod rejected, sum of exclusive container cpu requests equals pod budget",
    r"^pod rejected, pod has shared init containers but no cpus available for them$",
    # memorymanager/policy_static.go; its pool of shared memory is empty only where that of CPUs is
    r"^Allocate failed due to \[memorymanager\] failed to get the default NUMA affinity",
    r"^Allocate failed due to \[memorymanager\] failed to find the default preferred hint",
    r"^Allocate failed due to \[memorymanager\] failed to find NUMA nodes to extend",
    r"^Allocate failed due to \[memorymanager\] failed to find the extended preferred hint",
    r"^Allocate failed due to \[memorymanager\] preferred hint violates NUMA node allocation",
    r"^Allocate failed due to \[memorymanager\] failed to represent quantity as int64",
    r"^pod rejected, sum of exclusive container memory requests equals pod budget",
    # what keeps a kubelet from starting
    r"^unsupported on machines with more than 8 NUMA Nodes$",
    r"^unknown policy: ",
    r"^unknown Topology Manager Policy option: ",
    r"^bad value for option ",
    r'^the minimum value of "max-allowable-numa-nodes" should not be less than 8$',
    r"unknown CPU Manager Policy option: ",
    r"CPU Manager Policy Alpha-level Options not enabled",
    r"static policy options \S+ and \S+ can not be used at the same time",
    r"is incompatible with CPUManager align-by-socket policy option",
    r"unable to reserve the required amount of CPUs",
    r"you should specify the system reserved memory",
)

DECODE = (
    # sigs.k8s.io/json, and the types that read their JSON themselves
    r"^strict decoding error: unknown field ",
    r"^strict decoding error: unknown field .*, unknown field ",
    r"^json: cannot unmarshal string into Go struct field \S+ of type bool$",
    r"^json: cannot unmarshal number into Go struct field \S+ of type string$",
    r"^json: cannot unmarshal number -?\d+\.?\d* into Go struct field \S+ of type int\d\d$",
    r"^json: cannot unmarshal object into Go struct field \S+ of type \[\]",
    r"^json: cannot unmarshal array into Go struct field \S+ of type ",
    r"^json: cannot unmarshal bool into Go struct field ",
    r"^json: cannot unmarshal \S+ into Go struct field \S+\.VolumeSource\.\S+ of type ",
    r"^illegal base64 data at input byte \d+$",
    r"^quantities must match the regular expression",
    r"^unable to parse quantity's suffix$",
    r'^parsing time "',
)

EXPECTED: dict[str, tuple[str, ...]] = {
    "placement": PLACEMENT,
    "preemption": PREEMPTION,
    "admission": ADMISSION,
    "objects": OBJECTS,
    "dra": DRA,
    "numa": NUMA,
    "decode": DECODE,
}
"""Family -> patterns. A family that is not named has its messages counted by tests of its own."""

_SPEAKS = ("reasons", "message", "bare", "next", "text", "refused", "start")
_SILENT = ("mutated", "pod")


class Heard:
    """Which of a family's expected messages have occurred so far."""

    def __init__(self, family: str) -> None:
        self._missing = [re.compile(pattern) for pattern in EXPECTED.get(family, ())]
        self._known: set[str] = set()

    def listen(self, answer: Json) -> None:
        for text in said(answer):
            if text not in self._known and self._missing:
                self._known.add(text)
                self._missing = [one for one in self._missing if not one.search(text)]

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(one.pattern for one in self._missing)


def said(answer: Any) -> Iterator[str]:
    """Every text of the referee's answer, of whatever question."""
    if isinstance(answer, list):
        for item in answer:
            yield from said(item)
    elif isinstance(answer, dict):
        for key, value in answer.items():
            if key in _SILENT:
                continue
            if key in _SPEAKS and isinstance(value, str):
                yield value
            elif key in _SPEAKS and isinstance(value, list):
                yield from (one for one in value if isinstance(one, str))
            else:
                yield from said(value)
