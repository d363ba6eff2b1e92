"""The bed itself: it schedules, charges quotas, keeps roles apart, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.controlplane import kubelet
from tests.controlplane.bed import PROGRAMS, ControlPlane, signing_key
from tests.controlplane.client import ApiError, Client, Json

ROOT = Path(__file__).parents[2]


def node(name: str, *, gpus: int = 8, ready: bool = True) -> Json:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def pod(name: str, *, gpus: int = 1, namespace: str = "default") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.com/train:1",
                    "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
                }
            ]
        },
    }


def test_a_pod_gets_the_node_that_has_room(control_plane: ControlPlane) -> None:
    control_plane.node(node("small", gpus=1))
    control_plane.node(node("large", gpus=8))
    control_plane.client.create(pod("four", gpus=4))
    assert control_plane.outcome("default", "four").node == "large"


def test_the_scheduler_says_why_a_pod_waits(control_plane: ControlPlane) -> None:
    control_plane.node(node("only", gpus=2))
    control_plane.client.create(pod("four", gpus=4))
    assert control_plane.outcome("default", "four").message == (
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_a_quota_refuses_with_its_numbers(control_plane: ControlPlane) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "default"},
        "spec": {"hard": {"requests.nvidia.com/gpu": "2"}},
    }
    control_plane.client.create(quota)
    path = control_plane.client.path_of(quota)
    control_plane.wait(
        lambda: "used" in control_plane.client.get(path)["status"], what="the quota's count"
    )
    with pytest.raises(ApiError) as refused:
        control_plane.client.create(pod("four", gpus=4), dry_run="All")
    assert refused.value.status == 403
    assert refused.value.message == (
        'pods "four" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=4,'
        " used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=2"
    )


def test_the_kubelet_runs_what_is_bound_and_removes_what_is_deleted(
    control_plane: ControlPlane,
) -> None:
    control_plane.node(node("only"))
    client = control_plane.client
    with kubelet.Kubelet(control_plane.server):
        path = client.path_of(client.create(pod("one")) | {"apiVersion": "v1", "kind": "Pod"})
        control_plane.wait(
            lambda: client.get(path)["status"]["phase"] == "Running", what="a running pod"
        )
        client.request("DELETE", path)
        control_plane.wait(lambda: not client.list("v1", "Pod"), what="the pod's end")


def test_the_developer_sees_one_namespace_and_the_stranger_none(
    control_plane: ControlPlane,
) -> None:
    control_plane.namespace("team")
    control_plane.allow("team")
    answers = {}
    for user in ("developer", "stranger"):
        client = Client(control_plane.server, token=control_plane.tokens[user])
        for path in ("/api/v1/namespaces/team/pods", "/api/v1/pods", "/api/v1/nodes"):
            try:
                client.get(path)
                answers[user, path] = 200
            except ApiError as problem:
                answers[user, path] = problem.status
        client.close()
    assert answers == {
        ("developer", "/api/v1/namespaces/team/pods"): 200,
        ("developer", "/api/v1/pods"): 403,
        ("developer", "/api/v1/nodes"): 403,
        ("stranger", "/api/v1/namespaces/team/pods"): 403,
        ("stranger", "/api/v1/pods"): 403,
        ("stranger", "/api/v1/nodes"): 403,
    }


def test_many_objects_load_over_several_connections(control_plane: ControlPlane) -> None:
    names = [f"node-{number:03}" for number in range(100)]
    control_plane.each(lambda client, name: client.create(node(name)), names)
    assert [
        n["metadata"]["name"] for n in control_plane.client.list("v1", "Node", page=30)
    ] == names


STARTED = """
import os, sys, time
from tests.controlplane.bed import ControlPlane
bed = ControlPlane()
bed.start()
print(bed.folder, *[program.process.pid for program in bed.programs], flush=True)
time.sleep(120)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_a_run_that_is_ended(
    number: signal.Signals, running_control_plane: ControlPlane
) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTED], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert starter.stdout is not None
    folder, *numbers = starter.stdout.readline().decode().split()
    pids = [int(pid) for pid in numbers]
    starter.send_signal(number)
    starter.wait(timeout=30)
    starter.stdout.close()
    end = time.monotonic() + 10
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert len(pids) == len(PROGRAMS)
    assert [pid for pid in pids if alive(pid)] == []
    assert Path(folder).exists() == (number is signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_the_kubeconfig_is_complete_in_itself(running_control_plane: ControlPlane) -> None:
    content = json.loads(running_control_plane.kubeconfig.read_text())
    assert content["current-context"] == "gpu-admit-test"
    assert content["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")
    assert running_control_plane.kubeconfig.stat().st_mode & 0o077 == 0


def test_every_start_has_a_key_of_its_own() -> None:
    assert signing_key() != signing_key()
