"""A real MLflow tracking server with SQLite on the loopback interface, once for the run.

The program is looked for in ``$GPU_ADMIT_MLFLOW``, then in ``.venv-mlflow`` (``make test-mlflow``
makes it): it is heavy, so it is no part of the development environment. Where it is not there the
tests are skipped; with ``GPU_ADMIT_REQUIRE_MLFLOW=1``, as in ``.ci/run``, they fail instead.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 300.0


class Server(Struct):
    """A running server, and what a test does to it over its REST API."""

    url: str

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self.url}/api/2.0/mlflow/{path}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method="POST",
        )
        with urllib.request.urlopen(request, timeout=30) as reply:
            answer: dict[str, Any] = json.loads(reply.read())
        return answer

    def register(self, name: str, tags: dict[str, str], *versions: dict[str, str]) -> None:
        """A model with its own tags, and one version after another with theirs."""
        listed = [{"key": key, "value": value} for key, value in tags.items()]
        self.post("registered-models/create", name=name, tags=listed)
        for own in versions:
            listed = [{"key": key, "value": value} for key, value in own.items()]
            self.post("model-versions/create", name=name, source="s3://models/x", tags=listed)


def program() -> Path | None:
    named = os.environ.get("GPU_ADMIT_MLFLOW")
    places = [Path(named)] if named else []
    places.append(ROOT / ".venv-mlflow" / "bin" / "mlflow")
    return next((place for place in places if place.is_file()), None)


@pytest.fixture(scope="session")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = program()
    if found is None:
        if os.environ.get("GPU_ADMIT_REQUIRE_MLFLOW"):
            pytest.fail("no MLflow server program: make test-mlflow makes .venv-mlflow")
        pytest.skip("no MLflow server program: make test-mlflow")
    folder = tmp_path_factory.mktemp("mlflow")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        [
            str(found),
            "server",
            *("--backend-store-uri", f"sqlite:///{folder}/mlflow.db"),
            *("--artifacts-destination", str(folder / "artifacts")),
            *("--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
        ],
        stdout=log,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env={
            **os.environ,
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "DO_NOT_TRACK": "true",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        },
        start_new_session=True,
    )
    server = Server(f"http://127.0.0.1:{port}")
    try:
        _wait(server, process, folder / "log")
        yield server
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=20)
        log.close()


def _wait(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{server.url}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    tail = log.read_text("utf-8", "replace")[-2000:]
    pytest.fail(f"the MLflow server did not start: {tail}")
