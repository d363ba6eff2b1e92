"""``isolate`` as a person types it, and what it sends to API servers of other ages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubectl_gpuadmit.cli.main import main
from tests.fakes.apiserver import ApiServer, Reply, refusal

MIG = ["isolate", "team-a", "--sharing", "mig", "--mig-profile", "1g.10gb"]
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "uid": "u-1"}}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer([NAMESPACE]) as running:
        yield running


def serves(server: ApiServer, *versions: str) -> None:
    group = {"kind": "APIGroup", "versions": [{"version": version} for version in versions]}
    server.on("/apis/resource.k8s.io", Reply(group))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name the namespace and --sharing, or an instance with -f"),
        (["team-a"], "name the namespace and --sharing, or an instance with -f"),
        (["--sharing", "mig"], "name the namespace and --sharing, or an instance with -f"),
        (["--remove"], "--remove takes a namespace alone"),
        (["team-a", "--remove", "--apply"], "--remove takes a namespace alone"),
        (["team-a", "--sharing", "half"], "Invalid value for '--sharing'"),
        (["team-a", "--sharing", "mps"], "mps does not isolate"),
    ],
)
def test_a_call_that_cannot_be_meant_is_one_error(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["isolate", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


def test_yaml_is_for_kubectl_and_what_to_know_is_for_people(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*MIG, "-o", "yaml"]) == 0
    out, err = capsys.readouterr()
    kinds = [document["kind"] for document in yaml.safe_load_all(out)]
    assert kinds == ["DeviceClass", "ResourceClaimTemplate", "ResourceQuota", "Namespace"]
    assert err.count("warning: ") == 2
    assert main([*MIG, "-o", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [item["kind"] for item in listed["items"]] == kinds


def test_an_older_api_server_gets_the_version_that_it_serves(
    server: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serves(server, "v1beta1", "v1alpha3")
    config = server.kubeconfig(tmp_path)
    assert main([*MIG, "--apply", "--kubeconfig", str(config)]) == 0
    patched = {r.path: r.json for r in server.asked if r.method == "PATCH"}
    name = "kubeplus-gpu-team-a"
    assert list(patched) == [
        f"/apis/resource.k8s.io/v1beta1/deviceclasses/{name}",
        f"/apis/resource.k8s.io/v1beta1/namespaces/team-a/resourceclaimtemplates/{name}",
        f"/api/v1/namespaces/team-a/resourcequotas/{name}",
        "/api/v1/namespaces/team-a",
    ]
    (sent, template, *_) = patched.values()
    assert sent["metadata"]["ownerReferences"][0]["uid"] == "u-1"
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request == {
        "name": "gpu",
        "deviceClassName": name,
        "allocationMode": "ExactCount",
        "count": 1,
    }
    assert {r.query["fieldManager"] for r in server.asked if r.method == "PATCH"} == {
        "kubectl-gpu-admit"
    }
    assert capsys.readouterr().out.count("  created\n") == 3


def test_an_api_server_without_claims_is_told_before_anything_is_changed(
    server: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on("/apis/resource.k8s.io", refusal(404, "not found", reason="NotFound"))
    config = server.kubeconfig(tmp_path)
    assert main([*MIG, "--apply", "--kubeconfig", str(config)]) == 3
    assert "serves no claims" in capsys.readouterr().err
    assert not [r for r in server.asked if r.method == "PATCH"]


def test_a_refusal_by_the_api_server_is_told_in_its_own_words(
    server: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serves(server, "v1")
    path = "/apis/resource.k8s.io/v1/deviceclasses/kubeplus-gpu-team-a"
    server.on(path, refusal(422, "spec: Invalid value", reason="Invalid"), method="PATCH")
    config = server.kubeconfig(tmp_path)
    assert main([*MIG, "--apply", "--kubeconfig", str(config)]) == 3
    err = capsys.readouterr().err
    assert "deviceclass kubeplus-gpu-team-a: spec: Invalid value [refused-by-server]" in err
