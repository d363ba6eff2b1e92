"""What each speaker's texts, old and new, are read as; every text in the tables, whole."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_gpuadmit.cli.catalogue import catalogue
from kubectl_gpuadmit.diagnosis import reading
from kubectl_gpuadmit.diagnosis.cause import Diagnosis
from kubectl_gpuadmit.diagnosis.node_reasons import reason_of
from kubectl_gpuadmit.diagnosis.reading import read
from kubectl_gpuadmit.placement import filters

HERE = Path(__file__).parent
TABLES = sorted(HERE.glob("*.yaml"))
CODES = catalogue()


def rows() -> Iterator[Any]:
    for table in TABLES:
        for number, row in enumerate(yaml.safe_load(table.read_text("utf-8"))):
            yield pytest.param(row, id=f"{table.stem}-{number}-{row['version']}")


def plain(diagnosis: Diagnosis, row: dict[str, Any]) -> dict[str, Any]:
    """The diagnosis in the form of a table's row."""
    causes = []
    for cause in diagnosis.causes:
        said: dict[str, Any] = {
            "reason": cause.reason,
            "who": cause.who,
            "detail": cause.detail,
            "next": cause.next,
        }
        if cause.evidence:
            said["evidence"] = [[e.subject, e.what, e.observed, e.wanted] for e in cause.evidence]
        causes.append(said)
    made = {"version": row["version"], "text": row["text"], "causes": causes}
    if diagnosis.not_understood:
        made["notUnderstood"] = list(diagnosis.not_understood)
    return made


@pytest.mark.parametrize("row", [*rows()])
def test_a_text_is_read_as_its_table_says(row: dict[str, Any]) -> None:
    assert plain(read(row["text"]), row) == row


@pytest.mark.parametrize("row", [*rows()])
def test_every_reason_of_the_tables_is_catalogued(row: dict[str, Any]) -> None:
    assert {cause["reason"] for cause in row["causes"]} <= set(CODES)


def test_every_why_code_is_reached_by_some_text() -> None:
    reached = {c["reason"] for param in rows() for c in param.values[0]["causes"]}
    assert {code for code in CODES if code.startswith("why/")} - reached == set()


def test_every_reason_that_the_engine_gives_a_node_is_read_back() -> None:
    texts = {
        text
        for module in pkgutil.iter_modules(filters.__path__)
        for name, text in vars(import_module(f"{filters.__name__}.{module.name}")).items()
        if name.startswith("REASON") and isinstance(text, str)
    }
    assert len(texts) > 10
    unread = {text for text in texts if reason_of("".join(text.split())) is None}
    assert {text for text in unread if "node(s)" in text} == set()


def test_every_speaker_has_a_table() -> None:
    speakers = {speaker.__module__.rpartition(".")[2] for speaker in reading.SPEAKERS}
    speakers -= {"cause"}  # what ``table`` makes bears the name of its maker
    assert speakers <= {table.stem for table in TABLES}


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (
            "Cannot evict pod as it would violate the pod's disruption budget",
            "why/disruption-budget",
        ),
        (
            "the server has received too many requests and has asked us to try again later",
            "why/throttled",
        ),
    ],
)
def test_a_429_is_a_budget_on_an_eviction_and_throttling_elsewhere(other: str, reason: str) -> None:
    causes = read(f"Error from server (TooManyRequests): {other}").causes
    assert [cause.reason for cause in causes][:1] == [reason]
