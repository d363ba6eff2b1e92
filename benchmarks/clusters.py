"""Makes GPU clusters of any size as ``kubectl get -o json`` would write them, and manifests to ask about.

Deterministic: the same size gives the same bytes. Shapes follow what a real API server returns,
managedFields and conditions included, since skipping those is part of the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

POOLS = (
    ("inf", "NVIDIA-H100-80GB-HBM3", "81559", 8, 192, "2113400Mi"),
    ("train", "NVIDIA-A100-SXM4-80GB", "81920", 8, 128, "1056700Mi"),
    ("pcie", "NVIDIA-L40S", "46068", 4, 64, "528350Mi"),
)
"""Partition, GFD product, memory in MiB, GPUs a node, CPUs a node, memory a node."""

STAMP = "2026-11-29T13:00:00Z"


def node(index: int) -> dict[str, Any]:
    partition, product, memory, gpus, cpus, ram = POOLS[index % len(POOLS)]
    name = f"{partition}-{index:05d}"
    amounts = {
        "cpu": str(cpus),
        "ephemeral-storage": "1860205740Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": ram,
        "nvidia.com/gpu": str(gpus),
        "pods": "250",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"00000000-0000-4000-8000-{index:012d}",
            "resourceVersion": str(100_000 + index),
            "creationTimestamp": "2026-06-01T08:00:00Z",
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name,
                "node.kubernetes.io/instance-type": f"gpu-{partition}",
                "topology.kubernetes.io/region": "region-1",
                "topology.kubernetes.io/zone": f"region-1{'abc'[index % 3]}",
                "gpu-partition": partition,
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.product": product,
                "nvidia.com/gpu.memory": memory,
                "nvidia.com/gpu.count": str(gpus),
                "nvidia.com/mig.capable": "true",
            },
        },
        "spec": {
            "providerID": f"example://{name}",
            "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
        },
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [
                {
                    "type": kind,
                    "status": "True" if kind == "Ready" else "False",
                    "reason": reason,
                    "message": "kubelet is posting ready status"
                    if kind == "Ready"
                    else "kubelet has none",
                    "lastHeartbeatTime": STAMP,
                    "lastTransitionTime": "2026-06-01T08:01:00Z",
                }
                for kind, reason in (
                    ("MemoryPressure", "KubeletHasSufficientMemory"),
                    ("DiskPressure", "KubeletHasNoDiskPressure"),
                    ("PIDPressure", "KubeletHasSufficientPID"),
                    ("Ready", "KubeletReady"),
                )
            ],
            "nodeInfo": {"kubeletVersion": "v1.37.2", "osImage": "Linux", "architecture": "amd64"},
        },
    }


def pod(index: int, nodes: int) -> dict[str, Any]:
    at = index % nodes
    partition, _, _, gpus, _, _ = POOLS[at % len(POOLS)]
    turn = index // nodes
    wants = 1 if turn < gpus - 4 else 0
    amounts: dict[str, str] = {"cpu": "4", "memory": "32Gi"}
    if wants:
        amounts["nvidia.com/gpu"] = str(wants)
    name = f"serve-{index:06d}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": f"team-{index % 40:02d}",
            "uid": f"00000000-0000-4000-9000-{index:012d}",
            "resourceVersion": str(500_000 + index),
            "creationTimestamp": STAMP,
            "labels": {"app": f"serve-{index % 400}", "team": f"team-{index % 40:02d}", "pod-template-hash": "6d5f8c"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"serve-{index % 400}-6d5f8c",
                    "uid": f"00000000-0000-4000-a000-{index % 400:012d}", "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "nodeName": f"{partition}-{at:05d}",
            "priority": 1000 if partition == "inf" else 100,
            "priorityClassName": "llm-inference-critical" if partition == "inf" else "llm-training-batch",
            "schedulerName": "default-scheduler",
            "serviceAccountName": "default",
            "containers": [
                {
                    "name": "engine",
                    "image": "registry.example/serve:v4",
                    "args": ["--model", "/models/m", f"--port={8000 + index % 9}"],
                    "resources": {"limits": amounts, "requests": amounts},
                    "volumeMounts": [
                        {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
                    ],
                }
            ],
            "volumes": [
                {
                    "name": "token",
                    "projected": {
                        "defaultMode": 420,
                        "sources": [
                            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                        ],
                    },
                }
            ],
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
        },
        "status": {
            "phase": "Running",
            "startTime": STAMP,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": STAMP}],
            "containerStatuses": [{"name": "engine", "ready": True, "restartCount": 0, "image": "registry.example/serve:v4"}],
        },
    }  # fmt: skip


def map_of(index: int, nodes: int) -> dict[str, Any]:
    """What the agent on a node of ``node`` writes while it runs the pods of ``pod``."""
    partition, product, memory, gpus, cpus, _ = POOLS[index % len(POOLS)]
    name = f"{partition}-{index:05d}"
    held = [index + turn * nodes for turn in range(gpus - 4)]
    lanes = 0 if partition == "pcie" else 18 if partition == "inf" else 12
    wire = f"NV{lanes}" if lanes else "PIX"
    return {
        "apiVersion": "gpu-admit.io/v1alpha1",
        "kind": "GpuTopology",
        "metadata": {
            "name": name,
            "ownerReferences": [
                {
                    "apiVersion": "v1", "kind": "Node", "name": name,
                    "uid": f"00000000-0000-4000-8000-{index:012d}",
                }
            ],
        },
        "spec": {
            "schema": 2,
            "asOf": STAMP,
            "heartbeatSeconds": 60,
            "source": "nvml",
            "gpus": [
                {
                    "index": i,
                    "uuid": f"GPU-{name}-{i}",
                    "pciBusID": f"0000:{16 * (i + 1):02x}:00.0",
                    "product": product,
                    "memoryMiB": int(memory),
                    "usedMiB": 70_000 if i < len(held) else 4,
                    "residueMiB": 0,
                    "numaNode": i * 2 // gpus,
                    "lost": False,
                    **({"nvlinks": {"active": lanes, "total": lanes, "down": []}} if lanes else {}),
                }
                for i in range(gpus)
            ],
            "links": [" ".join("X" if a == b else wire for b in range(gpus)) for a in range(gpus)],
            "numa": [
                {"id": n, "cpus": f"{n * cpus // 2}-{(n + 1) * cpus // 2 - 1}"} for n in range(2)
            ],
            "holders": [
                {
                    "device": f"GPU-{name}-{i}", "namespace": f"team-{at % 40:02d}",
                    "pod": f"serve-{at:06d}", "podUID": f"00000000-0000-4000-9000-{at:012d}",
                    "container": "engine", "via": "device-plugin", "resource": "nvidia.com/gpu",
                }
                for i, at in enumerate(held)
            ],
        },
    }  # fmt: skip


def small_objects() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """File stem and items of what is not nodes or pods."""
    spaces = [f"team-{n:02d}" for n in range(41)]  # the last one has no pods
    yield "namespaces", [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}, "status": {"phase": "Active"}}
        for ns in spaces
    ]  # fmt: skip
    yield "resourcequotas", [
        {
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus", "namespace": ns},
            "spec": {"hard": {"requests.nvidia.com/gpu": "4000"}},
            "status": {"hard": {"requests.nvidia.com/gpu": "4000"}, "used": {"requests.nvidia.com/gpu": "900"}},
        }
        for ns in spaces
    ]  # fmt: skip
    yield "limitranges", []
    yield "serviceaccounts", [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": ns}}
        for ns in spaces
    ]  # fmt: skip
    yield "priorityclasses", [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": n}, "value": v}
        for n, v in (("llm-inference-critical", 1000), ("llm-training-batch", 100))
    ]  # fmt: skip
    yield "poddisruptionbudgets", []


def write_cluster(directory: Path, nodes: int, pods: int) -> None:
    """Writes one JSON List a kind, as ``kubectl get --raw`` returns it."""
    lists: dict[str, list[dict[str, Any]]] = dict(small_objects())
    lists["nodes"] = [node(i) for i in range(nodes)]
    lists["pods"] = [pod(i, nodes) for i in range(pods)]
    _write_lists(directory, lists)


def write_maps(directory: Path, nodes: int) -> None:
    """Writes the agents' maps of all nodes as one more List."""
    _write_lists(directory, {"gputopologies": [map_of(i, nodes) for i in range(nodes)]})


def _write_lists(directory: Path, lists: dict[str, list[dict[str, Any]]]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for stem, items in lists.items():
        listed = {
            "apiVersion": "v1",
            "items": items,
            "kind": "List",
            "metadata": {"resourceVersion": ""},
        }
        (directory / f"{stem}.json").write_bytes(msgspec.json.encode(listed))


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: infer-{index}
  namespace: team-{space:02d}
  labels:
    app: infer-{index}
spec:
  replicas: {replicas}
  selector:
    matchLabels:
      app: infer-{index}
  template:
    metadata:
      labels:
        app: infer-{index}
        team: {team}
        workload-type: inference
    spec:
      priorityClassName: llm-inference-critical
      nodeSelector:
        gpu-partition: inf
      tolerations:
        - key: nvidia.com/gpu
          operator: Exists
          effect: NoSchedule
      containers:
        - name: vllm
          image: registry.example/vllm:v0.11
          args:
            - --model=/models/llama
            - --tensor-parallel-size={gpus}
          ports:
            - containerPort: 8000
          env:
            - name: HF_HOME
              value: /models
          resources:
            limits:
              nvidia.com/gpu: "{gpus}"
              memory: 32Gi
            requests:
              cpu: "4"
              memory: 32Gi
"""


def deployments(count: int, *, replicas: int = 1, gpus: int = 1) -> str:
    """``count`` Deployments in one file of about 0.95 kB each; each third one has no team."""
    return "---\n".join(
        DEPLOYMENT.format(
            index=i, space=i % 40, team='""' if i % 3 == 0 else f"team-{i % 40:02d}", replicas=replicas, gpus=gpus
        )
        for i in range(count)
    )  # fmt: skip


def admitted(*, replicas: int) -> str:
    """One Deployment in a namespace without pods: admitted and placed on a cluster made here."""
    return DEPLOYMENT.format(index=0, space=40, team="team-40", replicas=replicas, gpus=1)
