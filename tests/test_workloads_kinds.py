"""Each kind makes the pods that its controller would: cases as YAML in tests/workloads."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from given import Given

from kubectl_gpuadmit.kube.gpus import pod_gpus
from kubectl_gpuadmit.kube.objects import Generic, KubeObject, ObjectMeta
from kubectl_gpuadmit.kube.workloads import PodGroup, Workload, expand, registry

CASES = [
    pytest.param(case, id=f"{file.stem}: {case['name']}")
    for file in sorted((Path(__file__).parent / "workloads").glob("*.yaml"))
    for case in yaml.safe_load(file.read_text())
]


class Others:
    """The other objects of a case, as a cluster would give them."""

    def __init__(self, documents: list[dict[str, Any]]) -> None:
        self._documents = documents

    def get(self, kind: str, namespace: str, name: str) -> KubeObject | None:
        for data in self._documents:
            if (data["kind"], data["metadata"]["name"]) == (kind, name):
                return Generic(metadata=ObjectMeta(name=name), realKind=kind, document=data)
        return None


def _group(group: PodGroup, wanted: dict[str, Any]) -> dict[str, Any]:
    """What the case says of a group, as we have it; keys that the case leaves out are left out."""
    found: dict[str, Any] = {
        "count": group.count,
        "gpus": pod_gpus(group.pod),
        "name": group.name(0),
        "pointer": group.pointer,
    }
    if group.role:
        found["role"] = group.role
    if group.scheduled_by_daemonset:
        found["daemonset"] = True
    if group.count > 1:
        found["last"] = group.name(group.count - 1)
    if "containers" in wanted:
        found["containers"] = [c.name for c in group.pod.spec.containers or ()]
    if "places" in wanted:
        found["places"] = {path: group.in_manifest(path) for path in wanted["places"]}
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_manifest_makes_the_pods_of_its_case(case: dict[str, Any]) -> None:
    made = expand(Given(case["manifest"]), cluster=Others(case.get("also", [])))
    assert isinstance(made, Workload)
    wanted = case["groups"]
    shapes = [*wanted] + [{}] * (len(made.groups) - len(wanted))
    assert [_group(g, w) for g, w in zip(made.groups, shapes, strict=True)] == wanted
    assert {
        "creates": dict(made.creates),
        "findings": sorted(f"{f.level} {f.reason}" for f in made.findings),
        "unknowns": [f"{u.level} {u.missing}" for u in made.unknowns],
        "gang": made.gang,
        "queue": made.queue,
    } == {
        "creates": case.get("creates", {}),
        "findings": case.get("findings", []),
        "unknowns": case.get("unknowns", []),
        "gang": case.get("gang", False),
        "queue": case.get("queue", ""),
    }


def test_every_kind_that_is_listed_has_its_reader() -> None:
    for kind in registry._KINDS.values():
        if kind.declared is None:
            module = import_module(f"kubectl_gpuadmit.kube.workloads.{kind.module}")
            assert callable(getattr(module, kind.function))


def test_labels_that_controllers_add_are_on_the_template_and_not_on_the_manifest() -> None:
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "team-a"},
        "spec": {"template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{}]}}},
    }
    made = expand(Given(manifest))
    assert isinstance(made, Workload)
    labels = {"app": "x", "batch.kubernetes.io/job-name": "train", "job-name": "train"}
    assert made.groups[0].pod.metadata == ObjectMeta(
        generateName="train-", namespace="team-a", labels=labels
    )
    assert made.groups[0].template["metadata"] == {"labels": labels}
    assert manifest["spec"]["template"]["metadata"] == {"labels": {"app": "x"}}


def test_daemonset_pods_tolerate_what_the_controller_lets_them() -> None:
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "template": {
                "spec": {
                    "hostNetwork": True,
                    "tolerations": [{"key": "own", "operator": "Exists"}],
                    "containers": [{"name": "c"}],
                }
            }
        },
    }
    made = expand(Given(manifest))
    assert isinstance(made, Workload)
    assert [(t.key, t.effect) for t in made.groups[0].pod.spec.tolerations or ()] == [
        ("own", None),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
        ("node.kubernetes.io/network-unavailable", "NoSchedule"),
    ]


def test_a_finding_names_the_field_and_the_shells_own_fallback() -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "${N:-4}"}}}]
        },
    }
    made = expand(Given(manifest))
    assert isinstance(made, Workload)
    assert [(f.detail, f.field) for f in made.findings] == [
        (
            "the amount of nvidia.com/gpu is still the placeholder ${N:-4} (a shell would fall "
            "back to 4)",
            "/spec/containers/0/resources/limits/nvidia.com~1gpu",
        )
    ]
