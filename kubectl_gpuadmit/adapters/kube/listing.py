"""Reads lists page by page, several kinds at once; keeps objects, never a whole reply.

Every list is read from etcd's own state (no ``resourceVersion``): a verdict that is to equal the
API server's must not rest on an older cache, and with ``resourceVersion=0`` the server ignores
``limit``, so that one reply may hold a hundred megabytes. A page whose continue token has expired
(410) makes the list begin anew, with longer pages.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from kubectl_gpuadmit.adapters.kube.connection import Connection
from kubectl_gpuadmit.adapters.kube.faults import HttpStatus
from kubectl_gpuadmit.adapters.kube.resources import Resource
from kubectl_gpuadmit.errors import BadManifest, Unanswerable
from kubectl_gpuadmit.kube.decode import decode_bulk
from kubectl_gpuadmit.kube.objects import KubeObject

PAGE = 500
"""Objects of a page, as kubectl asks for."""

RESTARTS = 3
WORKERS = 6

T = TypeVar("T")
R = TypeVar("R")


class _PageMeta(Struct):
    next: str = field(name="continue", default="")


class _Head(Struct):
    metadata: _PageMeta = field(default_factory=_PageMeta)


class _Items(Struct):
    items: list[dict[str, Any]] | None = None
    metadata: _PageMeta = field(default_factory=_PageMeta)


_head = msgspec.json.Decoder(_Head)
_items = msgspec.json.Decoder(_Items)


def objects(
    connection: Connection,
    resource: Resource,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
) -> list[KubeObject]:
    """Every object as its struct. Empty where the API server does not serve the kind.

    Raises HttpStatus (403 and others) and Unanswerable.
    """

    def decode(body: bytes) -> tuple[list[KubeObject], str]:
        try:
            following = _head.decode(body).metadata.next
            found, _ = decode_bulk(body, resource.full_name)
        except (msgspec.MsgspecError, BadManifest) as problem:
            raise _garbled(connection, resource, problem) from None
        return found, following

    return _all(connection, resource, decode, namespace=namespace, labels=labels, fields=fields)


def plain(
    connection: Connection,
    resource: Resource,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    keep: Callable[[dict[str, Any]], bool] = lambda item: True,
) -> list[dict[str, Any]]:
    """Every object that ``keep`` wants, as plain data. Raises as ``objects``."""

    def decode(body: bytes) -> tuple[list[dict[str, Any]], str]:
        try:
            page = _items.decode(body)
        except msgspec.MsgspecError as problem:
            raise _garbled(connection, resource, problem) from None
        return [item for item in page.items or () if keep(item)], page.metadata.next

    found, version = _all_of(
        connection, resource, decode, namespace=namespace, labels=labels, fields=fields
    )
    api_version = f"{resource.group}/{version}" if resource.group else version
    return [{**item, "apiVersion": api_version, "kind": resource.kind} for item in found]


def _garbled(connection: Connection, resource: Resource, problem: Exception) -> Unanswerable:
    return Unanswerable(
        "garbled-reply",
        f"the list of {resource.full_name} from {connection.host} cannot be read: {problem}",
        hint="does a proxy change answers on the way?",
    )


def _all(connection: Connection, resource: Resource, decode: Any, **narrowed: str) -> list[Any]:
    return _all_of(connection, resource, decode, **narrowed)[0]


def _all_of(
    connection: Connection,
    resource: Resource,
    decode: Callable[[bytes], tuple[list[Any], str]],
    *,
    namespace: str,
    labels: str,
    fields: str,
) -> tuple[list[Any], str]:
    """Every item, and the version under which the kind is served ('' if it is not)."""
    for version in resource.versions:
        try:
            path = resource.path(version, namespace)
            query = {"labelSelector": labels, "fieldSelector": fields}
            return _pages(connection, path, query, decode), version
        except HttpStatus as problem:
            if problem.status != 404:
                raise
    return [], ""


def _pages(
    connection: Connection,
    path: str,
    query: dict[str, str],
    decode: Callable[[bytes], tuple[list[Any], str]],
) -> list[Any]:
    given = {key: value for key, value in query.items() if value}
    for restart in range(RESTARTS + 1):
        limit = PAGE * 4**restart if restart < RESTARTS else 0
        found: list[Any] = []
        following = ""
        try:
            while True:
                asked = dict(given)
                if limit:
                    asked["limit"] = str(limit)
                if following:
                    asked["continue"] = following
                more, following = decode(connection.get(path, asked).body)
                found += more
                if not following:
                    return found
        except HttpStatus as problem:
            if problem.status != 410 or restart == RESTARTS:
                raise
    raise AssertionError("the last round returns or raises")


def in_parallel(work: Callable[[T], R], items: Iterable[T], *, workers: int = WORKERS) -> list[R]:
    """``work`` on every item, a few at a time, results in order; the first error is raised.

    Threads are daemons: Ctrl-C does not wait for a server that says nothing.
    """
    given: Sequence[T] = list(items)
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, R | None, BaseException | None]] = queue.SimpleQueue()
    for index in range(len(given)):
        todo.put(index)

    def run() -> None:
        while True:
            try:
                index = todo.get_nowait()
            except queue.Empty:
                return
            try:
                done.put((index, work(given[index]), None))
            except BaseException as problem:
                done.put((index, None, problem))

    for _ in range(min(workers, len(given))):
        threading.Thread(target=run, daemon=True).start()
    results: dict[int, R] = {}
    for _ in given:
        index, result, problem = done.get()
        if problem is not None:
            raise problem
        results[index] = result  # type: ignore[assignment]
    return [results[index] for index in range(len(given))]
