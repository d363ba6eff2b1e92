"""``kubectl gpu-admit check``: one line a workload for whole trees of manifests, for CI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_gpuadmit.cli.answer import answer
from kubectl_gpuadmit.cli.options import PATHS
from kubectl_gpuadmit.cli.question import asked

ARGUMENT = PATHS


def check(values: Mapping[str, Any]) -> int:
    """Judge whole trees of manifests, for CI.

    One line a workload, worst first, then a tally; details only for what is not clear.

    Exit code: 0 clear, 1 refused, 2 unreadable or nothing checked, 3 could not be judged.
    """
    return answer(asked("check", values))
