"""Starts programs that never outlive the run: process groups, atexit, SIGTERM, a killed parent."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import ClassVar

PR_SET_PDEATHSIG = 1


class Program:
    """One running program with its log."""

    running: ClassVar[list[Program]] = []

    def __init__(self, command: list[str], log: Path) -> None:
        self.name = Path(command[0]).name
        self.log = log
        _end_all_at_exit()
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=log.parent,
                start_new_session=True,
                preexec_fn=_ending_with_parent(),
            )
        Program.running.append(self)

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def memory(self) -> int:
        """Resident bytes; 0 where the system does not say."""
        try:
            pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        except OSError:
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def tail(self, lines: int = 15) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def kill(self) -> None:
        """At once: what it holds is thrown away, so nothing needs to be put in order."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=30)
        if self in Program.running:
            Program.running.remove(self)


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on now; all are held until all are found."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _ending_with_parent() -> Callable[[], None] | None:
    """Linux ends the child with the thread that made it, even where SIGKILL ends that one."""
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


_hooked = False


def _end_all_at_exit() -> None:
    global _hooked
    if _hooked:
        return
    _hooked = True
    atexit.register(_end_all)
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)


def _end_all() -> None:
    """Ends what still runs, and removes the folders of those programs."""
    running = list(Program.running)
    for program in running:
        program.kill()
    for program in running:
        shutil.rmtree(program.log.parent, ignore_errors=True)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    _end_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
