"""What is installed: one source for the command, the files of deploy/ and the container."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs import generate
from kubectl_gpuadmit.agent import manifests, schema
from kubectl_gpuadmit.cli.main import main
from kubectl_gpuadmit.kube import gpu_topology as wire

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy/agent"


def test_the_files_of_deploy_are_what_the_program_prints() -> None:
    made = {k: v for k, v in generate.pages().items() if k.startswith("deploy/")}
    assert {path: (ROOT / path).read_text() for path in made} == made, "run: make docs"
    listed = [
        one for text in made.values() for one in yaml.safe_load_all(text)
        if one["kind"] != "Kustomization"
    ]  # fmt: skip
    assert sorted(map(json.dumps, listed)) == sorted(map(json.dumps, manifests.objects()))


def test_kustomize_builds_them(tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not on PATH")
    done = subprocess.run([kubectl, "kustomize", str(DEPLOY)], capture_output=True, check=True)
    built = [(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(done.stdout)]
    made = [(one["kind"], one["metadata"]["name"]) for one in manifests.objects()]
    assert sorted(built) == sorted(made)


def printed(capsys: pytest.CaptureFixture[str], *args: str) -> list[dict[str, Any]]:
    assert main(["agent", "--manifests", *args]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def test_the_command_prints_them_with_names_of_ones_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printed(capsys) == manifests.objects()
    own = printed(capsys, "-n", "gpus", "--image", "registry.example/agent:2")
    assert own == manifests.objects(namespace="gpus", image="registry.example/agent:2")
    (daemon,) = [one for one in own if one["kind"] == "DaemonSet"]
    assert daemon["metadata"]["namespace"] == "gpus"
    (policy,) = [one for one in own if one["kind"] == "ValidatingAdmissionPolicy"]
    assert "system:serviceaccount:gpus:gpu-admit-agent" in str(policy["spec"]["matchConditions"])


def test_as_json_they_are_one_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "--manifests", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == manifests.objects()


def test_with_config_maps_there_is_no_crd_and_a_role_in_one_namespace(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = printed(capsys, "--store", "configmap")
    kinds = [one["kind"] for one in made]
    assert "CustomResourceDefinition" not in kinds
    (role,) = [one for one in made if one["kind"] == "Role"]
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch"]}
    ]


def test_the_agent_may_read_its_node_and_write_maps_and_nothing_else() -> None:
    (role,) = [one for one in manifests.objects() if one["kind"] == "ClusterRole"]
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
        {
            "apiGroups": ["gpu-admit.io"],
            "resources": ["gputopologies"],
            "verbs": ["get", "create", "patch"],
        },
    ]


def test_the_container_sees_two_paths_of_the_node_and_no_secrets() -> None:
    (daemon,) = [one for one in manifests.objects() if one["kind"] == "DaemonSet"]
    spec = daemon["spec"]["template"]["spec"]
    assert [volume["hostPath"]["path"] for volume in spec["volumes"]] == [
        "/var/lib/kubelet/pod-resources",
        "/var/lib/kubelet/config.yaml",
    ]
    (container,) = spec["containers"]
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsUser": 0,
    }


def test_every_flag_of_the_container_is_one_of_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (daemon,) = [one for one in manifests.objects() if one["kind"] == "DaemonSet"]
    (container,) = daemon["spec"]["template"]["spec"]["containers"]
    assert main(["agent", "--help"]) == 0
    help_ = capsys.readouterr().out
    name, *flags = container["args"]
    assert name == "agent"
    assert [flag for flag in flags if flag.partition("=")[0] not in help_] == []


def test_the_schema_has_every_field_that_is_read_and_no_other() -> None:
    made = schema.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec = made["properties"]["spec"]
    assert set(spec["properties"]) == set(wire.GpuTopologySpec.__struct_fields__)
    gpu = spec["properties"]["gpus"]["items"]
    assert set(gpu["properties"]) == set(wire.ReportedGpu.__struct_fields__)
    assert gpu["required"] == ["index"]
    assert gpu["properties"]["nvlinks"]["properties"]["down"] == {
        "type": "array",
        "maxItems": 4096,
        "items": {"type": "integer", "format": "int64"},
    }


def test_the_dockerfile_runs_the_command_that_the_manifest_gives_arguments_to() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    (entry,) = re.findall(r"^ENTRYPOINT (\[.*\])$", text, re.M)
    assert json.loads(entry)[-1].endswith("kubectl-gpu_admit")
    copied = [word for line in re.findall(r"^COPY (.*)$", text, re.M) for word in shlex.split(line)]
    sources = [word for word in copied if not word.startswith(("-", "/", "."))]
    assert [name for name in sources if not (ROOT / name).exists()] == []
