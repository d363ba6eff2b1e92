"""Finds the corpus of real inputs, which is not part of the project.

Looked for in ``$GPU_ADMIT_CORPUS``, then in ``shared/corpus`` beside the repository or one folder
above. Tests over it carry ``needs_corpus``, and are skipped, with the reason, where it is absent.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent


class Item(NamedTuple):
    """One file of the corpus and its row of ``index.tsv``."""

    path: Path
    expected: str
    notes: str
    row: dict[str, str]


def corpus() -> Path | None:
    """The corpus folder, or None."""
    named = os.environ.get("GPU_ADMIT_CORPUS")
    places = [Path(named)] if named else []
    places += [above / "shared" / "corpus" for above in (ROOT.parent, ROOT.parent.parent)]
    return next((place for place in places if (place / "README.md").is_file()), None)


def items(folder: str) -> list[Item]:
    """Every file of one folder of the corpus, by name; none where the corpus is absent."""
    place = corpus()
    if place is None:
        return []
    with (place / folder / "index.tsv").open(newline="", encoding="utf-8") as stream:
        rows = {row["file"]: row for row in csv.DictReader(stream, delimiter="\t")}
    files = sorted(p for p in (place / folder).iterdir() if p.name != "index.tsv")
    return [
        Item(p, row.get("expected", ""), row.get("notes", ""), row)
        for p in files
        for row in [rows.get(p.name, {})]
    ]


needs_corpus = pytest.mark.skipif(
    corpus() is None, reason="the corpus of real inputs is not here: set GPU_ADMIT_CORPUS"
)
