"""``kubectl gpu-admit explain``: the whole answer for the workloads of some files."""

from __future__ import annotations

from collections.abc import Callable

from kubectl_gpuadmit.cli.answer import answer
from kubectl_gpuadmit.cli.question import Files, Names, Question, asks


@asks
def explain(ask: Callable[..., Question], names: Names = None, files: Files = None) -> int:
    """Say in full what becomes of some workloads.

    Whether each is admitted, whether it would then run, and what smallest change makes it so.

    Exit code: 0 clear, 1 refused, 2 unreadable or nothing checked, 3 could not be judged.
    """
    live = {f"explain {' '.join(names)}": True} if names else {}
    return answer(ask(paths=files or (), live=live), command="explain")
