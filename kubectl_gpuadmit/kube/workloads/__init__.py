"""Workload kinds -> the pods that their controllers would create."""

from __future__ import annotations

from kubectl_gpuadmit.kube.workloads.declared import DeclaredKind
from kubectl_gpuadmit.kube.workloads.model import PodGroup, Workload
from kubectl_gpuadmit.kube.workloads.reading import ManifestDocument, ObjectSource
from kubectl_gpuadmit.kube.workloads.registry import expand, kinds

__all__ = [
    "DeclaredKind",
    "ManifestDocument",
    "ObjectSource",
    "PodGroup",
    "Workload",
    "expand",
    "kinds",
]
