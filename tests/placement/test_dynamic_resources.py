"""Pods with ResourceClaims: refusals before any node, nodes, replicas, and what would help."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.dra import ResourceClaim
from kubectl_gpuadmit.kube.objects import KubeObject, Pod
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.placement.place import Placed, bound, place
from tests.devices.build import (
    DRIVER,
    claim,
    device_class,
    exactly,
    gpu,
    held,
    slices,
    template,
    with_claim,
    with_template,
)
from tests.placement.build import KNOWN, NOW, cluster, node, pod, refused, told


def placed(given: Cluster, asking: Pod, count: int = 1, **more: Any) -> Placed:
    return place(given, asking, count, now=NOW, **more)


def two_nodes(*more: KubeObject) -> Cluster:
    """Node a with two GPUs, node b with none."""
    return cluster(
        node("a"), node("b"), slices("a", gpu("gpu-0"), gpu("gpu-1")), device_class(), *more
    )


def codes(answer: Placed) -> list[str]:
    return [finding.reason for finding in answer.findings]


# -- before any node -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "asking", "code", "text"),
    [
        ([], with_claim(), "claim-missing", 'could not find ResourceClaim "default/claim"'),
        (
            [claim(meta={"deletionTimestamp": "2026-11-29T12:00:00Z"})],
            with_claim(),
            "claim-deleting",
            'resourceclaim "claim" is being deleted',
        ),
        (
            [claim("claim", exactly(deviceClassName="absent"))],
            with_claim(),
            "class-missing",
            "request gpu: device class absent does not exist",
        ),
        (
            [],
            with_template(),
            "template-missing",
            'resourceclaimtemplate.resource.k8s.io "template" not found',
        ),
        (
            [template()],
            with_template(meta={"uid": "uid-asking"}),
            "claim-not-created",
            'pod "default/asking": ResourceClaim not created yet',
        ),
        (
            [claim()],
            with_template(
                meta={"uid": "uid-asking"},
                status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "claim"}]},
            ),
            "claim-owner",
            "ResourceClaim default/claim was not created for Pod default/asking (Pod is not owner)",
        ),
        (
            [claim("claim", {"name": "gpu"})],
            with_claim(),
            "claim-no-request",
            "resource claim default/claim, request gpu: unknown request type",
        ),
        (
            [],
            pod(resourceClaims=[{"name": "gpu"}]),
            "claim-no-source",
            'pod "default/asking", spec.resourceClaim "gpu": none of the supported fields are set',
        ),
    ],
)
def test_a_reference_that_leads_nowhere_keeps_the_pod_from_being_tried(
    objects: list[KubeObject], asking: Pod, code: str, text: str
) -> None:
    answer = placed(two_nodes(*objects), asking)
    assert [(f.reason, f.detail) for f in answer.findings] == [(f"placement/{code}", text)]
    assert answer.message.startswith(f"0/2 nodes are available: {text}.")


def test_a_claim_that_256_pods_use_takes_no_more() -> None:
    users = [{"resource": "pods", "name": f"p{i}", "uid": f"u{i}"} for i in range(256)]
    full = {**held("gpu-0"), "reservedFor": users}
    answer = placed(two_nodes(claim(status=full)), with_claim())
    assert (codes(answer), answer.placement) == (["placement/claim-full"], "waits")
    one_less = {**full, "reservedFor": users[1:]}
    assert placed(two_nodes(claim(status=one_less)), with_claim()).placement == "fits"
    again = with_claim(meta={"uid": "u7"})
    assert placed(two_nodes(claim(status=full)), again).placement == "fits"


def test_what_was_not_exported_is_unknown_and_not_missing() -> None:
    kinds = tuple(kind for kind in KNOWN if kind != "ResourceClaim")
    given = cluster(node("a"), slices("a", gpu("gpu-0")), device_class(), template(), known=kinds)
    named = placed(given, with_claim())
    assert [u.missing for u in named.unknowns if u.level == "warn"] == [
        "ResourceClaim default/claim: such objects are not in the source",
    ]
    made = placed(given, with_template())
    assert (made.placement, made.places) == ("unknown", ("a",))


# -- node by node ----------------------------------------------------------------------------------


def test_a_node_without_devices_is_refused_in_the_schedulers_words() -> None:
    given = two_nodes(claim())
    assert told(given, with_claim()) == {
        "a": [],
        "b": [("DynamicResources", "cannot allocate all claims", True, "claim claim")],
    }


def test_devices_that_others_hold_are_not_free_and_whose_release_would_help_is_said() -> None:
    taken = claim("other", status=held("gpu-0", by="train-0"), namespace="team-a")
    given = two_nodes(claim("claim", exactly(count=2)), taken)
    answer = placed(given, with_claim())
    assert (answer.placement, codes(answer)) == ("waits", ["placement/devices-in-use"])
    assert answer.waits_for == (
        "a serves it once claim team-a/other (pod train-0) lets go of the devices",
    )


def test_a_pool_that_is_being_updated_serves_nobody_and_is_waited_for() -> None:
    half = slices("a", gpu("gpu-0"), count=2)
    given = cluster(node("a"), half, device_class(), claim())
    answer = placed(given, with_claim())
    assert (answer.placement, answer.waits_for) == (
        "waits",
        (f"it is tried again once resource pool {DRIVER}/a is complete (1 of 2 slices are there)",),
    )
    before = place(given, with_claim(), 1, now=NOW, kubernetes="1.34")
    assert before.placement == "fits"


def test_an_error_on_one_node_ends_the_attempt_for_all() -> None:
    lame = slices("b", gpu("gpu-0"))
    asks = exactly("gpu", f'device.attributes["{DRIVER}"].model == "h100"')
    given = cluster(
        node("a"),
        node("b"),
        slices("a", gpu("gpu-0", model="h100")),
        lame,
        device_class(),
        claim("claim", asks),
    )
    answer = placed(given, with_claim())
    assert (answer.placement, codes(answer), answer.places) == (
        "never",
        ["placement/attribute-missing"],
        (),
    )
    assert answer.findings[0].detail == (
        "selector 1 of request gpu reads model, which device gpu.example.com/b/gpu-0 does not have:"
        " the scheduler gives the pod up with an error"
    )
    closed = cluster(
        node("a"),
        node("b", cordoned=True),
        slices("a", gpu("gpu-0", model="h100")),
        lame,
        device_class(),
        claim("claim", asks),
    )
    assert placed(closed, with_claim()).places == ("a",)


def test_an_allocated_claim_binds_the_pod_to_its_nodes() -> None:
    own = held("gpu-0")
    own["allocation"]["nodeSelector"] = {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
        ]
    }
    assert refused(two_nodes(claim(status=own)), with_claim()) == {
        "b": ["resourceclaim not available on the node"]
    }


def test_preemption_frees_no_devices() -> None:
    """Victims keep their claims until they have ended: the scheduler counts on none of them."""
    low = pod("low", on="a", priority=0, resourceClaims=[{"name": "g", "resourceClaimName": "o"}])
    given = two_nodes(claim("o", status=held("gpu-0", "gpu-1", by="low")), low, claim())
    answer = placed(given, with_claim(priority=100))
    assert answer.placement == "waits"
    assert "Preemption is not helpful" in answer.message


# -- replicas --------------------------------------------------------------------------------------


def test_each_replica_of_a_template_gets_devices_of_its_own() -> None:
    given = two_nodes(template())
    answer = placed(given, with_template(), 3)
    assert (answer.places, codes(answer)[0]) == (("a", "a"), "placement/too-many-replicas")
    made = [c for c in answer.cluster.every("ResourceClaim") if isinstance(c, ResourceClaim)]
    assert [
        (c.name, c.status.allocation.devices.results[0].device)  # type: ignore[union-attr,index]
        for c in made
    ] == [("asking-0-gpu-xxxxx", "gpu-0"), ("asking-1-gpu-xxxxx", "gpu-1")]
    assert list(given.every("ResourceClaim")) == []


def test_replicas_that_share_a_claim_share_its_devices() -> None:
    answer = placed(two_nodes(claim()), with_claim(), 5)
    assert answer.places == ("a",) * 5
    (own,) = answer.cluster.every("ResourceClaim")
    assert isinstance(own, ResourceClaim)
    assert len(own.status.reservedFor or ()) == 5


def test_workloads_of_a_run_do_not_get_the_same_devices() -> None:
    first = placed(two_nodes(template()), with_template(name="template"), 2)
    second = placed(first.cluster, with_template(), 1)
    assert (second.placement, second.places) == ("waits", ())


def test_the_better_alternative_decides_between_nodes() -> None:
    wanted = {
        "name": "gpu",
        "firstAvailable": [
            {"name": s, "deviceClassName": "gpu", "selectors": [{"cel": {"expression": e}}]}
            for s, e in (
                ("big", f'device.attributes["{DRIVER}"].model == "h100"'),
                ("small", "true"),
            )
        ],
    }
    given = cluster(
        node("a"),
        node("b"),
        slices("a", gpu("gpu-0", model="l4")),
        slices("b", gpu("gpu-0", model="h100")),
        device_class(),
        claim("claim", wanted),
    )
    assert placed(given, with_claim()).places == ("b",)


def test_an_extended_resource_comes_from_devices_where_a_class_backs_it() -> None:
    backed = device_class("gpu", extendedResourceName="example.com/gpu")
    given = cluster(node("a", None), slices("a", gpu("gpu-0"), gpu("gpu-1")), backed)
    answer = placed(given, pod(asks={"example.com/gpu": "1"}), 3)
    assert answer.places == ("a", "a")
    assert [c.name for c in answer.cluster.every("ResourceClaim")] == [
        "asking-0-extended-resources-xxxxx",
        "asking-1-extended-resources-xxxxx",
    ]


def test_what_the_claims_would_get_can_be_asked_for() -> None:
    given = two_nodes(claim("claim", exactly(count=2)))
    cycle = Cycle(given, with_claim())
    assert cycle.dra is not None
    ((own, allocation),) = cycle.dra.allocations(given.nodes["a"])
    assert (own.name, [str(one.device) for one in allocation.devices]) == (
        "claim",
        [f"{DRIVER}/a/gpu-0", f"{DRIVER}/a/gpu-1"],
    )


def test_what_is_kept_up_to_date_between_replicas_is_what_would_be_found_anew() -> None:
    """Generated cases of the conformance family, with templates in place of claims."""
    from random import Random

    from tests.differential import dra_cases
    from tests.placement.build import decoded

    compared = 0
    for number in range(120):
        case = dra_cases.case(Random(f"replicas {number}"))
        objects = [o for o in case["objects"] if not o["metadata"]["name"].startswith("claim")]
        own = [o for o in case["objects"] if o["metadata"]["name"].startswith("claim")]
        for one in own:
            spec = {"spec": one["spec"]}
            meta = {"name": one["metadata"]["name"], "namespace": "default"}
            objects.append({"kind": "ResourceClaimTemplate", "metadata": meta, "spec": spec})
        names = [one["metadata"]["name"] for one in own]
        entries = [{"name": name, "resourceClaimTemplateName": name} for name in names]
        spec = {**case["pod"]["spec"], "resourceClaims": entries}
        asking = decoded(
            {"kind": "Pod", "metadata": {"name": "asking", "namespace": "default"}, "spec": spec}
        )
        assert isinstance(asking, Pod)
        cycle = Cycle(cluster(*map(decoded, objects)).fork(), asking)
        for replica in range(4):
            best = cycle.best()
            anew = Cycle(cycle.cluster.fork(), asking)
            assert cycle.verdicts() == anew.verdicts(), (number, replica)
            assert best is None or best.name == getattr(anew.best(), "name", None)
            if best is None:
                break
            compared += 1
            cycle.assume(bound(asking, f"asking-{replica}", best.name))
    assert compared > 60


def test_a_pod_that_names_its_node_gets_no_devices_from_anybody() -> None:
    answer = placed(two_nodes(claim()), with_claim(on="a"))
    assert (answer.placement, answer.places) == ("unknown", ("a",))
    assert [u.missing.partition(":")[0] for u in answer.unknowns] == ["devices of the pod's claims"]
    (own,) = answer.cluster.every("ResourceClaim")
    assert isinstance(own, ResourceClaim)
    assert own.status.allocation is None
