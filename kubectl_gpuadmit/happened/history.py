"""What belongs to one workload, as the API stores it, and what of it is on nodes; fetches none."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.verdict import Unknown, Verdict


class History(Struct, frozen=True):
    """One workload's object and what belongs to it, as plain data of the API."""

    object: dict[str, Any]
    children: tuple[dict[str, Any], ...] = ()
    """Objects in between: ReplicaSets, Jobs, StatefulSets."""
    pods: tuple[dict[str, Any], ...] = ()
    events: tuple[dict[str, Any], ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    """What of it could not be read."""


def placed(verdict: Verdict, history: History) -> bool:
    """Whether as many of its living pods are on nodes as the workload wants."""
    return verdict.pods > 0 and len(on_nodes(history)) >= verdict.pods


def on_nodes(history: History) -> list[dict[str, Any]]:
    """Living pods that have a node."""
    return [
        pod
        for pod in history.pods
        if (pod.get("spec") or {}).get("nodeName")
        and (pod.get("status") or {}).get("phase") not in ("Failed", "Succeeded")
        and not (pod.get("metadata") or {}).get("deletionTimestamp")
    ]


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def name_of(obj: dict[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")


def created(obj: dict[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("creationTimestamp") or "")
