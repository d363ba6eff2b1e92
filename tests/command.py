"""The command as a person runs it: a process of its own, with what it printed and its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMAND = (sys.executable, "-m", "kubectl_gpuadmit.cli.main")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "PYTHONUTF8": "1"}


def called(
    *args: str, given: bytes = b"", environment: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """``given`` is what it reads on stdin; bytes that are no UTF-8 come back as surrogates."""
    return subprocess.run(
        [*COMMAND, *args],
        input=given.decode("utf-8", "surrogateescape"),
        env={**ENVIRONMENT, **(environment or {})},
        cwd=cwd,
        text=True,
        errors="surrogateescape",
        capture_output=True,
        timeout=60,
        check=False,
    )
