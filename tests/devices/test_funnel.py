"""Where a request runs out of devices, what the nearest one lacks, and what would help."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from examples import make_devices
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import funnel, normal, selected
from kubectl_gpuadmit.devices.allocator import of as features_of
from kubectl_gpuadmit.devices.funnel import Funnel, Lack, Near, Surroundings
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.devices.model import Claim
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.kube.dra import ResourceClaim
from kubectl_gpuadmit.kube.manifests import read_documents
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.verdict import Source, Verdict
from tests.rules.cases import decoded

NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
MEMORY = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0"
HOPPER = "device.attributes['gpu.nvidia.com'].architecture == 'Hopper'"
Json = dict[str, Any]


def exactly(name: str = "gpu.nvidia.com", *selectors: str, **more: Any) -> Json:
    made: Json = {"deviceClassName": name, **more}
    if selectors:
        made["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    return made


def spec(*asks: Json, **more: Any) -> Json:
    requests = [{"name": f"r{i}", "exactly": ask} for i, ask in enumerate(asks)]
    return {"devices": {"requests": requests, **more}}


def claim(given: Json, name: str = "c") -> Claim:
    meta = {"name": name, "namespace": "ml"}
    made = decoded(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": meta,
            "spec": given,
        }
    )
    assert isinstance(made, ResourceClaim)
    return normal.of_claim(made)


def allocated(name: str, *devices: str, pool: str = "h100-0") -> Json:
    results = [
        {"request": "r0", "driver": "gpu.nvidia.com", "pool": pool, "device": d} for d in devices
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": spec(exactly()),
        "status": {"allocation": {"devices": {"results": results}}},
    }


MACHINES = [*make_devices.classes(), *make_devices.h100(), *make_devices.mig()]


def funnels(
    given: Json, *objects: Json, around: Surroundings | None = None, kubernetes: str = "1.37"
) -> tuple[Funnel, ...]:
    cluster = Cluster.of(map(decoded, objects or MACHINES))
    return funnel.of_claims(
        [claim(given)],
        Inventory.of(cluster),
        features=features_of(kubernetes),
        kubernetes=kubernetes,
        around=around,
    )


def stages(one: Funnel) -> list[tuple[str, int]]:
    return [(stage.name, stage.left) for stage in one.stages]


def test_eighty_gi_miss_an_h100_by_a_hair_and_the_term_that_fails_is_named() -> None:
    (one,) = funnels(spec(exactly("gpu.nvidia.com", f"{HOPPER} && {MEMORY}")))
    assert stages(one)[:3] == [("pools", 16), ("class", 8), ("selector", 0)]
    assert one.falls is not None
    assert one.falls.name == "selector"
    assert one.nearest == Near(
        "gpu.nvidia.com/h100-0/gpu-0",
        8,
        (Lack(MEMORY, (("gpu.nvidia.com/memory", "81559Mi"),), 0),),
    )
    assert funnel.spelt("81559Mi") == "79.65Gi (81559Mi)"


def test_each_selector_is_a_stage_of_its_own() -> None:
    (one,) = funnels(spec(exactly("gpu.nvidia.com", HOPPER, MEMORY, "true")))
    assert stages(one)[2:5] == [("selector", 8), ("selector", 0), ("selector", 0)]
    assert one.nearest is not None
    assert [lack.selector for lack in one.nearest.lacks] == [1]


def test_devices_in_use_are_told_with_who_has_them() -> None:
    taken = [f"gpu-{i}" for i in range(8)]
    (one,) = funnels(spec(exactly()), *MACHINES, allocated("mine", *taken))
    assert ("free", 0) in stages(one)
    assert one.falls is not None
    assert [(loss.why, loss.count) for loss in one.falls.losses] == [("allocated to ml/mine", 8)]


def test_admin_access_looks_past_who_has_a_device() -> None:
    taken = [f"gpu-{i}" for i in range(8)]
    asks = exactly(adminAccess=True)
    (one,) = funnels(spec(asks), *MACHINES, allocated("mine", *taken))
    assert one.falls is None


def test_the_requests_of_all_claims_that_ask_for_the_same_are_counted_together() -> None:
    found = funnels(spec(exactly(count=5), exactly(count=4)))
    assert [(one.request, one.needs) for one in found] == [("r0", 9), ("r1", 9)]
    assert found[0].falls is not None
    assert (found[0].falls.name, found[0].falls.left) == ("together", 8)
    assert found[0].best_node == "h100-0"


def test_a_constraint_keeps_devices_apart_that_do_not_agree() -> None:
    root = "resource.kubernetes.io/pcieRoot"
    profile = "device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"
    asks = exactly("mig.nvidia.com", profile, count=3)
    (one,) = funnels(spec(asks, constraints=[{"matchAttribute": "gpu.nvidia.com/parentUUID"}]))
    assert stages(one)[-2:] == [("together", 4), ("constraint", 2)]
    (two,) = funnels(spec(asks, constraints=[{"matchAttribute": root}]))
    assert stages(two)[-1] == ("constraint", 4)
    (other,) = funnels(
        spec(exactly("gpu.nvidia.com", count=8), constraints=[{"distinctAttribute": root}])
    )
    assert other.falls is None


def test_nodes_that_the_pod_may_not_use_do_not_count() -> None:
    (one,) = funnels(spec(exactly()), around=Surroundings(frozenset({"mig-0"})))
    assert stages(one)[2] == ("nodes", 0)


def test_a_taint_that_is_not_tolerated_is_named() -> None:
    node, slice, *_ = make_devices.h100()
    for device in slice["spec"]["devices"]:
        device["taints"] = [{"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}]
    given = [*make_devices.classes(), node, slice]
    (one,) = funnels(spec(exactly()), *given)
    assert one.falls is not None
    assert one.falls.name == "untainted"
    assert one.falls.losses[0].why == "taint gpu.nvidia.com/xid=79:NoSchedule"
    tolerant = exactly(tolerations=[{"key": "gpu.nvidia.com/xid", "operator": "Exists"}])
    (other,) = funnels(spec(tolerant), *given)
    assert other.falls is None


def test_partitions_of_one_gpu_take_from_each_other() -> None:
    given = [*make_devices.classes(), *make_devices.dynamic_mig(gpus=1)]
    profile = "device.attributes['gpu.nvidia.com'].profile == '{}'"
    seven = exactly("mig.nvidia.com", profile.format("1g.5gb"), count=7)
    (one,) = funnels(spec(seven), *given)
    assert one.falls is None
    eight = exactly("mig.nvidia.com", profile.format("1g.10gb"), count=5)
    (two,) = funnels(spec(eight), *given)
    assert stages(two)[-1] == ("together", 4)
    whole = allocated("mine", "gpu-0", pool="dynamic-0")
    (three,) = funnels(spec(exactly("mig.nvidia.com")), *given, whole)
    assert three.falls is not None
    assert three.falls.name == "amounts"


def test_an_incomplete_pool_gives_nothing_and_says_how_many_slices_it_lacks() -> None:
    node, slice, *_ = make_devices.h100()
    slice["spec"]["pool"]["resourceSliceCount"] = 2
    (one,) = funnels(spec(exactly()), *make_devices.classes(), node, slice)
    assert one.falls is not None
    assert one.falls.name == "pools"
    assert one.falls.losses[0].why == "pool gpu.nvidia.com/h100-0 has 1 of 2 slices"


def test_alternatives_have_a_funnel_each() -> None:
    alternatives = [
        {"name": "big", "deviceClassName": "gpu.nvidia.com", "count": 9},
        {"name": "small", "deviceClassName": "mig.nvidia.com", "count": 4},
    ]
    found = funnels({"devices": {"requests": [{"name": "gpu", "firstAvailable": alternatives}]}})
    assert [(one.request, one.falls is None) for one in found] == [
        ("gpu/big", False),
        ("gpu/small", True),
    ]


def test_all_devices_of_a_kind_need_no_number() -> None:
    (one,) = funnels(spec(exactly(allocationMode="All")))
    assert (one.everything, one.falls) == (True, None)


def test_equal_devices_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000 nodes of one kind have eight kinds of devices at most, whatever their number."""
    asked = 0
    original = selected.as_seen

    def counting(device: Any) -> Any:
        nonlocal asked
        asked += 1
        return original(device)

    monkeypatch.setattr(selected, "as_seen", counting)
    given = [*make_devices.classes()]
    for number in range(50):
        given += make_devices.h100(f"n{number}")
    (one,) = funnels(spec(exactly("gpu.nvidia.com", MEMORY)), *given)
    assert stages(one)[:2] == [("pools", 400), ("class", 400)]
    assert asked == 1


# -- as a person meets it --------------------------------------------------------------------------


def judged(given: Json, *objects: Json, copies: int = 1) -> Verdict:
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "ml"},
        "spec": {"spec": given},
    }
    pod_spec = {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
    }
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "ml"},
        "spec": {
            "replicas": copies,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod_spec},
        },
    }
    raw = "\n---\n".join(json.dumps(one) for one in (template, workload)).encode()
    cluster = Cluster.of(
        map(decoded, [*make_devices.namespaces(), *(objects or MACHINES)]),
        known=make_devices.KINDS,
    )
    report = evaluate(
        list(read_documents(raw, "d.yaml")),
        cluster,
        Policy.default(),
        now=NOW,
        source=Source("snapshot", "s"),
        namespace="ml",
    )
    (verdict,) = report.workloads
    return verdict


def test_the_finding_says_it_in_one_sentence_and_numbers_and_the_remedy_was_tried() -> None:
    verdict = judged(spec(exactly("gpu.nvidia.com", f"{HOPPER} && {MEMORY}")))
    assert (verdict.admission, verdict.placement) == ("admitted", "never")
    assert verdict.blockers == ("placement/selector-unmet",)
    (found,) = verdict.findings
    assert found.detail == (
        "request r0 needs 1: of 8 devices of class gpu.nvidia.com, none is after selector 1;"
        " nearest is gpu.nvidia.com/h100-0/gpu-0 and 7 like it, where memory is 79.65Gi (81559Mi)"
        f" and {MEMORY} fails"
    )
    assert [(e.what, e.observed, e.wanted) for e in found.evidence] == [
        ("devices published", 16, None),
        ("of class gpu.nvidia.com", 8, None),
        ("after selector 1", 0, 1),
        ("8 devices", "gpu.nvidia.com/memory is 79.65Gi (81559Mi)", None),
        ("memory", "79.65Gi (81559Mi)", MEMORY),
    ]
    first = verdict.remedies[0]
    assert first.verified
    assert first.summary == (
        "in ResourceClaimTemplate t: memory: quantity('79Gi') instead of quantity('80Gi')"
    )
    assert first.command.startswith("kubectl -n ml patch resourceclaimtemplate t --dry-run=client")
    assert first.command.endswith("| kubectl replace --force -f -")


@pytest.mark.parametrize(
    ("given", "objects", "reason", "summary"),
    [
        (
            spec(exactly(count=9)),
            (),
            "placement/too-few-together",
            "in ResourceClaimTemplate t: 8 instead of 9 devices",
        ),
        (
            spec(exactly("gpu.nvidia.com", HOPPER.replace("Hopper", "Hoper"))),
            (),
            "placement/selector-unmet",
            "in ResourceClaimTemplate t: architecture: == 'Hopper' instead of == 'Hoper'",
        ),
        (
            spec(exactly("vfio.gpu.nvidia.com")),
            (),
            "placement/class-empty",
            "in ResourceClaimTemplate t: DeviceClass gpu.nvidia.com instead of vfio.gpu.nvidia.com",
        ),
    ],
)
def test_what_would_help_was_tried_and_is_of_the_kind_that_is_missing(
    given: Json, objects: tuple[Json, ...], reason: str, summary: str
) -> None:
    verdict = judged(given, *objects)
    assert reason in verdict.blockers
    assert summary in [remedy.summary for remedy in verdict.remedies]
    assert all(remedy.verified for remedy in verdict.remedies)


def test_a_tainted_device_is_offered_with_a_toleration() -> None:
    node, slice, *_ = make_devices.h100()
    for device in slice["spec"]["devices"]:
        device["taints"] = [{"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}]
    verdict = judged(spec(exactly()), *make_devices.classes(), node, slice)
    assert "placement/devices-tainted" in verdict.blockers
    assert [remedy.summary for remedy in verdict.remedies] == [
        "in ResourceClaimTemplate t: tolerate the device taint gpu.nvidia.com/xid=79:NoSchedule"
    ]


def test_an_extended_resource_that_a_class_supplies_has_a_funnel_too() -> None:
    given = [*make_devices.namespaces(), *make_devices.classes(), *make_devices.h100()]
    (gpu_class,) = [o for o in given if o["metadata"]["name"] == "gpu.nvidia.com"]
    gpu_class["spec"]["extendedResourceName"] = "nvidia.com/gpu"
    asks = {"limits": {"nvidia.com/gpu": "9"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ml"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": asks}]},
    }
    report = evaluate(
        list(read_documents(json.dumps(pod).encode(), "p.json")),
        Cluster.of(map(decoded, given), known=make_devices.KINDS),
        Policy.default(),
        now=NOW,
        source=Source("snapshot", "s"),
    )
    (verdict,) = report.workloads
    assert verdict.placement == "never"
    (found,) = [f for f in verdict.findings if f.reason == "placement/too-few-together"]
    assert found.detail == (
        "request container-0-request-0 needs 9: of 8 devices that match, 8 are together on one"
        " node (h100-0)"
    )


def test_requests_that_exclude_each_other_are_said_to_collide() -> None:
    given = [*make_devices.classes(), *make_devices.dynamic_mig(gpus=1)]
    verdict = judged(spec(exactly(), exactly("mig.nvidia.com")), *given)
    assert "placement/requests-collide" in verdict.blockers


def test_claims_and_templates_alone_are_judged_by_themselves() -> None:
    documents = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "big", "namespace": "ml"},
            "spec": {"spec": spec(exactly("gpu.nvidia.com", MEMORY))},
        },
        {
            "apiVersion": "resource.k8s.io/v1beta1",
            "kind": "ResourceClaim",
            "metadata": {"name": "one", "namespace": "ml"},
            "spec": {"devices": {"requests": [{"name": "g", "deviceClassName": "gpu.nvidia.com"}]}},
        },
    ]
    raw = "\n---\n".join(map(json.dumps, documents)).encode()
    cluster = Cluster.of(
        map(decoded, [*make_devices.namespaces(), *MACHINES]), known=make_devices.KINDS
    )
    report = evaluate(
        list(read_documents(raw, "c.yaml")),
        cluster,
        Policy.default(),
        now=NOW,
        source=Source("snapshot", "s"),
    )
    told = [
        (v.ref.kind, v.ref.name, v.pods, v.admission, v.placement, v.blockers, v.patch)
        for v in report.workloads
    ]
    assert told == [
        ("ResourceClaimTemplate", "big", 0, "admitted", "never", ("placement/selector-unmet",), ()),
        ("ResourceClaim", "one", 0, "admitted", "fits", (), ()),
    ]
    assert report.workloads[0].remedies[0].summary.endswith("instead of quantity('80Gi')")


def test_where_no_slices_were_exported_a_claim_alone_is_only_applied() -> None:
    raw = json.dumps(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "one"},
            "spec": spec(exactly()),
        }
    ).encode()
    report = evaluate(
        list(read_documents(raw, "c.yaml")),
        Cluster.of([]),
        Policy.default(),
        now=NOW,
        source=Source("snapshot", "s"),
    )
    assert report.workloads == ()
    assert [one.treated for one in report.skipped] == ["applied"]


def test_gpus_asked_the_old_way_where_only_claims_have_them_are_told_and_remedied() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ml"},
        "spec": {
            "containers": [
                {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 2}}}
            ]
        },
    }
    cluster = Cluster.of(
        map(decoded, [*make_devices.namespaces(), *MACHINES]), known=make_devices.KINDS
    )

    def verdict(kubernetes: str) -> Verdict:
        report = evaluate(
            list(read_documents(json.dumps(pod).encode(), "p.json")),
            cluster,
            Policy.default(),
            now=NOW,
            source=Source("snapshot", "s"),
            kubernetes=kubernetes,
        )
        (found,) = report.workloads
        return found

    def detail(found: Verdict) -> str:
        (said,) = [f for f in found.findings if f.reason == "placement/no-such-resource"]
        return said.detail

    found = verdict("1.37")
    assert detail(found) == (
        "no node advertises nvidia.com/gpu; GPUs of this cluster are had by claims (DeviceClass"
        " gpu.nvidia.com)"
    )
    assert [(r.summary, r.command, r.verified) for r in found.remedies] == [
        (
            "deviceclass.resource.kubernetes.io/gpu.nvidia.com instead of nvidia.com/gpu",
            "",
            True,
        ),
        (
            "let DeviceClass gpu.nvidia.com serve nvidia.com/gpu",
            "kubectl patch deviceclass gpu.nvidia.com --type merge -p"
            ' \'{"spec":{"extendedResourceName":"nvidia.com/gpu"}}\'',
            True,
        ),
    ]
    before = verdict("1.35")
    assert detail(before) == "no node advertises nvidia.com/gpu"
    assert before.remedies == ()
