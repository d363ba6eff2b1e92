"""Feature gates that a cluster has switched: what the policy refuses, and what they change."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from kubectl_gpuadmit.devices import allocator, dropped, maturity
from kubectl_gpuadmit.devices.allocator import Fatal, Unsure, orders
from kubectl_gpuadmit.devices.allocator.compatibility import Company
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.kube.gates import Gates
from kubectl_gpuadmit.kube.manifests import read_documents
from kubectl_gpuadmit.policy.lint import lint
from kubectl_gpuadmit.policy.load import load_policy
from kubectl_gpuadmit.verdict import Report, Source
from tests.differential import ours

NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
HEAD = "apiVersion: gpu-admit.io/v1\nkind: AdmissionPolicy\n"


def problems(text: str) -> list[tuple[str, str, str]]:
    return [(p.ref, p.message, p.hint) for p in lint((HEAD + text).encode(), "p.yaml")]


def test_a_gate_that_nobody_knows_is_refused_with_the_likely_one() -> None:
    ((ref, message, hint),) = problems("featureGates: {DRAListTypeAttribute: true}\n")
    assert (ref, message) == (
        "policy-unknown-feature-gate",
        "unknown feature-gate DRAListTypeAttribute",
    )
    assert "DRAListTypeAttributes" in hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "featureGates: {DRAExtendedResource: false}",
            "DRAExtendedResource is locked in Kubernetes 1.37 and cannot be switched off",
        ),
        (
            'ledger: {versions: {kubernetes: "1.36"}}\nfeatureGates: {DRADerivedAttributes: true}',
            "Kubernetes 1.36 does not have DRADerivedAttributes",
        ),
        (
            "featureGates: {DRADeviceTaints: false}",
            "DRADeviceTaintRules is on and needs DRADeviceTaints, which is off: no component of"
            " Kubernetes 1.37 starts so",
        ),
        (
            "featureGates: {DRAPartitionableDevicesType: true}",
            "DRAPartitionableDevicesType is on and needs DRAResourcePoolStatus, which is off: no"
            " component of Kubernetes 1.37 starts so",
        ),
    ],
)
def test_what_no_component_would_start_with_is_refused(text: str, message: str) -> None:
    assert [(ref, said) for ref, said, _ in problems(text + "\n")] == [
        ("policy-bad-feature-gate", message)
    ]


def test_gates_are_switched_both_ways_and_by_their_stage() -> None:
    release = (1, 37)
    on = Gates.of({"AllAlpha": True, "DRADerivedAttributes": False})
    assert maturity.enabled("DRAListTypeAttributes", release, on)
    assert not maturity.enabled("DRADerivedAttributes", release, on)
    assert maturity.enabled("DRAConsumableCapacity", release, on)
    assert not maturity.enabled("DRAConsumableCapacity", release, Gates.of({"AllBeta": False}))
    assert maturity.enabled("DRAAdminAccess", release, Gates.of({"DRAAdminAccess": False}))


def test_the_allocator_is_the_first_that_supports_all_that_is_on() -> None:
    def kind(version: str, **gates: bool) -> str:
        return allocator.of(version, Gates.of(gates)).allocator

    assert [kind(f"1.{minor}") for minor in (34, 35, 36, 37)] == [
        "experimental",
        "incubating",
        "incubating",
        "incubating",
    ]
    assert kind("1.37", DRAListTypeAttributes=True) == "experimental"
    off = {"DRAConsumableCapacity": False, "DRADeviceBindingConditions": False}
    assert kind("1.37", **off) == "stable"
    assert kind("1.37", **off, DRAOptionalNodeOperations=True) == "experimental"


def test_switched_gates_of_versions_that_are_not_followed_are_unknown() -> None:
    assert allocator.of("1.35").unfollowed == ""
    assert allocator.of("1.35", Gates.of({"DRAWorkloadResourceClaims": False})).unfollowed == ""
    assert allocator.of("1.35", Gates.of({"DRADeviceTaints": True})).unfollowed == (
        "feature gates are switched, and on Kubernetes 1.35 only the defaults are followed"
    )
    assert allocator.of("1.34", Gates.of({"DynamicResourceAllocation": False})).unfollowed == (
        "DynamicResourceAllocation is off, and what becomes of claims then is not followed"
    )


def test_an_answer_that_hangs_on_the_order_of_pools_is_unknown() -> None:
    def search(order: orders.Order) -> str | None:
        if order.pools:
            raise Fatal("pool b is invalid: duplicate device name gpu-0")
        return "devices"

    both = (orders.Order(), orders.Order(1))
    assert orders.settled(search, iter(both[:1])) == "devices"
    with pytest.raises(Fatal):
        orders.settled(search, iter(both[1:]))
    with pytest.raises(Unsure, match="one order ends with pool b is invalid"):
        orders.settled(search, iter(both))


def test_devices_join_a_company_by_a_group_in_common() -> None:
    empty = Company()
    a, b, both, none = (frozenset(text) for text in ("a", "b", "ab", ""))
    assert empty.admits(a)
    assert empty.admits(none)
    assert empty.joined(both).admits(a)
    assert not empty.joined(both).joined(a).admits(b)
    assert not empty.joined(a).admits(none)
    assert empty.joined(none).admits(none)
    assert not empty.joined(none).admits(a)


# -- as a user meets it ----------------------------------------------------------------------------


def cluster(**switched: bool) -> Any:
    """A node with two GPUs that have one switch in common, and four cores."""
    devices = [
        {
            "name": f"gpu-{i}",
            "attributes": {"switches": {"strings": switches}},
            "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "3"}}},
        }
        for i, switches in enumerate((["a", "b"], ["b", "c"]))
    ]
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    objects = [
        {
            "kind": "Node",
            "metadata": {"name": "n"},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        },
        {"kind": "DeviceClass", "metadata": {"name": "gpu"}},
        {
            "kind": "ResourceSlice",
            "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": "s"},
            "spec": {"driver": "d.example", "pool": pool, "nodeName": "n", "devices": devices},
        },
    ]
    return ours.cluster_of({"objects": objects, "gates": switched})


CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: t}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: gpu, count: COUNT, tolerations: [{operator: Exists}]}
      constraints: [{KIND: d.example/switches}]
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]
"""


def asked(gates: str, *, count: int = 2, kind: str = "matchAttribute") -> Report:
    text = CLAIM.replace("COUNT", str(count)).replace("KIND", kind)
    return evaluate(
        read_documents(text.encode(), "p.yaml"),
        cluster(),
        load_policy((HEAD + f"featureGates: {gates}\n").encode(), "policy.yaml"),
        now=NOW,
        source=Source("snapshot", "s", 0),
        with_remedies=False,
    )


def placed(report: Report) -> tuple[str, list[str]]:
    (verdict,) = [one for one in report.workloads if one.ref.kind == "Pod"]
    return verdict.placement, [f.reason for f in verdict.findings if f.level != "audit"]


def test_lists_with_a_value_in_common_match_where_the_cluster_has_the_gate_on() -> None:
    off, found = placed(asked("{}"))
    assert (off, "placement/constraint-unmet" in found) == ("never", True)
    assert placed(asked("{DRAListTypeAttributes: true}")) == ("fits", [])
    distinct = asked("{DRAListTypeAttributes: true}", kind="distinctAttribute")
    assert placed(distinct)[0] == "never"


def test_devices_that_stand_for_cpu_count_against_the_node_where_the_gate_is_on() -> None:
    gates = "{DRAListTypeAttributes: true, DRANodeAllocatableResources: true}"
    assert placed(asked(gates, count=1)) == ("fits", [])
    report = asked(gates, count=2)
    assert placed(report) == ("never", ["placement/devices-draw"])
    (detail,) = [f.detail for one in report.workloads for f in one.findings]
    assert detail == "1 node: cpu: containers and devices ask for 6, 0 of 4 used"


def test_a_dropped_field_is_told_and_not_asked_for() -> None:
    gates = "{DRADeviceTaints: false, DRADeviceTaintRules: false, DRAListTypeAttributes: true}"
    report = asked(gates)
    assert placed(report) == ("fits", ["dra/field-dropped"])


def test_a_constraint_that_loses_its_only_field_is_refused() -> None:
    gates = "{DRAConsumableCapacity: false}"
    report = asked(gates, kind="distinctAttribute")
    assert [f.reason for one in report.workloads[:1] for f in one.findings] == [
        "invalid/device-constraint"
    ]


def test_a_stored_template_whose_claim_cannot_be_made_keeps_the_pod_waiting() -> None:
    documents = list(read_documents(CLAIM.encode(), "p.yaml"))
    text = CLAIM.replace("COUNT", "1").replace("KIND", "distinctAttribute")
    documents = list(read_documents(text.encode(), "p.yaml"))
    stored = cluster()
    template = {**documents[0].data, "metadata": {"name": "t", "namespace": "default", "uid": "u"}}
    stored.apply(ours.decode(template))
    report = evaluate(
        documents[1:],
        stored,
        load_policy((HEAD + "featureGates: {DRAConsumableCapacity: false}\n").encode(), "p"),
        now=NOW,
        source=Source("snapshot", "s", 0),
        with_remedies=False,
    )
    placement, found = placed(report)
    assert (placement, "placement/claim-emptied" in found) == ("never", True)


def test_nothing_is_dropped_of_objects_that_use_no_gate() -> None:
    claim = ours.decode(
        {
            "kind": "ResourceClaim",
            "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "g"}}]}},
        }
    )
    assert dropped.created(claim, allocator.of("1.34")) == (claim, ())
