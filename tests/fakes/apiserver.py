"""An HTTP server on loopback that answers as an API server would, with every fault a wire can have.

Above it the real adapter runs: kubeconfig, connection pool, retries, paging, decoding.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

Json = dict[str, Any]
Answer = Callable[["Request"], "Reply"]


class Request:
    """What a client asked."""

    def __init__(self, method: str, target: str, headers: Any, body: bytes) -> None:
        parts = urlsplit(target)
        self.method = method
        self.path = parts.path
        self.query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Json:
        return json.loads(self.body)


class Reply:
    """What is sent back; ``cut`` closes the connection after so many bytes of the body."""

    def __init__(
        self,
        body: bytes | Json,
        *,
        status: int = 200,
        headers: Iterable[tuple[str, str]] = (),
        cut: int | None = None,
        after: float = 0.0,
    ) -> None:
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.status = status
        self.headers = list(headers)
        self.cut = cut
        self.after = after


def refusal(
    status: int, message: str, *, reason: str = "", headers: Iterable[tuple[str, str]] = ()
) -> Reply:
    """A ``Status`` object, as the API server sends with every error."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": status,
    }
    return Reply(body, status=status, headers=headers)


def forbidden(verb: str, resource: str, *, group: str = "", user: str = "dev") -> Reply:
    """What RBAC says."""
    name = f"{resource}.{group}" if group else resource
    return refusal(
        403,
        f'{name} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group '
        f'"{group}" at the cluster scope',
        reason="Forbidden",
    )


class ApiServer:
    """``with ApiServer() as server``; ``objects`` are listed, ``on`` overrides a path."""

    def __init__(self, objects: Iterable[Json] = (), *, minor: str = "37") -> None:
        self.objects = list(objects)
        self.away = False
        """True: connections are closed without an answer."""
        self.asked: list[Request] = []
        self._overrides: dict[tuple[str, str], list[Reply | Answer]] = {}
        self._version = {"major": "1", "minor": minor}
        self._groups: list[Json] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer._serve(self)

            def do_POST(self) -> None:
                outer._serve(self)

            def do_PATCH(self) -> None:
                outer._serve(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    def __enter__(self) -> ApiServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def on(self, path: str, *answers: Reply | Answer, method: str = "GET") -> None:
        """Answers requests of ``path`` with these in turn, the last one for ever."""
        self._overrides[method, path] = list(answers)

    def serve(
        self,
        group: str,
        version: str,
        kind: str,
        plural: str,
        *short: str,
        scope: str = "Namespaced",
    ) -> None:
        """Adds a custom resource to the discovery document."""
        self._groups.append(
            {
                "metadata": {"name": group},
                "versions": [
                    {
                        "version": version,
                        "resources": [
                            {
                                "resource": plural,
                                "responseKind": {"group": group, "version": version, "kind": kind},
                                "scope": scope,
                                "singularResource": kind.lower(),
                                "shortNames": list(short),
                                "verbs": ["get", "list"],
                            }
                        ],
                    }
                ],
            }
        )

    def kubeconfig(self, folder: Path, *, user: Json | None = None, **context: str) -> Path:
        """Writes a kubeconfig with the one context ``fake``."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": {"server": self.url}}],
            "users": [{"name": "dev", "user": user if user is not None else {"token": "secret"}}],
            "contexts": [
                {"name": "fake", "context": {"cluster": "fake", "user": "dev", **context}}
            ],
        }
        file = folder / "kubeconfig"
        file.write_text(yaml.safe_dump(config))
        return file

    def paths(self) -> list[str]:
        return [request.path for request in self.asked]

    # -- answering

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length) if length else b""
        request = Request(handler.command, handler.path, handler.headers, body)
        self.asked.append(request)
        if self.away:
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
            return
        reply = self._reply(request)
        if reply.after:
            time.sleep(reply.after)
        try:
            self._send(handler, reply)
        except OSError:
            handler.close_connection = True

    def _send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        handler.send_response(reply.status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(reply.body)))
        for name, value in reply.headers:
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(reply.body if reply.cut is None else reply.body[: reply.cut])
        if reply.cut is not None:
            handler.wfile.flush()
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True

    def _reply(self, request: Request) -> Reply:
        override = self._overrides.get((request.method, request.path))
        if override:
            answer = override.pop(0) if len(override) > 1 else override[0]
            return answer(request) if callable(answer) else answer
        if request.path == "/version":
            return Reply(self._version)
        if request.path == "/apis":
            return Reply({"kind": "APIGroupDiscoveryList", "items": self._groups})
        if request.method == "POST":
            return Reply(request.body, status=201)
        if request.method == "PATCH":
            return self._patched(request)
        return self._of_objects(request)

    def _patched(self, request: Request) -> Reply:
        """Server-side apply by a sole manager replaces; a merge patch wants something to merge."""
        plural, name = request.path.split("/")[-2:]
        there = next(
            (
                o
                for o in self.objects
                if (plural_of(o["kind"]), o["metadata"]["name"]) == (plural, name)
            ),
            None,
        )
        if "apply-patch" in request.headers["Content-Type"]:
            stored = request.json
        elif there is None:
            return refusal(404, f'"{name}" not found', reason="NotFound")
        else:
            stored = merged(there, request.json)
        self.objects = [o for o in self.objects if o is not there] + [stored]
        return Reply(stored)

    def _of_objects(self, request: Request) -> Reply:
        parts = request.path.strip("/").split("/")
        version = parts[1] if parts[0] == "api" else "/".join(parts[1:3])
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = ""
        if rest[:1] == ["namespaces"] and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        plural, name = rest[0], rest[1] if len(rest) > 1 else ""
        found = [
            o
            for o in self.objects
            if o["apiVersion"] == version
            and plural_of(o["kind"]) == plural
            and (not namespace or o["metadata"].get("namespace") == namespace)
        ]
        if name:
            named = [o for o in found if o["metadata"]["name"] == name]
            return Reply(named[0]) if named else refusal(404, f'{plural} "{name}" not found')
        return page(request, found, version, found[0]["kind"] if found else plural.title())


def merged(target: Json, change: Json) -> Json:
    """RFC 7386."""
    found = dict(target)
    for key, value in change.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict):
            held = found.get(key)
            found[key] = merged(held if isinstance(held, dict) else {}, value)
        else:
            found[key] = value
    return found


def plural_of(kind: str) -> str:
    lower = kind.lower()
    if lower.endswith("y") and lower[-2] not in "aeiou":
        return lower[:-1] + "ies"
    return lower + ("es" if lower[-1] == "s" else "s")


def page(request: Request, items: list[Json], version: str, kind: str) -> Reply:
    """One page of a list; the continue token is the number of the next item."""
    start, limit = int(request.query.get("continue", 0)), int(request.query.get("limit", 0))
    part = items[start : start + limit] if limit else items[start:]
    bare = [{k: v for k, v in one.items() if k not in ("apiVersion", "kind")} for one in part]
    meta: Json = {"resourceVersion": "7"}
    if limit and start + limit < len(items):
        meta["continue"] = str(start + limit)
    return Reply({"kind": f"{kind}List", "apiVersion": version, "metadata": meta, "items": bare})


def kubeconfig_of(folder: Path, url: str, user: Json | None = None) -> Path:
    """A kubeconfig that leads to any address."""
    config = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    file = folder / "config"
    file.write_text(json.dumps(config))
    return file
