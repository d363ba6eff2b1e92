"""What is composed for a tenant, what is refused, and what a pod gets of it."""

from __future__ import annotations

import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_gpuadmit import rules
from kubectl_gpuadmit.cli.main import main
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import isolation
from kubectl_gpuadmit.devices.isolation import Resolved, Wish, compose
from kubectl_gpuadmit.errors import BadInput
from kubectl_gpuadmit.kube.objects import KubeObject, Namespace, ObjectMeta
from kubectl_gpuadmit.rule import REGISTRY
from tests.rules import cases as casebook

assert rules.__all__
MIG = Wish(namespace="team-a", sharing="mig", mig_profile="1g.10gb")


def by_kind(wish: Wish, **more: Any) -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for one in compose(wish, **more).objects}


def test_a_mig_tenant_gets_a_class_a_template_a_quota_and_marks_on_the_namespace() -> None:
    plan = compose(MIG, uid="u-1", classes=("gpu.nvidia.com", "fast"))
    name = "kubeplus-gpu-team-a"
    of = {"gpu-admit.io/isolation-of": "team-a"}
    assert plan.objects == (
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {
                "name": name,
                "labels": of,
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Namespace", "name": "team-a", "uid": "u-1"}
                ],
            },
            "spec": {
                "selectors": [
                    {
                        "cel": {
                            "expression": "device.driver == 'gpu.nvidia.com'"
                            " && device.attributes['gpu.nvidia.com'].type == 'mig'"
                            " && device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"
                        }
                    }
                ]
            },
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": "team-a", "labels": of},
            "spec": {
                "spec": {
                    "devices": {
                        "requests": [
                            {
                                "name": "gpu",
                                "exactly": {
                                    "deviceClassName": name,
                                    "allocationMode": "ExactCount",
                                    "count": 1,
                                },
                            }
                        ]
                    }
                }
            },
        },
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": name, "namespace": "team-a", "labels": of},
            "spec": {
                "hard": {
                    "count/resourceclaims.resource.k8s.io": "1",
                    f"{name}.deviceclass.resource.k8s.io/devices": "1",
                    "fast.deviceclass.resource.k8s.io/devices": "0",
                    "gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "0",
                    "mig.nvidia.com.deviceclass.resource.k8s.io/devices": "0",
                    "vfio.gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "0",
                    "requests.nvidia.com/gpu": "0",
                }
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": "team-a",
                "labels": {"kubeplus.io/gpu-isolation-enabled": "true"},
                "annotations": {
                    "kubeplus.io/gpu-isolation-resolved": f'{{"claimTemplateName":"{name}"}}',
                    "gpu-admit.io/gpu-isolation-strength": "hardware",
                },
            },
        },
    )
    assert plan.notes == (
        "a pod beyond 1 is admitted and stays Pending: its claim is refused by the quota when the"
        " controller makes it",
    )


@pytest.mark.parametrize(
    ("wish", "strength", "kind", "config"),
    [
        (Wish(namespace="n", sharing="exclusive"), "device", "ResourceClaimTemplate", None),
        (MIG, "hardware", "ResourceClaimTemplate", None),
        (
            Wish(namespace="n", sharing="hybrid", mig_profile="3g.20gb"),
            "hardware",
            "ResourceClaim",
            ("MigDeviceConfig", "TimeSlicing"),
        ),
        (
            Wish(namespace="n", sharing="time-slicing", forced=True),
            "none",
            "ResourceClaim",
            ("GpuConfig", "TimeSlicing"),
        ),
        (
            Wish(namespace="n", sharing="mps", forced=True),
            "soft",
            "ResourceClaim",
            ("GpuConfig", "MPS"),
        ),
    ],
)
def test_each_way_of_sharing_says_how_strongly_it_isolates(
    wish: Wish, strength: str, kind: str, config: tuple[str, str] | None
) -> None:
    plan = compose(wish)
    objects = {one["kind"]: one for one in plan.objects}
    assert plan.strength == strength
    marks = objects["Namespace"]["metadata"]["annotations"]
    assert marks["gpu-admit.io/gpu-isolation-strength"] == strength
    spec = objects[kind]["spec"]
    devices = (spec["spec"] if kind == "ResourceClaimTemplate" else spec)["devices"]
    given = [c["opaque"]["parameters"] for c in devices.get("config", ())]
    assert [(g["kind"], g["sharing"]["strategy"]) for g in given] == ([config] if config else [])
    assert any("experimental" in note for note in plan.notes) == (wish.sharing == "hybrid")


@pytest.mark.parametrize("sharing", ["time-slicing", "mps"])
def test_sharing_without_isolation_is_refused_unless_it_is_forced(sharing: Any) -> None:
    with pytest.raises(BadInput) as refused:
        compose(Wish(namespace="n", sharing=sharing))
    assert refused.value.ref == "not-isolated"
    assert refused.value.message.startswith(f"{sharing} does not isolate: ")
    assert compose(Wish(namespace="n", sharing=sharing, forced=True)).objects


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        (Wish(namespace="n", sharing="mig"), "--mig-profile"),
        (Wish(namespace="n", sharing="mig", mig_profile="1g10gb"), "--mig-profile"),
        (Wish(namespace="n", sharing="hybrid", mig_profile="' || true"), "--mig-profile"),
        (Wish(namespace="n", sharing="exclusive", mig_profile="1g.10gb"), "--mig-profile"),
        (Wish(namespace="n", sharing="exclusive", max_devices=0), "--max-devices"),
    ],
)
def test_a_wish_that_contradicts_itself_is_refused_by_its_flag(wish: Wish, field: str) -> None:
    with pytest.raises(BadInput) as refused:
        compose(wish)
    assert (refused.value.ref, refused.value.field) == ("usage", field)


def test_an_existing_class_is_built_on_and_no_cluster_scoped_object_is_made() -> None:
    wish = Wish(
        namespace="n", sharing="mig", mig_profile="1g.5gb", device_class="mig.nvidia.com", quota="q"
    )
    objects = by_kind(wish)
    assert set(objects) == {"ResourceClaimTemplate", "ResourceQuota", "Namespace"}
    (request,) = objects["ResourceClaimTemplate"]["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == "mig.nvidia.com"
    assert "1g.5gb" in request["exactly"]["selectors"][0]["cel"]["expression"]
    quota = objects["ResourceQuota"]
    assert quota["metadata"] == {"name": "q", "namespace": "n"}
    assert quota["spec"]["hard"]["mig.nvidia.com.deviceclass.resource.k8s.io/devices"] == "1"


def test_without_the_uid_of_the_namespace_the_class_is_said_to_stay_behind() -> None:
    plan = compose(MIG)
    assert "ownerReferences" not in plan.objects[0]["metadata"]
    assert "leaves the class behind" in plan.notes[0]


def test_the_oldest_served_version_has_its_requests_flat() -> None:
    template = by_kind(MIG)["ResourceClaimTemplate"]
    older = isolation.in_version(template, "v1beta1")
    assert older["apiVersion"] == "resource.k8s.io/v1beta1"
    assert older["spec"]["spec"]["devices"]["requests"] == [
        {
            "name": "gpu",
            "deviceClassName": "kubeplus-gpu-team-a",
            "allocationMode": "ExactCount",
            "count": 1,
        }
    ]
    same = isolation.in_version(template, "v1beta2")
    assert same == {**template, "apiVersion": "resource.k8s.io/v1beta2"}


# -- what an instance's annotation asks for --------------------------------------------------------


def instance(annotation: str | None) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": "agent", "namespace": "team-a"}
    if annotation is not None:
        meta["annotations"] = {"kubeplus.io/gpu-isolation": annotation}
    return {"apiVersion": "x/v1", "kind": "Agent", "metadata": meta}


def test_an_instances_annotation_is_a_wish_and_none_is_none() -> None:
    text = '{"sharing": "mig", "migProfile": "1g.10gb", "maxDevices": 2}'
    assert isolation.asked_by(instance(text), namespace="d", forced=False) == Wish(
        namespace="team-a",
        sharing="mig",
        mig_profile="1g.10gb",
        max_devices=2,
        instance="agent",
    )
    assert isolation.asked_by(instance(None), namespace="d", forced=False) is None


@pytest.mark.parametrize(
    "text", ["mig", '{"sharing": "half"}', '{"sharing": "mig", "profile": "1g"}', "[]", ""]
)
def test_an_annotation_that_cannot_be_read_is_one_clear_error(
    text: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "agent.json"
    file.write_text(json.dumps(instance(text)))
    assert main(["isolate", "-f", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f'error: {file}:1 metadata.annotations["kubeplus.io/gpu-isolation"]: ')
    assert "[bad-annotation]" in err


def test_an_instances_template_is_named_for_it(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "agent.json"
    file.write_text(json.dumps(instance('{"sharing": "exclusive"}')))
    assert main(["isolate", "-f", str(file), "-o", "json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    annotations = items[-1]["metadata"]["annotations"]
    resolved = json.loads(annotations["kubeplus.io/gpu-isolation-resolved"])
    assert resolved == {"claimTemplateName": "kubeplus-gpu-agent"}


# -- what pods get ---------------------------------------------------------------------------------

NAMES = st.sampled_from(["kubeplus-gpu", "kubeplus-gpu-2", "nic", "a"])
CLAIM = st.fixed_dictionaries(
    {"name": NAMES},
    optional={"resourceClaimName": NAMES, "resourceClaimTemplateName": st.just("t")},
)
RESOURCES = st.fixed_dictionaries(
    {},
    optional={
        "limits": st.just({"cpu": "1"}),
        "claims": st.lists(st.builds(lambda n: {"name": n}, NAMES), max_size=2),
    },
)
CONTAINER = st.fixed_dictionaries({"name": NAMES}, optional={"resources": RESOURCES})
POD_SPEC = st.fixed_dictionaries(
    {"containers": st.lists(CONTAINER, max_size=3)},
    optional={"resourceClaims": st.lists(CLAIM, max_size=3, unique_by=lambda c: c["name"])},
)


@given(POD_SPEC)
def test_declared_claims_stay_every_container_has_ours_and_twice_is_once(
    spec: dict[str, Any],
) -> None:
    template = {"spec": spec}
    ops = isolation.operations(template, Resolved(claimTemplateName="t"))
    after = jsonpatch.apply_patch(template, ops)["spec"]
    declared = spec.get("resourceClaims", [])
    assert after["resourceClaims"][: len(declared)] == declared
    ours = [c["name"] for c in after["resourceClaims"] if c.get("resourceClaimTemplateName") == "t"]
    names = [c["name"] for c in after["resourceClaims"]]
    assert len(names) == len(set(names))
    for before, container in zip(spec["containers"], after["containers"], strict=True):
        had = before.get("resources", {}).get("claims", [])
        assert container["resources"]["claims"][: len(had)] == had
        assert ours[0] in [c["name"] for c in container["resources"]["claims"]]
    assert isolation.operations({"spec": after}, Resolved(claimTemplateName="t")) == ()


@pytest.mark.parametrize(
    "text", ["", "{}", "x", '{"claimName": "a", "claimTemplateName": "b"}', '{"claimName": 7}']
)
def test_an_annotation_of_the_namespace_that_names_not_one_claim_resolves_to_none(
    text: str,
) -> None:
    namespace = Namespace(
        metadata=ObjectMeta(name="n", annotations={"kubeplus.io/gpu-isolation-resolved": text})
    )
    assert isolation.resolved(namespace) is None


class Counting(Cluster):
    """A cluster that counts how often it is asked for an object."""

    asked = 0

    def get(self, kind: str, namespace: str, name: str) -> KubeObject | None:
        self.asked += 1
        return super().get(kind, namespace, name)

    def every(self, kind: str, namespace: str | None = None) -> Any:
        raise AssertionError("the mutation looks at nothing but the namespace")


def test_the_mutation_looks_at_the_namespace_once_whatever_the_chart() -> None:
    (case,) = [c for c in casebook.cases("dra/isolation-claims") if c.name.startswith("a pod of")]
    ask, cluster = casebook.ask_of(case, casebook.policy_of(case, "dra/isolation-claims"))
    counting = Counting()
    counting._objects = cluster._objects
    assert len(list(REGISTRY["dra/isolation-claims"].ask(ask, counting, {}))) == 1
    assert counting.asked == 1
