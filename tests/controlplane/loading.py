"""Brings a snapshot's objects into an API server, in an order that works; owns no server."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.controlplane.bed import ControlPlane, add_node
from tests.controlplane.client import ApiError, Client, Json

ORDER = (
    *("Namespace", "PriorityClass", "RuntimeClass", "StorageClass", "CSINode", "DeviceClass"),
    *("ServiceAccount", "PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget", "Node"),
    *("ResourceSlice", "ResourceClaimTemplate", "ResourceClaim", "Pod"),
    *("LimitRange", "ResourceQuota"),
)
"""Quotas and LimitRanges come last: they must not change or refuse pods that are there already."""

SERVERS_OWN = (
    *("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"),
)
STATUS_APART = {"Pod", "ResourceClaim"}
"""Kinds whose status is written after creation. A Node's is kept; other kinds have controllers."""


def read(folder: Path) -> list[Json]:
    """The objects of every JSON or YAML file in a folder, lists opened."""
    import yaml

    found: list[Json] = []
    for file in sorted(folder.iterdir()):
        if file.suffix == ".json":
            documents: Iterable[Any] = [json.loads(file.read_text())]
        elif file.suffix in (".yaml", ".yml"):
            loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
            documents = yaml.load_all(file.read_text(), Loader=loader)
        else:
            continue
        for document in documents:
            items = document["items"] if document and "items" in document else [document]
            found += [item for item in items if item]
    return found


def cleaned(document: Json) -> Json:
    """The object as one would create it: no owner of another server, no binding to a former uid.

    An owner that this server lacks would let its garbage collector delete the object.
    """
    wanted = copy.deepcopy(document)
    meta = wanted.setdefault("metadata", {})
    for key in (*SERVERS_OWN, "ownerReferences"):
        meta.pop(key, None)
    if wanted["kind"] == "PersistentVolume":
        wanted["spec"].get("claimRef", {}).pop("uid", None)
    if wanted["kind"] == "PersistentVolumeClaim":
        for key in ("pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"):
            (meta.get("annotations") or {}).pop(key, None)
    if wanted["kind"] != "Node":
        wanted.pop("status", None)
    return wanted


def load(bed: ControlPlane, documents: Iterable[Json], *, connections: int = 6) -> list[Json]:
    """Creates them all; returns those of kinds that the server lacks. What exists already stays."""
    by_kind: dict[str, list[Json]] = {}
    for document in documents:
        by_kind.setdefault(document["kind"], []).append(document)
    names = [d["metadata"]["name"] for d in by_kind.get("Namespace", ())]
    kinds = [*(kind for kind in ORDER if kind in by_kind), *sorted(set(by_kind) - set(ORDER))]
    left: list[Json] = []
    for kind in kinds:
        group = by_kind[kind]
        if not _has(bed.client, group[0]):
            left += group
            continue
        bed.each(_create, [d for d in group if _bound(d)], connections=connections)
        bed.each(_create, [d for d in group if not _bound(d)], connections=connections)
        if kind == "Namespace":
            bed.each(lambda client, name: bed.namespace(name), names, connections=1)
        if kind == "PersistentVolumeClaim":
            _wait_for_volumes(bed, group)
    return left


def define(bed: ControlPlane, file: Path) -> None:
    """Creates the CustomResourceDefinition of a file, and waits until its kind is served."""
    import yaml

    definition = yaml.safe_load(file.read_text("utf-8"))
    bed.client.create(definition)
    spec = definition["spec"]
    version = f"{spec['group']}/{spec['versions'][0]['name']}"
    one = {"apiVersion": version, "kind": spec["names"]["kind"]}
    bed.wait(lambda: _has(bed.client, one), what=f"the kind {spec['names']['kind']}")


def _bound(document: Json) -> bool:
    """Pods that hold a node come before those that the scheduler is to place."""
    return document["kind"] == "Pod" and bool(document["spec"].get("nodeName"))


def _has(client: Client, document: Json) -> bool:
    try:
        client.path_of(document)
    except (KeyError, ApiError):
        return False
    return True


def _create(client: Client, document: Json) -> None:
    wanted = cleaned(document)
    try:
        add_node(client, wanted) if wanted["kind"] == "Node" else client.create(wanted)
    except ApiError as problem:
        if problem.reason != "AlreadyExists":
            raise
        return
    if wanted["kind"] in STATUS_APART and document.get("status"):
        client.patch(wanted, {"status": document["status"]}, part="status")


def _wait_for_volumes(bed: ControlPlane, claims: list[Json]) -> None:
    wanted = [c for c in claims if c["spec"].get("volumeName")]

    def bound() -> bool:
        found = [bed.client.get(bed.client.path_of(claim)) for claim in wanted]
        return all(claim["status"].get("phase") == "Bound" for claim in found)

    bed.wait(bound, what="bound volumes")
