"""Speaks with the referee program: questions in, Kubernetes' own answers out, in order."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

from tests.controlplane import binaries

Json = dict[str, Any]


class Referee:
    """One running referee. It holds no state between questions."""

    def __init__(self, *, build: bool = True) -> None:
        path = binaries.find("referee", build=build)
        self._process = subprocess.Popen([str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Referee:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the program. It is killed: after an error here both pipes may be full."""
        self._process.kill()
        self._process.wait(timeout=30)

    def ask(self, ask: list[str], case: Json) -> Json:
        return next(iter(self.ask_all(ask, [case])))

    def ask_all(self, ask: list[str], cases: Iterable[Json]) -> Iterator[Json]:
        """Answers in order. Writing runs beside reading, so neither pipe fills up."""
        cases = list(cases)
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None

        def write() -> None:
            with contextlib.suppress(BrokenPipeError, ValueError):
                for number, case in enumerate(cases):
                    stdin.write(json.dumps({"id": number, "ask": ask, **case}).encode() + b"\n")
                stdin.flush()

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        for number in range(len(cases)):
            line = stdout.readline()
            if not line:
                raise RuntimeError(f"the referee ended before case {number} was answered")
            reply = json.loads(line)
            if "error" in reply:
                raise RuntimeError(f"the referee could not answer case {number}: {reply['error']}")
            yield reply
        writer.join()
