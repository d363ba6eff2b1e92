"""Objects that make no pods, and kinds that nobody has told us about.

A stranger is never taken for harmless: its text is searched for pod templates and GPU amounts, and
what was found is said together with how to declare the kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.kube.pointers import key_of, token
from kubectl_gpuadmit.kube.workloads.placeholders import unresolved

_GROUPS_WITHOUT_PODS = frozenset(
    (
        "rbac.authorization.k8s.io",
        "networking.k8s.io",
        "policy",
        "storage.k8s.io",
        "autoscaling",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "scheduling.k8s.io",
        "resource.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "node.k8s.io",
        "certificates.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "gateway.networking.k8s.io",
        "snapshot.storage.k8s.io",
        "gpu-admit.io",
        "kueue.x-k8s.io",
        "scheduling.x-k8s.io",
        "scheduling.volcano.sh",
        "scheduling.run.ai",
        "cert-manager.io",
        "monitoring.coreos.com",
        "keda.sh",
        "external-secrets.io",
        "networking.istio.io",
        "security.istio.io",
        "telemetry.istio.io",
        "kyverno.io",
        "policies.kyverno.io",
        "templates.gatekeeper.sh",
        "constraints.gatekeeper.sh",
        "karpenter.sh",
        "karpenter.k8s.aws",
        "cilium.io",
        "k8s.cni.cncf.io",
        "networking.gke.io",
        "cloud.google.com",
        "gateway.envoyproxy.io",
        "resource.nvidia.com",
        "mellanox.com",
        "sriovnetwork.openshift.io",
        "route.openshift.io",
        "kustomize.config.k8s.io",
        "inference.networking.k8s.io",
        "config.kueue.x-k8s.io",
        "topology.node.k8s.io",
        "grafana.integreatly.org",
    )
)
_KINDS_WITHOUT_PODS = frozenset(
    {
        ("", kind)
        for kind in (
            "ConfigMap",
            "Secret",
            "Service",
            "Namespace",
            "ServiceAccount",
            "PersistentVolumeClaim",
            "PersistentVolume",
            "ResourceQuota",
            "LimitRange",
            "Event",
            "Node",
            "Endpoints",
            "Binding",
            "ComponentStatus",
        )
    }
    | {
        ("inference.networking.x-k8s.io", "InferencePool"),
        ("inference.networking.x-k8s.io", "InferenceObjective"),
        ("apps", "ControllerRevision"),
        ("argoproj.io", "Application"),
        ("argoproj.io", "ApplicationSet"),
        ("argoproj.io", "AppProject"),
        ("nvidia.com", "ClusterPolicy"),
        ("nvidia.com", "NVIDIADriver"),
        ("nvidia.com", "DynamoModel"),
        ("nvidia.com", "DynamoGraphDeploymentScalingAdapter"),
        ("orchestration.aibrix.ai", "PodAutoscaler"),
        ("autoscaling.aibrix.ai", "PodAutoscaler"),
    }
)
_TEMPLATES: dict[tuple[str, str], str] = {
    ("", "PodTemplate"): "nothing makes pods of it by itself",
    (
        "trainer.kubeflow.org",
        "ClusterTrainingRuntime",
    ): "pods come only with a TrainJob that names it",
    ("trainer.kubeflow.org", "TrainingRuntime"): "pods come only with a TrainJob that names it",
    (
        "serving.kserve.io",
        "ServingRuntime",
    ): "pods come only with an InferenceService that names it",
    ("serving.kserve.io", "ClusterServingRuntime"): (
        "pods come only with an InferenceService that names it"
    ),
    ("serving.kserve.io", "LLMInferenceServiceConfig"): (
        "pods come only with an LLMInferenceService that names it"
    ),
    ("argoproj.io", "WorkflowTemplate"): "pods come only with a Workflow that names it",
    ("argoproj.io", "ClusterWorkflowTemplate"): "pods come only with a Workflow that names it",
}


def without_pods(group: str, kind: str, data: dict[str, Any]) -> str | None:
    """Why an object of this kind makes no pods; None for a kind that we cannot vouch for."""
    reason = _TEMPLATES.get((group, kind))
    if reason is not None:
        asks = describe(data)
        return f"a template: {reason}" + (f"; {asks}" if asks else "")
    if group in _GROUPS_WITHOUT_PODS or (group, kind) in _KINDS_WITHOUT_PODS:
        return "makes no pods"
    return None


def unknown_kind(api_version: str, kind: str, data: dict[str, Any]) -> str:
    """What to say of a kind that we do not know: what it seems to ask, and how to declare it."""
    asks = describe(data)
    paths = [path for path, _ in _pod_specs(data)]
    where = _as_path(paths[0]) if paths else ".spec.template"
    seems = f"; {asks}" if asks else ""
    return (
        f"unknown kind, not judged{seems}; declare it in the policy: "
        f"kinds: [{{apiVersion: {api_version}, kind: {kind}, podTemplate: {where}}}]"
    )


def describe(data: dict[str, Any]) -> str:
    """``pod template at /spec/x asks 1 nvidia.com/gpu``, for each that is found; '' for none."""
    said: list[str] = []
    for path, spec in _pod_specs(data):
        amounts = _amounts_of_pod(spec)
        asked = ", ".join(f"{a} {n}" for n, a in amounts.items()) or "no GPU"
        said.append(f"a pod template at {path or '/'} asks {asked}")
    if not said:
        for path, name, amount in _loose_amounts(data):
            mark = " (an unresolved placeholder)" if unresolved(amount) else ""
            said.append(f"{path} asks {amount} {name}{mark}")
    return "; ".join(said[:4]) + (f"; and {len(said) - 4} more" if len(said) > 4 else "")


_MOST_VISITED = 100_000
_NOT_SEARCHED = frozenset({"managedFields", "status", "annotations", "labels"})


def _walk(data: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object in document order. Anchors can make a small file huge: the walk has an end."""
    waiting: list[tuple[str, Any]] = [("", data)]
    for _ in range(_MOST_VISITED):
        if not waiting:
            return
        path, value = waiting.pop()
        below: list[tuple[str, Any]] = []
        if isinstance(value, dict):
            yield path, value
            below = [
                (f"{path}/{token(key)}", item)
                for key, item in value.items()
                if isinstance(key, str) and key not in _NOT_SEARCHED
            ]
        elif isinstance(value, list):
            below = [(f"{path}/{index}", item) for index, item in enumerate(value)]
        waiting.extend(item for item in reversed(below) if isinstance(item[1], dict | list))


def _pod_specs(data: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Pointer of each template and its pod spec: an object with a list of named containers."""
    found = []
    for path, value in _walk(data):
        containers = value.get("containers")
        if (
            isinstance(containers, list)
            and containers
            and all(isinstance(c, dict) and ("image" in c or "name" in c) for c in containers)
        ):
            found.append((path.removesuffix("/spec") if path != "/spec" else path, value))
    return found


def _amounts_of_pod(spec: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for container in spec["containers"]:
        resources = container.get("resources")
        if not isinstance(resources, dict):
            continue
        merged: dict[str, Any] = {}
        for field in ("limits", "requests"):
            part = resources.get(field)
            if isinstance(part, dict):
                merged.update(part)
        for name, amount in merged.items():
            if isinstance(name, str) and gpus.is_gpu(name):
                before = found.get(name)
                both = f"{before} + {amount}" if before else str(amount)
                found[name] = _sum(both)
    return found


def _sum(text: str) -> str:
    parts = text.split(" + ")
    return str(sum(int(p) for p in parts)) if all(p.isdecimal() for p in parts) else text


def _loose_amounts(data: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """GPU names with an amount that stand outside of any pod template."""
    for path, value in _walk(data):
        for name, amount in value.items():
            if (
                isinstance(name, str)
                and gpus.is_gpu(name)
                and isinstance(amount, str | int | float)
                and not path.endswith(("/nodeSelector", "/matchLabels"))
            ):
                yield f"{path}/{token(name)}", name, str(amount)


def _as_path(pointer: str) -> str:
    """``/spec/roles/0/template`` -> ``.spec.roles[*].template``."""
    found = ""
    for step in pointer.split("/")[1:]:
        if step.isdecimal():
            found += "[*]"
        elif re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", step):
            found += f".{step}"
        else:
            found += f"['{key_of(step)}']"
    return found or "."
