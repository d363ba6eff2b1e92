"""A kubelet that refuses for NUMA, on a running control plane: foretold, and when it has happened.

The scheduler and the controllers are Kubernetes' own; the kubelet is played by the gate that the
family ``numa`` compares with the real one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubectl_gpuadmit.cli.main import main
from tests.controlplane import kubelet
from tests.controlplane.bed import ControlPlane
from tests.controlplane.client import Json
from tests.controlplane.test_bed import node
from tests.e2e.test_live import TEAM, pods, reasons, workload

GROUP = "topology.node.k8s.io"
CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": f"noderesourcetopologies.{GROUP}",
        "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
    },
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {
            "kind": "NodeResourceTopology",
            "listKind": "NodeResourceTopologyList",
            "plural": "noderesourcetopologies",
            "singular": "noderesourcetopology",
        },
        "versions": [
            {
                "name": "v1alpha2",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def zone(number: int, free: int) -> Json:
    gpus = {"name": "nvidia.com/gpu", "capacity": "4", "allocatable": "4", "available": str(free)}
    return {"name": f"node-{number}", "type": "Node", "resources": [gpus]}


def topology(name: str, *free: int) -> Json:
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "attributes": [
            {"name": "topologyManagerPolicy", "value": "single-numa-node"},
            {"name": "topologyManagerScope", "value": "container"},
        ],
        "zones": [zone(number, count) for number, count in enumerate(free)],
    }


@pytest.fixture
def bed(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    control_plane.namespace(TEAM)
    control_plane.client.create(CRD)
    listed = f"/apis/{GROUP}/v1alpha2/noderesourcetopologies"
    control_plane.wait(lambda: _served(control_plane, listed), what="the new kind", timeout=30)
    yield control_plane
    control_plane.client.delete(CRD)


def _served(bed: ControlPlane, path: str) -> bool:
    try:
        bed.client.get(path)
    except Exception:
        return False
    return True


def explained(
    bed: ControlPlane, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, dict[str, Any]]:
    code = main(["explain", *words, "--kubeconfig", str(bed.kubeconfig), "-o", "json", "-n", TEAM])
    out, err = capsys.readouterr()
    assert out, err
    (verdict,) = json.loads(out)["workloads"]
    return code, verdict


def test_a_runaway_is_foretold_and_told_when_it_has_happened(
    bed: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.node(node("n-0", gpus=8))
    bed.client.create(topology("n-0", 2, 2))
    file = tmp_path / "train.json"
    made = workload("Deployment", "train", gpus=4)
    file.write_text(json.dumps(made))
    code, verdict = explained(bed, capsys, "-f", str(file))
    assert (code, verdict["placement"]) == (0, "waits")
    (finding,) = [f for f in verdict["findings"] if f["reason"] == "placement/numa-refused"]
    assert finding["detail"].startswith(
        "the scheduler would send it to n-0, whose kubelet would refuse it: single-numa-node wants"
        " 4 nvidia.com/gpu (container m) on one NUMA node; free by NUMA node: nvidia.com/gpu 2 + 2"
    )
    assert verdict["remedies"][0]["summary"] == "2 nvidia.com/gpu a pod instead of 4"

    # the scheduler does send it there, and its next as well
    bed.client.create(made)
    refused: set[str] = set()
    for count in range(1, 5):
        for one in pods(bed, count, bound=True):
            name = one["metadata"]["name"]
            if name not in refused:
                assert one["spec"]["nodeName"] == "n-0"
                refused.add(name)
                kubelet.fail(
                    bed.client,
                    one,
                    reason="TopologyAffinityError",
                    message="Resources cannot be allocated with Topology locality",
                )
    bed.wait(lambda: len(pods(bed, 5)) >= 5, what="a fifth pod", timeout=30)
    _, verdict = explained(bed, capsys, "deployment/train")
    assert {"live/runaway", "live/refused-by-kubelet"} <= reasons(verdict)
    (runaway,) = [f for f in verdict["findings"] if f["reason"] == "live/runaway"]
    assert "ended TopologyAffinityError, all on n-0" in runaway["detail"]
    assert f"kubectl -n {TEAM} scale deployment/train --replicas=0" in [
        e["observed"] for e in runaway["evidence"]
    ]
