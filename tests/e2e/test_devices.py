"""What is said of claims beside what a running control plane does with them."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from examples import make_devices
from kubectl_gpuadmit.cli.main import main
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.devices.model import DeviceId
from kubectl_gpuadmit.kube.decode import decode_bulk
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.place import place
from tests.controlplane.bed import ControlPlane
from tests.controlplane.client import ApiError, Json
from tests.controlplane.kubelet import Kubelet
from tests.controlplane.loading import load

HOME = "devices"
V1 = "resource.k8s.io/v1"
Explain = Callable[..., dict[str, Any]]


@pytest.fixture
def bed(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    control_plane.namespace(HOME)
    with Kubelet(control_plane.server):
        yield control_plane


@pytest.fixture
def explain(bed: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Explain:
    """The verdicts on documents against the live cluster, by kind."""

    def call(*documents: Json) -> dict[str, Any]:
        file = tmp_path / "given.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
        main(["explain", "-f", str(file), "-o", "json", "--kubeconfig", str(bed.kubeconfig)])
        out, err = capsys.readouterr()
        assert out, err
        return {one["ref"]["kind"]: one for one in json.loads(out)["workloads"]}

    return call


def template(name: str, **exactly: Any) -> Json:
    asks = {"deviceClassName": "gpu.nvidia.com", **exactly}
    requests = [{"name": "gpu", "exactly": asks}]
    return {
        "apiVersion": V1,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": HOME},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }


def pod(name: str, template: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": HOME},
        "spec": {
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
            "containers": [
                {"name": "c", "image": "x:1", "resources": {"claims": [{"name": "gpu"}]}}
            ],
        },
    }


def test_every_simulated_machine_is_taken_by_the_api_server_and_by_the_scheduler(
    bed: ControlPlane,
) -> None:
    """The API server refuses slices that a driver could not publish."""
    machines = [o for make in make_devices.MACHINES.values() for o in make()]
    load(bed, [*make_devices.classes(), *machines])
    published = [o for o in machines if o["kind"] == "ResourceSlice"]
    assert len(bed.client.list(V1, "ResourceSlice")) == len(published)
    for name in make_devices.CLASSES:
        if name == "vfio.gpu.nvidia.com":  # no machine has one
            continue
        bed.client.create(template(f"t-{name}", deviceClassName=name))
        made = pod(name.replace(".", "-"), f"t-{name}")
        bed.client.create(made)
        assert bed.outcome(HOME, made["metadata"]["name"]).node, name


def test_admin_access_is_refused_where_the_api_server_refuses_it(
    bed: ControlPlane, explain: Explain
) -> None:
    load(bed, [*make_devices.classes(), *make_devices.h100()])
    asking = template("admin", adminAccess=True, allocationMode="All")
    verdict = explain(asking, pod("p", "admin"))["Pod"]
    (found,) = [f for f in verdict["findings"] if f["reason"] == "dra/admin-access-unlabelled"]
    with pytest.raises(ApiError) as refused:
        bed.client.create(asking)
    (said,) = [e["observed"] for e in found["evidence"] if e["what"] == "message"]
    assert str(said) in str(refused.value)
    key = "resource.kubernetes.io/admin-access"
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
    bed.client.patch(home, {"metadata": {"labels": {key: "true"}}})
    try:
        verdict = explain(asking, pod("p", "admin"))["Pod"]
        assert (verdict["admission"], verdict["placement"]) == ("admitted", "fits")
        bed.client.create(asking)
        bed.client.create(pod("p", "admin"))
        assert bed.outcome(HOME, "p").node == "h100-0"
    finally:
        bed.client.patch(home, {"metadata": {"labels": {key: None}}})


COSTLY = (
    "device.attributes.exists(a, device.attributes.exists(b, device.attributes.exists(c,"
    " device.attributes.exists(d, a == b && c == d))))"
)
LISTS = f'{COSTLY} && device.attributes["gpu.example.com"].names.exists(n, n == "x")'
MISSPELT = 'device.drivr == "gpu.example.com"'


@pytest.mark.parametrize("expression", [COSTLY, LISTS, MISSPELT])
def test_a_selector_is_refused_with_the_api_server_s_own_message(
    bed: ControlPlane, explain: Explain, expression: str
) -> None:
    selectors = [{"cel": {"expression": expression}}]
    refused = [
        template("refused", selectors=selectors),
        {
            "apiVersion": V1,
            "kind": "ResourceClaim",
            "metadata": {"name": "refused", "namespace": HOME},
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "gpu",
                            "firstAvailable": [
                                {"name": "a", "deviceClassName": "c", "selectors": selectors}
                            ],
                        }
                    ]
                }
            },
        },
        {
            "apiVersion": V1,
            "kind": "DeviceClass",
            "metadata": {"name": "refused"},
            "spec": {"selectors": selectors},
        },
    ]
    verdicts = explain(*refused)
    for document in refused:
        with pytest.raises(ApiError) as refusal:
            bed.client.create(document)
        own = verdicts[document["kind"]]
        assert own["admission"] == "denied"
        said = own["findings"][0]["evidence"][-1]["observed"]
        assert said == refusal.value.message


def test_the_remedy_of_a_selector_that_fails_by_a_hair_lets_the_scheduler_place_the_pod(
    bed: ControlPlane, explain: Explain
) -> None:
    """The command's patch, applied by hand as kubectl would."""
    load(bed, [*make_devices.classes(), *make_devices.h100()])
    text = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0"
    asking = template("big", selectors=[{"cel": {"expression": text}}])
    verdict = explain(asking, pod("p", "big"))["Pod"]
    assert verdict["blockers"] == ["placement/selector-unmet"]
    bed.client.create(asking)
    bed.client.create(pod("p", "big"))
    assert "cannot allocate all claims" in bed.outcome(HOME, "p").message
    bed.client.delete(pod("p", "big"))
    bed.client.delete(asking)
    remedy = verdict["remedies"][0]
    assert "quantity('79Gi')" in remedy["summary"]
    changed = template("big", selectors=[{"cel": {"expression": text.replace("80Gi", "79Gi")}}])
    bed.client.create(changed)
    bed.client.create(pod("q", "big"))
    assert bed.outcome(HOME, "q").node == "h100-0"


def test_somebody_elses_field_is_not_taken_over(
    bed: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "kubeplus.io/gpu-isolation-enabled"
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
    bed.client.patch(home, {"metadata": {"labels": {key: "false"}}})
    try:
        words = ["isolate", HOME, "--sharing", "exclusive", "--device-class", "gpu.nvidia.com"]
        code = main([*words, "--apply", "--kubeconfig", str(bed.kubeconfig)])
        err = capsys.readouterr().err
        assert code == 4
        assert "[field-conflict]" in err
        assert f"namespace {HOME}: Apply failed with 1 conflict" in err
        assert "done before: ResourceClaimTemplate/" in err
    finally:
        bed.client.patch(home, {"metadata": {"labels": {key: None}}})
        main(["isolate", HOME, "--remove", "--kubeconfig", str(bed.kubeconfig)])


def test_the_scheduler_allocates_the_devices_that_were_foretold(bed: ControlPlane) -> None:
    """Replica after replica: parts of GPUs that share counters, on the only machine with any."""
    machine = [o for o in make_devices.dynamic_mig() if o["kind"] != "DeviceClass"]
    load(bed, [*make_devices.classes(), *machine])
    asking = template("part", deviceClassName="mig.nvidia.com")
    bed.client.create(asking)
    kinds = ("Node", "ResourceSlice", "DeviceClass", "ResourceClaimTemplate", "ResourceClaim")
    objects = [o for kind in kinds for o in bed.client.list("v1" if kind == "Node" else V1, kind)]
    raw = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode()
    known = (*kinds, "Pod", "DeviceTaintRule", "PodDisruptionBudget")
    cluster = Cluster.of(decode_bulk(raw, "live")[0], known)
    stored = msgspec.convert(pod("p", "part"), Pod)
    count = 4
    foretold = place(cluster, stored, count, now=dt.datetime.now(dt.UTC))
    assert len(foretold.places) == count
    ours = [
        [one.device for one in claim.allocation.devices]
        for claim in Inventory.of(foretold.cluster).claims.values()
        if claim.allocation is not None
    ]
    theirs = []
    for number in range(count):
        bed.client.create(pod(f"p-{number}", "part"))
        assert bed.outcome(HOME, f"p-{number}").node == foretold.places[number]
        for claim in bed.client.list(V1, "ResourceClaim", HOME):
            if claim["metadata"]["ownerReferences"][0]["name"] == f"p-{number}":
                results = claim["status"]["allocation"]["devices"]["results"]
                theirs.append([DeviceId(r["driver"], r["pool"], r["device"]) for r in results])
    assert theirs == ours


@pytest.mark.parametrize(
    "exactly",
    [
        {"selectors": [{"cel": {"expression": "device.drive == 'gpu.nvidia.com'"}}]},
        {"allocationMode": "All", "count": 2},
        {"deviceClassName": "GPU"},
        {"tolerations": [{"key": "a", "operator": "Gt"}]},
    ],
)
def test_a_claim_that_the_api_server_does_not_store_is_refused_in_its_words(
    bed: ControlPlane, explain: Explain, exactly: Json
) -> None:
    load(bed, make_devices.classes())
    asking = template("wrong", **exactly)
    verdict = explain(asking)["ResourceClaimTemplate"]
    assert verdict["admission"] == "denied"
    (found,) = verdict["findings"]
    with pytest.raises(ApiError) as refused:
        bed.client.create(asking)
    (said,) = [e["observed"] for e in found["evidence"] if e["what"] == "message"]
    assert said == refused.value.message


def test_the_pod_beyond_the_last_user_of_a_claim_finds_no_place(
    bed: ControlPlane, explain: Explain
) -> None:
    """ResourceClaimReservedForMaxSize; the scheduler tries, and the API server refuses."""
    load(bed, [*make_devices.classes(), *make_devices.h100()])
    asks = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    claim: Json = {
        "apiVersion": V1,
        "kind": "ResourceClaim",
        "metadata": {"name": "shared", "namespace": HOME},
        "spec": {"devices": {"requests": [asks]}},
    }
    bed.client.create(claim)
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "h100-0", "device": "gpu-0"}
    users = [{"resource": "pods", "name": f"u{i}", "uid": f"uid-{i}"} for i in range(256)]
    allocation = {"devices": {"results": [result]}}
    status = {"allocation": allocation, "reservedFor": users}
    bed.client.patch(claim, {"status": status}, part="status")
    asking = pod("last", "none")
    asking["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    verdict = explain(asking)["Pod"]
    assert (verdict["placement"], verdict["blockers"]) == ("waits", ["placement/claim-full"])
    bed.client.create(asking)
    assert "status.reservedFor: Too many: 257" in bed.outcome(HOME, "last").message
