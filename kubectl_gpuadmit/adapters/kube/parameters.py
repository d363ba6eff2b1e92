"""Reads the objects that admission policies take parameters from, of whatever kind they are.

What was read to the end is said by a ``PolicyParameters`` record for each kind, and so is that the
API server has no such kind. A 403 narrows the answer and ends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kubectl_gpuadmit.adapters.kube import listing
from kubectl_gpuadmit.adapters.kube.connection import Connection
from kubectl_gpuadmit.adapters.kube.faults import HttpStatus
from kubectl_gpuadmit.adapters.kube.resources import Catalogue, Resource
from kubectl_gpuadmit.errors import Unanswerable
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.kube.policy_parameters import record
from kubectl_gpuadmit.narrowed import Absence
from kubectl_gpuadmit.needs import Parameters, Place


class Given(Struct, frozen=True):
    """What was read."""

    objects: tuple[KubeObject, ...]
    absences: tuple[Absence, ...]


def read(connection: Connection, catalogue: Catalogue, needs: Iterable[Parameters]) -> Given:
    """Lists what bindings refer to. Raises HttpStatus for other refusals than 403, Unanswerable."""
    objects: list[KubeObject] = []
    absences: list[Absence] = []
    for need in needs:
        try:
            resource = catalogue.served(need.api_version, need.kind)
        except Unanswerable:
            continue  # discovery is refused: nobody knows what is served
        if resource is None and "/" not in need.api_version:
            continue  # of the core group only the kinds of the table are known
        if resource is None:
            objects.append(record(need.api_version, need.kind, served=False, namespaced=False))
            continue
        refused = False
        for place in need.places:
            for namespace in _namespaces(place, resource):
                try:
                    objects += listing.objects(
                        connection,
                        resource,
                        namespace=namespace,
                        fields=place.fields,
                        labels=place.labels,
                    )
                except HttpStatus as problem:
                    if problem.status != 403:
                        raise
                    absences.append(_absence(resource, problem, namespace))
                    refused = True
        if not refused:
            inside = resource.namespaced
            objects.append(record(need.api_version, need.kind, served=True, namespaced=inside))
    return Given(tuple(objects), tuple(dict.fromkeys(absences)))


def _namespaces(place: Place, resource: Resource) -> tuple[str, ...]:
    return (place.namespaces or ("",)) if resource.namespaced else ("",)


def _absence(resource: Resource, problem: HttpStatus, namespace: str) -> Absence:
    who = f'user "{problem.user}"' if problem.user else "you"
    where = ""
    if resource.namespaced:
        where = f" in namespace {namespace}" if namespace else " in all namespaces"
    role = f"a Role in {namespace}" if namespace else "a ClusterRole"
    return Absence(
        kinds=(resource.kind,),
        why=f"{who} may not list {resource.full_name}{where}",
        hint=f"{role} would need: {resource.rule('list')}",
    )
