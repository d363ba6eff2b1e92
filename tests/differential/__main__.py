"""``python -m tests.differential --family FAMILY --cases N --seed S``."""

from __future__ import annotations

import argparse
import secrets
import sys

from tests.controlplane.referee_client import Referee
from tests.differential import conformance


def main() -> int:
    """0 where nothing disagrees, 1 else, 3 where it cannot be run. The last line is for scripts."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--family", choices=sorted(conformance.GENERATORS), required=True)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", default="")
    parser.add_argument("--show", type=int, default=5, help="disagreements to shrink and print")
    parser.add_argument(
        "--stop-after", type=int, default=1000, help="disagreements after which to stop"
    )
    parser.add_argument("--store", action="store_true", help="keep the shown ones as regressions")
    given = parser.parse_args()
    seed = given.seed or secrets.token_hex(4)
    with Referee() as referee:
        try:
            outcome = conformance.run(
                referee, given.family, given.cases, seed, stop_after=given.stop_after
            )
        except conformance.NotHere as problem:
            print(f"conformance {given.family}: not run here: {problem}")
            return 3
        conformance.report(referee, outcome, most=given.show, store=given.store)
    print(outcome.line())
    return 1 if outcome.disagreements else 0


sys.exit(main())
