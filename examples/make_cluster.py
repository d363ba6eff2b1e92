"""Writes nodes.json and pods.json of examples/cluster as `kubectl get KIND -A -o json` does.

Edit the tables below and run `python examples/make_cluster.py`: the same tables, the same bytes.
The other files of the snapshot are small and edited by hand; a test holds quota usage and budget
status to the pods.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent / "cluster"
GPU = "nvidia.com/gpu"
TTL = "gpu-admit.io/ttl"

# -- machines: what GPU feature discovery and the kubelet report for each ----

# name, product, MiB a GPU, GPUs, family, compute capability, MIG capable, machine, cpu, memory (Ki)
MACHINES = """
H100 NVIDIA-H100-80GB-HBM3 81559 8 hopper 9.0 true PowerEdge-XE9680 192 2113486964
A100 NVIDIA-A100-SXM4-80GB 81920 8 ampere 8.0 true DGXA100-920-23687-2530-000 256 2113459468
L40S NVIDIA-L40S 46068 4 ada-lovelace 8.9 false PowerEdge-R760xa 64 527878432
A100-MIG NVIDIA-A100-SXM4-40GB 40960 4 ampere 8.0 true AS--2124GQ-NART 128 1056271316
CPU - 0 0 - 0.0 false PowerEdge-R660 64 263939216
"""
# all-balanced on each of four cards: profile -> devices, MiB, multiprocessors, slices
SLICES = {"1g.5gb": (8, 4864, 14, 1), "2g.10gb": (4, 9856, 28, 2), "3g.20gb": (4, 19968, 42, 3)}

# node, machine, gpu-partition, zone of us-east1, state
NODES = """
cpu-0   CPU       -      b
inf-0   H100      inf    b
inf-1   H100      inf    b
inf-2   H100      inf    c
inf-3   H100      inf    c  healthy=7
mig-0   A100-MIG  mig    b
mig-1   A100-MIG  mig    c
pcie-0  L40S      light  b
pcie-1  L40S      light  c
pcie-2  L40S      light  d
trn-0   A100      train  b
trn-1   A100      train  b
trn-2   A100      train  c  cordoned
"""

# -- what runs ----
# namespace, owner's kind, owner, nvidia.com/… devices, cpu, memory, priority class, workload-type,
# then the node of each pod: "?" is a pod that waits, "inf-0!" one that has finished there.

RUNNING = """
llm-serving  ReplicaSet  llama-70b      gpu=4         16 200Gi critical inference   inf-0 inf-0
llm-serving  ReplicaSet  qwen-32b       gpu=2         8  96Gi  critical inference   inf-2 inf-3
llm-serving  StatefulSet deepseek-coder gpu=4         16 200Gi critical inference   inf-2
llm-serving  ReplicaSet  gemma-27b      gpu=2         8  96Gi  critical inference   inf-3
llm-serving  ReplicaSet  whisper        gpu=1         4  32Gi  critical inference   inf-3
team-a       ReplicaSet  mixtral-8x22b  gpu=4         16 200Gi critical inference   inf-1
research     Job         quick-try      gpu=2         8  64Gi  batch    training    inf-1
research     Job         llama-ft       gpu=8         64 960Gi batch    training    trn-0
research     StatefulSet sweep          gpu=2         16 128Gi batch    training    trn-1 trn-1
research     PyTorchJob  ranker         gpu=2         16 128Gi batch    training    trn-2 trn-2
research     Job         ablate         gpu=8         64 960Gi batch    training    ?
search       ReplicaSet  embedder       gpu=1         4  32Gi  -        embedding   pcie-0 pcie-0
search       ReplicaSet  reranker       gpu=1         4  32Gi  -        embedding   pcie-1 pcie-1
search       ReplicaSet  clip           gpu=1         4  32Gi  -        embedding   pcie-2 pcie-2
notebooks    StatefulSet jupyter-ana    mig-1g.5gb=1  4  16Gi  -        interactive mig-0
notebooks    StatefulSet jupyter-ben    mig-1g.5gb=1  4  16Gi  -        interactive mig-0
notebooks    StatefulSet jupyter-chi    mig-2g.10gb=1 4  16Gi  -        interactive mig-1
notebooks    ReplicaSet  demo-chat      mig-3g.20gb=1 8  32Gi  -        interactive mig-1
etl          Job         tokenise       gpu=1         8  32Gi  batch    batch       pcie-0!
kube-system  ReplicaSet  coredns        -             1  170Mi system   -           cpu-0 cpu-0
gpu-operator ReplicaSet  gpu-operator   -             1  350Mi -        -           cpu-0
monitoring   StatefulSet prometheus     -             4  16Gi  -        -           cpu-0
"""
DAEMONS = {
    "nvidia-dcgm-exporter": "nvcr.io/nvidia/k8s/dcgm-exporter:4.4.1-4.6.0-ubuntu22.04",
    "nvidia-device-plugin-daemonset": "nvcr.io/nvidia/k8s-device-plugin:v0.18.0",
}
IMAGES = {
    "inference": "vllm/vllm-openai:v0.12.0",
    "embedding": "ghcr.io/huggingface/text-embeddings-inference:89-1.8",
    "training": "nvcr.io/nvidia/pytorch:25.10-py3",
    "batch": "registry.example.com/etl/tokenise:2.4",
    "interactive": "quay.io/jupyter/pytorch-notebook:cuda12-2025-11-10",
    "-": "registry.example.com/platform/base:1.0",
}
PRIORITIES = {
    "critical": ("llm-inference-critical", 1000),
    "batch": ("llm-training-batch", 100),
    "system": ("system-cluster-critical", 2_000_000_000),
    "node": ("system-node-critical", 2_000_001_000),
    "-": ("", 0),
}
TEAMS = {"etl": "data-eng", "llm-serving": "serving", "notebooks": "research"}
STARTED = {"ablate": "13:41:20", "llama-ft": "12:20:00", "quick-try": "13:12:05"}
DEADLINES = {"llama-ft": 7200, "tokenise": 3600}
TTLS = {"llama-ft": "2026-11-29T14:20:00Z", "tokenise": "2026-11-29T13:41:07Z"}
VOLUMES = {"llama-70b": "model-cache", "llama-ft": "checkpoints", "ranker": "datasets-c"}
NO_SELECTOR = ("quick-try", "tokenise")  # started before there was a policy


def uid(*names: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(("example.gpu-admit.io", *names))))


def digits(*names: str, of: str = "bcdfghjklmnpqrstvwxz2456789", length: int = 5) -> str:
    """The random-looking tail that Kubernetes gives to names, the same on every run."""
    raw = hashlib.sha256("/".join(names).encode()).digest()
    return "".join(of[b % len(of)] for b in raw[:length])


def version(*names: str) -> str:
    return str(48_000_000 + int(hashlib.sha256("/".join(names).encode()).hexdigest()[:5], 16))


def meta(kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    found = {
        "creationTimestamp": "2026-09-14T08:02:11Z",
        "name": name,
        "resourceVersion": version(kind, namespace, name),
        "uid": uid(kind, namespace, name),
    }
    return found | ({"namespace": namespace} if namespace else {})


def taint(key: str, value: str = "") -> dict[str, str]:
    return {"effect": "NoSchedule", "key": key} | ({"value": value} if value else {})


def tolerate(key: str, value: str = "") -> dict[str, str]:
    how = {"operator": "Equal", "value": value} if value else {"operator": "Exists"}
    return {"effect": "NoSchedule", "key": key} | how


# -- nodes ----


def machine(name: str) -> dict[str, str]:
    fields = ("product", "memory", "count", "family", "cc", "mig", "machine", "cpu", "memoryKi")
    rows = {line.split()[0]: line.split()[1:] for line in MACHINES.strip().splitlines()}
    return dict(zip(fields, rows[name], strict=True))


def gpu_labels(m: dict[str, str]) -> dict[str, str]:
    major, minor = m["cc"].split(".")
    return {
        "feature.node.kubernetes.io/pci-10de.present": "true",
        "nvidia.com/cuda.driver-version.full": "580.95.05",
        "nvidia.com/cuda.driver-version.major": "580",
        "nvidia.com/cuda.runtime-version.full": "13.0",
        "nvidia.com/gfd.timestamp": "1795910400",
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.count": m["count"],
        "nvidia.com/gpu.family": m["family"],
        "nvidia.com/gpu.machine": m["machine"],
        "nvidia.com/gpu.memory": m["memory"],
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": m["product"],
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": m["mig"],
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mps.capable": "false",
    }


def mig_labels(product: str) -> dict[str, str]:
    labels = {"nvidia.com/mig.config": "all-balanced", "nvidia.com/mig.config.state": "success"}
    for profile, (count, memory, processors, size) in SLICES.items():
        label = f"nvidia.com/mig-{profile}"
        labels |= {
            f"{label}.count": str(count),
            f"{label}.memory": str(memory),
            f"{label}.multiprocessors": str(processors),
            f"{label}.product": f"{product}-MIG-{profile}",
            f"{label}.replicas": "1",
            f"{label}.sharing-strategy": "none",
            f"{label}.slices.gi": str(size),
        }
    return labels


def node(index: int, line: str) -> dict[str, Any]:
    name, model, partition, zone, *state = line.split()
    m = machine(model)
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": m["machine"],
        "topology.kubernetes.io/region": "us-east1",
        "topology.kubernetes.io/zone": f"us-east1-{zone}",
    }
    devices: dict[str, int] = {}
    taints: list[dict[str, str]] = []
    if partition != "-":
        labels |= {"gpu-partition": partition} | gpu_labels(m)
        taints.append(taint(GPU, "present"))
        devices[GPU] = int(m["count"])
    if model == "A100-MIG":
        labels |= mig_labels(m["product"])
        devices = {GPU: 0} | {f"nvidia.com/mig-{p}": count for p, (count, *_) in SLICES.items()}
    capacity = {
        "cpu": m["cpu"],
        "ephemeral-storage": "1843269236Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": f"{m['memoryKi']}Ki",
        "pods": "110",
    } | {resource: str(count) for resource, count in devices.items()}
    allocatable = capacity | {
        "cpu": f"{int(m['cpu']) * 1000 - 500}m",
        "ephemeral-storage": "1698756927040",
        "memory": f"{int(m['memoryKi']) - 2 * 1024 * 1024}Ki",
    }
    spec: dict[str, Any] = {"podCIDR": f"10.244.{index}.0/24", "podCIDRs": [f"10.244.{index}.0/24"]}
    if partition == "train":
        taints.append(taint("dedicated", "gpu"))
    if "healthy=7" in state:  # one of eight: capacity stays, allocatable falls
        allocatable[GPU] = "7"
    if "cordoned" in state:
        spec["unschedulable"] = True
        key = "node.kubernetes.io/unschedulable"
        taints.append(taint(key) | {"timeAdded": "2026-11-29T11:32:10Z"})
    if taints:
        spec["taints"] = taints
    pressures = {
        "MemoryPressure": "KubeletHasSufficientMemory",
        "DiskPressure": "KubeletHasNoDiskPressure",
        "PIDPressure": "KubeletHasSufficientPID",
        "Ready": "KubeletReady",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta("Node", name) | {"labels": labels},
        "spec": spec,
        "status": {
            "addresses": [
                {"address": f"10.20.0.{10 + index}", "type": "InternalIP"},
                {"address": name, "type": "Hostname"},
            ],
            "allocatable": allocatable,
            "capacity": capacity,
            "conditions": [
                {
                    "lastHeartbeatTime": "2026-11-29T13:59:12Z",
                    "lastTransitionTime": "2026-11-02T06:41:55Z",
                    "reason": reason,
                    "status": "True" if kind == "Ready" else "False",
                    "type": kind,
                }
                for kind, reason in pressures.items()
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "containerRuntimeVersion": "containerd://2.1.4",
                "kernelVersion": "6.8.0-85-generic",
                "kubeletVersion": "v1.37.2",
                "operatingSystem": "linux",
                "osImage": "Ubuntu 24.04.3 LTS",
            },
        },
    }


# -- pods ----


def pod(
    namespace: str,
    name: str,
    owner: dict[str, Any],
    *,
    place: str,
    labels: dict[str, str],
    image: str,
    resources: dict[str, str],
    priority: tuple[str, int],
    tolerations: list[dict[str, Any]],
    selector: dict[str, str],
    started: str,
    account: str = "default",
    restart: str = "Always",
    about: str = "",
) -> dict[str, Any]:
    """One pod as the API server holds it. ``about`` is the owner's name in the tables above."""
    at, done = place.strip("!?"), place.endswith("!")
    token = f"kube-api-access-{digits(namespace, name)}"
    source = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    volumes: list[dict[str, Any]] = [
        {"name": token, "projected": {"defaultMode": 420, "sources": [source]}}
    ]
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    mounts: list[dict[str, Any]] = [{"mountPath": path, "name": token, "readOnly": True}]
    if about in VOLUMES:
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": VOLUMES[about]}})
        mounts.append({"mountPath": "/data", "name": "data"})
    limits = {key: amount for key, amount in resources.items() if key != "cpu"}
    booked = {"limits": limits, "requests": resources} if resources else {}
    class_name, value = priority
    spec: dict[str, Any] = {
        "containers": [
            {
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "name": "main",
                "resources": booked,
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "volumeMounts": mounts,
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": value,
        "restartPolicy": restart,
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": account,
        "serviceAccountName": account,
        "terminationGracePeriodSeconds": 30,
        "tolerations": tolerations,
        "volumes": volumes,
    }
    spec |= {"nodeName": at} if at else {}
    spec |= {"nodeSelector": selector} if selector else {}
    spec |= {"priorityClassName": class_name} if class_name else {}
    spec |= {"activeDeadlineSeconds": DEADLINES[about]} if about in DEADLINES else {}
    metadata = meta("Pod", name, namespace) | {"labels": labels, "ownerReferences": [owner]}
    metadata["creationTimestamp"] = started
    if about in TTLS:
        metadata["annotations"] = {TTL: TTLS[about]}
    status: dict[str, Any] = {"qosClass": "Burstable" if resources else "BestEffort"}
    if not at:
        message = (
            "0/13 nodes are available: 1 node(s) were unschedulable, 10 node(s) didn't match Pod's "
            "node affinity/selector, 2 Insufficient nvidia.com/gpu. preemption: 0/13 nodes are "
            "available: 11 Preemption is not helpful for scheduling, 2 No preemption victims found "
            "for incoming pod."
        )
        waiting = {"lastTransitionTime": started, "reason": "Unschedulable", "status": "False"}
        waiting |= {"message": message, "type": "PodScheduled"}
        status |= {"phase": "Pending", "conditions": [waiting]}
    else:
        state: dict[str, Any] = {"running": {"startedAt": started}}
        if done:
            ended = {"exitCode": 0, "finishedAt": "2026-11-29T13:24:09Z", "reason": "Completed"}
            state = {"terminated": ended | {"startedAt": started}}
        report = {"image": image, "name": "main", "ready": not done, "restartCount": 0}
        report |= {"started": not done, "state": state}
        if resources and not done:
            report |= {"allocatedResources": resources, "resources": booked}
        status |= {
            "conditions": [
                {
                    "lastTransitionTime": started,
                    "status": "False" if done and kind.endswith("Ready") else "True",
                    "type": kind,
                }
                for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [report],
            "phase": "Succeeded" if done else "Running",
            "startTime": started,
        }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def owned_by(kind: str, namespace: str, name: str) -> dict[str, Any]:
    api = {"Job": "batch/v1", "PyTorchJob": "kubeflow.org/v1"}.get(kind, "apps/v1")
    flags = {"blockOwnerDeletion": True, "controller": True}
    return flags | {
        "apiVersion": api,
        "kind": kind,
        "name": name,
        "uid": uid(kind, namespace, name),
    }


def workload_pods(line: str) -> list[dict[str, Any]]:
    namespace, kind, owner, devices, cpu, memory, priority, work, *places = line.split()
    resources = {"cpu": cpu, "memory": memory}
    partitions = {row.split()[0]: row.split()[2] for row in NODES.strip().splitlines()}
    pods = []
    for i, place in enumerate(places):
        labels = {"app": owner}
        tolerations: list[dict[str, Any]] = []
        selector: dict[str, str] = {}
        owner_name, name = owner, f"{owner}-{digits(namespace, owner, str(i))}"
        if kind == "ReplicaSet":
            template = digits(namespace, owner, length=10)
            labels["pod-template-hash"] = template
            owner_name = f"{owner}-{template}"
            name = f"{owner_name}-{digits(namespace, owner, str(i))}"
        elif kind == "StatefulSet":
            name = f"{owner}-{i}"
            labels["apps.kubernetes.io/pod-index"] = str(i)
        elif kind == "PyTorchJob":
            role = "worker" if i else "master"
            name = f"{owner}-{role}-0"
            labels["training.kubeflow.org/job-name"] = owner
            labels["training.kubeflow.org/replica-type"] = role
        else:
            labels["batch.kubernetes.io/job-name"] = owner
        if devices != "-":
            resource, count = devices.split("=")
            resources[f"nvidia.com/{resource}"] = count
            labels |= {"team": TEAMS.get(namespace, namespace), "workload-type": work}
            tolerations.append(tolerate(GPU))
            if owner not in NO_SELECTOR:
                partition = partitions.get(place, "train")
                selector["gpu-partition"] = partition
                if partition == "train":
                    tolerations.append(tolerate("dedicated", "gpu"))
        for trouble in ("not-ready", "unreachable"):
            soon = {"effect": "NoExecute", "operator": "Exists", "tolerationSeconds": 300}
            tolerations.append(soon | {"key": f"node.kubernetes.io/{trouble}"})
        pods.append(
            pod(
                namespace,
                name,
                owned_by(kind, namespace, owner_name),
                place=place,
                labels=labels,
                image=IMAGES[work],
                resources=resources,
                priority=PRIORITIES[priority],
                tolerations=tolerations,
                selector=selector,
                started=f"2026-11-29T{STARTED.get(owner, '12:41:07')}Z",
                restart="Never" if "Job" in kind else "Always",
                about=owner,
            )
        )
    return pods


def daemon_pods(daemon: str) -> list[dict[str, Any]]:
    return [
        pod(
            "gpu-operator",
            f"{daemon}-{digits(daemon, name)}",
            owned_by("DaemonSet", "gpu-operator", daemon),
            place=name,
            labels={"app": daemon},
            image=DAEMONS[daemon],
            resources={},
            priority=PRIORITIES["node"],
            tolerations=[{"operator": "Exists"}],
            selector={"nvidia.com/gpu.present": "true"},
            started="2026-11-02T06:42:30Z",
            account=daemon,
        )
        for name, _, partition, *_ in map(str.split, NODES.strip().splitlines())
        if partition != "-"
    ]


def main() -> None:
    nodes = [node(i, line) for i, line in enumerate(NODES.strip().splitlines(), 1)]
    pods = [pod for line in RUNNING.strip().splitlines() for pod in workload_pods(line)]
    pods += [pod for daemon in DAEMONS for pod in daemon_pods(daemon)]
    pods.sort(key=lambda p: (p["metadata"]["namespace"], p["metadata"]["name"]))
    for name, items in {"nodes": nodes, "pods": pods}.items():
        listed = {"apiVersion": "v1", "items": items, "kind": "List"}
        text = json.dumps(listed | {"metadata": {"resourceVersion": ""}}, indent=4, sort_keys=True)
        (OUT / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
