"""GPUs that come by DRA on the node's map: who holds them, which come, what keeps them whole."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.overview.build import overview
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.topology.claimed import gpu_index, held_on
from kubectl_gpuadmit.topology.maps import node_map
from kubectl_gpuadmit.topology.standing import standing
from kubectl_gpuadmit.verdict import Verdict
from tests.placement.build import NOW, decoded
from tests.runs import home, only, policy, report, world
from tests.topology.objects import cluster as read
from tests.topology.objects import node, topology

PAIRS = ["X NV12 SYS SYS", "NV12 X SYS SYS", "SYS SYS X NV12", "SYS SYS NV12 X"]
ISLANDS: Policy = policy("rules: {topology/island-integrity: {level: deny}}")
BY_CLAIM = """\
apiVersion: v1
kind: Pod
metadata: {name: llm, namespace: default}
spec:
  resourceClaims: [{name: gpus, resourceClaimTemplateName: two}]
  containers:
  - {name: c, image: x, resources: {claims: [{name: gpus}]}}
"""
BY_RESOURCE = """\
apiVersion: v1
kind: Pod
metadata: {name: llm, namespace: default}
spec:
  containers:
  - {name: c, image: x, resources: {limits: {nvidia.com/gpu: "2"}}}
"""


def slices(on: str, *, roots: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """Four GPUs of a node, two on each PCIe root unless told otherwise."""
    names = roots or ("pci0000:00", "pci0000:00", "pci0000:80", "pci0000:80")
    devices = [
        {
            "name": f"gpu-{i}",
            "attributes": {
                "type": {"string": "gpu"},
                "uuid": {"string": f"GPU-{on}-{i}"},
                "resource.kubernetes.io/pcieRoot": {"string": root},
                **more,
            },
        }
        for i, root in enumerate(names)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{on}-gpus"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": on,
            "pool": {"name": on, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def device_class(resource: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]
    }
    if resource:
        spec["extendedResourceName"] = resource
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": spec,
    }


TWO = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "two", "namespace": "default"},
    "spec": {
        "spec": {
            "devices": {
                "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 2}}]
            }
        }
    },
}


def claim(name: str, *devices: int, on: str = "a", pod: str = "") -> dict[str, Any]:
    """A claim that has devices of a node."""
    results = [
        {"request": "gpu", "driver": "gpu.nvidia.com", "pool": on, "device": f"gpu-{device}"}
        for device in devices
    ]
    users = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"}] if pod else []
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "devices": {
                "requests": [
                    {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": len(devices)}}
                ]
            }
        },
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": users},
    }


def verdict(*documents: dict[str, Any], ask: str = BY_CLAIM) -> Verdict:
    fresh = [
        {**one, "spec": {**one["spec"], "asOf": "2026-11-29T12:00:00Z"}}
        if one["kind"] == "GpuTopology"
        else one
        for one in documents
    ]
    cluster = world(*home(), *map(decoded, fresh))
    return only(report(ask, cluster, ISLANDS, remedies=True))


def split(**more: Any) -> list[dict[str, Any]]:
    """Node a, where another claim has the first GPU: the next two are of two islands."""
    return [
        node("a", 0),
        topology("a", PAIRS, held={}),
        slices("a", **more),
        device_class(),
        TWO,
        claim("other", 0, pod="p"),
    ]


# -- which GPU a device is, and who has it ---------------------------------------------------------


def test_a_device_is_the_gpu_of_its_uuid_of_its_parent_or_of_its_address() -> None:
    found = read(
        node("a"),
        topology("a", gpus={3: {"uuid": "", "pciBusID": "00000000:CA:00.0"}}),
        slices("a"),
        device_class(),
    )
    known = node_map(found, "a", NOW)
    assert known is not None
    listed = slices("a")
    attributes = [
        {"uuid": {"string": "GPU-a-2"}},
        {"parentUUID": {"string": "GPU-a-1"}, "uuid": {"string": "MIG-x"}},
        {"resource.kubernetes.io/pciBusID": {"string": "0000:ca:00.0"}},
        {"uuid": {"string": "GPU-gone"}},
    ]
    for device, own in zip(listed["spec"]["devices"], attributes, strict=True):
        device["attributes"] = own
    claims = [claim("all", 0, 1, 2, 3)]
    (held,) = held_on(read(node("a"), listed, *claims)).values()
    assert [gpu_index(known, one.device) for one in held] == [2, 1, 3, None]


def test_what_claims_hold_is_not_free_and_what_the_map_does_not_know_is_loose() -> None:
    listed = slices("a")
    listed["spec"]["devices"][2]["attributes"]["uuid"] = {"string": "GPU-elsewhere"}
    found = read(node("a"), topology("a", PAIRS), listed, claim("x", 0, 2, pod="p"))
    known = node_map(found, "a", NOW)
    assert known is not None
    now = standing(known, (), None, claimed=held_on(found)["a"])
    assert (now.free, now.loose, now.free_count) == ((1, 2, 3), 1, 2)
    assert [(h.pod, h.via, h.resource) for h in now.held[0]] == [("p", "dra", "default/x")]


def test_admin_access_holds_nothing() -> None:
    watching = claim("watch", 0)
    watching["status"]["allocation"]["devices"]["results"][0]["adminAccess"] = True
    assert held_on(read(node("a"), slices("a"), watching)) == {}


def test_topo_counts_gpus_of_claims_as_held_by_pci_address_too() -> None:
    listed = slices("a")
    for number, device in enumerate(listed["spec"]["devices"]):
        del device["attributes"]["uuid"]
        address = {"string": f"0000:0{number}:00.0"}
        device["attributes"]["resource.kubernetes.io/pciBusID"] = address
    known = topology("a", PAIRS, gpus={i: {"pciBusID": f"00000000:0{i}:00.0"} for i in range(4)})
    found = read(node("a", 0), known, listed, claim("x", 0, pod="p"))
    (view,) = overview(found, ISLANDS, now=NOW, source="", kind="snapshot").nodes
    assert [[held.pod for held in gpu.holders] for gpu in view.gpus] == [["p"], [], [], []]
    assert (view.held, view.free, view.clean) == (1, 3, {1: 3, 2: 1, 4: 0, 8: 0})


def test_a_device_that_is_not_on_the_map_is_held_by_somebody_all_the_same() -> None:
    listed = slices("a")
    listed["spec"]["devices"][0]["attributes"]["uuid"] = {"string": "GPU-elsewhere"}
    found = read(node("a", 0), topology("a", PAIRS), listed, claim("x", 0, pod="p"))
    (view,) = overview(found, ISLANDS, now=NOW, source="", kind="snapshot").nodes
    assert [held.pod for held in view.loose] == ["p"]
    assert (view.held, view.clean) == (1, None)


# -- what makes a claim whole ----------------------------------------------------------------------


def test_a_constraint_on_the_attribute_that_islands_share_is_tried_and_offered() -> None:
    found = verdict(*split())
    assert found.blockers == ("topology/claim-splits",)
    first = found.remedies[0]
    assert first.summary == (
        "in ResourceClaimTemplate two: matchAttribute resource.kubernetes.io/pcieRoot: all devices"
        " of one pcieRoot"
    )
    assert first.verified and first.result is not None
    assert (first.result.admission, first.result.placement) == ("admitted", "fits")
    assert '"path":"/spec/spec/devices/constraints"' in first.command


def test_an_attribute_that_lies_across_islands_is_not_offered_and_uuids_are() -> None:
    own = tuple(f"pci0000:{number:02}" for number in range(4))
    found = verdict(*split(roots=own))
    assert [one.summary for one in found.remedies if "matchAttribute" in one.summary] == []
    (only_one,) = [one for one in found.remedies if "NVLink island" in one.summary]
    assert only_one.summary == (
        "in ResourceClaimTemplate two: only the GPUs of a free NVLink island of a"
    )
    assert only_one.verified and "GPU-a-2" in only_one.command and "GPU-a-3" in only_one.command


def test_a_node_where_the_first_devices_are_joined_is_offered_too() -> None:
    found = verdict(*split(), node("b", 0), topology("b", PAIRS, held={}), slices("b"))
    assert "only on b" in [one.summary for one in found.remedies if one.verified]


def test_a_resource_that_a_class_backs_is_refused_as_a_claim_would_be() -> None:
    documents = split()
    documents[0]["status"]["allocatable"].pop("nvidia.com/gpu")
    documents[3] = device_class("nvidia.com/gpu")
    found = verdict(*documents, ask=BY_RESOURCE)
    assert (found.placement, found.blockers) == ("fits", ("topology/claim-splits",))
    other = verdict(
        *documents, node("b", 0), topology("b", PAIRS, held={}), slices("b"), ask=BY_RESOURCE
    )
    assert "only on b" in [one.summary for one in other.remedies if one.verified]
    del documents[5]
    assert verdict(*documents, ask=BY_RESOURCE).blockers == ()


def test_the_replicas_of_one_run_meet_what_those_before_them_were_given() -> None:
    two = f"{BY_CLAIM}---\n{BY_CLAIM.replace('llm', 'next')}"
    documents = [node("a", 0), topology("a", PAIRS, held={}), slices("a"), device_class(), TWO]
    fresh = [
        {**one, "spec": {**one["spec"], "asOf": "2026-11-29T12:00:00Z"}}
        if one["kind"] == "GpuTopology"
        else one
        for one in documents
    ]
    made = report(two, world(*home(), *map(decoded, fresh)), ISLANDS)
    assert [one.blockers for one in made.workloads] == [(), ()]
    three = f"{two}---\n{BY_CLAIM.replace('llm', 'last')}"
    made = report(three, world(*home(), *map(decoded, fresh)), ISLANDS)
    assert [one.blockers for one in made.workloads] == [(), (), ("placement/devices-in-use",)]
