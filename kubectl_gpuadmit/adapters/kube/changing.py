"""Carries out what rules change in a live object, and sends the Events that say why."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.adapters.kube.connection import Connection
from kubectl_gpuadmit.adapters.kube.faults import HttpStatus
from kubectl_gpuadmit.adapters.kube.resources import BUILT_IN, Catalogue, Resource
from kubectl_gpuadmit.errors import Unanswerable
from kubectl_gpuadmit.verdict import ObjectEvent, Verdict

COMPONENT = "gpu-admit"
MANAGER = "kubectl-gpu-admit"
JSON_PATCH = "application/json-patch+json"


class Applied(Struct, frozen=True):
    """What became of one object. ``event_problem``: why its Event was not taken, '' if it was."""

    events: int
    event_problem: str = ""


def apply(
    connection: Connection,
    catalogue: Catalogue,
    verdict: Verdict,
    stored: dict[str, Any],
    *,
    now: dt.datetime,
) -> Applied:
    """Patches the object that ``verdict`` is about, if it still is as it was judged, then sends its
    Events. Raises Unanswerable: refused, gone, or changed in the meantime."""
    ref, metadata = verdict.ref, stored["metadata"]
    group = ref.apiVersion.rpartition("/")[0]
    known = BUILT_IN.get(ref.kind)
    if known is None or known.group != group:
        known = catalogue.of_kind(ref.apiVersion, ref.kind)
    if known is None:
        raise Unanswerable("not-served", f"the API server serves no {ref.kind} of {ref.apiVersion}")
    version = ref.apiVersion.rpartition("/")[2]
    seen = {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
    path = known.path(version, ref.namespace, ref.name)
    try:
        change = msgspec.json.encode([seen, *verdict.object_patch])
        connection.patch(path, change, content=JSON_PATCH, query={"fieldManager": MANAGER})
    except HttpStatus as problem:
        raise _refused(connection, known, problem, verdict) from None
    sent = 0
    for event in verdict.events:
        body = _event(event, verdict, metadata, now)
        where = BUILT_IN["Event"].path("v1", ref.namespace)
        try:
            connection.create(where, msgspec.json.encode(body))
        except HttpStatus as problem:
            return Applied(sent, f"the Event was refused: {problem.message}")
        sent += 1
    return Applied(sent)


def _refused(
    connection: Connection, known: Resource, problem: HttpStatus, verdict: Verdict
) -> Unanswerable:
    ref = verdict.ref
    if problem.status == 403:
        who = f'user "{problem.user}"' if problem.user else "you"
        return Unanswerable(
            "forbidden",
            f"{who} may not patch {known.full_name} in namespace {ref.namespace}",
            hint=f"a Role in {ref.namespace} would need: {known.rule('patch')}",
        )
    if problem.status in (404, 409, 422):
        return Unanswerable(
            "object-changed",
            f"{ref} was not changed: it is no longer as it was judged ({problem.message})",
            hint="explain it again",
        )
    return connection.fail(problem)


def _event(
    event: ObjectEvent, verdict: Verdict, metadata: dict[str, Any], now: dt.datetime
) -> dict[str, Any]:
    """A core/v1 Event, as ``kubectl describe`` and ``kubectl get events`` show it."""
    ref = verdict.ref
    time = now.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{ref.name[:200]}.", "namespace": ref.namespace},
        "involvedObject": {
            "apiVersion": ref.apiVersion,
            "kind": ref.kind,
            "namespace": ref.namespace,
            "name": ref.name,
            "uid": metadata.get("uid", ""),
        },
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "source": {"component": COMPONENT},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
