"""Plays NVIDIA's DRA driver: the nodes, ResourceSlices and DeviceClasses that it would publish.

    python examples/make_devices.py                       writes examples/devices, a snapshot
    python examples/make_devices.py h100 mig --stdout     a List for kubectl apply -f -

Attributes, capacities, names and counters are those of kubernetes-sigs/dra-driver-nvidia-gpu v0.5
(cmd/gpu-kubelet-plugin deviceinfo.go, partitions.go, mig.go), the slices of real clusters (memory
of an H100 and a GB200) and the MIG user guide (engines of a profile). Numbers of a machine stand in
the tables below; the same tables give the same bytes. No GPU is needed, and nothing but Python.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]

OUT = Path(__file__).parent / "devices"
DRIVER = "gpu.nvidia.com"
DOMAIN = "compute-domain.nvidia.com"
STANDARD = "resource.kubernetes.io"
AS_OF = "2026-11-29T14:00:00Z"

# product, brand, architecture, compute capability, MiB, first PCI bus, GPUs below one PCIe root
PRODUCTS = {
    "H100": ("NVIDIA H100 80GB HBM3", "Nvidia", "Hopper", "9.0.0", 81559, 0x1B, 1),
    "A100": ("NVIDIA A100-SXM4-40GB", "Nvidia", "Ampere", "8.0.0", 40960, 0x07, 2),
    "GB200": ("NVIDIA GB200", "Nvidia", "Blackwell", "10.0.0", 189471, 0x06, 1),
}
DRIVER_VERSION, CUDA_VERSION = "580.126.20", "13.0.0"

# Profiles of an A100 40 GB: GPU instance profile of NVML, memory slices of one, where it may start,
# MiB, multiprocessors, then copy engines, decoders, encoders, JPEG and OFA engines.
PROFILES = {
    "1g.5gb": (19, 1, (0, 1, 2, 3, 4, 5, 6), 4864, 14, (1, 0, 0, 0, 0)),
    "1g.10gb": (15, 2, (0, 2, 4, 6), 9856, 14, (1, 1, 0, 0, 0)),
    "2g.10gb": (14, 2, (0, 2, 4), 9856, 28, (2, 1, 0, 0, 0)),
    "3g.20gb": (9, 4, (0, 4), 19968, 42, (3, 2, 0, 0, 0)),
    "4g.20gb": (5, 4, (0,), 19968, 56, (4, 2, 0, 0, 0)),
    "7g.40gb": (0, 8, (0,), 40192, 98, (7, 5, 0, 1, 1)),
}
ENGINES = ("copyEngines", "decoders", "encoders", "jpegEngines", "ofaEngines")
MEMORY_SLICES = 8

# How a card of the static machine is cut: profile and the memory slice at which it starts.
CUT = (("1g.5gb", 0), ("1g.5gb", 1), ("2g.10gb", 2), ("3g.20gb", 4))

CLASSES = {
    "gpu.nvidia.com": (DRIVER, "gpu"),
    "mig.nvidia.com": (DRIVER, "mig"),
    "vfio.gpu.nvidia.com": (DRIVER, "vfio"),
    "compute-domain-daemon.nvidia.com": (DOMAIN, "daemon"),
    "compute-domain-default-channel.nvidia.com": (DOMAIN, "channel"),
}
WITH_COUNTERS = 64
"""Devices of a slice at most where they consume counters (k8s.io/api resource/v1)."""
RACK_NODES, TRAYS = 4, ("a", "b")
"""Two halves of a rack, each an NVLink domain of its own."""


def identity(*words: object) -> str:
    """A UUID of its own for what these words name, the same each time."""
    text = "/".join(map(str, words))
    return str(uuid.UUID(bytes=hashlib.sha256(text.encode()).digest()[:16], version=4))


# -- devices ---------------------------------------------------------------------------------------


def attributes(machine: str, node: str, index: int) -> Json:
    """What gpu and mig devices have in common, the standard attributes besides."""
    product, brand, architecture, capability, _, bus, per_root = PRODUCTS[machine]
    address = bus + 0x10 * index
    root = bus + 0x10 * (index // per_root * per_root) - 1
    if machine == "GB200":  # two sockets, each with PCI domains of its own
        domain, numa = ("0008", "0009", "0018", "0019")[index], index // 2
        pci, pcie_root = f"{domain}:06:00.0", f"pci{domain}:00"
    else:
        numa = index // 4
        pci, pcie_root = f"0000:{address:02x}:00.0", f"pci0000:{root:02x}"
    return {
        "productName": {"string": product},
        "brand": {"string": brand},
        "architecture": {"string": architecture},
        "cudaComputeCapability": {"version": capability},
        "driverVersion": {"version": DRIVER_VERSION},
        "cudaDriverVersion": {"version": CUDA_VERSION},
        f"{STANDARD}/pciBusID": {"string": pci},
        f"{STANDARD}/pcieRoot": {"string": pcie_root},
        f"{STANDARD}/numaNode": {"int": numa},
    }


def uuid_of(node: str, index: int) -> str:
    return f"GPU-{identity('gpu', node, index)}"


def whole(machine: str, node: str, index: int) -> Json:
    """A full GPU, ``gpu-<minor>``."""
    mode = {"addressingMode": {"string": "ATS" if machine == "GB200" else "HMM"}}
    kind = {"type": {"string": "gpu"}, "uuid": {"string": uuid_of(node, index)}}
    return {
        "name": f"gpu-{index}",
        "attributes": {**mode, **attributes(machine, node, index), **kind},
        "capacity": {"memory": {"value": f"{PRODUCTS[machine][4]}Mi"}},
    }


def of_profile(profile: str) -> Json:
    """The capacities of a profile."""
    _, _, _, memory, multiprocessors, engines = PROFILES[profile]
    named = dict(zip(ENGINES, engines, strict=True))
    amounts = {"memory": f"{memory}Mi", "multiprocessors": multiprocessors, **named}
    return {name: {"value": str(value)} for name, value in amounts.items()}


def mig_name(index: int, profile: str, start: int) -> str:
    return f"gpu-{index}-mig-{profile.replace('.', '')}-{PROFILES[profile][0]}-{start}"


def partition(node: str, index: int, profile: str, start: int) -> Json:
    """A MIG device as it is published before it exists: without a UUID of its own."""
    kind = {
        "type": {"string": "mig"},
        "profile": {"string": profile},
        "parentUUID": {"string": uuid_of(node, index)},
    }
    return {
        "name": mig_name(index, profile, start),
        "attributes": {**attributes("A100", node, index), **kind},
        "capacity": of_profile(profile),
    }


def static_partition(node: str, index: int, profile: str, start: int) -> Json:
    """A MIG device that an administrator has made: with its UUID and its place."""
    device = partition(node, index, profile, start)
    device["attributes"]["uuid"] = {"string": f"MIG-{identity('mig', node, index, start)}"}
    for place in range(start, start + PROFILES[profile][1]):
        device["capacity"][f"memorySlice{place}"] = {"value": "1"}
    return device


def counter(name: str) -> str:
    """``copyEngines`` -> ``copy-engines``."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name)


def counters(profile: str, start: int) -> Json:
    """What a device of a profile takes of its GPU, one counter for each memory slice."""
    amounts = {counter(name): dict(held) for name, held in of_profile(profile).items()}
    places = range(start, start + PROFILES[profile][1])
    return {**amounts, **{f"memory-slice-{place}": {"value": "1"} for place in places}}


# -- machines --------------------------------------------------------------------------------------


def node(name: str, machine: str, gpus: int, **labels: str) -> Json:
    """A node that GPU Feature Discovery has labelled and that has no device plugin."""
    product, _, architecture, capability, memory, *_ = PRODUCTS[machine]
    arch = "arm64" if machine == "GB200" else "amd64"
    amounts = {"cpu": "144", "memory": "1920Gi", "pods": "110", "ephemeral-storage": "1700Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/arch": arch,
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "nvidia.com/gpu.compute.major": capability.split(".")[0],
                "nvidia.com/gpu.count": str(gpus),
                "nvidia.com/gpu.family": architecture.lower(),
                "nvidia.com/gpu.memory": str(memory),
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.product": product.replace(" ", "-"),
                **labels,
            },
            "uid": identity("node", name),
        },
        "spec": {},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def slices(name: str, driver: str, *contents: Json) -> Iterator[Json]:
    """The slices of one pool, one for each content (``devices`` or ``sharedCounters``)."""
    for number, content in enumerate(contents):
        yield {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {
                "name": f"{name}-{driver}-{number}",
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Node",
                        "name": name,
                        "uid": identity("node", name),
                        "controller": True,
                    }
                ],
            },
            "spec": {
                "driver": driver,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": len(contents)},
                **content,
            },
        }


def h100(name: str = "h100-0") -> list[Json]:
    """An HGX H100 with eight full GPUs."""
    devices = [whole("H100", name, index) for index in range(8)]
    return [node(name, "H100", 8), *slices(name, DRIVER, {"devices": devices})]


def mig(name: str = "mig-0", *, gpus: int = 2) -> list[Json]:
    """An A100 node whose cards an administrator has cut: every card as ``CUT`` says."""
    devices = [static_partition(name, index, *cut) for index in range(gpus) for cut in CUT]
    labelled = {"nvidia.com/mig.strategy": "mixed", "nvidia.com/mig.config": "custom"}
    return [node(name, "A100", gpus, **labelled), *slices(name, DRIVER, {"devices": devices})]


def dynamic_mig(name: str = "dynamic-0", *, gpus: int = 2) -> list[Json]:
    """An A100 node of the alpha gate DynamicMIG: every partition that could be, on counters.

    The full GPU consumes them all, so that it and its partitions exclude each other.
    """
    sets, devices = [], []
    for index in range(gpus):
        everything = counters("7g.40gb", 0)
        sets.append({"name": f"gpu-{index}-counter-set", "counters": everything})
        full = whole("A100", name, index)
        full["capacity"] = of_profile("7g.40gb")
        cards = [(full, everything)]
        for profile, (_, _, starts, *_) in PROFILES.items():
            for start in starts:
                device = partition(name, index, profile, start)
                cards.append((device, counters(profile, start)))
        for device, taken in cards:
            device["consumesCounters"] = [
                {"counterSet": f"gpu-{index}-counter-set", "counters": taken}
            ]
            devices.append(device)
    pages = [devices[at : at + WITH_COUNTERS] for at in range(0, len(devices), WITH_COUNTERS)]
    contents = [{"sharedCounters": sets}, *({"devices": page} for page in pages)]
    return [node(name, "A100", gpus), *slices(name, DRIVER, *contents)]


def gb200(rack: str = "rack-0", *, nodes: int = RACK_NODES) -> list[Json]:
    """Compute trays of a GB200 rack: four GPUs each, two NVLink domains, IMEX channels.

    The clique is a label of the node: no device has it as an attribute.
    """
    found: list[Json] = []
    for clique, tray in enumerate(TRAYS):
        label = {"nvidia.com/gpu.clique": f"{identity('fabric', rack)}.{clique + 1}"}
        for number in range(nodes):
            name = f"{rack}-{tray}{number}"
            devices = [whole("GB200", name, index) for index in range(4)]
            found += [node(name, "GB200", 4, **label), *slices(name, DRIVER, {"devices": devices})]
            channels = [
                {"name": f"{kind}-0", "attributes": {"type": {"string": kind}, "id": {"int": 0}}}
                for kind in ("channel", "daemon")
            ]
            found += slices(name, DOMAIN, {"devices": channels})
    return found


def classes() -> list[Json]:
    """The device classes that come with the driver."""
    found = []
    for name, (driver, kind) in CLASSES.items():
        of = f"device.attributes['{driver}']"
        expression = f"device.driver == '{driver}' && {of}.type == '{kind}'"
        if kind == "channel":
            expression += f" && {of}.id == 0"
        found.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": name},
                "spec": {"selectors": [{"cel": {"expression": expression}}]},
            }
        )
    return found


MACHINES: dict[str, Callable[[], list[Json]]] = {
    "h100": h100,
    "mig": mig,
    "dynamic-mig": dynamic_mig,
    "gb200": gb200,
}

# -- what runs -------------------------------------------------------------------------------------


def claim(name: str, namespace: str, user: str, *devices: str) -> Json:
    """A claim with devices ``pool/name``, made for a pod from a template and reserved for it."""
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": pool, "device": device}
        for pool, device in (one.split("/") for one in devices)
    ]
    exactly = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": user, "uid": identity("pod", user)}
    pool = results[0]["pool"]
    fields = [{"key": "metadata.name", "operator": "In", "values": [pool]}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": identity("claim", name),
            "creationTimestamp": "2026-11-29T09:00:00Z",
            "annotations": {f"{STANDARD}/pod-claim-name": "gpu"},
            "finalizers": [f"{STANDARD}/delete-protection"],
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "devices": {
                "requests": [{"name": "gpu", "exactly": {**exactly, "count": len(devices)}}]
            }
        },
        "status": {
            "allocation": {
                "devices": {"results": results},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
            },
            "reservedFor": [{"resource": "pods", "name": user, "uid": owner["uid"]}],
        },
    }


def running() -> list[Json]:
    """A pod that serves on four of the H100, and a claim whose pod is gone."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "llama-0", "namespace": "ml", "uid": identity("pod", "llama-0")},
        "spec": {
            "nodeName": "h100-0",
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "four"}],
            "containers": [
                {"name": "vllm", "image": "vllm:1", "resources": {"claims": [{"name": "gpu"}]}}
            ],
        },
        "status": {
            "phase": "Running",
            "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "llama-0-gpu-x7k2p"}],
        },
    }
    four = claim("llama-0-gpu-x7k2p", "ml", "llama-0", *(f"h100-0/gpu-{i}" for i in range(4)))
    return [pod, four, claim("sweep-9-gpu-4mzqd", "ml", "sweep-9", "h100-0/gpu-7")]


# -- what is written -------------------------------------------------------------------------------

NAMESPACES = ("default", "ml", "team-a", "team-b")
KINDS = (
    *("DeviceClass", "DeviceTaintRule", "LimitRange", "Namespace", "Node", "Pod"),
    *("PodDisruptionBudget", "PriorityClass", "ResourceClaim", "ResourceClaimTemplate"),
    *("ResourceQuota", "ResourceSlice", "RuntimeClass", "ServiceAccount"),
)
"""Kinds of the snapshot; of some there is no object."""


def namespaces() -> Iterator[Json]:
    for name in NAMESPACES:
        yield {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/metadata.name": name},
                "uid": identity("namespace", name),
            },
            "status": {"phase": "Active"},
        }
        yield {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": name},
        }


def listed(objects: list[Json]) -> str:
    """A List of them, as ``kubectl get -o json`` writes it."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=1) + "\n"


def write(folder: Path) -> None:
    """The snapshot: one file for each machine, one for the rest."""
    folder.mkdir(exist_ok=True)
    for name, make in MACHINES.items():
        (folder / f"{name}.json").write_text(listed(make()))
    (folder / "running.json").write_text(listed(running()))
    (folder / "platform.json").write_text(listed([*namespaces(), *classes()]))
    lines = [
        "apiVersion: gpu-admit.io/v1",
        f'asOf: "{AS_OF}"',
        "context: devices",
        "kind: Snapshot",
        "kinds:",
        *(f"- {kind}" for kind in KINDS),
        "metadata:",
        "  name: devices",
    ]
    (folder / "snapshot.yaml").write_text("\n".join(lines) + "\n")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("machines", nargs="*", metavar="MACHINE", help=", ".join(MACHINES))
    options.add_argument("--stdout", action="store_true", help="a List instead of files")
    chosen = options.parse_args()
    unknown = [name for name in chosen.machines if name not in MACHINES]
    if unknown:
        options.error(f"no machine {unknown[0]}: choose of {', '.join(MACHINES)}")
    if chosen.machines or chosen.stdout:
        names = chosen.machines or list(MACHINES)
        sys.stdout.write(listed([*classes(), *(o for name in names for o in MACHINES[name]())]))
    else:
        write(OUT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
