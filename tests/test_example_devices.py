"""The example devices are what the simulator makes, and play the story that docs/dra.md tells."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from examples import make_devices
from kubectl_gpuadmit.cli.main import main

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_the_tables_give_the_same_bytes_again(tmp_path: Path) -> None:
    script = tmp_path / "make_devices.py"
    script.write_text((EXAMPLES / "make_devices.py").read_text())
    subprocess.run([sys.executable, str(script)], check=True)
    made = {path.name: path.read_text() for path in (tmp_path / "devices").iterdir()}
    assert made == {path.name: path.read_text() for path in (EXAMPLES / "devices").iterdir()}


def test_machines_are_printed_for_kubectl_and_unknown_ones_refused() -> None:
    script = str(EXAMPLES / "make_devices.py")
    done = subprocess.run(
        [sys.executable, script, "h100", "--stdout"], capture_output=True, text=True, check=True
    )
    kinds = Counter(item["kind"] for item in json.loads(done.stdout)["items"])
    assert kinds == {"DeviceClass": 5, "Node": 1, "ResourceSlice": 1}
    done = subprocess.run(
        [sys.executable, script, "h200"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no machine h200: choose of h100, mig, dynamic-mig, gb200" in done.stderr


def devices(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    slices = [one for one in objects if one["kind"] == "ResourceSlice"]
    return [device for one in slices for device in one["spec"].get("devices", ())]


def test_an_h100_has_the_attributes_of_the_driver_and_79_65_gib() -> None:
    found = devices(make_devices.h100())
    assert [device["name"] for device in found] == [f"gpu-{i}" for i in range(8)]
    assert len({device["attributes"]["uuid"]["string"] for device in found}) == 8
    assert set(found[0]["attributes"]) == {
        "addressingMode",
        "architecture",
        "brand",
        "cudaComputeCapability",
        "cudaDriverVersion",
        "driverVersion",
        "productName",
        "resource.kubernetes.io/numaNode",
        "resource.kubernetes.io/pciBusID",
        "resource.kubernetes.io/pcieRoot",
        "type",
        "uuid",
    }
    assert found[0]["capacity"] == {"memory": {"value": "81559Mi"}}


def test_a_cut_a100_has_partitions_with_a_parent_a_uuid_and_places_that_do_not_overlap() -> None:
    taken: Counter[tuple[str, str]] = Counter()
    for device in devices(make_devices.mig()):
        attributes = device["attributes"]
        assert attributes["type"] == {"string": "mig"}
        assert attributes["uuid"]["string"].startswith("MIG-")
        parent = attributes["parentUUID"]["string"]
        taken.update((parent, name) for name in device["capacity"] if name.startswith("memoryS"))
    assert set(taken.values()) == {1}
    assert len(taken) == 2 * make_devices.MEMORY_SLICES


def test_partitions_on_demand_share_the_counters_of_their_gpu_with_the_whole() -> None:
    objects = make_devices.dynamic_mig(gpus=1)
    (sets,) = [
        s["spec"]["sharedCounters"] for s in objects if "sharedCounters" in s.get("spec", {})
    ]
    (counters,) = sets
    whole, *parts = devices(objects)
    assert whole["consumesCounters"] == [
        {"counterSet": "gpu-0-counter-set", "counters": counters["counters"]}
    ]
    assert len(parts) == sum(len(starts) for _, _, starts, *_ in make_devices.PROFILES.values())
    for part in parts:
        (use,) = part["consumesCounters"]
        assert set(use["counters"]) <= set(counters["counters"])
        assert "uuid" not in part["attributes"]


def test_the_clique_of_a_gb200_is_a_label_and_no_attribute() -> None:
    objects = make_devices.gb200()
    nodes = [one for one in objects if one["kind"] == "Node"]
    cliques = Counter(node["metadata"]["labels"]["nvidia.com/gpu.clique"] for node in nodes)
    assert sorted(cliques.values()) == [4, 4]
    assert not any("clique" in name for d in devices(objects) for name in d["attributes"])


@pytest.mark.parametrize(
    ("name", "policy", "told"),
    [
        ("eighty-gib", False, ("admitted", "never", ["placement/selector-unmet"], 1)),
        ("five-together", False, ("admitted", "waits", ["placement/too-few-together"], 0)),
        ("mps", False, ("admitted", "fits", [], 0)),
        ("mps", True, ("denied", "fits", ["dra/immature-feature"], 1)),
        ("isolated", True, ("mutated", "fits", [], 0)),
    ],
)
def test_each_claim_shows_what_its_first_line_says(
    name: str,
    policy: bool,
    told: tuple[str, str, list[str], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = EXAMPLES / f"claims/{name}.yaml"
    assert file.read_text().startswith("# Shows ")
    words = ["explain", "-f", str(file), "--snapshot", str(EXAMPLES / "devices"), "-o", "json"]
    words += ["--policy", str(EXAMPLES / "claims/policy.yaml")] if policy else []
    code = main(words)
    (found,) = json.loads(capsys.readouterr().out)["workloads"]
    assert (found["admission"], found["placement"], found["blockers"], code) == told


def test_the_isolated_example_holds_what_isolate_prints(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["isolate", "team-a", "--sharing", "mig", "--mig-profile", "3g.20gb", "-o", "yaml"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert printed in (EXAMPLES / "claims/isolated.yaml").read_text()
