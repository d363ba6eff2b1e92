"""InferenceDeployments on a running API server: scaled to zero with an Event that says why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_gpuadmit.cli.main import main
from tests.controlplane.bed import RBAC, ControlPlane
from tests.controlplane.client import ApiError, Json
from tests.controlplane.test_bed import node

ROOT = Path(__file__).parents[2]
TEAM = "team-a"
CRD = ROOT / "deploy" / "crds" / "inferencedeployments.svr.sivaro.io.yaml"
PATH = f"/apis/svr.sivaro.io/v1alpha1/namespaces/{TEAM}/inferencedeployments"
POLICY = {
    "apiVersion": "gpu-admit.io/v1",
    "kind": "AdmissionPolicy",
    "rules": {"model/memory-fit": "deny", "model/scale-to-zero": "deny"},
}


@pytest.fixture
def bed(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """With the shipped definition, and one node with two A10."""
    control_plane.namespace(TEAM)
    definition = yaml.safe_load(CRD.read_text("utf-8"))
    control_plane.client.create(definition)
    name = definition["metadata"]["name"]
    at = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"

    def established() -> bool:
        conditions = control_plane.client.get(at).get("status", {}).get("conditions") or []
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

    control_plane.wait(established, what="the definition")
    control_plane.wait(lambda: served(control_plane), what="the resource")
    labels = {"nvidia.com/gpu.product": "NVIDIA-A10", "nvidia.com/gpu.memory": "23028"}
    made = node("a10-0", gpus=2)
    made["metadata"]["labels"] = {**made["metadata"].get("labels", {}), **labels}
    control_plane.node(made)
    yield control_plane
    control_plane.client.delete(definition)

    def gone() -> bool:
        try:
            control_plane.client.get(at)
        except ApiError as problem:
            return problem.status == 404
        return False

    control_plane.wait(gone, what="the definition's end")


def served(bed: ControlPlane) -> bool:
    try:
        bed.client.get(PATH)
    except ApiError:
        return False
    return True


def deployment(name: str, model: str, **spec: Any) -> Json:
    return {
        "apiVersion": "svr.sivaro.io/v1alpha1",
        "kind": "InferenceDeployment",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {
            "modelName": model,
            "container": {
                "image": "registry.example.com/llama-server:70b-v4",
                "resources": {"limits": {"nvidia.com/gpu": "2"}},
            },
            **spec,
        },
    }


def explain(
    bed: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str, **more: Any
) -> tuple[int, Json, str]:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(POLICY), "utf-8")
    config = str(more.get("kubeconfig", bed.kubeconfig))
    code = main(
        [
            *("explain", *words, "--policy", str(policy), "-o", "json"),
            *("--kubeconfig", config, "-n", TEAM, "--no-remedies"),
        ]
    )
    out, err = capsys.readouterr()
    return code, json.loads(out)["workloads"][0] if out else {}, err


def events(bed: ControlPlane, name: str) -> list[tuple[str, str, str]]:
    found = bed.client.get(f"/api/v1/namespaces/{TEAM}/events")["items"]
    return [
        (e["type"], e["reason"], e["message"])
        for e in found
        if e["involvedObject"]["kind"] == "InferenceDeployment"
        and e["involvedObject"]["name"] == name
    ]


WHY = (
    "scaled to zero: meta/llama-3-70b needs 129.2 GiB for weights, 64.6 on each GPU even if they "
    "share it; requested 2 × NVIDIA-A10 (22.5 GiB each)"
)


def test_a_70b_model_on_two_a10_is_scaled_to_zero_and_an_event_says_why(
    bed: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.client.create(deployment("llama-70b-serving", "meta/llama-3-70b"))
    assert bed.client.get(f"{PATH}/llama-70b-serving")["spec"]["replicas"] == 1
    code, found, err = explain(
        bed, tmp_path, capsys, "infdep/llama-70b-serving", "--apply-mutations"
    )
    assert (code, found["admission"], found["running"]) == (0, "mutated", "exceeds"), err
    assert found["objectPatch"] == [{"op": "replace", "path": "/spec/replicas", "value": 0}]
    assert found["events"] == [{"type": "Warning", "reason": "ModelDoesNotFit", "message": WHY}]
    assert "spec.replicas: 0; 1 Event sent" in err
    assert bed.client.get(f"{PATH}/llama-70b-serving")["spec"]["replicas"] == 0
    assert events(bed, "llama-70b-serving") == [("Warning", "ModelDoesNotFit", WHY)]
    # asked again, there is nothing left to do
    code, found, err = explain(
        bed, tmp_path, capsys, "infdep/llama-70b-serving", "--apply-mutations"
    )
    assert (code, found["admission"], found["pods"]) == (0, "admitted", 0)
    assert "nothing to carry out" in err
    assert len(events(bed, "llama-70b-serving")) == 1


def test_without_the_flag_nothing_is_changed(
    bed: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.client.create(deployment("only-asked", "meta/llama-3-70b"))
    code, found, _ = explain(bed, tmp_path, capsys, "infdep/only-asked")
    assert (code, found["admission"]) == (0, "mutated")
    assert bed.client.get(f"{PATH}/only-asked")["spec"]["replicas"] == 1
    assert events(bed, "only-asked") == []


def test_a_model_that_fits_or_that_nobody_knows_is_left_alone(
    bed: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    container = {
        "image": "vllm/vllm-openai:v0.11.0",
        "args": ["Qwen/Qwen3-8B", "--max-model-len", "8192"],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    bed.client.create(deployment("small", "Qwen/Qwen3-8B", container=container))
    bed.client.create(deployment("strange", "nobody/knows-this"))
    for name, running in (("small", "fits"), ("strange", "unknown")):
        _, found, err = explain(bed, tmp_path, capsys, f"infdep/{name}", "--apply-mutations")
        assert (found["running"], found["objectPatch"]) == (running, []), err
        assert "nothing to carry out" in err
        assert bed.client.get(f"{PATH}/{name}")["spec"]["replicas"] == 1


def test_who_may_not_patch_is_told_which_right_is_missing_and_nothing_is_changed(
    bed: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.client.create(deployment("guarded", "meta/llama-3-70b"))
    kubeconfig = bed.kubeconfig_of("stranger")
    rules = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]},
    ]
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "readers"}}
    binding = {
        **role,
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "readers"},
        "subjects": [{"kind": "User", "name": "stranger", "apiGroup": RBAC}],
    }
    bed.client.create({**role, "rules": rules})
    bed.client.create(binding)
    try:
        bed.wait(
            lambda: explain(bed, tmp_path, capsys, "infdep/guarded", kubeconfig=kubeconfig)[0] == 0,
            what="the right to read",
        )
        code, _, err = explain(
            bed, tmp_path, capsys, "infdep/guarded", "--apply-mutations", kubeconfig=kubeconfig
        )
    finally:
        bed.client.delete(binding)
        bed.client.delete({**role, "rules": rules})
    assert code == 3
    assert 'user "stranger" may not patch inferencedeployments.svr.sivaro.io' in err
    assert "verbs: [patch]" in err
    assert bed.client.get(f"{PATH}/guarded")["spec"]["replicas"] == 1


def test_an_engine_config_that_lies_in_a_config_map_is_read_by_name(
    bed: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"config.yaml": "model: Qwen/Qwen3-8B\nmax-model-len: 8192\n"}
    bed.client.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "engine", "namespace": TEAM},
            "data": data,
        }
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "by-config", "namespace": TEAM},
        "spec": {
            "containers": [
                {
                    "name": "vllm",
                    "image": "vllm/vllm-openai:v0.11.0",
                    "args": ["--config", "/etc/vllm/config.yaml"],
                    "resources": {"limits": {"nvidia.com/gpu": "1"}},
                    "volumeMounts": [{"name": "engine", "mountPath": "/etc/vllm"}],
                }
            ],
            "volumes": [{"name": "engine", "configMap": {"name": "engine"}}],
        },
    }
    bed.client.create(pod)
    _, found, err = explain(bed, tmp_path, capsys, "pod/by-config")
    assert found["running"] == "fits", err
    (model,) = found["models"]
    assert (model["model"], model["recognisedFrom"], model["arguments"]) == (
        "Qwen/Qwen3-8B",
        "ConfigMap engine key config.yaml of container vllm",
        ["max-model-len: 8192"],
    )
