"""A cluster of any size on a control plane: equal GPU nodes, and pods that hold them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.controlplane import kubelet
from tests.controlplane.bed import ControlPlane, add_node
from tests.controlplane.client import Client, Json

NAMESPACES = 20
GPUS = 8


def nodes(count: int) -> Iterator[Json]:
    """Nodes of 8 GPUs over four zones."""
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(GPUS)}
    for number in range(count):
        name = f"gpu-{number:05}"
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/hostname": name,
                    "topology.kubernetes.io/zone": f"zone-{number % 4}",
                    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                },
            },
            "spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


def pods(count: int, *, nodes: int) -> Iterator[Json]:
    """Bound pods, evenly over nodes and namespaces; the first five of a node hold one GPU each."""
    for number in range(count):
        held = {"nvidia.com/gpu": "1"} if number // nodes < 5 else {}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"pod-{number:06}",
                "namespace": f"team-{number % NAMESPACES:02}",
                "labels": {"app": f"app-{number % 200:03}"},
            },
            "spec": {
                "nodeName": f"gpu-{number % nodes:05}",
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                "containers": [
                    {
                        "name": "main",
                        "image": "registry.example.com/serve:1",
                        "resources": {
                            "requests": {"cpu": "2", "memory": "8Gi", **held},
                            "limits": {"memory": "8Gi", **held},
                        },
                    }
                ],
            },
        }


def fill(bed: ControlPlane, *, node_count: int, pod_count: int, connections: int = 8) -> None:
    """Creates them all; the pods run."""

    def create(client: Client, document: Json) -> None:
        client.create(document)
        client.patch(document, {"status": kubelet.running(document)}, part="status")

    for number in range(NAMESPACES):
        bed.namespace(f"team-{number:02}")
    bed.each(add_node, nodes(node_count), connections=connections)
    bed.each(create, pods(pod_count, nodes=node_count), connections=connections)
