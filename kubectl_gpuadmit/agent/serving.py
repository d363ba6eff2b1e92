"""Metrics and probes over plain HTTP; answers from the status alone and never asks a source."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kubectl_gpuadmit.agent.status import Status
from kubectl_gpuadmit.errors import BadInput, Unanswerable


class Serving:
    """``/metrics``, ``/healthz``, ``/readyz`` on one address, in threads of their own."""

    def __init__(
        self,
        listen: str,
        status: Status,
        *,
        node: str,
        heartbeat: float,
        steady: Callable[[], float],
    ) -> None:
        """Raises BadInput for what is no address, Unanswerable where it cannot be had."""
        host, port = address(listen)

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                now = steady()
                match self.path.partition("?")[0]:
                    case "/metrics":
                        text = status.metrics(node=node, resident=resident_bytes())
                        self._answer(200, text, "text/plain; version=0.0.4; charset=utf-8")
                    case "/healthz":
                        self._probe(status.unhealthy(now))
                    case "/readyz":
                        self._probe(status.unready(now, heartbeat=heartbeat))
                    case _:
                        self._answer(404, "try /metrics, /healthz, /readyz\n")

            def _probe(self, why: str) -> None:
                self._answer(503 if why else 200, f"{why or 'ok'}\n")

            def _answer(self, code: int, text: str, kind: str = "text/plain") -> None:
                raw = text.encode()
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                """Probes are not worth a line each."""

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except OSError as problem:
            raise Unanswerable(
                "cannot-listen",
                f"{listen} cannot be listened on: {problem.strerror or problem}",
                hint="--listen 127.0.0.1:PORT, or --listen '' for none",
            ) from None
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def address(listen: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT`` or ``:PORT``. Raises BadInput."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise BadInput(
            "usage", f"--listen {listen} is no HOST:PORT", hint="for example 127.0.0.1:9435"
        )
    return host.strip("[]") or "0.0.0.0", int(port)


def resident_bytes() -> int:
    """Resident memory of this process, 0 where the kernel does not say (proc(5), statm)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:  # noqa: PTH123
            return int(stream.read().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return 0
