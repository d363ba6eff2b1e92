"""A capsule gives its verdict again, alone; it holds what was read and no secret."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings

from kubectl_gpuadmit.cli.answer import load_policy
from kubectl_gpuadmit.cli.capsule import objects_of, plain
from kubectl_gpuadmit.errors import BadManifest, BadSnapshot, Unanswerable
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.sizing.registry import NONE, Entry
from kubectl_gpuadmit.snapshots import capsule
from kubectl_gpuadmit.snapshots.capsule import Asked, Held, HeldModels
from kubectl_gpuadmit.verdict import Source
from tests.snapshots.clusters import (
    KINDS,
    NOW,
    POLICY_FILE,
    WORKLOADS,
    as_documents,
    cluster,
    documents,
    example,
    example_policy,
    worlds,
)


def load(raw: bytes, name: str) -> Policy:
    return load_policy((raw, name))


def question(docs: list[Document | BadManifest], **more: Any) -> Asked:
    given_: dict[str, Any] = {
        "documents": docs,
        "cluster": example(),
        "policy": example_policy(),
        "policy_file": (POLICY_FILE.read_bytes(), "examples/policy.yaml"),
        "now": NOW,
        "source": Source("snapshot", "examples/cluster", 3),
        "namespace": "default",
        "remedies": True,
    }
    return Asked(**{**given_, **more})


def made(asked: Asked) -> Held:
    """The content of the question's capsule, proven."""
    raw = capsule.made(asked, program="test", plain=plain)
    capsule.prove(raw, asked.answer(), load=load, decode=objects_of, plain=plain)
    return capsule.opened(raw, "test.json")


def replayed(held: Held) -> Any:
    return plain(capsule.restored(held, load=load, decode=objects_of).answer())


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda p: p.stem)
def test_every_example_gives_its_verdict_again(path: Path) -> None:
    asked = question(list(documents(path)))
    held = made(asked)
    assert replayed(held) == held.verdict == plain(asked.answer())


@settings(max_examples=50, deadline=None)
@given(worlds())
def test_any_verdict_is_had_again_from_its_capsule_without_secrets(
    world: tuple[list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    items, manifests = world
    asked = question(list(as_documents(manifests)), cluster=cluster(items, KINDS))
    raw = capsule.made(asked, program="test", plain=plain)
    capsule.prove(raw, asked.answer(), load=load, decode=objects_of, plain=plain)
    assert b"hunter2" not in raw


def test_it_holds_what_was_read_and_no_more() -> None:
    fits = next(path for path in WORKLOADS if path.stem == "fits")
    held = made(question(list(documents(fits))))
    found = {
        (o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]) for o in held.objects
    }
    every = {
        (kind, o.namespace, o.name) for kind in example().kinds() for o in example().every(kind)
    }
    assert found < every
    assert {ns for kind, ns, _ in found if kind in ("ResourceQuota", "LimitRange")} == {"team-a"}
    assert {kind for kind, _, _ in found if kind in ("PersistentVolume", "CSINode")} == set()
    assert {name for kind, _, name in found if kind == "Node"} == set(example().nodes)
    ended = {p.name for p in example().pods() if p.status.phase in ("Succeeded", "Failed")}
    assert {name for kind, ns, name in found if kind == "Pod" and ns != "team-a"} & ended == set()


def test_each_object_that_it_needs_is_needed() -> None:
    """Taking the quota, or the nodes, out of a capsule gives another verdict."""
    path = next(path for path in WORKLOADS if path.stem == "quota-third-replica")
    held = made(question(list(documents(path))))
    for kind in ("ResourceQuota", "Node", "Namespace"):
        less = [o for o in held.objects if o["kind"] != kind]
        assert replayed(msgspec.structs.replace(held, objects=less)) != held.verdict, kind


def test_an_unreadable_document_is_in_it() -> None:
    broken = BadManifest("bad-yaml", "is no YAML", file="a.yaml", line=3, column=1, hint="look")
    held = made(question([broken, *documents(WORKLOADS[0])]))
    assert replayed(held)["skipped"][0] == {
        "ref": {"apiVersion": "", "kind": "", "namespace": "", "name": ""},
        "location": "a.yaml:3:1",
        "treated": "unreadable",
        "detail": "is no YAML",
        "field": "",
        "error": "bad-yaml",
        "hint": "look",
    }


def test_secrets_of_the_manifest_are_not_in_it() -> None:
    docs = as_documents(
        [
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "s", "namespace": "team-a"},
                "stringData": {"password": "hunter2"},
            },
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "namespace": "team-a",
                             "annotations": {"acme.com/note": "hunter2"}},
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "image": "i",
                            "env": [{"name": "TOKEN", "value": "hunter2"}],
                            "command": ["sh", "-c", "export T=hunter2; exec serve"],
                        }
                    ]
                },
            },
        ]
    )  # fmt: skip
    raw = capsule.made(question(list(docs)), program="test", plain=plain)
    assert b"hunter2" not in raw


def test_what_is_not_written_and_would_change_the_verdict_is_an_error() -> None:
    docs = documents(WORKLOADS[0])
    asked = question(list(docs))
    raw = capsule.made(asked, program="test", plain=plain)
    other = question(list(documents(WORKLOADS[3]))).answer()
    with pytest.raises(Unanswerable) as caught:
        capsule.prove(raw, other, load=load, decode=objects_of, plain=plain)
    assert caught.value.ref == "capsule-insufficient"


# -- the file --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def raw() -> bytes:
    return capsule.made(question(list(documents(WORKLOADS[4]))), program="test", plain=plain)


def test_equal_questions_give_equal_bytes(raw: bytes) -> None:
    again = capsule.made(question(list(documents(WORKLOADS[4]))), program="test", plain=plain)
    assert again == raw


def test_the_file_is_what_its_schema_says(raw: bytes) -> None:
    text = resources.files("kubectl_gpuadmit").joinpath("schema/capsule-v1.json").read_text()
    schema = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(raw), schema)


def test_its_layout_may_change_and_its_content_may_not(raw: bytes) -> None:
    packed = json.dumps(json.loads(raw), sort_keys=True).encode()
    assert capsule.opened(packed, "c") == capsule.opened(raw, "c")


@pytest.mark.parametrize(
    ("change", "ref"),
    [
        (lambda raw: raw[: len(raw) // 2], "capsule-unreadable"),
        (lambda raw: b"\xff\xfe", "capsule-unreadable"),
        (lambda raw: b"[]", "capsule-unreadable"),
        (lambda raw: b'{"kind": "Pod"}', "capsule-unreadable"),
        (lambda raw: raw.replace(b"capsule/v1", b"capsule/v2"), "capsule-version"),
        (lambda raw: raw.replace(b"team-a", b"team-b"), "capsule-changed"),
        (lambda raw: raw.replace(b'"sha256"', b'"sha1"'), "capsule-changed"),
    ],
)
def test_a_file_that_is_not_whole_is_refused(raw: bytes, change: Any, ref: str) -> None:
    with pytest.raises(BadSnapshot) as caught:
        capsule.opened(change(raw), "c.json")
    assert (caught.value.ref, caught.value.file) == (ref, "c.json")


def test_a_field_that_is_missing_is_named(raw: bytes) -> None:
    content = json.loads(raw)
    del content["sha256"], content["objects"]
    sealed = {**content, "sha256": capsule.seal(content)}
    with pytest.raises(BadSnapshot, match="objects"):
        capsule.opened(json.dumps(sealed).encode(), "c.json")


def test_what_files_and_registries_said_is_what_its_schema_says() -> None:
    entry = Entry(name="acme/chat", source="a file", memory_gib=16.0, also=("chat",))
    policy = example_policy()
    models = NONE.with_entries([entry])
    models = msgspec.structs.replace(models, asked=("MLflow",), silent=("MLflow: refused",))
    asked = question(
        list(documents(WORKLOADS[0])),
        policy=msgspec.structs.replace(policy, models=models).with_settings(
            "model/memory-fit", {"concurrency": 3}
        ),
        load={"concurrency": 3},
        more_models=True,
    )
    raw = capsule.made(asked, program="test", plain=plain)
    text = resources.files("kubectl_gpuadmit").joinpath("schema/capsule-v1.json").read_text()
    jsonschema.validate(json.loads(raw), json.loads(text))
    held = capsule.opened(raw, "c")
    assert held.models == HeldModels(asked=("MLflow",), silent=("MLflow: refused",))
    again = capsule.restored(held, load=load, decode=objects_of).policy
    assert again.settings("model/memory-fit")["concurrency"] == 3
    assert again.models is not None and again.models.asked == ("MLflow",)
