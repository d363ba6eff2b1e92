"""``python -m benchmarks.agent``: what the node agent costs on an 8-GPU machine.

The real adapters run above the stand-ins of the tests (NVML's C boundary, a kubelet's socket, a
/sys tree, an API server). A real driver answers more slowly than ours: what is measured is our own
part, and how often and how much is asked and written.
"""

from __future__ import annotations

import datetime as dt
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubectl_gpuadmit.adapters.kube.connection import Access
from kubectl_gpuadmit.adapters.kube.kubeconfig import connect
from kubectl_gpuadmit.adapters.kube.node_maps import CustomObjects
from kubectl_gpuadmit.agent.loop import Agent, Settings
from kubectl_gpuadmit.topology.observe import observe
from tests.agent.node import Node, node_of
from tests.controlplane.processes import free_ports
from tests.fakes import machines
from tests.fakes.apiserver import ApiServer
from tests.fakes.kubelet import devices, pod
from tests.fakes.nvml import Driver, build

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-0", "uid": "u"}}
DAY = 86_400.0


@contextmanager
def busy_node() -> Iterator[tuple[Node, Path]]:
    """8 × H100 with nine cards, each GPU held by a pod that has a process on it."""
    with tempfile.TemporaryDirectory(prefix="ga-") as folder:
        root = Path(folder)
        driver = Driver(build(root), root / "table")
        driver.load()
        machine = machines.hgx_h100()
        for index in range(8):
            machine = machine.with_gpu(index, used_mib=60_000, processes=((1000 + index, 59_000),))
        (root / "n").mkdir()
        with node_of(machine, driver, root / "n") as node:
            uuids = [gpu.uuid for gpu in machine.gpus]
            node.kubelet.allocatable = {"devices": devices("nvidia.com/gpu", *uuids)}
            node.kubelet.pods = [
                pod("team-a", f"llama-{n}", devices=devices("nvidia.com/gpu", uuid, numa=[n // 4]))
                for n, uuid in enumerate(uuids)
            ]
            for index in range(8):
                node.process(1000 + index, f"0f4c2d1e-aaaa-bbbb-cccc-12345678900{index}")
            yield node, root


def passes(node: Node, *, count: int) -> tuple[float, float]:
    """Seconds of a look with what is made of it: the median on the clock, the mean on the CPU."""
    node.sources.look()
    took, begun = [], time.process_time()
    for _ in range(count):
        started = time.perf_counter()
        observe(node.sources.look(), now="2026-11-29T10:00:00Z")
        took.append(time.perf_counter() - started)
    return statistics.median(took), (time.process_time() - begun) / count


def written(node: Node, folder: Path, *, seconds: float = DAY) -> dict[str, int]:
    """Requests that write, and the bytes of their bodies, in a day at rest; time is ours."""
    now = 0.0
    with ApiServer([NODE]) as server:
        connection = connect(Access(kubeconfig=str(server.kubeconfig(folder))))
        agent = Agent(
            node.sources,
            CustomObjects(connection),
            Settings(node="n-0", interval=60.0),
            clock=lambda: dt.datetime(2026, 11, 29, tzinfo=dt.UTC) + dt.timedelta(seconds=now),
            steady=lambda: now,
            say=print,
        )
        while now < seconds:
            now += agent.step()
        (stored,) = [one for one in server.objects if one["kind"] == "GpuTopology"]
    status = agent.status
    return {
        "writes": sum(status.writes.values()),
        "sent bytes": sum(status.bytes.values()),
        "object bytes": len(json.dumps(stored, separators=(",", ":"))),
    }


def resident(node: Node, folder: Path, *, seconds: float) -> int:
    """Resident bytes of the whole process after it has looked once a second for that long."""
    (port,) = free_ports(1)
    with ApiServer([NODE]) as server:
        command = [
            *(sys.executable, "-m", "kubectl_gpuadmit.cli.main", "agent", "--node=n-0"),
            *("--interval=1", f"--listen=127.0.0.1:{port}", *node.arguments),
            f"--kubeconfig={server.kubeconfig(folder)}",
        ]
        process = subprocess.Popen(command, env=node.environment, stderr=subprocess.DEVNULL)
        try:
            time.sleep(seconds)
            url = f"http://127.0.0.1:{port}/metrics"
            with urllib.request.urlopen(url, timeout=10) as reply:
                text = reply.read().decode()
        finally:
            process.terminate()
            process.wait(timeout=20)
    line = next(row for row in text.splitlines() if row.startswith("gpu_admit_agent_resident"))
    return int(float(line.split()[1]))


def main() -> int:
    with busy_node() as (node, folder):
        clock, cpu = passes(node, count=200)
        print(f"one look at 8 GPUs and 9 cards: {clock * 1e3:.1f} ms, {cpu * 1e3:.1f} ms of CPU")
        print(f"  every 30 s: {cpu / 30:.3%} of one core")
        day = written(node, folder)
        print(
            f"a day at rest: {day['writes']} writes, {day['sent bytes']:,} bytes sent;"
            f" the object has {day['object bytes']:,} bytes, so etcd takes"
            f" {day['writes'] * day['object bytes']:,}"
        )
        print(f"resident after a minute: {resident(node, folder, seconds=60) / 2**20:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
