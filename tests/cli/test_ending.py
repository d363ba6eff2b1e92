"""How the program ends: everything due is done, nothing that was read is taken apart first."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from kubectl_gpuadmit.cli import ending

ROOT = str(Path(__file__).parents[2])
TOLD = """
import atexit, sys
from kubectl_gpuadmit.cli import ending

class Read:
    def __del__(self):
        print("freed")

atexit.register(lambda: print("due", flush=True))
"""


def ended(code: str, stdout: int | None = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", TOLD + code],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": ROOT, "PYTHONUNBUFFERED": ""},
    )


def test_what_is_written_and_due_is_done_and_what_is_held_is_left_to_the_system() -> None:
    done = ended("ending.hold(Read()); print('said', end='.'); ending.leave(3)")
    assert (done.stdout, done.stderr, done.returncode) == ("said.due\n", "", 3)


def test_python_itself_would_have_freed_it() -> None:
    done = ended("ending.hold(Read()); sys.exit(3)")
    assert (done.stdout, done.returncode) == ("due\nfreed\n", 3)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_stream_that_takes_nothing_more_ends_as_python_ends_it() -> None:
    with Path("/dev/full").open("w") as full:
        done = ended("print('said'); ending.leave(0)", full.fileno())
    assert (done.returncode, "No space left on device" in done.stderr) == (120, True)


def test_no_more_than_two_clusters_are_held() -> None:
    class Read:
        pass

    watched = []
    for _ in range(4):
        watched.append(weakref.ref(ending.hold(Read())))
    assert [one() is not None for one in watched] == [False, False, True, True]
    for _ in range(2):
        ending.hold(None)
