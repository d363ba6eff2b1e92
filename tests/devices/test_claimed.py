"""How many GPUs claims ask for, in one pod and in all, and how a person reads it."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices.claimed import Claimed, claimed, total
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.render.wording import asks
from kubectl_gpuadmit.verdict import Group, Ref, Verdict
from tests.devices.test_funnel import spec
from tests.rules.cases import decoded

CLASS = "gpu.nvidia.com"


def named(kind: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ml"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": meta, "spec": given}


def two(name: str) -> dict[str, Any]:
    return {"deviceClassName": name, "count": 2}


CLUSTER = Cluster.of(
    map(
        decoded,
        [
            named("ResourceClaimTemplate", "own", {"spec": spec(two(CLASS), two("nic"))}),
            named("ResourceClaim", "all", spec({"deviceClassName": "mig.nvidia.com"})),
        ],
    )
)


def pod(*claims: dict[str, str]) -> Pod:
    made = decoded(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "ml"},
            "spec": {"resourceClaims": [{"name": f"c{i}", **c} for i, c in enumerate(claims)]},
        }
    )
    assert isinstance(made, Pod)
    return made


def test_a_template_counts_for_each_pod_and_a_shared_claim_once() -> None:
    own, shared = {"resourceClaimTemplateName": "own"}, {"resourceClaimName": "all"}
    found = claimed(pod(own, own, shared), CLUSTER)
    assert found == Claimed({CLASS: 4}, {"all": {"mig.nvidia.com": 1}})
    assert total([(found, 3), (claimed(pod(shared), CLUSTER), 2)]) == {
        CLASS: 12,
        "mig.nvidia.com": 1,
    }
    assert claimed(pod({"resourceClaimTemplateName": "nowhere"}), CLUSTER) == Claimed()
    assert claimed(pod(), CLUSTER) == Claimed()


def test_the_first_line_counts_devices_where_that_can_be_done() -> None:
    def said(*groups: Group) -> str:
        pods = sum(group.pods for group in groups)
        ref = Ref("apps/v1", "Deployment", "ml", "d")
        return asks(Verdict(ref, "d", pods, {}, "admitted", "fits", "fits", groups=groups))

    gpu = {"nvidia.com/gpu": 1}
    assert said(Group("", 2, {}, 1, {CLASS: 4})) == "2 pods × 4 gpu.nvidia.com"
    assert said(Group("", 2, {}, 1)) == "2 pods × 1 claim"
    assert said(Group("", 2, {}, 1, {}, {CLASS: 1})) == "2 pods sharing 1 gpu.nvidia.com"
    assert said(Group("", 1, {}, 1, {}, {CLASS: 1})) == "1 pod with 1 gpu.nvidia.com"
    assert said(Group("", 2, gpu, 1, {CLASS: 4}, {"mig": 1})) == (
        "2 pods with 4 gpu.nvidia.com, 1 nvidia.com/gpu and 1 mig shared"
    )
    assert said(Group("a", 1, {}), Group("b", 2, {}, 1, {CLASS: 1})) == (
        "1 a + 2 b × 1 gpu.nvidia.com"
    )
