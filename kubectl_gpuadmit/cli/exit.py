"""The exit code of a report; prints nothing."""

from __future__ import annotations

from kubectl_gpuadmit.errors import EXIT_BAD_INPUT, EXIT_CLEAR, EXIT_DENIED, EXIT_UNANSWERED
from kubectl_gpuadmit.render.standing import refused, standing, unjudged
from kubectl_gpuadmit.verdict import Report


def code(report: Report, *, warn_exit_code: int = EXIT_CLEAR) -> int:
    """The gravest of all: 2 unreadable input, 3 not judged, 1 refused, then ``warn_exit_code`` for
    warnings and waits, 0. A kind that may hold pods and that nobody knows was not judged."""
    treated = {skipped.treated for skipped in report.skipped}
    if "unreadable" in treated:
        return EXIT_BAD_INPUT
    if "unknown-kind" in treated or any(map(unjudged, report.workloads)):
        return EXIT_UNANSWERED
    if any(map(refused, report.workloads)):
        return EXIT_DENIED
    if any(standing(verdict) in ("waits", "warned") for verdict in report.workloads):
        return warn_exit_code
    return EXIT_CLEAR
