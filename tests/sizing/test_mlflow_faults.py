"""A tracking server that fails in every way, at the wire: one sentence each, never a fault."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from kubectl_gpuadmit.adapters import mlflow

ANSWERS: dict[str, tuple[int, bytes]] = {
    "locked": (401, b"{}"),
    "forbidden": (403, b"{}"),
    "elsewhere": (404, b"<html>not here</html>"),
    "broken": (500, b"oops"),
    "page": (200, b"<html>log in</html>"),
    "list": (200, b"[]"),
    "deep": (200, b"[" * 100_000),
    "odd": (200, b'{"registered_model": {"tags": [3, {"key": "vram"}], "latest_versions": 7}}'),
    "unknown": (404, b'{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no"}'),
}


class Handler(BaseHTTPRequestHandler):
    seen: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        Handler.seen.append(self.headers.get("Authorization"))
        name = self.path.rpartition("name=")[2]
        status, body = ANSWERS[name]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test's output is its own."""


@pytest.fixture
def server() -> Iterator[str]:
    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{listening.server_address[1]}"
    listening.shutdown()
    listening.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("locked", "it asks for credentials (MLFLOW_TRACKING_TOKEN)"),
        ("forbidden", "it forbids the request"),
        ("elsewhere", "it knows no such address: is it an MLflow server?"),
        ("broken", "it answers with status 500"),
        ("page", "its answer is no JSON: is it an MLflow server?"),
        ("list", "its answer is no JSON object: is it an MLflow server?"),
        ("deep", "its answer is no JSON: is it an MLflow server?"),
    ],
)
def test_each_failure_is_one_sentence(server: str, name: str, problem: str) -> None:
    found = mlflow.ask(f"http://{server}", [name])
    assert found == mlflow.Asked(problem=f"MLflow at http://{server}: {problem}")


def test_what_is_not_registered_and_what_says_nothing_is_no_failure(server: str) -> None:
    assert mlflow.ask(f"http://{server}", ["unknown", "odd"]) == mlflow.Asked(
        notes=("MLflow has odd, and no tag gpu-admit.io/memory or gpu-admit.io/like on it",)
    )


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        place = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert mlflow.ask(place, ["x"]).problem == f"MLflow at {place}: connection refused"


def test_credentials_are_sent_and_never_shown(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "secret-token")
    assert "secret" not in mlflow.ask(f"http://{server}", ["broken"]).problem
    assert Handler.seen[-1] == "Bearer secret-token"
    monkeypatch.delenv("MLFLOW_TRACKING_TOKEN")
    assert "pass" not in mlflow.ask(f"http://user:pass@{server}", ["broken"]).problem
    assert Handler.seen[-1] == "Basic dXNlcjpwYXNz"
