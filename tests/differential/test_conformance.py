"""Generated and stored cases: our answer is Kubernetes' own. Skipped, counted, without the referee.

``GPU_ADMIT_CASES`` and ``GPU_ADMIT_SEED`` set how many cases of each family run, and which.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest

from tests.controlplane.binaries import Missing
from tests.controlplane.referee_client import Referee
from tests.differential import conformance
from tests.differential.shrink import shrink
from tests.differential.vocabulary import Json

CASES = int(os.environ.get("GPU_ADMIT_CASES", "3000"))
SEED = os.environ.get("GPU_ADMIT_SEED") or secrets.token_hex(4)
FAMILIES = sorted(conformance.GENERATORS)
STORED = list(conformance.stored())

SHARE = {"cel": 0.2, "policies": 0.1}
"""Families of which one case is many questions, or costs the referee many compilations."""

ENOUGH_FOR_EVERY_MESSAGE = 10_000
"""Cases from which on each message that a family must bring about has occurred (about 3,000 do)."""

LEAST_WELCOME = {
    "objects": 0.33,
    "claims": 0.33,
    "placement": 0.33,
    "admission": 0.33,
    "preemption": 0.33,
    "replicas": 0.2,
    "podsecurity": 0.33,
    "dra": 0.28,
    "cel": 0.33,
    "policies": 0.33,
    "numa": 0.33,
    "decode": 0.33,
}
"""Share of cases in which Kubernetes says yes: a generator of refusals alone proves little."""


@pytest.fixture(scope="session")
def referee() -> Iterator[Referee]:
    try:
        running = Referee(build=False)
    except Missing as missing:
        generated = f"{CASES} cases of each of {len(FAMILIES)} families"
        pytest.skip(f"{missing}: {generated} and {len(STORED)} stored ones not run")
    with running:
        yield running


@pytest.mark.parametrize("family", FAMILIES)
def test_our_answer_is_kubernetes_own(
    referee: Referee, family: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        cases = max(1, int(CASES * SHARE.get(family, 1)))
        outcome = conformance.run(referee, family, cases, SEED, stop_after=20)
    except conformance.NotHere as problem:
        pytest.skip(f"{family}: {CASES} cases not run: {problem}")
    with capsys.disabled():
        print(f"\n{outcome.line()}")
    shown = [
        conformance.as_yaml(family, origin, found, conformance.minimal(referee, family, case))
        for origin, case, found in outcome.disagreements[:3]
    ]
    assert not outcome.disagreements, outcome.line() + "\n---\n" + "\n---\n".join(shown)
    assert outcome.worded <= 0.002 * outcome.cases + 2, "other words: " + outcome.line()
    assert outcome.unknown <= 0.02 * outcome.cases, "too many unknowns: " + outcome.line()
    assert outcome.welcome >= LEAST_WELCOME[family] * outcome.cases, (
        "the generator is not steered any more"
    )
    if outcome.cases >= ENOUGH_FOR_EVERY_MESSAGE:
        assert outcome.heard.missing == (), "messages of Kubernetes that no case brought about"


@pytest.mark.parametrize(("name", "family", "case"), STORED, ids=[name for name, _, _ in STORED])
def test_a_former_disagreement_stays_settled(
    referee: Referee, name: str, family: str, case: Json
) -> None:
    try:
        assert conformance.differs(referee, family, case) == []
    except conformance.NotHere as problem:
        pytest.skip(f"{name}: {problem}")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_seed_makes_the_same_cases_every_time(family: str) -> None:
    assert [conformance.made(family, "s", n) for n in range(20)] == [
        conformance.made(family, "s", n) for n in range(20)
    ]
    assert conformance.made(family, "s", 1) != conformance.made(family, "s", 2)


def test_shrinking_keeps_only_what_the_disagreement_needs() -> None:
    case = conformance.made("placement", "s", 3)
    case["pod"]["spec"]["overhead"] = {"cpu": "1", "memory": "2"}

    def asks_for_overhead(smaller: Json) -> bool:
        return "cpu" in smaller["pod"].get("spec", {}).get("overhead", {})

    assert shrink(case, asks_for_overhead) == {
        "objects": [],
        "pod": {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": "asking", "namespace": "default", "uid": "uid-asking"},
            "spec": {"overhead": {"cpu": "1"}},
        },
    }
