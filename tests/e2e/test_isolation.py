"""``isolate`` on a running control plane: each promise made to a tenant, kept by Kubernetes itself.

The devices are those that the driver simulator publishes; the scheduler allocates claims, the API
server refuses by quota, the garbage collector cleans up. What the webhook will do to a pod is done
by hand here: the patch that ``explain`` shows is applied before the pod is created.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from examples import make_devices
from kubectl_gpuadmit.cli.main import main
from tests.controlplane.bed import ControlPlane
from tests.controlplane.client import ApiError, Json
from tests.controlplane.kubelet import Kubelet
from tests.controlplane.loading import load

Run = Callable[..., tuple[int, str, str]]
_numbers = itertools.count()
V1 = "resource.k8s.io/v1"


@pytest.fixture
def bed(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    with Kubelet(control_plane.server):
        yield control_plane


@pytest.fixture
def tenants(bed: ControlPlane) -> tuple[str, str]:
    """Two namespaces that no other test has used."""
    number = next(_numbers)
    first, second = f"tenant-{number}a", f"tenant-{number}b"
    return bed.namespace(first), bed.namespace(second)


@pytest.fixture
def run(bed: ControlPlane, capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit code, stdout and stderr of one command as the cluster's administrator."""

    def call(*words: str) -> tuple[int, str, str]:
        code = main([*words, "--kubeconfig", str(bed.kubeconfig)])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def isolate(run: Run, namespace: str, *words: str) -> str:
    code, out, err = run("isolate", namespace, *words, "--apply")
    assert code == 0, err
    return out


def chart_pod(name: str, namespace: str, **spec: Any) -> Json:
    """A pod of a chart that knows nothing of claims, with a sidecar."""
    containers = [{"name": "model", "image": "vllm:1"}, {"name": "proxy", "image": "envoy:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": containers, **spec},
    }


def explained(run: Run, tmp_path: Path, pod: Json) -> dict[str, Any]:
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod))
    _, out, err = run("explain", "-f", str(file), "-o", "json", "--no-remedies")
    assert out, err
    (verdict,) = json.loads(out)["workloads"]
    assert isinstance(verdict, dict)
    return verdict


def created(bed: ControlPlane, run: Run, tmp_path: Path, pod: Json) -> Json:
    """The pod as the webhook would let it in."""
    patch = explained(run, tmp_path, pod)["patch"]
    return bed.client.create(jsonpatch.apply_patch(pod, patch))


def claim_of(bed: ControlPlane, pod: Json, *, timeout: float = 30) -> Json:
    """The pod's one claim, once the scheduler has allocated it."""
    meta = pod["metadata"]

    def allocated() -> Json | None:
        found = bed.client.get(bed.client.path_of(pod))
        names = [
            s["resourceClaimName"]
            for s in found.get("status", {}).get("resourceClaimStatuses", ())
            if "resourceClaimName" in s
        ]
        for name in names:
            path = bed.client.path(V1, "ResourceClaim", meta["namespace"], name)
            claim = bed.client.get(path)
            if "allocation" in claim.get("status", {}):
                return claim
        return None

    return bed.wait(allocated, what=f"the claim of {meta['name']}", timeout=timeout)


def device_of(claim: Json) -> str:
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    return str(result["device"])


def event(bed: ControlPlane, namespace: str, reason: str) -> str:
    def there() -> str:
        events = bed.client.list("v1", "Event", namespace)
        return next((e["message"] for e in events if e["reason"] == reason), "")

    return bed.wait(there, what=f"an event {reason}", timeout=30)


# -- the acceptance criteria, one after another ----------------------------------------------------


def test_without_the_annotation_there_is_no_claim_and_no_mutation(
    bed: ControlPlane, run: Run, tenants: tuple[str, str], tmp_path: Path
) -> None:
    load(bed, [*make_devices.classes(), *make_devices.mig()])
    instance = tmp_path / "agent.yaml"
    instance.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "platform.example.com/v1",
                "kind": "Agent",
                "metadata": {"name": "plain", "namespace": tenants[0]},
            }
        )
    )
    code, out, err = run("isolate", "-f", str(instance), "--apply")
    assert (code, out) == (0, "")
    assert "no annotation kubeplus.io/gpu-isolation: it gets no device, nothing to make" in err
    pod = chart_pod("p", tenants[0])
    assert explained(run, tmp_path, pod)["patch"] == []
    stored = created(bed, run, tmp_path, pod)
    assert "resourceClaims" not in stored["spec"]
    assert bed.outcome(tenants[0], "p").node == "mig-0"
    assert bed.client.list(V1, "ResourceClaim", tenants[0]) == []
    assert bed.client.list(V1, "ResourceClaimTemplate", tenants[0]) == []


@pytest.mark.parametrize("machine", ["mig", "dynamic-mig"])
def test_two_tenants_of_one_profile_get_partitions_of_their_own_on_one_node(
    bed: ControlPlane, run: Run, tenants: tuple[str, str], tmp_path: Path, machine: str
) -> None:
    load(bed, [*make_devices.classes(), *make_devices.MACHINES[machine]()])
    claims = []
    for tenant in tenants:
        isolate(run, tenant, "--sharing", "mig", "--mig-profile", "1g.5gb")
        template = bed.client.list(V1, "ResourceClaimTemplate", tenant)
        assert [t["metadata"]["name"] for t in template] == [f"kubeplus-gpu-{tenant}"]
        pod = created(bed, run, tmp_path, chart_pod("agent", tenant))
        claims.append(claim_of(bed, pod))
    results = [c["status"]["allocation"]["devices"]["results"][0] for c in claims]
    assert results[0]["pool"] == results[1]["pool"]
    assert results[0]["device"] != results[1]["device"]
    places = [places_of(bed, one) for one in results]
    assert all(places)
    assert not set(places[0]) & set(places[1]), "the partitions overlap"


def places_of(bed: ControlPlane, result: Json) -> list[tuple[str, str]]:
    """The memory slices of the GPUs that a device takes."""
    for one in bed.client.list(V1, "ResourceSlice"):
        for device in one["spec"].get("devices", ()):
            if one["spec"]["pool"]["name"] == result["pool"] and device["name"] == result["device"]:
                assert device["attributes"]["profile"] == {"string": "1g.5gb"}
                parent = device["attributes"]["parentUUID"]["string"]
                taken = [c for use in device.get("consumesCounters", ()) for c in use["counters"]]
                named = [name.replace("memorySlice", "") for name in device["capacity"]]
                slices = [n for n in named if n.isdigit()]
                slices += [n.removeprefix("memory-slice-") for n in taken if "slice" in n]
                return [(parent, place) for place in slices]
    return []


def test_a_pod_gets_the_claim_although_its_chart_declares_none_and_keeps_what_it_declares(
    bed: ControlPlane, run: Run, tenants: tuple[str, str], tmp_path: Path
) -> None:
    load(bed, [*make_devices.classes(), *make_devices.mig()])
    isolate(run, tenants[0], "--sharing", "mig", "--mig-profile", "2g.10gb", "--max-devices", "3")
    template = {"name": "kubeplus-gpu", "resourceClaimTemplateName": f"kubeplus-gpu-{tenants[0]}"}
    stored = created(bed, run, tmp_path, chart_pod("plain", tenants[0]))
    assert stored["spec"]["resourceClaims"] == [template]
    claims = [c["resources"]["claims"] for c in stored["spec"]["containers"]]
    assert claims == [[{"name": "kubeplus-gpu"}], [{"name": "kubeplus-gpu"}]]

    own = chart_pod("own", tenants[0], resourceClaims=[{"name": "nic", "resourceClaimName": "n"}])
    own["spec"]["containers"][0]["resources"] = {"claims": [{"name": "nic"}]}
    stored = created(bed, run, tmp_path, own)
    assert stored["spec"]["resourceClaims"] == [
        {"name": "nic", "resourceClaimName": "n"},
        template,
    ]
    claims = [c["resources"]["claims"] for c in stored["spec"]["containers"]]
    assert claims == [[{"name": "nic"}, {"name": "kubeplus-gpu"}], [{"name": "kubeplus-gpu"}]]

    again = copy.deepcopy(stored)
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"):
        again["metadata"].pop(key, None)
    assert explained(run, tmp_path, {**again, "status": {}})["patch"] == []


def test_more_than_the_maximum_is_refused_by_the_quota_of_the_api_server(
    bed: ControlPlane, run: Run, tenants: tuple[str, str], tmp_path: Path
) -> None:
    load(bed, [*make_devices.classes(), *make_devices.mig()])
    out = isolate(run, tenants[0], "--sharing", "mig", "--mig-profile", "1g.5gb")
    assert "a pod beyond 1 is admitted and stays Pending" in " ".join(out.split())
    first = created(bed, run, tmp_path, chart_pod("first", tenants[0]))
    claim_of(bed, first)
    created(bed, run, tmp_path, chart_pod("second", tenants[0]))
    message = event(bed, tenants[0], "FailedResourceClaimCreation")
    name = f"kubeplus-gpu-{tenants[0]}"
    assert f"exceeded quota: {name}" in message
    assert "used: count/resourceclaims.resource.k8s.io=1" in message

    for device_class, count in ((name, 1), ("gpu.nvidia.com", 1), ("mig.nvidia.com", 1)):
        claim = {
            "apiVersion": V1,
            "kind": "ResourceClaim",
            "metadata": {"name": "extra", "namespace": tenants[0]},
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "r",
                            "exactly": {"deviceClassName": device_class, "count": count},
                        }
                    ]
                }
            },
        }
        with pytest.raises(ApiError, match="exceeded quota") as refused:
            bed.client.create(claim)
        assert refused.value.status == 403
    plugin = chart_pod("plugin", tenants[0])
    plugin["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    with pytest.raises(ApiError, match=r"requests\.nvidia\.com/gpu=1, used: .*=0, limited: .*=0"):
        bed.client.create(plugin)


def test_deleting_the_namespace_leaves_nothing_behind(
    bed: ControlPlane, run: Run, tenants: tuple[str, str], tmp_path: Path
) -> None:
    load(bed, [*make_devices.classes(), *make_devices.mig()])
    isolate(run, tenants[0], "--sharing", "mig", "--mig-profile", "1g.5gb")
    claim_of(bed, created(bed, run, tmp_path, chart_pod("agent", tenants[0])))
    name = f"kubeplus-gpu-{tenants[0]}"
    assert name in [c["metadata"]["name"] for c in bed.client.list(V1, "DeviceClass")]
    bed.client.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": tenants[0]}})

    def gone() -> bool:
        names = [n["metadata"]["name"] for n in bed.client.list("v1", "Namespace")]
        classes = [c["metadata"]["name"] for c in bed.client.list(V1, "DeviceClass")]
        return tenants[0] not in names and name not in classes

    bed.wait(gone, what="the end of the tenant", timeout=90)
    for kind in ("ResourceClaim", "ResourceClaimTemplate"):
        there = [o["metadata"]["namespace"] for o in bed.client.list(V1, kind)]
        assert tenants[0] not in there


# -- what else a person may do with it -------------------------------------------------------------


def test_applying_twice_changes_nothing_and_another_mode_replaces_the_first(
    bed: ControlPlane, run: Run, tenants: tuple[str, str]
) -> None:
    words = ("--sharing", "mig", "--mig-profile", "1g.5gb")
    assert isolate(run, tenants[0], *words).count("  created\n") == 3
    assert isolate(run, tenants[0], *words).count("  unchanged\n") == 4
    out = isolate(run, tenants[0], "--sharing", "mig", "--mig-profile", "2g.10gb")
    assert f"DeviceClass/kubeplus-gpu-{tenants[0]}  changed\n" in out
    out = isolate(run, tenants[0], "--sharing", "hybrid", "--mig-profile", "2g.10gb")
    assert f"ResourceClaim/kubeplus-gpu-{tenants[0]}  created\n" in out
    assert f"ResourceClaimTemplate/kubeplus-gpu-{tenants[0]}  deleted\n" in out
    assert "hybrid is experimental" in out
    found = bed.client.get(f"/api/v1/namespaces/{tenants[0]}")["metadata"]["annotations"]
    assert json.loads(found["kubeplus.io/gpu-isolation-resolved"]) == {
        "claimName": f"kubeplus-gpu-{tenants[0]}"
    }


def test_a_template_that_differs_is_made_anew_because_it_cannot_be_changed(
    bed: ControlPlane, run: Run, tenants: tuple[str, str]
) -> None:
    words = ("--sharing", "mig", "--mig-profile")
    isolate(run, tenants[0], *words, "1g.5gb", "--device-class", "mig.nvidia.com")
    out = isolate(run, tenants[0], *words, "2g.10gb", "--device-class", "mig.nvidia.com")
    assert f"ResourceClaimTemplate/kubeplus-gpu-{tenants[0]}  made anew\n" in out
    (template,) = bed.client.list(V1, "ResourceClaimTemplate", tenants[0])
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == "mig.nvidia.com"
    assert "2g.10gb" in request["exactly"]["selectors"][0]["cel"]["expression"]
    assert bed.client.list(V1, "DeviceClass") == []


def test_the_pods_of_a_hybrid_tenant_share_one_partition(
    bed: ControlPlane, run: Run, tenants: tuple[str, str], tmp_path: Path
) -> None:
    load(bed, [*make_devices.classes(), *make_devices.mig()])
    isolate(run, tenants[0], "--sharing", "hybrid", "--mig-profile", "3g.20gb")
    for name in ("a", "b"):
        created(bed, run, tmp_path, chart_pod(name, tenants[0]))
        assert bed.outcome(tenants[0], name).node == "mig-0"
    (claim,) = bed.client.list(V1, "ResourceClaim", tenants[0])
    assert "mig-3g20gb" in device_of(claim)
    assert {one["name"] for one in claim["status"]["reservedFor"]} == {"a", "b"}


def test_removing_takes_away_what_was_applied_and_leaves_the_rest_of_the_namespace(
    bed: ControlPlane, run: Run, tenants: tuple[str, str]
) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "storage", "namespace": tenants[0]},
        "spec": {"hard": {"persistentvolumeclaims": "4"}},
    }
    bed.client.create(quota)
    words = ("--sharing", "exclusive", "--quota", "storage")
    isolate(run, tenants[0], *words)
    hard = bed.client.get(bed.client.path_of(quota))["spec"]["hard"]
    assert hard["persistentvolumeclaims"] == "4"
    assert hard["count/resourceclaims.resource.k8s.io"] == "1"
    code, out, err = run("isolate", tenants[0], "--remove", "--quota", "storage")
    assert code == 0, err
    assert f"{tenants[0]} is not isolated any more" in out
    assert bed.client.get(bed.client.path_of(quota))["spec"]["hard"] == {
        "persistentvolumeclaims": "4"
    }
    meta = bed.client.get(f"/api/v1/namespaces/{tenants[0]}")["metadata"]
    assert meta["labels"] == {"kubernetes.io/metadata.name": tenants[0]}
    assert "kubeplus.io/gpu-isolation-resolved" not in meta.get("annotations", {})
    assert bed.client.list(V1, "ResourceClaimTemplate", tenants[0]) == []
    assert bed.client.list(V1, "DeviceClass") == []
    code, out, _ = run("isolate", tenants[0], "--remove")
    assert (code, f"{tenants[0]} was not isolated" in out) == (0, True)


def test_what_the_user_may_not_do_is_told_and_what_was_done_before_is_named(
    bed: ControlPlane, tenants: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    rules = [
        {"apiGroups": ["resource.k8s.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["resourcequotas"], "verbs": ["get", "list"]},
    ]
    config = bed.allow(tenants[0], rules=rules)
    words = ["isolate", tenants[0], "--sharing", "mig", "--mig-profile", "1g.5gb"]
    words += ["--device-class", "mig.nvidia.com", "--apply", "--kubeconfig", str(config)]
    assert main(words) == 4
    _, err = capsys.readouterr()
    assert 'User "developer" cannot patch resource "resourcequotas"' in err
    assert f"done before: ResourceClaimTemplate/kubeplus-gpu-{tenants[0]} created" in err


def test_a_namespace_that_is_not_there_is_not_made_in_passing(bed: ControlPlane, run: Run) -> None:
    code, _, err = run("isolate", "nowhere", "--sharing", "exclusive", "--apply")
    assert code == 2
    assert "the cluster has no namespace nowhere [no-such-namespace]" in err


def test_explain_says_where_the_pod_of_an_isolated_namespace_would_land(
    bed: ControlPlane, run: Run, tenants: tuple[str, str], tmp_path: Path
) -> None:
    """The claim is not in the manifest: explain reads the devices all the same."""
    load(bed, [*make_devices.classes(), *make_devices.mig()])
    isolate(run, tenants[0], "--sharing", "mig", "--mig-profile", "3g.20gb", "--max-devices", "4")
    verdict = explained(run, tmp_path, chart_pod("p", tenants[0]))
    assert (verdict["admission"], verdict["placement"]) == ("mutated", "fits")
    for name in ("a", "b"):
        claim_of(bed, created(bed, run, tmp_path, chart_pod(name, tenants[0])))
    verdict = explained(run, tmp_path, chart_pod("c", tenants[0]))
    assert verdict["placement"] == "waits"
    assert verdict["blockers"] == ["placement/devices-in-use"]


def test_a_claim_is_explained_by_itself_on_the_live_cluster(
    bed: ControlPlane, run: Run, tenants: tuple[str, str], tmp_path: Path
) -> None:
    load(bed, [*make_devices.classes(), *make_devices.h100()])
    text = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0"
    asks = {"deviceClassName": "gpu.nvidia.com", "selectors": [{"cel": {"expression": text}}]}
    claim = {
        "apiVersion": V1,
        "kind": "ResourceClaim",
        "metadata": {"name": "eighty", "namespace": tenants[0]},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": asks}]}},
    }
    verdict = explained(run, tmp_path, claim)
    assert (verdict["placement"], verdict["blockers"]) == ("never", ["placement/selector-unmet"])
    bed.client.create(claim)
    pod = chart_pod("p", tenants[0], resourceClaims=[{"name": "g", "resourceClaimName": "eighty"}])
    bed.client.create(pod)
    outcome = bed.outcome(tenants[0], "p")
    assert "cannot allocate all claims" in outcome.message
