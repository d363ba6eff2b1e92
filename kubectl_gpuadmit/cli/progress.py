"""A line on stderr about what takes longer than a second; only on a terminal, gone afterwards."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.status import Status

AFTER_SECONDS = 1.0


class Progress:
    """``with Progress() as progress: progress.step("reading …")``. Silent without a terminal."""

    def __init__(self) -> None:
        self._status: Status | None = None
        self._doing = ""
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            self._timer = threading.Timer(AFTER_SECONDS, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer:
            self._timer.cancel()
        with self._lock:
            self._timer = None
            if self._status:
                self._status.stop()
                self._status = None

    def step(self, doing: str) -> None:
        """Says what is being done from now on."""
        from kubectl_gpuadmit.render.wording import clean

        with self._lock:
            self._doing = clean(doing)
            if self._status:
                self._status.update(self._line())

    def _line(self) -> str:
        from rich.markup import escape

        return escape(self._doing)

    def _show(self) -> None:
        from rich.console import Console
        from rich.status import Status

        with self._lock:
            if self._timer is not None:
                self._status = Status(self._line(), console=Console(stderr=True))
                self._status.start()
