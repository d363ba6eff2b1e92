"""``kubectl gpu-admit explain``: the whole answer for the workloads of some files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_gpuadmit.cli.answer import answer
from kubectl_gpuadmit.cli.options import NAMES
from kubectl_gpuadmit.cli.question import asked

ARGUMENT = NAMES


def explain(values: Mapping[str, Any]) -> int:
    """Say in full what becomes of some workloads.

    Whether each is admitted, whether it would then run, and what smallest change makes it so.

    Exit code: 0 clear, 1 refused, 2 unreadable or nothing checked, 3 could not be judged.
    """
    return answer(asked("explain", values))
