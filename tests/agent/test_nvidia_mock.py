"""The command above NVIDIA's own mock of NVML, where somebody has it.

It is no part of this project. Build it from github.com/NVIDIA/k8s-test-infra, pkg/gpu/mocknvml
(``make NO_PADDING=1``), and name the folder with its ``libnvidia-ml.so.1`` in
``GPU_ADMIT_NVML_MOCK``. Its machine profiles are looked for in ``GPU_ADMIT_NVML_PROFILES``, then
beside the corpus.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.corpus import corpus

ROOT = Path(__file__).parents[2]
MOCK = os.environ.get("GPU_ADMIT_NVML_MOCK", "")


def profiles() -> Path | None:
    named, beside = os.environ.get("GPU_ADMIT_NVML_PROFILES"), corpus()
    places = [Path(named)] if named else []
    places += [beside.parent / "tools/nvml-mock/profiles"] if beside else []
    return next((place for place in places if (place / "h100.yaml").is_file()), None)


pytestmark = pytest.mark.skipif(
    not MOCK or profiles() is None,
    reason="NVIDIA's mock of NVML is not here: set GPU_ADMIT_NVML_MOCK",
)


def looked(profile: Path, root: Path) -> Any:
    """The spec that ``agent --once`` prints above the mock showing this profile."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "kubectl_gpuadmit.cli.main", "agent", "--once", "-o", "json"),
            *("--node", "n", "--root", str(root), "--socket", str(root / "none.sock")),
        ],
        env={
            **os.environ,
            "LD_LIBRARY_PATH": MOCK,
            "MOCK_NVML_CONFIG": str(profile),
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        timeout=120,
        check=True,
    )
    made = json.loads(done.stdout)["spec"]
    assert "Mock NVIDIA" not in str(made), "the mock did not read the profile"
    return made


@pytest.mark.parametrize(
    ("name", "gpus", "driver", "up", "numa", "clique"),
    [
        ("a100", 8, "550.163.01", 12, [0, 0, 0, 0, 1, 1, 1, 1], None),
        ("h100", 8, "550.163.01", 18, [0, 0, 0, 0, 1, 1, 1, 1], 0),
        ("b200", 8, "560.35.03", 0, [0, 0, 0, 0, 1, 1, 1, 1], None),
        ("gb200", 8, "580.65.06", 18, [0, 0, 1, 1, 2, 2, 3, 3], 0),
        ("l40s", 8, "550.163.01", 0, [0, 0, 1, 1, 0, 0, 1, 1], None),
        ("t4", 4, "550.163.01", 0, [0, 0, 0, 0], None),
    ],
)
def test_machines(
    tmp_path: Path, name: str, gpus: int, driver: str, up: int, numa: list[int], clique: int | None
) -> None:
    folder = profiles()
    assert folder is not None
    spec = looked(folder / f"{name}.yaml", tmp_path)
    assert (len(spec["gpus"]), spec["driverVersion"]) == (gpus, driver)
    assert {gpu["nvlinks"]["active"] for gpu in spec["gpus"]} == {up}
    assert [gpu["numaNode"] for gpu in spec["gpus"]] == numa
    assert spec.get("fabric", {}).get("cliqueID") == clique
    cells = {cell for row in spec["links"] for cell in row.split()} - {"X"}
    assert cells == {f"NV{up}"} if up else not any(cell.startswith("NV") for cell in cells)


def degraded(tmp_path: Path, **parts: Any) -> Any:
    """The H100 profile with parts of its devices, or of ``nvlink``, replaced."""
    folder = profiles()
    assert folder is not None
    data = copy.deepcopy(yaml.safe_load((folder / "h100.yaml").read_text()))
    for name, part in parts.items():
        if name == "nvlink":
            data["nvlink"] = {**data["nvlink"], **part}
        else:
            data["devices"][int(name.removeprefix("gpu"))].update(part)
    file = tmp_path / "machine.yaml"
    file.write_text(yaml.safe_dump(data))
    return looked(file, tmp_path)


def test_a_lost_gpu(tmp_path: Path) -> None:
    spec = degraded(tmp_path, gpu3={"failure": {"mode": "lost"}})
    assert [gpu.get("lost", False) for gpu in spec["gpus"]] == [i == 3 for i in range(8)]


def test_links_that_are_down(tmp_path: Path) -> None:
    links = [
        {
            "link": number,
            "state": "active" if number < 14 else "down",
            "remote_device_type": "switch",
            "remote_pci_bus_id": "0000:05:00.0",
        }
        for number in range(18)
    ]
    spec = degraded(tmp_path, nvlink={"device_links": [{"index": 2, "links": links}]})
    told = spec["gpus"][2]["nvlinks"]
    assert (told["active"], told["total"], told["down"]) == (14, 18, [14, 15, 16, 17])
    assert spec["links"][2].split()[:3] == ["NV14", "NV14", "X"]


def test_an_xid(tmp_path: Path) -> None:
    failure = {"failure": {"mode": "ecc_uncorrectable", "xid": {"code": 63}}}
    spec = degraded(tmp_path, gpu2=failure)
    assert [x["code"] for x in spec["gpus"][2]["xids"]] == [63]


def test_a_fabric_that_is_not_ready(tmp_path: Path) -> None:
    fabric = {"cluster_uuid": "00000000-0000-0000-0000-000000000001", "clique_id": 0}
    spec = degraded(tmp_path, gpu4={"fabric": {**fabric, "state": "in_progress"}})
    assert spec["fabric"]["state"] == "in-progress"
    assert spec["problems"][0] == "GPU 4: not yet part of the NVLink fabric (fabric manager)"
