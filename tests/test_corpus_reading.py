"""Every file of the corpus is read, or refused with one clear error where its index says so."""

from __future__ import annotations

import pytest

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.decode import decode_bulk, decode_object
from kubectl_gpuadmit.kube.manifests import read_documents
from tests.corpus import Item, items, needs_corpus

pytestmark = needs_corpus

REFUSED = {
    "035-vllm-gemma-misindented.yaml": "bad-yaml",
    "071-infw-gw-20k.yaml": "bad-yaml",
    "018-allocatable-zero-of-16.yaml": "no-kind",
    "024-plain-status-yaml.yaml": "no-kind",
    "029-l40s-mps-renamed-config.yaml": "no-kind",
    "073-slice-nvidia-l4-empty-counters-error.log": "bad-yaml",
    "077-nv-vgpu-slot-device.yaml": "not-a-mapping",
}
"""The first two do not parse, by their index; the others are fragments of objects, or a log."""


def name(item: Item) -> str:
    return f"{item.path.parent.name}/{item.path.name}"


def read(item: Item) -> tuple[list[str], list[BadManifest]]:
    """Kinds of the objects in a file, and what was refused."""
    kinds: list[str] = []
    errors: list[BadManifest] = []
    for document in read_documents(item.path.read_bytes(), item.path.name):
        try:
            if isinstance(document, BadManifest):
                raise document
            kinds.append(decode_object(document).kind)
        except BadManifest as error:
            errors.append(error)
    return kinds, errors


@pytest.mark.parametrize(
    "item", [i for f in ("workloads", "nodes", "dra") for i in items(f) if i.path.suffix != ".txt"],
    ids=name,
)  # fmt: skip
def test_manifests_of_the_corpus_are_read_or_refused_as_their_index_says(item: Item) -> None:
    kinds, errors = read(item)
    wanted = REFUSED.get(item.path.name)
    assert [error.ref for error in errors] == ([wanted] if wanted else [])
    assert all(error.line for error in errors)
    assert kinds or errors


@pytest.mark.parametrize("item", items("workloads"), ids=name)
def test_the_kinds_of_a_workload_file_are_among_those_of_its_index(item: Item) -> None:
    kinds, errors = read(item)
    if errors:
        assert item.path.name in REFUSED
        return
    listed = set(item.row["kinds"].split(","))
    assert kinds
    assert set(kinds) <= listed  # the index also names kinds of lists and owners


@pytest.mark.parametrize(
    "item",
    [
        i
        for f in ("nodes", "topo")
        for i in items(f)
        if i.path.suffix == ".txt"
        and i.path.name != "019-allocatable-not-free.txt"  # a Node in YAML
    ],
    ids=name,
)
def test_command_output_given_as_a_manifest_is_refused_with_one_line(item: Item) -> None:
    kinds, errors = read(item)
    assert kinds == []
    assert errors
    assert all("\n" not in str(error) and error.line for error in errors)


@pytest.mark.parametrize(
    "item", [i for f in ("workloads", "nodes", "dra", "topo") for i in items(f)], ids=name
)
def test_bulk_decoding_finds_what_reading_one_by_one_finds(item: Item) -> None:
    kinds, errors = read(item)
    try:
        objects, known = decode_bulk(item.path.read_bytes(), item.path.name)
    except BadManifest:
        assert errors
    else:
        assert [obj.kind for obj in objects] == kinds
        assert set(kinds) <= known
