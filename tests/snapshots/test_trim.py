"""A trimmed cluster answers like the whole one, holds no secret, and is the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from kubectl_gpuadmit.adapters.snapshot import encoded
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import objects
from kubectl_gpuadmit.kube.objects import Generic
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.snapshots import trim
from tests.snapshots.clusters import (
    KINDS,
    NOW,
    WORKLOADS,
    as_documents,
    cluster,
    documents,
    example,
    example_policy,
    verdicts,
    worlds,
)


def reread(whole: Cluster, **more: Any) -> Cluster:
    return cluster(trim.items(whole, **more), trim.known_kinds(whole))


def test_a_pod_keeps_what_the_engine_reads_and_nothing_that_is_secret() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-0",
            "namespace": "team-a",
            "labels": {"app": "web"},
            "annotations": {"acme.com/password": "hunter2", "gpu-fraction": "0.5"},
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {
            "nodeName": "n1",
            "containers": [
                {
                    "name": "main",
                    "image": "vllm:1",
                    "imagePullPolicy": "Always",
                    "args": ["--model", "m", "--api-key", "hunter2"],
                    "env": [
                        {"name": "TOKEN", "value": "hunter2"},
                        {"name": "CUDA_VISIBLE_DEVICES", "value": "0"},
                    ],
                    "resources": {"limits": {"nvidia.com/gpu": "1"}},
                }
            ],
            "volumes": [
                {
                    "name": "v",
                    "csi": {"driver": "d", "volumeAttributes": {"password": "hunter2"}},
                },
                {"name": "s", "secret": {"secretName": "s"}},
            ],
        },
        "status": {
            "phase": "Running",
            "message": "hunter2",
            "conditions": [{"type": "Ready", "status": "True", "message": "hunter2"}],
        },
    }
    assert trim.items(cluster([pod], [])) == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "web-0",
                "namespace": "team-a",
                "labels": {"app": "web"},
                "annotations": {"gpu-fraction": "0.5"},
            },
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "vllm:1",
                        "args": ["--model", "m"],
                        "env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}],
                        "resources": {"limits": {"nvidia.com/gpu": "1"}},
                    }
                ],
                "nodeName": "n1",
                "volumes": [
                    {"name": "v", "csi": {"driver": "d"}},
                    {"name": "s", "secret": {"secretName": "s"}},
                ],
            },
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }
    ]


def test_kinds_without_a_struct_keep_their_parts_or_only_that_they_exist() -> None:
    given_ = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "a", "annotations": {"gpu-admit.io/ttl":
            "4h"}}, "spec": {"template": {"spec": {"containers": [{"env": [{"value":
            "hunter2"}]}]}}},
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "hook"},
            "webhooks": [
                {
                    "name": "h",
                    "failurePolicy": "Fail",
                    "clientConfig": {"url": "https://secret.acme.com", "caBundle": "hunter2"},
                    "rules": [{"resources": ["pods"]}],
                }
            ],
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "a"},
            "spec": {"type": "NodePort", "ports": [{"port": 80}], "externalName": "acme.com"},
        },
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "a"},
         "data": {"key": "hunter2"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "a"},
         "data": {"key": "aHVudGVyMg=="}},
        {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "a"},
         "message": "hunter2"},
    ]  # fmt: skip
    whole = cluster(given_, ["Pod", *(str(item["kind"]) for item in given_)])
    assert trim.items(whole) == [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "a"}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "web",
                "namespace": "a",
                "annotations": {"gpu-admit.io/ttl": "4h"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "a"},
            "spec": {"type": "NodePort", "ports": [{"port": 80}]},
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "hook"},
            "webhooks": [
                {"name": "h", "failurePolicy": "Fail", "rules": [{"resources": ["pods"]}]}
            ],
        },
    ]
    assert trim.known_kinds(whole) == [
        "ConfigMap",
        "Deployment",
        "Pod",
        "Service",
        "ValidatingWebhookConfiguration",
    ]


def test_every_field_of_free_form_has_been_thought_of() -> None:
    structs = {
        cls
        for cls in vars(objects).values()
        if isinstance(cls, type) and issubclass(cls, msgspec.Struct) and cls is not Generic
    }
    free = {
        (cls.__name__, field.name)
        for cls in structs
        for field in msgspec.structs.fields(cls)
        if "Any" in str(field.type) and cls.__name__ not in trim.NEVER
    }
    decided = {(cls.__name__, field) for cls, fields in trim.SPECIAL.items() for field in fields}
    assert free - decided == set()


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda p: p.stem)
def test_the_trimmed_example_gives_the_same_verdicts(path: Path) -> None:
    docs, whole = documents(path), example()
    for policy in (Policy.default(), example_policy()):
        assert verdicts(docs, reread(whole), policy) == verdicts(docs, whole, policy)


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_a_trimmed_cluster_gives_the_same_verdicts(
    world: tuple[list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    items, manifests = world
    whole, docs = cluster(items, KINDS), as_documents(manifests)
    assert verdicts(docs, reread(whole), example_policy()) == verdicts(
        docs, whole, example_policy()
    )


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_one_namespace_alone_gives_the_verdicts_of_that_namespace(
    world: tuple[list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    items, manifests = world
    whole = cluster(items, KINDS)
    for doc in as_documents(manifests):
        home = doc.data["metadata"]["namespace"]
        part = reread(whole, namespace=home)
        said = verdicts([doc], part, Policy.default())
        assert said["workloads"] == verdicts([doc], whole, Policy.default())["workloads"]


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_trimming_is_deterministic_idempotent_and_keeps_no_secret(
    world: tuple[list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    items, _ = world
    first = encoded(trim.items(cluster(items, KINDS)), as_of=NOW, kinds=KINDS)
    backwards = encoded(trim.items(cluster(items[::-1], KINDS)), as_of=NOW, kinds=KINDS)
    again = encoded(trim.items(reread(cluster(items, KINDS))), as_of=NOW, kinds=KINDS)
    assert first == backwards == again
    assert b"hunter2" not in first
