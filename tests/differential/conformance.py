"""Runs many generated cases of one family through the referee and through us, and counts."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import yaml

from tests.controlplane import binaries
from tests.controlplane.referee_client import Referee
from tests.differential import (
    admission_cases,
    cel_cases,
    claim_cases,
    compare,
    decode_cases,
    dra_cases,
    messages,
    numa,
    numa_cases,
    object_cases,
    ours,
    placement_cases,
    podsecurity_cases,
    policy_cases,
)
from tests.differential.shrink import shrink
from tests.differential.vocabulary import Json

REGRESSIONS = Path(__file__).parent / "regressions"
BATCH = 500

GENERATORS: dict[str, Callable[[Random], Json]] = {
    "placement": placement_cases.case,
    "replicas": lambda rng: ours.with_replicas(placement_cases.case(rng), rng.randint(1, 6)),
    "preemption": lambda rng: placement_cases.case(rng, preemption=True),
    "admission": admission_cases.case,
    "objects": object_cases.case,
    "claims": claim_cases.case,
    "podsecurity": podsecurity_cases.case,
    "dra": dra_cases.case,
    "cel": cel_cases.case,
    "policies": policy_cases.case,
    "numa": numa_cases.case,
    "decode": decode_cases.case,
}


class NotHere(Exception):
    """The referee cannot play this family on this machine; the text says why."""


class Outcome:
    def __init__(self, family: str, seed: str) -> None:
        self.family, self.seed = family, seed
        self.cases = self.unknown = 0
        self.worded = 0
        """Cases in which both sides fail, with other texts."""
        self.welcome = 0.0
        self.disagreements: list[tuple[str, Json, list[str]]] = []
        self.heard = messages.Heard(family)

    def line(self) -> str:
        """The last line of a run, for scripts."""
        return (
            f"conformance {self.family}: {self.cases} cases,"
            f" {len(self.disagreements)} disagreements, {self.unknown} unknown, seed {self.seed}"
        )


def made(family: str, seed: str, number: int) -> Json:
    """Case ``number`` of a seed: the same for every machine and every number of cases."""
    return GENERATORS[family](Random(f"{family} {seed} {number}"))


def differs(referee: Referee, family: str, case: Json) -> list[str]:
    """Differences of one case; [] also where the referee cannot read it (shrinking makes such)."""
    try:
        answer = referee.ask(compare.QUESTIONS[family], case)
    except RuntimeError:
        return []
    playable(answer)
    return judged(family, case, answer)


def judged(family: str, case: Json, answer: Json) -> list[str]:
    """Differences; a crash of ours is one, a case that our decoder refuses is not."""
    try:
        return compare.COMPARE[family](case, answer)
    except msgspec.ValidationError:
        return []
    except Exception:
        return ["ours crashed: " + traceback.format_exc(limit=-2).strip().replace("\n", " | ")]


def playable(answer: Json) -> None:
    """Raises NotHere where the referee says that it cannot answer such a question here."""
    skipped = numa.skipped(answer)
    if skipped:
        raise NotHere(skipped)


def run(referee: Referee, family: str, cases: int, seed: str, *, stop_after: int = 1000) -> Outcome:
    if family == "numa" and not binaries.kubernetes().startswith(binaries.PINNED[:4]):
        raise NotHere(f"the referee asks the kubelet of {binaries.PINNED} alone")
    outcome = Outcome(family, seed)
    for begin in range(0, cases, BATCH):
        batch = [made(family, seed, number) for number in range(begin, min(begin + BATCH, cases))]
        answers = referee.ask_all(compare.QUESTIONS[family], batch)
        for number, (case, answer) in enumerate(zip(batch, answers, strict=True), start=begin):
            playable(answer)
            outcome.cases += 1
            outcome.heard.listen(answer)
            found = judged(family, case, answer)
            if found == ["unknown"]:
                outcome.unknown += 1
            elif found and all(one.startswith(compare.WORDS) for one in found):
                outcome.worded += 1
            elif found:
                outcome.disagreements.append((f"{seed} {number}", case, found))
            outcome.welcome += compare.WELCOME[family](answer)
        if len(outcome.disagreements) >= stop_after:
            break
    return outcome


def minimal(referee: Referee, family: str, case: Json) -> Json:
    """Shrinks towards the same kind of difference."""
    first = kind_of(differs(referee, family, case))

    def same(smaller: Json) -> bool:
        found = differs(referee, family, smaller)
        return bool(found) and kind_of(found) == first

    return shrink(case, same)


def kind_of(found: list[str]) -> str:
    """The first line without what varies from case to case: numbers, and names with digits."""
    if not found:
        return ""
    if found[0].startswith("helps:"):
        return "helps: not with us" if found[0].endswith("ours None") else "helps: only with us"
    if found[0].startswith("victims:"):
        return "victims"
    return re.sub(r"[-+\w./]*\d[\w./]*|'default/\w+'", "_", found[0])


def as_yaml(family: str, origin: str, found: list[str], case: Json) -> str:
    body: Any = {"family": family, "origin": origin, "said": found, "case": case}
    return yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=120)


def stored() -> Iterator[tuple[str, str, Json]]:
    """(file name, family, case) of every regression."""
    for path in sorted(REGRESSIONS.glob("*.yaml")):
        body = yaml.safe_load(path.read_text(encoding="utf-8"))
        yield path.stem, body["family"], body["case"]


def report(referee: Referee, outcome: Outcome, *, most: int, store: bool) -> None:
    """Prints the first disagreements, shrunk; ``store`` keeps them as regressions."""
    kinds: dict[str, list[tuple[str, Json]]] = {}
    for origin, case, found in outcome.disagreements:
        kinds.setdefault(kind_of(found), []).append((origin, case))
    for kind, same in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"{len(same):6} {kind}", file=sys.stderr)
    for origin, case in [same[0] for same in kinds.values()][:most]:
        small = minimal(referee, outcome.family, case)
        text = as_yaml(outcome.family, origin, differs(referee, outcome.family, small), small)
        print("---\n" + text)
        if store:
            REGRESSIONS.mkdir(exist_ok=True)
            name = f"{outcome.family}-{origin.replace(' ', '-')}.yaml"
            (REGRESSIONS / name).write_text(text, encoding="utf-8")
    for pattern in outcome.heard.missing:
        print(f"never occurred: {pattern}", file=sys.stderr)
    if outcome.worded:
        print(f"{outcome.worded} cases fail on both sides, in other words", file=sys.stderr)
    share = 100 * outcome.welcome / max(1, outcome.cases)
    print(
        f"{share:.0f} % of the cases are feasible, admitted or solved by preemption",
        file=sys.stderr,
    )
