"""The example snapshot agrees with itself: quotas, budgets and names are those of its pods."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

EXAMPLES = Path(__file__).parent.parent / "examples"
CLUSTER = EXAMPLES / "cluster"


def items(name: str) -> list[dict[str, Any]]:
    path = next(CLUSTER.glob(f"{name}.*"))
    read = json.loads if path.suffix == ".json" else yaml.safe_load
    found: list[dict[str, Any]] = read(path.read_text())["items"]
    return found


def counted(namespace: str, quota: dict[str, Any]) -> list[dict[str, Any]]:
    """Pods that the quota controller counts: not ended, and within all scopes."""
    spec = quota["spec"]
    terms = spec.get("scopeSelector", {}).get("matchExpressions", [])
    assert all(t["scopeName"] == "PriorityClass" and t["operator"] == "In" for t in terms)
    return [
        pod
        for pod in items("pods")
        if pod["metadata"]["namespace"] == namespace
        and pod["status"]["phase"] not in ("Succeeded", "Failed")
        and ("Terminating" not in spec.get("scopes", []) or "activeDeadlineSeconds" in pod["spec"])
        and all(pod["spec"].get("priorityClassName") in t["values"] for t in terms)
    ]


def requested(pods: list[dict[str, Any]], resource: str) -> int:
    return sum(
        int(container["resources"].get("requests", {}).get(resource, 0))
        for pod in pods
        for container in pod["spec"]["containers"]
    )


def test_quota_usage_is_what_the_pods_of_the_namespace_ask() -> None:
    for quota in items("resourcequotas"):
        pods = counted(quota["metadata"]["namespace"], quota)
        expected = {}
        for key in quota["spec"]["hard"]:
            if key == "pods":
                expected[key] = str(len(pods))
            elif key.startswith("requests."):
                expected[key] = str(requested(pods, key.removeprefix("requests.")))
        used = {k: v for k, v in quota["status"]["used"].items() if not k.startswith("count/")}
        assert used == expected, quota["metadata"]["name"]
        assert quota["status"]["hard"] == quota["spec"]["hard"]


def test_budgets_count_the_pods_that_they_select() -> None:
    for budget in items("poddisruptionbudgets"):
        healthy = sum(
            pod["metadata"]["namespace"] == budget["metadata"]["namespace"]
            and budget["spec"]["selector"]["matchLabels"].items()
            <= pod["metadata"]["labels"].items()
            for pod in items("pods")
        )
        spec = budget["spec"]
        wanted = spec.get("minAvailable", healthy - spec.get("maxUnavailable", 0))
        assert budget["status"] == {
            "currentHealthy": healthy,
            "desiredHealthy": wanted,
            "disruptionsAllowed": healthy - wanted,
            "expectedPods": healthy,
            "observedGeneration": 1,
        }, budget["metadata"]["name"]


def test_no_node_holds_more_than_it_can_and_every_pod_was_let_in_by_its_taints() -> None:
    nodes = {node["metadata"]["name"]: node for node in items("nodes")}
    for name, node in nodes.items():
        pods = [
            pod
            for pod in items("pods")
            if pod["spec"].get("nodeName") == name and pod["status"]["phase"] == "Running"
        ]
        for resource, amount in node["status"]["allocatable"].items():
            if resource.startswith("nvidia.com/"):
                assert requested(pods, resource) <= int(amount), (name, resource)
        for pod in pods:
            tolerated = {t.get("key") for t in pod["spec"]["tolerations"]}
            taints = {taint["key"] for taint in node["spec"].get("taints", [])}
            taints.discard("node.kubernetes.io/unschedulable")  # cordoned after the pod came
            assert None in tolerated or taints <= tolerated, pod["metadata"]["name"]
            selector = pod["spec"].get("nodeSelector", {})
            assert selector.items() <= node["metadata"]["labels"].items()


def names() -> Iterator[tuple[str, str, str]]:
    for pod in items("pods"):
        spec, namespace = pod["spec"], pod["metadata"]["namespace"]
        yield "namespaces", "", namespace
        yield "serviceaccounts", namespace, spec["serviceAccountName"]
        if "priorityClassName" in spec:
            yield "priorityclasses", "", spec["priorityClassName"]
        for volume in spec["volumes"]:
            if "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]["claimName"]
                yield "persistentvolumeclaims", namespace, claim
    for claim in items("persistentvolumeclaims"):
        if "volumeName" in claim["spec"]:
            yield "persistentvolumes", "", claim["spec"]["volumeName"]
        yield "storageclasses", "", claim["spec"]["storageClassName"]
    for node in items("nodes"):
        yield "csinodes", "", node["metadata"]["name"]


def test_everything_that_is_named_is_there() -> None:
    there = {
        (kind, item["metadata"].get("namespace", ""), item["metadata"]["name"])
        for kind in {kind for kind, _, _ in names()}
        for item in items(kind)
    }
    assert set(names()) - there == set()


def test_the_index_names_every_exported_kind() -> None:
    index = yaml.safe_load((CLUSTER / "snapshot.yaml").read_text())
    kinds = {item["kind"] for path in CLUSTER.glob("*s.*") for item in items(path.stem)}
    none = {"DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"}
    assert set(index["kinds"]) == kinds | none | {"GpuPoolHistory"}


def test_the_tables_give_the_same_bytes_again(tmp_path: Path) -> None:
    script = tmp_path / "make_cluster.py"
    script.write_text((EXAMPLES / "make_cluster.py").read_text())
    (tmp_path / "cluster").mkdir()
    subprocess.run([sys.executable, str(script)], check=True)
    for name in ("nodes.json", "pods.json"):
        assert (tmp_path / "cluster" / name).read_text() == (CLUSTER / name).read_text()


@pytest.mark.parametrize("path", sorted((EXAMPLES / "workloads").iterdir()), ids=lambda p: p.name)
def test_every_workload_says_what_it_shows_and_is_listed(path: Path) -> None:
    assert path.read_text().startswith("# Shows ")
    assert f"(workloads/{path.name})" in (EXAMPLES / "README.md").read_text()
