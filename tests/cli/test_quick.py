"""The quick parser reads what typer reads, and leaves to typer whatever it is not sure of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit.cli.app import as_typer_sees_it
from kubectl_gpuadmit.cli.options import NAMES, OPTIONS, PATHS, Argument
from kubectl_gpuadmit.cli.quick import parse

FLAGS = [flag for option in OPTIONS for flag in option.flags]
WORDS = st.one_of(
    st.sampled_from(FLAGS),
    st.sampled_from(FLAGS).map(lambda flag: f"{flag}=json"),
    st.sampled_from(FLAGS).map(lambda flag: f"{flag}json"),
    st.sampled_from(
        [
            "json",
            "yaml",
            "sarif",
            "a.yaml",
            "-",
            "--",
            "7",
            "-1",
            "126",
            "0007",
            "",
            "-vA",
            "--no",
            "x y",
        ]
    ),
)


def typer_reads(args: list[str], argument: Argument) -> Mapping[str, Any] | None:
    """What typer makes of a line, None where it refuses."""
    seen: list[Mapping[str, Any]] = []

    def note(values: Mapping[str, Any]) -> int:
        seen.append(values)
        return 0

    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command()(as_typer_sees_it(note, argument))
    try:
        app(args, standalone_mode=False)
    except Exception as problem:
        assert hasattr(problem, "format_message"), problem
    return seen[0] if seen else None


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS, max_size=7), st.sampled_from([NAMES, PATHS]))
def test_what_the_quick_parser_reads_typer_reads_alike(args: list[str], argument: Argument) -> None:
    read = parse(args, argument)
    if read is not None:
        assert read == typer_reads(args, argument)


def test_an_ordinary_line_is_read_quickly() -> None:
    line = (
        "-f a.yaml -f - --snapshot=s --policy p -ojson -v -n team-a --warn-exit-code 9 b.yaml -- -c"
    )
    read = parse(line.split(), PATHS)
    assert read == typer_reads(line.split(), PATHS)
    assert read is not None
    changed = {o.name: read[o.name] for o in OPTIONS if read[o.name] != o.default}
    assert changed == {
        "files": ("a.yaml", "-"),
        "snapshot": "s",
        "policy": "p",
        "output": "json",
        "details": True,
        "namespace": "team-a",
        "warn_exit_code": 9,
    }
    assert read["paths"] == ("b.yaml", "-c")


@pytest.mark.parametrize(
    "line",
    [
        "--help",
        "-h",
        "--nonsense",
        "-o",
        "-o xml",
        "--snapshot --policy p",
        "--nodes=true",
        "-vA",
        "--warn-exit-code x",
    ],
)
def test_what_is_not_certain_is_left_to_typer(line: str) -> None:
    assert parse(line.split(), PATHS) is None
