"""What a pod would get of a node's GPUs: whole ones, slices, shares; and which nodes count."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.gpus import Share
from kubectl_gpuadmit.kube.objects import Node, Pod
from kubectl_gpuadmit.sizing.devices import candidates, of_node, pinned

GPU = "nvidia.com/gpu"
A10 = {"nvidia.com/gpu.product": "NVIDIA-A10", "nvidia.com/gpu.memory": "23028"}


@pytest.mark.parametrize(
    ("labels", "resource", "share", "gets"),
    [
        (A10, GPU, None, (23028, None, "")),
        ({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, GPU, None, (81559, None, "")),
        ({"cloud.google.com/gke-accelerator": "nvidia-l4"}, GPU, None, (23034, None, "")),
        ({"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}, GPU, None, (40960, None, "")),
        ({}, GPU, None, (None, None, "")),
        (
            {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
            "nvidia.com/mig-3g.40gb",
            None,
            (40192, None, ""),
        ),
        (
            {**A10, "nvidia.com/gpu.replicas": "4"},
            GPU,
            None,
            (23028, 5757, "time-sliced among 4: its part of the memory"),
        ),
        (
            {**A10, "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "mps"},
            GPU,
            None,
            (5757, None, "MPS divides it among 4"),
        ),
        (
            A10,
            GPU,
            Share(memory_mib=8192, by="HAMi resources"),
            (8192, None, "8,192 MiB by HAMi resources"),
        ),
        (
            A10,
            GPU,
            Share(memory_percent=30, by="HAMi resources"),
            (6908, None, "30 % by HAMi resources"),
        ),
        (
            A10,
            GPU,
            Share(memory_percent=50, by="annotation gpu-fraction"),
            (23028, 11514, "50 % by annotation gpu-fraction"),
        ),
    ],
)
def test_a_device_has_what_its_user_sees_of_it(
    labels: dict[str, str],
    resource: str,
    share: Share | None,
    gets: tuple[int | None, int | None, str],
) -> None:
    found = of_node(labels, resource, 1, share)
    assert (found.mib, found.free_mib, found.how) == gets


def node(name: str, labels: dict[str, str], gpus: int = 4, **spec: Any) -> Node:
    return convert(
        {
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"allocatable": {GPU: str(gpus)}},
        },
        Node,
    )


def pod(**spec: Any) -> Pod:
    return convert({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}, Pod)


def test_nodes_that_selector_taints_or_size_rule_out_do_not_count_and_cordoned_ones_come_last() -> (
    None
):
    l40s = {"nvidia.com/gpu.product": "NVIDIA-L40S"}
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    cluster = Cluster.of(
        [
            node("a", A10),
            node("b", A10),
            node("large", l40s),
            node("tainted", l40s, taints=[taint]),
            node("few", A10, gpus=1),
            node("cordoned", l40s, unschedulable=True),
        ]
    )
    assert [(d.product, d.nodes) for d in candidates(cluster, pod(), GPU, 2)] == [
        ("NVIDIA-A10", ("a", "b")),
        ("NVIDIA-L40S", ("large",)),
    ]
    chosen = pod(nodeSelector=l40s, tolerations=[{"operator": "Exists"}])
    assert [d.nodes for d in candidates(cluster, chosen, GPU, 2)] == [("large", "tainted")]
    only = pod(nodeName="cordoned")
    assert [d.nodes for d in candidates(cluster, only, GPU, 2)] == [("cordoned",)]


def test_without_nodes_a_selector_may_name_the_product() -> None:
    found = pinned(pod(nodeSelector={"cloud.google.com/gke-accelerator": "nvidia-l4"}), GPU, 2)
    assert found is not None
    assert (found.mib, found.count, found.nodes) == (23034, 2, ())
    assert pinned(pod(), GPU, 1) is None
