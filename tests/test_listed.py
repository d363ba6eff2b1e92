"""Slices are kept as what they share and what is their own; nobody who reads them sees that."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit.kube.decode import decode_bulk
from kubectl_gpuadmit.kube.dra import ResourceSlice
from kubectl_gpuadmit.kube.listed import Listed, own_texts, texts
from kubectl_gpuadmit.snapshots.trim import trimmed

Json = dict[str, Any]


def device(name: str, **attributes: Any) -> Json:
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}


def gpu(number: int, uuid: str, **more: Any) -> Json:
    return device(f"gpu-{number}", index={"int": number}, uuid={"string": uuid}, **more)


def document(number: int, devices: list[Json] | None, **spec: Any) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"n{number}"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": f"n{number}", "generation": 1, "resourceSliceCount": 1},
            "nodeName": f"n{number}",
            **({} if devices is None else {"devices": devices}),
            **spec,
        },
    }


def read(*documents: Json, **written: Any) -> list[ResourceSlice]:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    objects, _ = decode_bulk(json.dumps(listed, **written).encode(), "slices.json")
    return [one for one in objects if isinstance(one, ResourceSlice)]


def packed(slice: ResourceSlice) -> Listed:
    assert isinstance(slice.spec.devices, Listed)
    return slice.spec.devices


def same(slices: list[ResourceSlice], documents: list[Json]) -> bool:
    """Whether what is read is what a plain decoder makes of each document."""
    plain = [msgspec.convert(one, ResourceSlice) for one in documents]
    return [tuple(one.spec.devices or ()) for one in slices] == [
        tuple(one.spec.devices or ()) for one in plain
    ]


def test_slices_that_differ_in_uuids_alone_share_their_devices() -> None:
    documents = [document(n, [gpu(i, f"GPU-{n}-{i}") for i in range(2)]) for n in range(4)]
    slices = read(*documents, indent=4)
    assert len({id(packed(one).template) for one in slices}) == 1
    assert packed(slices[2]).template.varying == {"uuid"}
    assert list(texts(slices[2].spec.devices, "uuid")) == ["GPU-2-0", "GPU-2-1"]
    assert own_texts(slices[2].spec.devices, {"uuid"}) == ("GPU-2-0", "GPU-2-1")
    assert own_texts(slices[2].spec.devices, {"index"}) == ()
    assert same(slices, documents)


def test_a_slice_that_differs_in_more_is_kept_by_itself() -> None:
    documents = [document(n, [gpu(0, f"GPU-{n}")]) for n in range(3)]
    documents.append(document(3, [gpu(0, "GPU-3", healthy={"bool": False})]))
    slices = read(*documents)
    assert [packed(one).template is packed(slices[0]).template for one in slices] == [
        *([True] * 3),
        False,
    ]
    assert same(slices, documents)


def test_a_text_that_cannot_be_put_back_is_not_cut_out() -> None:
    """The same words where no attribute is, escapes, a text beside a number."""
    odd = gpu(0, "GPU-0")
    odd["nodeAllocatableResources"] = {"uuid": {"string": "GPU-x"}}
    documents = [
        document(0, [odd]),
        document(1, [gpu(0, 'GPU-"1"'), gpu(1, "GPU-\ue0000")]),
        document(2, [gpu(0, "GPU-ä")]),
        document(3, [gpu(0, ""), device("none")]),
        document(4, [{"name": "b", "basic": {"attributes": {"uuid": {"string": "GPU-4"}}}}]),
        document(5, []),
        document(6, None),
    ]
    assert same(read(*documents), documents)
    assert same(read(*documents, ensure_ascii=False), documents)


def test_what_only_the_api_servers_decoder_accepts_is_read_too() -> None:
    documents = [document(n, [gpu(0, f"GPU-{n}")]) for n in range(2)]
    documents[1]["spec"]["devices"][0]["capacity"] = {"memory": None}
    documents[1]["spec"]["sharedCounters"] = [{"name": "s", "counters": {"c": {"value": 1.0}}}]
    first, second = read(*documents)
    assert [one.name for one in first.spec.devices or ()] == ["gpu-0"]
    assert [one.name for one in second.spec.devices or ()] == ["gpu-0"]
    assert [one.name for one in second.spec.sharedCounters or ()] == ["s"]


def test_a_snapshot_keeps_every_device_with_its_own_texts() -> None:
    documents = [document(n, [gpu(i, f"GPU-{n}-{i}") for i in range(2)]) for n in range(3)]
    written = [trimmed(one) for one in read(*documents)]
    again = json.loads(msgspec.json.encode(written))
    assert same(read(*again), documents)


_NAMES = st.sampled_from(["uuid", "serial", "gpu.example.com/uuid", "model"])
_TEXTS = st.text(max_size=6) | st.sampled_from(["\ue0000", '"uuid":{"string":"x"', "\0", "\\"])
_VALUES = st.one_of(
    _TEXTS.map(lambda text: {"string": text}),
    st.integers(-3, 3).map(lambda number: {"int": number}),
    _TEXTS.map(lambda text: {"version": text}),
    st.lists(_TEXTS, max_size=2).map(lambda listed: {"strings": listed}),
)
_DEVICES = st.builds(
    lambda name, attributes: {"name": name, "attributes": attributes},
    _TEXTS,
    st.dictionaries(_NAMES, _VALUES, max_size=3),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(_DEVICES, max_size=3), min_size=1, max_size=5), st.booleans())
def test_any_devices_come_back_as_a_plain_decoder_reads_them(
    found: list[list[Json]], ascii_only: bool
) -> None:
    documents = [document(number, devices) for number, devices in enumerate(found)]
    assert same(read(*documents, ensure_ascii=ascii_only), documents)
