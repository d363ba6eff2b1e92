"""The exit code of each report, and of several outcomes in one run."""

from __future__ import annotations

import pytest
from golden.verdicts import BAD, CLEAR, DENIED, QUOTA, REPORTS, STRANGE, UNKNOWN, WAITS, report

from kubectl_gpuadmit.cli.exit import code
from kubectl_gpuadmit.verdict import Finding, Report, Verdict


def test_each_outcome_has_its_code() -> None:
    assert {name: code(r) for name, r in REPORTS.items()} == {
        "clear": 0,
        "mutated": 0,
        "denied": 1,
        "never": 1,
        "waits-other-scheduler": 0,
        "unknown": 3,
        "warned": 0,
        "unknown-kind": 3,
        "bad-among-good": 2,
        "tree": 3,
        "hostile": 1,
    }


def test_warnings_and_waits_take_the_code_that_was_asked_for() -> None:
    assert {n: code(r, warn_exit_code=9) for n, r in REPORTS.items() if code(r) == 0} == {
        "clear": 0,
        "mutated": 0,
        "waits-other-scheduler": 9,
        "warned": 9,
    }


@pytest.mark.parametrize(
    ("of", "gravest"),
    [
        (report(CLEAR, DENIED, UNKNOWN, skipped=(BAD,)), 2),
        (report(CLEAR, DENIED, UNKNOWN), 3),
        (report(CLEAR, DENIED, skipped=(STRANGE,)), 3),
        (report(CLEAR, DENIED, WAITS, skipped=(QUOTA,)), 1),
        (report(CLEAR, WAITS), 7),
        (report(CLEAR, skipped=(QUOTA,)), 0),
    ],
)
def test_of_several_the_gravest_counts_two_three_one_zero(of: Report, gravest: int) -> None:
    assert code(of, warn_exit_code=7) == gravest


def test_a_model_that_exceeds_memory_is_refused_at_deny_level_only() -> None:
    def exceeds(level: str) -> Report:
        found = Finding("model/memory", "needs 141 GB, gets 46 GB", level=level)  # type: ignore[arg-type]
        base = {f: getattr(CLEAR, f) for f in CLEAR.__struct_fields__}
        return report(Verdict(**{**base, "running": "exceeds", "findings": (found,)}))

    assert [code(exceeds(level), warn_exit_code=5) for level in ("deny", "warn", "audit")] == [
        1,
        5,
        5,
    ]
