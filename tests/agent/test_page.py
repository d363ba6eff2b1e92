"""What docs/agent.md shows is what the program prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kubectl_gpuadmit.agent.manifests import text
from kubectl_gpuadmit.kube.gpu_topology_object import document
from kubectl_gpuadmit.topology.observe import observe
from tests.agent.node import node_of
from tests.fakes import machines
from tests.fakes.kubelet import devices, pod
from tests.fakes.nvml import Driver

PAGE = Path(__file__).parents[2] / "docs/agent.md"
SAMPLE = re.compile(r"(<!-- sample -->\n```yaml\n)(.*?)(```\n<!-- /sample -->)", re.DOTALL)


def test_the_sample_is_what_a_node_with_four_l40s_reports(
    driver: Driver, short: Path, update_golden: bool
) -> None:
    machine = machines.pcie_l40s().with_gpu(1, used_mib=41_320)
    with node_of(machine, driver, short) as node:
        node.config.write_text("kind: KubeletConfiguration\ncpuManagerPolicy: static\n")
        uuids = [gpu.uuid for gpu in machine.gpus]
        node.kubelet.allocatable = {"devices": devices("nvidia.com/gpu", *uuids)}
        held = devices("nvidia.com/gpu", uuids[1], numa=[0])
        node.kubelet.pods = [pod("team-a", "embed-0", devices=held, cpu_ids=[2, 3, 4, 5])]
        spec, _ = observe(node.sources.look(), now="2026-11-29T10:00:00Z", version="0.1.0")
    assert spec is not None
    made = text([document("gpu-7", spec)])
    page = PAGE.read_text()
    if update_golden:
        page = SAMPLE.sub(lambda m: m[1] + made + m[3], page)
        PAGE.write_text(page)
    found = SAMPLE.search(page)
    assert found is not None
    assert found[2] == made, "run: pytest tests/agent/test_page.py --update-golden"


@pytest.mark.parametrize("metric", sorted(set(re.findall(r"gpu_admit_\w+", PAGE.read_text()))))
def test_every_metric_of_the_page_is_one_that_is_served(metric: str) -> None:
    from kubectl_gpuadmit.agent.status import Status
    from kubectl_gpuadmit.topology.readings import Silent

    status = Status()
    status.source("driver", Silent("x"), 0.0)
    assert f"# TYPE {metric} " in status.metrics(node="n", resident=1)
