"""A running API server under fieldValidation=Strict, as kubectl asks for it, says what we say."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from kubectl_gpuadmit.kube.fields import decoded
from tests.controlplane.bed import ControlPlane
from tests.controlplane.client import ApiError

Json = dict[str, Any]

OBJECTS = {
    "misspelt": """
        apiVersion: v1
        kind: Pod
        metadata: {name: p, namespace: strict}
        spec:
          nodeselector: {a: b}
          containers: [{name: c, image: x, resources: {limit: {nvidia.com/gpu: 1}}}]
    """,
    "deployment": """
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: d, namespace: strict}
        spec:
          replica: 3
          selector: {matchLabels: {a: b}}
          template:
            metadata: {labels: {a: b}}
            spec: {toleration: [], containers: [{name: c, image: x, resource: {}}]}
    """,
    "number-for-text": """
        apiVersion: v1
        kind: Pod
        metadata: {name: p, namespace: strict}
        spec: {containers: [{name: c, image: x, env: [{name: X, value: 1}]}], nodeselector: {}}
    """,
    "claim-of-v1beta1": """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaim
        metadata: {name: c, namespace: strict}
        spec: {devices: {requests: [{name: gpu, deviceClassName: gpu.nvidia.com}]}}
    """,
    "source": """
        apiVersion: v1
        kind: Pod
        metadata: {name: p, namespace: strict}
        spec:
          containers: [{name: c, image: x}]
          resourceClaims: [{name: g, source: {resourceClaimName: x}}]
    """,
    "quantity": """
        apiVersion: v1
        kind: ResourceQuota
        metadata: {name: q, namespace: strict}
        spec: {hard: {requests.nvidia.com/gpu: 8 GPUs}}
    """,
    "good": """
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: m, namespace: strict, labels: null}
        data: {a: b}
    """,
}


def answer(bed: ControlPlane, document: Json, validation: str) -> str:
    try:
        bed.client.create(document, dry_run="All", validation=validation)
    except ApiError as problem:
        return str(problem.body.get("message", problem))
    return ""


@pytest.mark.parametrize("name", OBJECTS)
def test_the_api_server_refuses_in_the_same_words(control_plane: ControlPlane, name: str) -> None:
    control_plane.namespace("strict")
    written = yaml.safe_load(OBJECTS[name])
    sent = json.loads(json.dumps(written, sort_keys=True))  # as kubectl sends it
    assert answer(control_plane, sent, "Strict") == decoded(written).message
