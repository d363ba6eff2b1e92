"""Writes gputopologies.json of examples/cluster: what the node agent would report of six nodes.

Run `python examples/make_topology.py` after `make_cluster.py`: holders are the pods of pods.json.
Of the other nodes there is no map: labels and known machines have to do.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent / "cluster"
AS_OF = "2026-11-29T13:59:30Z"
GPU = "nvidia.com/gpu"

# node -> what is out of order there
RESIDUE = {("inf-2", 7): 3174}
LINKS_DOWN = {("inf-1", 2): (4, 11)}
LOST = {("inf-3", 7)}
SILENT = {"trn-0": "2026-11-29T13:18:40Z"}

MACHINES = {
    "inf": ("NVIDIA H100 80GB HBM3", 81559, 8, 18, 4),
    "trn": ("NVIDIA A100-SXM4-80GB", 81920, 8, 12, 3),
    "pcie": ("NVIDIA L40S", 46068, 4, 0, 0),
}
NODES = ("inf-0", "inf-1", "inf-2", "inf-3", "trn-0", "pcie-0")


def uid(*parts: object) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, "/".join(map(str, parts))))


def holders(node: str, count: int) -> tuple[list[dict[str, Any]], set[int]]:
    """The pods of the node in order of their names, each with the next GPUs; broken ones are left
    out, as the device plugin does."""
    pods = json.loads((OUT / "pods.json").read_text())["items"]
    order = [index for index in range(count) if (node, index) not in LOST]
    found = []
    taken: set[int] = set()
    for pod in sorted(pods, key=lambda one: one["metadata"]["name"]):
        if pod["spec"].get("nodeName") != node or pod["status"]["phase"] != "Running":
            continue
        for container in pod["spec"]["containers"]:
            asked = int(container.get("resources", {}).get("limits", {}).get(GPU, 0))
            for _ in range(asked):
                index = order.pop(0)
                taken.add(index)
                found.append(
                    {
                        "device": f"GPU-{uid(node, index)}",
                        "namespace": pod["metadata"]["namespace"],
                        "pod": pod["metadata"]["name"],
                        "container": container["name"],
                        "via": "device-plugin",
                        "resource": GPU,
                    }
                )
    return found, taken


def cell(node: str, a: int, b: int, lanes: int, count: int) -> str:
    if a == b:
        return "X"
    if lanes:
        down = (len(LINKS_DOWN.get((node, one), ())) for one in (a, b))
        return f"NV{lanes - max(down)}"
    return (
        "PIX" if a // 2 == b // 2 else "NODE" if a // (count // 2) == b // (count // 2) else "SYS"
    )


def topology(node: str) -> dict[str, Any]:
    product, mib, count, lanes, generation = MACHINES[node.split("-")[0]]
    held, taken = holders(node, count)
    gpus = []
    for index in range(count):
        numa = index // (count // 2)
        left = RESIDUE.get((node, index), 0)
        gpu: dict[str, Any] = {
            "index": index,
            "uuid": f"GPU-{uid(node, index)}",
            "pciBusID": f"0000:{0x18 + 0x20 * index:02x}:00.0",
            "product": product,
            "memoryMiB": mib,
            "usedMiB": int(mib * 0.9) if index in taken else left,
            "residueMiB": left,
            "numaNode": numa,
            "cpus": ("0-47,96-143", "48-95,144-191")[numa],
            "pcieSwitch": f"0000:{0x15 + 0x20 * (index // 2 * 2):02x}:00.0",
            "migEnabled": False,
            "sharing": "",
        }
        if lanes:
            down = LINKS_DOWN.get((node, index), ())
            gpu["nvlinks"] = {
                "active": lanes - len(down),
                "total": lanes,
                "generation": generation,
                **({"down": list(down), "downSince": "2026-11-29T09:12:00Z"} if down else {}),
            }
        if left:
            gpu["residueSince"] = "2026-11-29T11:47:00Z"
        if (node, index) in LOST:
            gpu |= {"lost": True, "xids": [{"code": 79, "at": "2026-11-29T08:03:11Z"}]}
        gpus.append(gpu)
    rows = [" ".join(cell(node, a, b, lanes, count) for b in range(count)) for a in range(count)]
    return {
        "apiVersion": "gpu-admit.io/v1alpha1",
        "kind": "GpuTopology",
        "metadata": {
            "name": node,
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid(node)}
            ],
        },
        "spec": {
            "schema": 2,
            "asOf": SILENT.get(node, AS_OF),
            "heartbeatSeconds": 60,
            "source": "nvml",
            "gpus": gpus,
            "links": rows,
            "numa": [
                {"id": 0, "cpus": "0-47,96-143", "distances": [10, 21]},
                {"id": 1, "cpus": "48-95,144-191", "distances": [21, 10]},
            ],
            "holders": held,
        },
    }


def main() -> None:
    items = [topology(node) for node in NODES]
    document = {"apiVersion": "gpu-admit.io/v1alpha1", "kind": "GpuTopologyList", "items": items}
    (OUT / "gputopologies.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
