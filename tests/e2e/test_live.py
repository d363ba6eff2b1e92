"""The plugin on a running control plane, as its administrator and as a member of one team."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_gpuadmit.cli.main import main
from tests.controlplane import kubelet
from tests.controlplane.bed import RBAC, ControlPlane
from tests.controlplane.client import Json
from tests.controlplane.test_bed import node

ROOT = Path(__file__).parents[2]
TEAM = "team-a"
Ask = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def bed(control_plane: ControlPlane) -> ControlPlane:
    control_plane.namespace(TEAM)
    return control_plane


@pytest.fixture
def ask(bed: ControlPlane, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Exit code and JSON of ``explain``; as the administrator unless told otherwise."""

    def explain(*words: str, kubeconfig: Path | None = None) -> tuple[int, dict[str, Any]]:
        config = ["--kubeconfig", str(kubeconfig or bed.kubeconfig), "-o", "json"]
        code = main(["explain", *words, *config, *([] if "-A" in words else ["-n", TEAM])])
        out, err = capsys.readouterr()
        assert out, err
        return code, json.loads(out)

    return explain


def workload(kind: str, name: str, *, gpus: int = 1, replicas: int = 1, **pod: Any) -> Json:
    labels = {"app": name}
    limits = {"nvidia.com/gpu": str(gpus)}
    template: Json = {
        "metadata": {"labels": labels},
        "spec": {
            "containers": [{"name": "m", "image": "x:1", "resources": {"limits": limits}}],
            **pod,
        },
    }
    if kind == "Job":
        spec: Json = {"parallelism": replicas, "backoffLimit": 0, "template": template}
        template["spec"]["restartPolicy"] = "Never"
    else:
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": TEAM, "labels": labels},
        "spec": spec,
    }


def quota(bed: ControlPlane, gpus: int) -> None:
    made = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": TEAM},
        "spec": {"hard": {"requests.nvidia.com/gpu": str(gpus)}},
    }
    bed.client.create(made)
    path = bed.client.path_of(made)
    bed.wait(lambda: "used" in bed.client.get(path)["status"], what="the quota's count")


def has_event(bed: ControlPlane, reason: str) -> None:
    bed.wait(
        lambda: [e for e in bed.client.list("v1", "Event", TEAM) if e["reason"] == reason],
        what=f"an event {reason}",
        timeout=30,
    )


def pods(bed: ControlPlane, count: int, *, bound: bool = False) -> list[Json]:
    def there() -> list[Json]:
        found = bed.client.list("v1", "Pod", TEAM)
        if bound:
            found = [one for one in found if one["spec"].get("nodeName")]
        return found if len(found) >= count else []

    return bed.wait(there, what=f"{count} pods", timeout=30)


def reasons(verdict: dict[str, Any]) -> set[str]:
    return {found["reason"] for found in verdict["findings"]}


def test_a_manifest_is_judged_against_the_live_cluster(
    bed: ControlPlane, ask: Ask, tmp_path: Path
) -> None:
    bed.node(node("n-0", gpus=4))
    file = tmp_path / "web.json"
    file.write_text(json.dumps(workload("Deployment", "web", gpus=2, replicas=3)))
    code, report = ask("-f", str(file), "--server")
    (verdict,) = report["workloads"]
    assert report["source"] == {"kind": "live", "name": "gpu-admit-test", "ageSeconds": 0}
    assert (code, verdict["admission"], verdict["placement"]) == (1, "admitted", "never")
    assert len(verdict["nodes"]) == 1
    assert "live/server-agrees" in reasons(verdict)
    assert bed.client.list("v1", "Pod", TEAM) == [], "a dry run stores nothing"


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job"])
def test_a_quota_refusal_is_found_where_the_controller_left_it(
    kind: str, bed: ControlPlane, ask: Ask
) -> None:
    bed.node(node("n-0"))
    quota(bed, 1)
    bed.client.create(workload(kind, "web", replicas=2))
    if kind == "StatefulSet":
        kubelet.run(bed.client, pods(bed, 1, bound=True)[0])
    has_event(bed, "FailedCreate")
    pods(bed, 1)
    code, report = ask(f"{kind.lower()}/web", "--server")
    (verdict,) = report["workloads"]
    assert (code, verdict["admission"]) == (1, "denied")
    assert verdict["blockers"] == ["quota/exceeded"]
    found = {f["reason"]: f["detail"] for f in verdict["findings"]}
    assert "exceeded quota: gpus" in found["live/not-created"]
    assert "exceeded quota: gpus" in found["live/server-agrees"]
    assert "live/disagrees" not in found


def test_what_the_scheduler_says_stands_beside_our_answer(bed: ControlPlane, ask: Ask) -> None:
    bed.node(node("n-0", gpus=1))
    bed.client.create(workload("Deployment", "web", gpus=2))
    bed.wait(
        lambda: [
            p
            for p in bed.client.list("v1", "Pod", TEAM)
            if any(c.get("reason") == "Unschedulable" for c in p["status"].get("conditions", ()))
        ],
        what="the scheduler's word",
    )
    code, report = ask("deploy/web")
    (verdict,) = report["workloads"]
    assert (code, verdict["placement"]) == (1, "never")
    (said,) = [f["detail"] for f in verdict["findings"] if f["reason"] == "live/unschedulable"]
    assert "Insufficient nvidia.com/gpu" in said


def test_waiting_for_preemption_is_told_to_both_sides(bed: ControlPlane, ask: Ask) -> None:
    for name, value in (("batch", 100), ("live", 1000)):
        bed.client.create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
        )
    bed.node(node("n-0", gpus=4))
    slow = {"terminationGracePeriodSeconds": 600}
    bed.client.create(workload("Deployment", "train", gpus=4, priorityClassName="batch", **slow))
    (victim,) = pods(bed, 1, bound=True)
    kubelet.run(bed.client, victim)
    bed.client.create(workload("Deployment", "serve", gpus=4, priorityClassName="live"))

    def nominated() -> list[str]:
        found = bed.client.list("v1", "Pod", TEAM)
        return [p["metadata"]["name"] for p in found if p["status"].get("nominatedNodeName")]

    bed.wait(nominated, what="a nominated node", timeout=60)
    code, report = ask("deploy/serve", "deploy/train")
    serve, train = report["workloads"]
    assert (code, serve["placement"], train["placement"]) == (0, "waits", "waits")
    assert serve["waitsFor"] == [
        f"4 nvidia.com/gpu on n-0 free when {victim['metadata']['name']} ends (terminating)"
    ]
    (kept,) = [f for f in train["findings"] if f["reason"] == "placement/insufficient"]
    assert kept["detail"] == (
        f"needs 4 nvidia.com/gpu, n-0 has 0 free of 4, room there is kept for {TEAM}/serve-0"
    )
    assert "live/evicted" in reasons(train)


def test_a_job_past_its_time_is_told_what_to_do(
    bed: ControlPlane, ask: Ask, tmp_path: Path
) -> None:
    bed.node(node("n-0", gpus=4))
    sweep = workload("Job", "sweep", gpus=2)
    sweep["metadata"]["annotations"] = {"gpu-admit.io/ttl": "0s"}
    bed.client.create(sweep)
    (pod,) = pods(bed, 1, bound=True)
    kubelet.run(bed.client, pod)
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "apiVersion: gpu-admit.io/v1\nkind: AdmissionPolicy\n"
        "rules: {ephemeral/ttl: deny, ephemeral/overrun: warn}\n"
    )
    bed.wait(lambda: ask("job/sweep", "--policy", str(policy))[0] == 1, what="the next second")
    _, report = ask("job/sweep", "--policy", str(policy))
    (verdict,) = report["workloads"]
    assert (verdict["admission"], verdict["blockers"]) == ("denied", ["ephemeral/ttl-past"])
    (over,) = [f for f in verdict["findings"] if f["reason"] == "ephemeral/overrun"]
    assert over["detail"].startswith("1 pod still holds 2 GPUs, ")
    (fix,) = verdict["remedies"]
    assert fix["summary"] == "let it end after 1d"


def test_a_running_workload_is_judged_without_its_own_pods_in_the_way(
    bed: ControlPlane, ask: Ask
) -> None:
    bed.node(node("n-0", gpus=2))
    quota(bed, 2)
    bed.client.create(workload("Deployment", "web", gpus=2))
    for one in pods(bed, 1, bound=True):
        kubelet.run(bed.client, one)
    code, report = ask("deploy/web", "--server")
    (verdict,) = report["workloads"]
    assert (code, verdict["admission"], verdict["placement"]) == (0, "admitted", "fits")
    assert {"live/placed", "live/server-agrees"} <= reasons(verdict), "one more is refused by both"


def test_a_kubelets_refusals_are_one_cause(bed: ControlPlane, ask: Ask) -> None:
    bed.node(node("n-0"))
    bed.client.create(workload("Deployment", "web", replicas=2))
    for one in pods(bed, 2, bound=True):
        kubelet.fail(
            bed.client,
            one,
            reason="TopologyAffinityError",
            message="Resources cannot be allocated with Topology locality",
        )
    _, report = ask("deploy/web")
    (verdict,) = report["workloads"]
    (refused,) = [f for f in verdict["findings"] if f["reason"] == "live/refused-by-kubelet"]
    assert refused["detail"].startswith("2 pods, such as Pod web-")
    assert "Topology locality" in refused["detail"]


@pytest.fixture
def dead_webhook(bed: ControlPlane) -> Iterator[None]:
    made = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "gate"},
        "webhooks": [
            {
                "name": "gate.corp.example",
                "failurePolicy": "Fail",
                "timeoutSeconds": 1,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": TEAM}},
                "clientConfig": {"url": "https://127.0.0.1:9/"},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
            }
        ],
    }
    bed.client.create(made)
    yield
    bed.client.delete(made)


@pytest.mark.usefixtures("dead_webhook")
def test_a_webhook_that_does_not_answer_is_named(bed: ControlPlane, ask: Ask) -> None:
    bed.node(node("n-0"))
    bed.client.create(workload("Deployment", "web"))
    has_event(bed, "FailedCreate")
    code, report = ask("deploy/web")
    (verdict,) = report["workloads"]
    assert (code, verdict["admission"]) == (1, "denied")
    assert verdict["blockers"] == ["live/not-created"]
    code, report = ask("deploy/web", "--server")
    (verdict,) = report["workloads"]
    (server,) = [f for f in verdict["findings"] if f["reason"] == "live/server-refuses"]
    assert (code, server["evidence"][0]["subject"]) == (1, "webhook gate.corp.example")


def test_a_member_of_one_team_gets_a_narrower_answer_and_the_missing_rules(
    bed: ControlPlane, ask: Ask
) -> None:
    bed.node(node("n-0"))
    quota(bed, 1)
    bed.client.create(workload("Deployment", "web", replicas=2))
    has_event(bed, "FailedCreate")
    code, report = ask("deploy/web", "--server", kubeconfig=bed.allow(TEAM))
    (verdict,) = report["workloads"]
    assert (code, verdict["admission"], verdict["placement"]) == (1, "denied", "unknown")
    assert {"quota/exceeded", "live/not-created", "live/server-agrees"} <= reasons(verdict)
    said = {u["missing"]: u["hint"] for u in verdict["unknowns"]}
    assert said['Node objects: user "developer" may not list nodes'] == (
        'a ClusterRole would need: apiGroups: [""], resources: [nodes], verbs: [list]'
    )


def test_a_user_without_any_right_is_told_which_one_is_missing(
    bed: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.client.create(workload("Deployment", "web"))
    config = str(bed.kubeconfig_of("stranger"))
    assert main(["explain", "deploy/web", "-n", TEAM, "--kubeconfig", config]) == 3
    assert capsys.readouterr().err == (
        'error: user "stranger" may not get deployments.apps in namespace team-a [forbidden]\n'
        'hint: a Role would need: apiGroups: ["apps"], resources: [deployments], verbs: [get]\n'
    )


def test_the_documented_role_is_enough_for_the_whole_answer(
    bed: ControlPlane, ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.node(node("n-0"))
    text = (ROOT / "docs/rbac.md").read_text()
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    role = yaml.safe_load(block)
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "gpu-admit-reader"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role["metadata"]["name"]},
        "subjects": [{"kind": "User", "name": "stranger", "apiGroup": RBAC}],
    }
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]
    bed.client.create(role)
    bed.client.create(binding)
    bed.client.create(workload("Deployment", "web", runtimeClassName="x", volumes=volumes))
    try:
        config = bed.kubeconfig_of("stranger")
        bed.wait(
            lambda: main(["explain", "deploy/web", "-n", TEAM, "--kubeconfig", str(config)]) != 3,
            what="the role to count",
        )
        capsys.readouterr()
        _, report = ask("deploy/web", kubeconfig=config)
    finally:
        bed.client.delete(binding)
        bed.client.delete(role)
    (verdict,) = report["workloads"]
    refused = [u for u in verdict["unknowns"] if "may not" in u["missing"]]
    assert refused == []


def test_several_objects_and_labels(bed: ControlPlane, ask: Ask) -> None:
    bed.node(node("n-0"))
    for name in ("a", "b"):
        bed.client.create(workload("Deployment", name))
    bed.client.create(workload("Job", "c"))
    _, report = ask("deploy/a", "job/c")
    assert [w["ref"]["name"] for w in report["workloads"]] == ["a", "c"]
    _, report = ask("deploy,job", "-l", "app in (b,c)")
    assert [w["ref"]["name"] for w in report["workloads"]] == ["b", "c"]
    _, report = ask("deploy", "-A")
    assert [w["ref"]["name"] for w in report["workloads"]] == ["a", "b"]


def test_watching_ends_once_it_is_placed(
    bed: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.client.create(workload("Deployment", "web"))
    pods(bed, 1)
    later = threading.Timer(1.0, lambda: bed.node(node("n-0")))
    later.start()
    config = ["--kubeconfig", str(bed.kubeconfig), "-n", TEAM]
    try:
        code = main(["explain", "deploy/web", "--watch", "--timeout", "40s", *config])
    finally:
        later.join()
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert "live/placed" in out


def test_watching_ends_with_the_time(bed: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
    bed.client.create(workload("Deployment", "web"))
    config = ["--kubeconfig", str(bed.kubeconfig), "-n", TEAM]
    main(["explain", "deploy/web", "--watch", "--timeout", "1s", *config])
    assert capsys.readouterr().err == "warning: not placed within 1 s\n"
