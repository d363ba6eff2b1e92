"""Clusters for these tests: the example, and small ones drawn at random, as plain data."""

from __future__ import annotations

import datetime as dt
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml
from hypothesis import strategies as st

from kubectl_gpuadmit.adapters.snapshot import load_snapshot
from kubectl_gpuadmit.cli.catalogue import catalogue
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.kube.decode import decode_bulk
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.policy.load import load_policy
from kubectl_gpuadmit.render.data import document
from kubectl_gpuadmit.verdict import Report, Source

ROOT = Path(__file__).parents[2]
NOW = dt.datetime(2026, 11, 29, 14, tzinfo=dt.UTC)
WORKLOADS = sorted((ROOT / "examples/workloads").glob("*.yaml"))
POLICY_FILE = ROOT / "examples/policy.yaml"
KINDS = [
    "LimitRange",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "PriorityClass",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageClass",
]


@cache
def example() -> Cluster:
    return load_snapshot(str(ROOT / "examples/cluster")).cluster


@cache
def example_policy() -> Policy:
    return load_policy(POLICY_FILE.read_bytes(), "examples/policy.yaml", catalogue=catalogue)


def policy_data() -> Any:
    return yaml.safe_load(POLICY_FILE.read_text())


def cluster(items: list[dict[str, Any]], known: list[str]) -> Cluster:
    """As it is read back from a file."""
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    objects = decode_bulk(msgspec.json.encode(listed), "test")[0] if items else []
    return Cluster.restored(objects, known) if known else Cluster.of(objects)


def documents(path: Path) -> list[Document]:
    found = read_documents(path.read_bytes(), f"examples/workloads/{path.name}")
    return [d for d in found if isinstance(d, Document)]


def report(docs: list[Document], on: Cluster, policy: Policy) -> Report:
    return evaluate(docs, on, policy, now=NOW, source=Source("snapshot", "test", 0))


def verdicts(docs: list[Document], on: Cluster, policy: Policy) -> Any:
    """The whole report as it comes back from JSON."""
    return msgspec.json.decode(msgspec.json.encode(document(report(docs, on, policy))))


# -- drawn at random -------------------------------------------------------------------------------

NAMES = st.sampled_from(
    ["web", "llama-8b", "llama", "team-a", "team", "acme-prod", "a-1", "7d9f", "default", "main"]
)
PARTS = st.sampled_from(["inf", "train", "light"])


def meta(name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, **({"namespace": namespace} if namespace else {}), **more}


@st.composite
def nodes(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = []
    for number in range(draw(st.integers(1, 4))):
        name = f"{draw(NAMES)}-{number}"
        taint = {"key": "dedicated", "value": draw(NAMES), "effect": "NoSchedule"}
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": meta(
                    name,
                    labels={
                        "kubernetes.io/hostname": name,
                        "gpu-partition": draw(PARTS),
                        "acme.com/owner": draw(NAMES),
                    },
                ),
                "spec": {"taints": [taint]} if draw(st.booleans()) else {},
                "status": {
                    "allocatable": {
                        "cpu": "64",
                        "memory": "512Gi",
                        "pods": "20",
                        "nvidia.com/gpu": str(draw(st.integers(0, 8))),
                    }
                },
            }
        )
    return made


@st.composite
def pod_specs(draw: st.DrawFn, owners: list[str]) -> dict[str, Any]:
    gpus = str(draw(st.integers(1, 4)))
    spec: dict[str, Any] = {
        "containers": [
            {
                "name": "main",
                "image": f"registry.acme.com/{draw(NAMES)}:1.2",
                "resources": {"limits": {"nvidia.com/gpu": gpus, "cpu": "2", "memory": "4Gi"}},
                "env": [
                    {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
                    {"name": "API_TOKEN", "value": "hunter2"},
                ],
                "args": ["--model", "acme/secret-model", "--api-key", "hunter2"],
            }
        ]
    }
    if draw(st.booleans()):
        spec["nodeSelector"] = {"acme.com/owner": draw(st.sampled_from(owners))}
    if draw(st.booleans()):
        spec["tolerations"] = [
            {"key": "dedicated", "operator": "Equal", "value": draw(NAMES), "effect": "NoSchedule"}
        ]
    if draw(st.booleans()):
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": draw(NAMES)}},
            }
        ]
    return spec


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(objects of a cluster, manifests of some workloads)."""
    items = draw(nodes())
    owners = [item["metadata"]["labels"]["acme.com/owner"] for item in items]
    homes = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    for home in homes:
        items += [
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": meta(home, labels={"kubernetes.io/metadata.name": home}),
            },
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta("default", home)},
        ]
        if draw(st.booleans()):
            hard = {"requests.nvidia.com/gpu": str(draw(st.integers(0, 6))), "pods": "9"}
            used = {"requests.nvidia.com/gpu": "0", "pods": "0"}
            items.append(
                {
                    "apiVersion": "v1",
                    "kind": "ResourceQuota",
                    "metadata": meta(draw(NAMES), home),
                    "spec": {"hard": hard},
                    "status": {"hard": hard, "used": used},
                }
            )
    for number in range(draw(st.integers(0, 4))):
        owner = f"{draw(NAMES)}-7d9f"
        items.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": meta(
                    f"{owner}-{number}",
                    draw(st.sampled_from(homes)),
                    labels={"app": draw(NAMES), "pod-template-hash": "7d9f"},
                    annotations={"acme.com/notes": "hunter2", "gpu-admit.io/ttl": "4h"},
                    ownerReferences=[
                        {
                            "apiVersion": "apps/v1",
                            "kind": "ReplicaSet",
                            "name": owner,
                            "controller": True,
                        }
                    ],
                ),
                "spec": {
                    **draw(pod_specs(owners)),
                    "nodeName": draw(st.sampled_from([i["metadata"]["name"] for i in items[:1]])),
                },
                "status": {"phase": "Running", "startTime": "2026-11-29T12:00:00Z"},
            }
        )
    manifests = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta(f"{draw(NAMES)}-{number}", draw(st.sampled_from([*homes, "nowhere"]))),
            "spec": {
                "replicas": draw(st.integers(1, 3)),
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web", "team": draw(NAMES)}},
                    "spec": draw(pod_specs(owners)),
                },
            },
        }
        for number in range(draw(st.integers(1, 2)))
    ]
    return items, manifests


def as_documents(manifests: list[dict[str, Any]]) -> list[Document]:
    return [Document("test.yaml", n, 10 * n + 1, data) for n, data in enumerate(manifests)]
