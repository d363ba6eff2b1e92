"""Speaks with an API server over one kept-alive connection: JSON in, JSON out; decides nothing."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

Json = dict[str, Any]
Item = TypeVar("Item")
Answer = TypeVar("Answer")

MERGE = "application/merge-patch+json"
LONGEST_RETRY = 2.0
"""Seconds; a Retry-After beyond that is not waited for."""


class ApiError(Exception):
    """The server refused: ``status`` is the HTTP code, ``reason`` and ``message`` its Status's."""

    def __init__(self, status: int, body: Json) -> None:
        self.status = status
        self.body = body
        self.reason = str(body.get("reason", ""))
        self.message = str(body.get("message", ""))
        super().__init__(f"{status} {self.reason}: {self.message}")


class Server:
    """Where an API server listens and what its kinds are called there; shared by its clients."""

    def __init__(self, port: int, ca: Path, token: str) -> None:
        self.port = port
        self.token = token
        self.tls = ssl.create_default_context(cafile=str(ca))
        # The server's own certificate is its authority: good for RFC 5280's taste it is not.
        self.tls.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
        self.resources: dict[tuple[str, str], tuple[str, bool]] = {}


class Client:
    """One connection, for one thread."""

    def __init__(self, server: Server, *, token: str = "", timeout: float = 60) -> None:
        self.server = server
        self.token = token or server.token
        self.timeout = timeout
        self._connection: http.client.HTTPSConnection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- requests

    def request(
        self, method: str, path: str, body: Any = None, *, content: str = "application/json"
    ) -> Json:
        """The decoded reply. Asks again after 429 with a short Retry-After, reconnects once."""
        data = None if body is None else json.dumps(body).encode()
        for attempt in range(20):
            status, headers, reply = self._send(method, path, data, content)
            wait = float(headers.get("Retry-After") or 0)
            if status != 429 or not wait or wait > LONGEST_RETRY or attempt == 19:
                break
            time.sleep(wait)
        answer = _decoded(reply)
        if status >= 400:
            raise ApiError(status, answer)
        return answer

    def _send(
        self, method: str, path: str, data: bytes | None, content: str
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = content
        for again in (True, False):
            fresh = self._connection is None
            if self._connection is None:
                self._connection = http.client.HTTPSConnection(
                    "127.0.0.1", self.server.port, timeout=self.timeout, context=self.server.tls
                )
            try:
                self._connection.request(method, path, data, headers)
                response = self._connection.getresponse()
                return response.status, response.headers, response.read()
            except (http.client.HTTPException, ConnectionError):
                self.close()
                if fresh or not again:
                    raise
        raise AssertionError("not reached")

    def get(self, path: str, **query: str) -> Json:
        return self.request("GET", path + ("?" + urlencode(query) if query else ""))

    def text(self, path: str) -> str:
        """A reply that is no JSON, such as ``/metrics``."""
        status, _, reply = self._send("GET", path, None, "application/json")
        if status >= 400:
            raise ApiError(status, _decoded(reply))
        return reply.decode()

    def watch(self, path: str, resource_version: str, *, seconds: int) -> Iterator[Json]:
        """Events after ``resource_version``, for at most ``seconds``; own connection."""
        query = urlencode(
            {"watch": "1", "resourceVersion": resource_version, "timeoutSeconds": seconds}
        )
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.server.port, timeout=seconds + 10, context=self.server.tls
        )
        try:
            bearer = {"Authorization": f"Bearer {self.token}"}
            connection.request("GET", f"{path}?{query}", headers=bearer)
            response = connection.getresponse()
            if response.status != 200:
                raise ApiError(response.status, _decoded(response.read()))
            for line in response:
                yield json.loads(line)
        finally:
            connection.close()

    # -- objects

    def path(self, api: str, kind: str, namespace: str = "", name: str = "", part: str = "") -> str:
        """URL path of a kind's collection, one of its objects, or a subresource of that."""
        plural, namespaced = self._resource(api, kind)
        path = "/api/v1" if api == "v1" else f"/apis/{api}"
        if namespaced and namespace:
            path += f"/namespaces/{quote(namespace, safe='')}"
        path += f"/{plural}"
        if name:
            path += f"/{quote(name, safe='')}"
        return path + (f"/{part}" if part else "")

    def _resource(self, api: str, kind: str) -> tuple[str, bool]:
        known = self.server.resources
        if (api, kind) not in known:
            found = self.get("/api/v1" if api == "v1" else f"/apis/{api}")
            for entry in found["resources"]:
                if "/" not in entry["name"]:
                    known[api, entry["kind"]] = (entry["name"], entry["namespaced"])
        if (api, kind) not in known:
            raise KeyError(f"the server has no {kind} in {api}")
        return known[api, kind]

    def path_of(self, document: Json, part: str = "") -> str:
        meta = document.get("metadata", {})
        namespace = meta.get("namespace") or "default"
        return self.path(
            document["apiVersion"], document["kind"], namespace, meta.get("name", ""), part
        )

    def create(self, document: Json, *, dry_run: str = "", validation: str = "") -> Json:
        """The object as stored. ``dry_run="All"`` asks every check and stores nothing;
        ``validation`` is the API server's fieldValidation."""
        namespace = document.get("metadata", {}).get("namespace") or "default"
        path = self.path(document["apiVersion"], document["kind"], namespace)
        asked = {"dryRun": dry_run, "fieldValidation": validation}
        query = "&".join(f"{name}={value}" for name, value in asked.items() if value)
        return self.request("POST", path + (f"?{query}" if query else ""), document)

    def patch(self, document: Json, change: Json, *, part: str = "") -> Json:
        """Merges ``change`` (RFC 7386) into the object that ``document`` names."""
        return self.request("PATCH", self.path_of(document, part), change, content=MERGE)

    def delete(self, document: Json) -> None:
        """At once, without a grace period; an absent object is fine."""
        try:
            self.request("DELETE", self.path_of(document), {"gracePeriodSeconds": 0})
        except ApiError as problem:
            if problem.status != 404:
                raise

    def list(
        self, api: str, kind: str, namespace: str = "", *, page: int = 500, **query: str
    ) -> list[Json]:
        """Every object, with kind and apiVersion filled in, as ``kubectl get -o json`` does."""
        path, found, more = self.path(api, kind, namespace), [], ""
        while True:
            extra = {"continue": more} if more else {}
            reply = self.get(path, limit=str(page), **query, **extra)
            items = reply.get("items") or ()
            found += [{"apiVersion": api, "kind": kind, **item} for item in items]
            more = reply["metadata"].get("continue", "")
            if not more:
                return found


def _decoded(reply: bytes) -> Json:
    try:
        answer = json.loads(reply)
    except ValueError:
        return {"message": reply.decode(errors="replace")}
    return answer if isinstance(answer, dict) else {"value": answer}


def each(
    server: Server,
    work: Callable[[Client, Item], Answer],
    items: Iterable[Item],
    *,
    connections: int = 6,
) -> list[Answer]:
    """``work`` on every item, over several connections; answers in the order of the items."""
    own = threading.local()
    clients: list[Client] = []

    def one(item: Item) -> Answer:
        client: Client | None = getattr(own, "client", None)
        if client is None:
            client = own.client = Client(server)
            clients.append(client)
        return work(client, item)

    with ThreadPoolExecutor(connections) as pool:
        try:
            return list(pool.map(one, items))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            for client in clients:
                client.close()


def kubeconfig(
    *,
    port: int,
    ca: Path,
    user: str,
    token: str,
    namespace: str = "default",
    name: str = "gpu-admit-test",
) -> Json:
    """A kubeconfig with one context, complete in itself."""
    authority = base64.b64encode(ca.read_bytes()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": f"https://127.0.0.1:{port}",
                    "certificate-authority-data": authority,
                },
            }
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": user, "namespace": namespace}}
        ],
        "current-context": name,
    }
