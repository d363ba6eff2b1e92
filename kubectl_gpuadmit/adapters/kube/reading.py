"""Reads from a live cluster what a question needs, as a ``Cluster``; what is refused is noted.

Rules of this module
1. A 403 on one kind narrows the answer and ends nothing; every other failure ends the call.
2. Where all namespaces are refused, those of the question are tried: what is there counts, and
   the kind as a whole stays unknown.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.adapters.kube import listing, node_maps, parameters
from kubectl_gpuadmit.adapters.kube.connection import Connection
from kubectl_gpuadmit.adapters.kube.faults import HttpStatus
from kubectl_gpuadmit.adapters.kube.resources import BUILT_IN, Catalogue, Resource
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices.isolation import ENABLED
from kubectl_gpuadmit.errors import BadManifest, Unanswerable
from kubectl_gpuadmit.kube.decode import decode_bulk
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.kube.policy_parameters import KIND as PARAMETERS
from kubectl_gpuadmit.narrowed import Absence
from kubectl_gpuadmit.needs import ADMISSION_CONFIGURATION, KUBELETS, Need
from kubectl_gpuadmit.needs import parameters as parameter_needs
from kubectl_gpuadmit.verdict import Ref

_PLACEMENT = {
    "Node",
    "Pod",
    "PodDisruptionBudget",
    "DeviceClass",
    "DeviceTaintRule",
    "ResourceSlice",
    "ResourceClaim",
}
_OWN_OBJECTS = 40
"""Workloads of the input that are looked up one by one; of more, none is."""


class Facts(Struct, frozen=True):
    """What was read."""

    cluster: Cluster
    absences: tuple[Absence, ...]


class _Part(Struct):
    """One kind as far as it could be read."""

    need: Need
    objects: list[KubeObject]
    refused: HttpStatus | None = None
    scope: str = ""
    """Where the refusal holds: '' for the whole cluster."""


def server_version(connection: Connection) -> str:
    """``1.37``; '' where the API server does not say. Raises Unanswerable where nobody answers."""

    class Version(Struct):
        major: str = ""
        minor: str = ""

    try:
        found = msgspec.json.decode(connection.get("/version").body, type=Version)
    except HttpStatus as problem:
        if problem.status == 403:
            return ""
        raise connection.fail(problem) from None
    except msgspec.MsgspecError:
        return ""
    minor = re.match(r"\d+", found.minor)
    return f"{found.major}.{minor[0]}" if found.major and minor else ""


def read_cluster(
    connection: Connection,
    needs: Sequence[Need],
    *,
    homes: Iterable[str],
    own: Sequence[Ref] = (),
    stored: Sequence[KubeObject] = (),
    catalogue: Catalogue | None = None,
    everywhere: bool = False,
) -> Facts:
    """Lists every need, a few at a time. ``homes`` are the question's namespaces; ``own`` names its
    workloads, whose stored objects are read too unless ``stored`` has them. ``everywhere``: the
    question is about all namespaces. Raises Unanswerable."""
    namespaces = tuple(sorted(set(homes)))
    ask_kubelets = any(need.kind == KUBELETS for need in needs)
    needs = [need for need in needs if need.kind != KUBELETS]
    objects: list[KubeObject] = []
    known: set[str] = set()
    partial: set[str] = set()
    refused: list[_Part] = []
    enabled = gc.isenabled()
    gc.disable()  # as for snapshots: fresh objects in great number, none of them garbage
    try:

        def read(need: Need) -> _Part:
            return _read(connection, need, namespaces)

        first = listing.in_parallel(read, needs)
        listed = [one for part in first for one in part.objects]
        given = parameters.read(
            connection,
            catalogue or Catalogue(connection),
            parameter_needs(listed, None if everywhere else namespaces),
        )
        for part in first:
            objects += part.objects
            if part.refused is None:
                known.add(part.need.kind)
            else:
                partial.add(part.need.kind)
                refused += [] if part.need.optional else [part]
        objects += given.objects
        partial |= {one.kind for one in given.objects} - known - {PARAMETERS}
        if ask_kubelets:
            from kubectl_gpuadmit.adapters.kube import kubelets

            objects += kubelets.configurations(connection, objects)
        mine = [one for one in stored if one.kind not in known]
        mine += _own(connection, own, catalogue) if len(own) <= _OWN_OBJECTS else []
        objects += mine
        partial |= {one.kind for one in mine} - known
        cluster = Cluster.of(objects, known, partial=partial)
    except HttpStatus as problem:
        raise connection.fail(problem) from None
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
    return Facts(cluster, (*_absences(refused), *given.absences))


def isolated_namespaces(connection: Connection) -> frozenset[str]:
    """Namespaces whose pods are given a claim (``isolate``); none where they may not be listed."""
    path = BUILT_IN["Namespace"].path("v1")
    try:
        reply = connection.get(path, {"labelSelector": f"{ENABLED}=true"})
    except HttpStatus:
        return frozenset()
    found, _ = decode_bulk(reply.body, "namespaces")
    return frozenset(one.name for one in found if one.labels.get(ENABLED) == "true")


def _read(connection: Connection, need: Need, homes: tuple[str, ...]) -> _Part:
    resource = BUILT_IN[need.kind]
    found: list[KubeObject] = []
    try:
        for namespace in need.namespaces if need.namespaces is not None else ("",):
            found += listing.objects(connection, resource, namespace=namespace, fields=need.fields)
        if need.kind == "GpuTopology" and not found:
            found = node_maps.in_config_maps(connection)
        return _Part(need, found)
    except HttpStatus as problem:
        if problem.status != 403:
            raise
        refused = problem
    if need.kind == "Namespace":
        return _Part(need, _each(connection, resource, homes), refused)
    if need.namespaces is None and resource.namespaced:
        try:
            for namespace in homes:
                found += listing.objects(
                    connection, resource, namespace=namespace, fields=need.fields
                )
        except HttpStatus as problem:
            if problem.status != 403:
                raise
            return _Part(need, [], refused)
    scope = ", ".join(need.namespaces) if need.namespaces is not None else ""
    return _Part(need, found, refused, scope)


def _each(connection: Connection, resource: Resource, names: Iterable[str]) -> list[KubeObject]:
    """Objects by name where listing is refused; what is refused or absent is left out."""
    found: list[KubeObject] = []
    for name in names:
        one = get(connection, resource, name=name)
        found += [one] if one is not None else []
    return found


def get(
    connection: Connection, resource: Resource, *, name: str, namespace: str = ""
) -> KubeObject | None:
    """One object as its struct, None where it is absent or refused."""
    for version in resource.versions:
        try:
            reply = connection.get(resource.path(version, namespace, name))
        except HttpStatus as problem:
            if problem.status in (403, 404):
                continue
            raise
        try:
            found, _ = decode_bulk(reply.body, resource.full_name)
        except BadManifest as problem:
            raise Unanswerable(
                "garbled-reply",
                f"{resource.full_name} {name} from {connection.host} cannot be read: {problem}",
                hint="does a proxy change answers on the way?",
            ) from None
        return found[0] if found else None
    return None


def _own(
    connection: Connection, refs: Sequence[Ref], catalogue: Catalogue | None
) -> list[KubeObject]:
    """The stored objects of the workloads, where there are any: an update charges no new object."""

    def read(ref: Ref) -> KubeObject | None:
        known = BUILT_IN.get(ref.kind)
        group = ref.apiVersion.rpartition("/")[0]
        if known is None or known.group != group:
            known = catalogue.of_kind(ref.apiVersion, ref.kind) if catalogue else None
        if known is None or not ref.name or ref.kind == "Pod":
            return None
        return get(connection, known, name=ref.name, namespace=ref.namespace)

    return [one for one in listing.in_parallel(read, refs) if one is not None]


def _absences(refused: Iterable[_Part]) -> Iterable[Absence]:
    """One for each API group, stage and scope: the rules that an administrator would add."""
    groups: dict[tuple[str, str, str, bool], list[_Part]] = {}
    for part in refused:
        resource = BUILT_IN[part.need.kind]
        stage = "placement" if part.need.kind in _PLACEMENT else "admission"
        together = part.need.kind in ADMISSION_CONFIGURATION
        key = (resource.group, stage, part.scope, together)
        if not together:
            key = (resource.group, part.need.kind, part.scope, together)
        groups.setdefault(key, []).append(part)
    for (group, _, scope, _), parts in groups.items():
        kinds = tuple(part.need.kind for part in parts)
        user = next((p.refused.user for p in parts if p.refused and p.refused.user), "")
        who = f'user "{user}"' if user else "you"
        plurals = ", ".join(BUILT_IN[kind].plural for kind in kinds)
        namespaced = BUILT_IN[kinds[0]].namespaced
        where = f"in namespace {scope}" if scope else "in all namespaces" if namespaced else ""
        role = f"a Role in {scope}" if scope else "a ClusterRole"
        rule = f'apiGroups: ["{group}"], resources: [{plurals}], verbs: [list]'
        yield Absence(
            kinds=kinds,
            why=f"{who} may not list {plurals} {where}".rstrip(),
            hint=f"{role} would need: {rule}",
            stage="placement" if kinds[0] in _PLACEMENT else "admission",
        )
