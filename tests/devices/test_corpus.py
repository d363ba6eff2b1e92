"""DRA objects of real clusters, drivers and pages: each is read as its index says."""

from __future__ import annotations

import pytest

from kubectl_gpuadmit.devices import gpus, normal
from kubectl_gpuadmit.devices.values import Version
from kubectl_gpuadmit.kube import dra
from kubectl_gpuadmit.kube.decode import decode_bulk
from kubectl_gpuadmit.kube.objects import KubeObject, Pod
from tests.corpus import Item, items, needs_corpus

pytestmark = needs_corpus

FRAGMENTS = {"016", "017", "073", "077"}
"""Two are refused (test_corpus_reading says how); the other two are cut by a line of dots, after
which kubectl reads nothing: a warning says so (test_manifests)."""

SLICES = {
    "001": ("gpu.nvidia.com", 8, 8),
    "002": ("dra.net", 7, 0),
    "004": ("dra.net", 4, 0),
    "005": ("dra.net", 8, 0),
    "006": ("gpu.nvidia.com", 4, 4),
    "007": ("dra.net", 8, 0),
    "011": ("gaudi.intel.com", 2, 0),
    "012": ("gpu.kwok.x-k8s", 1, 1),
    "013": ("gpu.example.com", 8, 8),
    "020": ("driverValue", 1, 0),
    "022": ("driverValue", 1, 0),
    "070": ("tpu.google.com", 2, 0),
    "076": ("dra.example.com", 2, 0),
}
"""File -> (driver, devices, GPUs among them), over all slices of the file."""

ASKED = {
    "026": 2,
    "027": 1,
    "031": 1,
    "033": 1,
    "034": 2,
    "035": 2,
    "038": 1,
    "039": 1,
    "042": 2,
    "043": 1,
    "045": 2,
    "046": 0,
    "048": 1,
    "053": 1,
    "055": 2,
    "056": 2,
    "062": 1,
    "063": 1,
    "068": 0,
    "069": 0,
}
"""File -> GPUs (or parts) of one pod of it, each claim once however many containers use it."""


def number(item: Item) -> str:
    return item.path.name[:3]


def objects(item: Item) -> list[KubeObject]:
    return decode_bulk(item.path.read_bytes(), item.path.name)[0]


def of(files: dict[str, object]) -> list[Item]:
    return [item for item in items("dra") if number(item) in files]


@pytest.mark.parametrize("item", of(dict(SLICES)), ids=number)
def test_devices_count_as_gpus_only_where_they_are(item: Item) -> None:
    slices = [normal.of_slice(o) for o in objects(item) if isinstance(o, dra.ResourceSlice)]
    devices = [device for one in slices for device in one.devices]
    assert (
        slices[0].driver,
        len(devices),
        sum(map(gpus.is_whole, devices)),
    ) == SLICES[number(item)]


@pytest.mark.parametrize("item", of(dict(ASKED)), ids=number)
def test_a_pod_asks_for_the_gpus_of_its_claims_each_once(item: Item) -> None:
    given = objects(item)
    templates = {
        o.name: normal.of_template(o) for o in given if isinstance(o, dra.ResourceClaimTemplate)
    }
    claims = {o.name: normal.of_claim(o) for o in given if isinstance(o, dra.ResourceClaim)}
    classes = {o.name: normal.of_class(o) for o in given if isinstance(o, dra.DeviceClass)}
    pods = [o for o in given if isinstance(o, Pod)]
    entries = (pods[0].spec.resourceClaims or ()) if pods else ()
    mine = [
        (templates | claims)[entry.resourceClaimTemplateName or entry.resourceClaimName or ""]
        for entry in entries
    ] or list(templates.values())
    assert sum(sum(gpus.asked(one, classes).values()) for one in mine) == ASKED[number(item)]


def test_every_file_is_in_the_tables_or_holds_neither_slices_nor_pods() -> None:
    for item in items("dra"):
        if number(item) in FRAGMENTS:
            continue
        given = objects(item)
        assert given, item.path.name
        if any(isinstance(o, dra.ResourceSlice) for o in given):
            assert number(item) in SLICES, item.path.name
        assert [f for o in given if (f := normal.outdated(o)) is not None] == []


def test_amounts_versions_and_places_are_read_from_real_slices() -> None:
    by_file = {number(item): item for item in items("dra")}
    a100 = next(o for o in objects(by_file["001"]) if isinstance(o, dra.ResourceSlice))
    device = normal.of_slice(a100).devices[0]
    assert device.attributes["gpu.nvidia.com/cudaComputeCapability"] == Version("8.0.0")
    assert str(device.capacity["gpu.nvidia.com/memory"].value) == "40Gi"
    counted = [
        normal.of_slice(o) for o in objects(by_file["076"]) if isinstance(o, dra.ResourceSlice)
    ]
    assert [[c.name for c in one.counter_sets] for one in counted] == [["gpu-1-counters"], []]
    assert len(counted[1].devices[0].consumes) == 1


def test_claims_of_every_shape_are_read() -> None:
    by_file = {number(item): item for item in items("dra")}
    rich = next(o for o in objects(by_file["066"]) if isinstance(o, dra.ResourceClaim))
    read = normal.of_claim(rich)
    assert [(r.name, [(w.mode, w.count) for w in r.wants]) for r in read.requests] == [
        ("gpu", [("ExactCount", 2), ("ExactCount", 1)]),
        ("net", [("All", 0)]),
    ]
    allocated = next(o for o in objects(by_file["065"]) if isinstance(o, dra.ResourceClaim))
    given = normal.of_claim(allocated).allocation
    assert given is not None
    assert [(str(one.device), one.request) for one in given.devices] == [
        ("gpu.example.com/artifact-pool/gpu-0", "gpu")
    ]
    rule = next(o for o in objects(by_file["049"]) if isinstance(o, dra.DeviceTaintRule))
    made = normal.of_taint_rule(rule)
    assert (made.selects, made.driver, made.taint.effect) == (True, "gpu.example.com", "NoExecute")
