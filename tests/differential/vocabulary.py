"""Small random choices that both case generators share: names, labels, quantities, selectors.

The pools are small on purpose: two objects should often mean the same thing.
"""

from __future__ import annotations

from random import Random
from typing import Any

Json = dict[str, Any]

GPU = "nvidia.com/gpu"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOST = "kubernetes.io/hostname"

NAMESPACES = ("default", "team-a", "team-b")
APPS = ("web", "train", "db")


def chance(rng: Random, probability: float) -> bool:
    return rng.random() < probability


def some(
    rng: Random, values: tuple[Any, ...] | list[Any], least: int = 0, most: int = 2
) -> list[Any]:
    """Between least and most different values in random order."""
    return rng.sample(list(values), min(len(values), rng.randint(least, most)))


def app_labels(rng: Random) -> dict[str, str]:
    labels = {"app": rng.choice(APPS)}
    if chance(rng, 0.3):
        labels["tier"] = rng.choice(("1", "2", "x"))
    if chance(rng, 0.2):
        labels["pod-template-hash"] = rng.choice(("aaa", "bbb"))
    return labels


def label_selector(rng: Random) -> Json | None:
    """A label selector over ``app_labels``; None and {} occur too."""
    roll = rng.random()
    if roll < 0.04:
        return None
    if roll < 0.1:
        return {}
    selector: Json = {}
    if roll < 0.75:
        selector["matchLabels"] = {"app": rng.choice(APPS)}
    if roll > 0.65:
        operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        requirement: Json = {"key": rng.choice(("app", "tier", "absent")), "operator": operator}
        if operator in ("In", "NotIn"):
            requirement["values"] = some(rng, ("web", "train", "db", "1", "2"), 1, 3)
        selector["matchExpressions"] = [requirement]
    return selector


def cpu(rng: Random) -> str:
    return rng.choice(("100m", "250m", "500m", "1", "1500m", "2", "0.5", "2e0", "1001m", "0", "4"))


def memory(rng: Random) -> str:
    return rng.choice(
        (
            "64Mi",
            "128Mi",
            "512Mi",
            "1Gi",
            "1G",
            "1.5Gi",
            "2Gi",
            "1073741825",
            "1e9",
            "0",
            "4Gi",
            "100M",
        )
    )


def gpus(rng: Random, most: int = 4) -> str:
    return str(rng.randint(0, most))
