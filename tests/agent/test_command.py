"""``kubectl gpu-admit agent`` as a process of its own, above the stand-ins."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from kubectl_gpuadmit.cli.main import main
from kubectl_gpuadmit.kube.decode import decode_bulk
from kubectl_gpuadmit.kube.objects import GpuTopology
from tests.agent.node import Node
from tests.command import COMMAND, called
from tests.controlplane.processes import free_ports
from tests.fakes import machines
from tests.fakes.apiserver import ApiServer
from tests.fakes.kubelet import devices, pod

ROOT = Path(__file__).parents[2]
AGENT = (*COMMAND, "agent")


def call(
    node: Node, *args: str, environment: Mapping[str, str] = {}
) -> subprocess.CompletedProcess[str]:
    environment = {**node.environment, **environment}
    return called("agent", *node.arguments, *args, environment=environment)


def test_once_prints_the_object_that_would_be_written_and_asks_no_cluster(h100: Node) -> None:
    uuid = machines.uuid("GPU", 0x1000)
    h100.kubelet.pods = [pod("team-a", "llama", devices=devices("nvidia.com/gpu", uuid))]
    done = call(
        h100, "--once", "-o", "yaml", "--node", "n-0", environment={"KUBECONFIG": "/nowhere"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    made = yaml.safe_load(done.stdout)
    assert (made["kind"], made["metadata"]) == ("GpuTopology", {"name": "n-0"})
    assert made["spec"]["links"][0].split()[1] == "NV18"
    assert made["spec"]["holders"][0]["pod"] == "llama"
    (obj,), _ = decode_bulk(done.stdout.encode(), "node.yaml")
    assert isinstance(obj, GpuTopology)
    assert (obj.name, len(obj.spec.gpus), obj.spec.problems) == ("n-0", 8, ())


def test_once_as_json_is_the_same(h100: Node) -> None:
    as_json = json.loads(call(h100, "--once", "-o", "json", "--node", "n-0").stdout)
    as_yaml = yaml.safe_load(call(h100, "--once", "--node", "n-0").stdout)
    for made in (as_json, as_yaml):
        made["spec"].pop("asOf")
    assert as_json == as_yaml


def test_once_says_what_could_not_be_read(h100: Node) -> None:
    h100.kubelet.stop()
    done = call(h100, "--once", "--node", "n-0")
    h100.kubelet.start()
    socket = h100.kubelet.socket
    assert done.returncode == 0
    assert (
        done.stderr == f"warning: holders: the kubelet does not answer on {socket}: unavailable\n"
    )


def test_a_machine_without_a_gpu_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GPU_ADMIT_FAKE_NVML", raising=False)
    assert main(["agent", "--once", f"--root={tmp_path}", f"--socket={tmp_path}/none"]) == 3
    out, err = capsys.readouterr()
    first, hint = err.splitlines()
    assert out == ""
    assert first.startswith("error: there is no NVIDIA GPU on this machine (")
    assert first.endswith(") [no-gpu]")
    assert hint == "hint: run it on a GPU node"


def test_an_agent_without_a_name_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NODE_NAME", raising=False)
    assert main(["agent"]) == 2
    assert capsys.readouterr().err == (
        "error: the node has no name [usage]\nhint: --node NAME, or NODE_NAME\n"
    )


def test_an_address_that_is_none_is_refused_before_anything_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["agent", "--node", "n", "--listen", "nine"]) == 2
    assert "no HOST:PORT [usage]" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_process_serves_its_probes_and_ends_cleanly(
    h100: Node, tmp_path: Path, number: signal.Signals
) -> None:
    (port,) = free_ports(1)
    with ApiServer([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-0"}}]) as server:
        config = server.kubeconfig(tmp_path)
        agent = subprocess.Popen(
            [*AGENT, *h100.arguments, f"--listen=127.0.0.1:{port}", f"--kubeconfig={config}"],
            env={**h100.environment, "PYTHONPATH": str(ROOT), "NODE_NAME": "n-0"},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert ready(port) == "ok\n"
            url = f"http://127.0.0.1:{port}/metrics"
            with urllib.request.urlopen(url, timeout=5) as reply:
                assert 'gpu_admit_agent_gpus{node="n-0"} 8' in reply.read().decode()
        finally:
            agent.send_signal(number)
            said = agent.communicate(timeout=20)[1]
    assert agent.returncode == 0, said
    assert [line.split(" ", 1)[1] for line in said.splitlines()] == [
        "agent 0.1.0 for node n-0: a look each 30 s",
        "stopped: the object stays, and grows old",
    ]


def ready(port: int) -> str:
    """What /readyz says once it says yes; at most 20 seconds."""
    import time
    import urllib.error

    for _ in range(200):
        try:
            url = f"http://127.0.0.1:{port}/readyz"
            with urllib.request.urlopen(url, timeout=5) as reply:
                return str(reply.read().decode())
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    return "never"


def test_an_agent_whose_credentials_are_not_there_yet_waits_for_them(
    h100: Node, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    config = tmp_path / "kubeconfig"
    with ApiServer([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-0"}}]) as server:
        agent = subprocess.Popen(
            [
                *(*AGENT, *h100.arguments, "--node=n-0", "--interval=1"),
                *(f"--kubeconfig={config}", f"--listen=127.0.0.1:{port}"),
            ],
            env={**h100.environment, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert agent.stderr is not None
            first = [agent.stderr.readline() for _ in range(2)]
            assert "cannot write: no such file or directory [no-such-path]" in first[1]
            server.kubeconfig(tmp_path)
            assert ready(port) == "ok\n"
        finally:
            agent.terminate()
            agent.communicate(timeout=20)
    assert agent.returncode == 0
