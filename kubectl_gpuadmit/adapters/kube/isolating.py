"""Carries out in a cluster what ``devices.isolation`` composes, or takes it away again.

It stops at the first object that cannot be brought about, and tells what was done before.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from kubectl_gpuadmit.adapters.kube.applying import Applier, Done
from kubectl_gpuadmit.devices import isolation
from kubectl_gpuadmit.errors import BadInput, GpuAdmitError


class Carried(Struct):
    """What became of the objects, in order; ``problem`` is what ended it early."""

    done: list[Done] = field(default_factory=list)
    removed: list[tuple[str, str]] = field(default_factory=list)
    """(kind, name) of what an earlier wish had made and this one does not."""
    problem: GpuAdmitError | None = None


def carry_out(wish: isolation.Wish, applier: Applier) -> tuple[isolation.Plan, Carried]:
    """The plan for this cluster, and what became of it. Raises BadInput for a namespace that is
    not there, Unanswerable where the cluster cannot be read."""
    uid = applier.uid("Namespace", wish.namespace)
    if not uid:
        raise BadInput(
            "no-such-namespace",
            f"the cluster has no namespace {wish.namespace}",
            hint=f"kubectl create namespace {wish.namespace}",
        )
    plan = isolation.compose(wish, uid=uid, classes=applier.names("DeviceClass"))
    version = applier.dra_version()
    documents = [
        isolation.in_version(one, version)
        if str(one["apiVersion"]).startswith("resource.k8s.io/")
        else one
        for one in plan.objects
    ]
    wanted = {(str(one["kind"]), str(one["metadata"]["name"])) for one in documents}
    carried = Carried()
    try:
        for document in documents:
            carried.done.append(applier.apply(document))
        for kind, name, space in _made(applier, wish.namespace):
            if (kind, name) not in wanted:
                applier.delete(kind, name, space)
                carried.removed.append((kind, name))
    except GpuAdmitError as problem:
        carried.problem = problem
    return plan, carried


def take_away(namespace: str, quota: str, applier: Applier) -> Carried:
    """All that was made for the namespace; of the ResourceQuota ``quota`` our fields alone.

    The label goes first, so that no pod asks for a claim that is no longer there.
    """
    carried = Carried()
    try:
        if applier.uid("Namespace", namespace):
            carried.done.append(applier.apply(isolation.bare_namespace(namespace)))
        if quota and applier.uid("ResourceQuota", quota, namespace):
            bare: dict[str, Any] = {"name": quota, "namespace": namespace}
            document = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": bare}
            carried.done.append(applier.apply(document))
        for kind, name, space in _made(applier, namespace):
            carried.done.append(applier.delete(kind, name, space))
    except GpuAdmitError as problem:
        carried.problem = problem
    return carried


def _made(applier: Applier, namespace: str) -> list[tuple[str, str, str]]:
    """(kind, name, namespace) of what was made for the namespace at any time."""
    label = f"{isolation.OF}={namespace}"
    places = (
        ("ResourceClaimTemplate", namespace),
        ("ResourceClaim", namespace),
        ("ResourceQuota", namespace),
        ("DeviceClass", ""),
    )
    return [
        (kind, name, space)
        for kind, space in places
        for name in applier.labelled(kind, label, space)
    ]
