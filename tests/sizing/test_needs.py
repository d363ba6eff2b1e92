"""Of ConfigMaps only those are read that a GPU pod takes arguments from, each by its name."""

from __future__ import annotations

import json
from typing import Any

from kubectl_gpuadmit import rules
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.kube.workloads import Workload, expand
from kubectl_gpuadmit.needs import Need, needs
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.rule import REGISTRY

assert rules.__all__


def pod(gpus: int) -> Workload:
    container: dict[str, Any] = {
        "name": "c",
        "image": "x",
        "resources": {"limits": {"nvidia.com/gpu": gpus} if gpus else {}},
        "envFrom": [{"configMapRef": {"name": "defaults"}}, {"secretRef": {"name": "token"}}],
        "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "one", "key": "a"}}}],
    }
    volumes = [
        {"name": "v", "configMap": {"name": "engine"}},
        {"name": "p", "projected": {"sources": [{"configMap": {"name": "more"}}]}},
        {"name": "s", "secret": {"secretName": "never"}},
    ]
    data = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "team-a"},
        "spec": {"containers": [container], "volumes": volumes},
    }
    (document,) = read_documents(json.dumps(data).encode(), "p.json")
    assert isinstance(document, Document)
    made = expand(document)
    assert isinstance(made, Workload)
    return made


def config_maps(gpus: int) -> list[Need]:
    found = needs([pod(gpus)], Policy.default(), REGISTRY)
    return [need for need in found if need.kind == "ConfigMap"]


def test_config_maps_of_a_gpu_pod_are_read_by_name_and_no_others() -> None:
    assert config_maps(1) == [
        Need("ConfigMap", ("team-a",), fields=f"metadata.name={name}")
        for name in ("defaults", "engine", "more", "one")
    ]


def test_a_pod_without_gpus_needs_none() -> None:
    assert config_maps(0) == []
