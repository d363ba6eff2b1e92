"""``kubectl gpu-admit check``: one line a workload for whole trees of manifests, for CI."""

from __future__ import annotations

from collections.abc import Callable

from kubectl_gpuadmit.cli.answer import answer
from kubectl_gpuadmit.cli.question import Files, Paths, Question, asks


@asks
def check(ask: Callable[..., Question], paths: Paths = None, files: Files = None) -> int:
    """Judge whole trees of manifests, for CI.

    One line a workload, worst first, then a tally; details only for what is not clear.

    Exit code: 0 clear, 1 refused, 2 unreadable or nothing checked, 3 could not be judged.
    """
    return answer(ask(paths=[*(paths or ()), *(files or ())], live={}), command="check")
