"""Large clusters with DRA, and two ResourceClaims to ask about: rows of ``python -m benchmarks``.

Two clusters: nodes of 8 whole GPUs, and nodes whose 8 GPUs are 56 MIG devices with shared counters.
On every second node one device is taken. One claim fits, one is met by no device and is explained
with its funnel. ``python -m benchmarks.devices`` prints CPU seconds of whole processes, the best of
two: these hold on a machine that others use too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]

DATA = Path(__file__).parent / ".data"

DRIVER = "gpu.nvidia.com"
API = "resource.k8s.io/v1"
KINDS = {8: ("gpu", "whole GPUs"), 56: ("mig", "MIG devices")}
"""Devices of a node -> their type, and what they are."""
ASKS = {
    "fits": "true",
    "never": f'device.capacity["{DRIVER}"].memory.compareTo(quantity("500Gi")) >= 0',
}


def device(node: str, index: int, kind: str, **more: Any) -> Json:
    attributes = {
        "type": {"string": kind},
        "uuid": {"string": f"GPU-{node}-{index}"},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "architecture": {"string": "Hopper"},
        "cudaComputeCapability": {"version": "9.0.0"},
        "driverVersion": {"version": "570.86.15"},
        "resource.kubernetes.io/pciBusID": {"string": f"0000:{index:02x}:00.0"},
        "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index:02x}"},
    }
    name = f"gpu-{index}"
    return {
        "name": name,
        "attributes": attributes,
        "capacity": {"memory": {"value": "81559Mi"}},
    } | more


def part(node: str, index: int, place: int) -> Json:
    consumed = {f"memory-slice-{place}": {"value": "1"}, "multiprocessors": {"value": "16"}}
    return device(
        node,
        index,
        "mig",
        name=f"gpu-{index}-mig-1g10gb-19-{place}",
        capacity={"memory": {"value": "9856Mi"}},
        consumesCounters=[{"counterSet": f"gpu-{index}", "counters": consumed}],
    )


def slices(node: str, devices: int) -> Iterator[Json]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1 if devices == 8 else 2}
    held: list[Json] = [device(node, i, "gpu") for i in range(8)]
    if devices == 56:
        held = [part(node, i, place) for i in range(8) for place in range(7)]
        counters = {f"memory-slice-{k}": {"value": "1"} for k in range(8)}
        counters["multiprocessors"] = {"value": "132"}
        sets = [{"name": f"gpu-{i}", "counters": counters} for i in range(8)]
        yield _slice(f"{node}-counters", node, pool, sharedCounters=sets)
    yield _slice(f"{node}-devices", node, pool, devices=held)


def _slice(name: str, node: str, pool: Json, **more: Any) -> Json:
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, **more}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def cluster(nodes: int, devices: int) -> Iterator[Json]:
    kind = KINDS[devices][0]
    which = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].type == "{kind}"'
    yield {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": "measured"},
        "spec": {"selectors": [{"cel": {"expression": which}}]},
    }
    for number in range(nodes):
        node = f"node-{number:05}"
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node},
            "status": {"allocatable": amounts},
        }
        yield from slices(node, devices)
        if number % 2:
            first = "gpu-0" if devices == 8 else "gpu-0-mig-1g10gb-19-0"
            result = {"request": "r", "driver": DRIVER, "pool": node, "device": first}
            yield {
                "apiVersion": API,
                "kind": "ResourceClaim",
                "metadata": {"name": f"c{number}", "namespace": "other"},
                "spec": {"devices": {"requests": []}},
                "status": {"allocation": {"devices": {"results": [result]}}},
            }


def claim(selector: str) -> Json:
    wanted = {"deviceClassName": "measured", "selectors": [{"cel": {"expression": selector}}]}
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": "asked", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": wanted}]}},
    }


def write_clusters(data: Path, nodes: int) -> None:
    """``devices-NODESxDEVICES.json`` for each kind, and the claims."""
    for devices in KINDS:
        path = snapshot(data, nodes, devices)
        if not path.exists():
            listed = {"apiVersion": "v1", "kind": "List", "items": list(cluster(nodes, devices))}
            written(path, listed)
    for name, selector in ASKS.items():
        written(data / f"claim-{name}.json", claim(selector))
    written(data / "nothing.json", {"apiVersion": "v1", "kind": "List", "items": []})


def snapshot(data: Path, nodes: int, devices: int) -> Path:
    return data / f"devices-{nodes}x{devices}.json"


def written(path: Path, body: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(body), encoding="utf-8")
    return path


def spent(argv: list[str], runs: int) -> tuple[float, float]:
    """Least CPU seconds, and peak resident memory in MiB."""
    least, peak = float("inf"), 0.0
    for _ in range(runs):
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        least = min(least, usage.ru_utime + usage.ru_stime)
        peak = max(peak, usage.ru_maxrss / 1024)
    return least, peak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.devices")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    write_clusters(DATA, given.nodes)
    for devices, (_, what) in KINDS.items():
        path = snapshot(DATA, given.nodes, devices)
        size = path.stat().st_size / 2**20
        print(f"{given.nodes} nodes x {devices} {what}, {size:.0f} MiB", flush=True)
        for name in ("nothing", *(f"claim-{name}" for name in ASKS)):
            argv = [sys.executable, "-m", "kubectl_gpuadmit.cli.main", "explain"]
            argv += ["-f", str(DATA / f"{name}.json"), "--snapshot", str(path)]
            seconds, peak = spent(argv, given.runs)
            shown = "read only" if name == "nothing" else name
            print(f"  {shown:12} {seconds:6.1f} s of CPU {peak:6.0f} MiB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
