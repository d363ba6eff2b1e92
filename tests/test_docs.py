"""The documentation is true: transcripts run, and everything that has a name is described."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs import generate
from kubectl_gpuadmit import errors
from kubectl_gpuadmit.rule import REGISTRY

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "kubectl_gpuadmit"
ERRORS = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.GpuAdmitError)
}
ONE_WORD = ("forbidden", "throttled", "unauthorized", "unreachable", "unreadable", "usage")
REF = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def trees() -> Iterator[ast.Module]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield ast.parse(path.read_text())


def refs_in_code() -> set[str]:
    """Literal refs: the first argument of an error, an argument or default named ``ref``, what the
    policy's ``report`` is told, and what the command line prints in brackets.

    f-strings such as ``f"policy-unknown-{what}"`` come out as a pattern, ``policy-unknown-*``.
    """
    found: set[str] = set()
    for tree in trees():
        for node in ast.walk(tree):
            match node:
                case ast.Call():
                    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                    at = 0 if name in ERRORS else 1 if name == "report" else len(node.args)
                    given = [k.value for k in node.keywords if k.arg == "ref"]
                    for value in [*given, *node.args[at : at + 1]]:
                        found |= set(literals(value))
                case ast.arguments():
                    named = [*node.args[::-1], *node.kwonlyargs]
                    missing = [None] * (len(node.args) - len(node.defaults))
                    defaults = [*node.defaults[::-1], *missing, *node.kw_defaults]
                    for argument, default in zip(named, defaults, strict=True):
                        if argument.arg == "ref" and default is not None:
                            found |= set(literals(default))
                case ast.Constant(value=str(text)):
                    found |= {text} if re.fullmatch(r"policy(-[a-z]+)+", text) else set()
                    found |= set(re.findall(r"^error: .* \[([a-z-]+)\]$", text))
                case ast.JoinedStr():
                    said = "".join(str(p.value) for p in node.values if isinstance(p, ast.Constant))
                    found |= set(re.findall(r"^error: .* \[([a-z-]+)\]$", said))
    return {ref for ref in found if "-" in ref or ref in ONE_WORD}


def literals(value: ast.expr) -> Iterator[str]:
    match value:
        case ast.Constant(value=str(text)) if REF.fullmatch(text):
            yield text
        case ast.IfExp():
            yield from literals(value.body)
            yield from literals(value.orelse)
        case ast.JoinedStr():
            parts = [str(p.value) if isinstance(p, ast.Constant) else "*" for p in value.values]
            yield "".join(parts)


def documented_refs() -> set[str]:
    return set(re.findall(r"^\| `([a-z0-9-]+)` \|", (ROOT / "docs/errors.md").read_text(), re.M))


def covers(pattern: str, name: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".+"), name) is not None


def test_every_error_ref_is_documented() -> None:
    documented = documented_refs()
    missing = {ref for ref in refs_in_code() if not any(covers(ref, name) for name in documented)}
    assert missing == set()


def test_every_documented_error_ref_exists() -> None:
    refs = refs_in_code()
    gone = {name for name in documented_refs() if not any(covers(ref, name) for ref in refs)}
    assert gone == set()


@pytest.mark.parametrize("name", ["docs/reasons.md", "docs/rules.md"])
def test_generated_pages_are_up_to_date(name: str) -> None:
    made = generate.reasons_page() if name == "docs/reasons.md" else generate.rules_page()
    assert (ROOT / name).read_text() == made, "run: make docs"


def test_the_readme_lists_every_rule() -> None:
    assert generate.rules_table() in (ROOT / "README.md").read_text(), "run: make docs"
    assert REGISTRY, "no rule is registered"


def test_the_readme_names_every_command() -> None:
    import typer.main

    from kubectl_gpuadmit.cli.app import app

    def names(command: Any) -> Iterator[str]:
        for name, inner in getattr(command, "commands", {}).items():
            yield name
            yield from (f"{name} {rest}" for rest in names(inner))

    text = " ".join((ROOT / "README.md").read_text().split())
    assert [name for name in names(typer.main.get_command(app)) if name not in text] == []


def test_every_exit_code_is_in_the_readme() -> None:
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    rows = re.findall(r"^\| (\d) \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {int(code) for code in rows} == codes


def blocks() -> Iterator[tuple[str, int, str]]:
    for name in generate.WITH_TRANSCRIPTS:
        text = (ROOT / name).read_text()
        for found in generate.CONSOLE.finditer(text):
            yield name, text.count("\n", 0, found.start()) + 1, found[1]


@pytest.mark.parametrize(
    ("name", "line", "block"), [pytest.param(*b, id=f"{b[0]}:{b[1]}") for b in blocks()]
)
def test_transcripts_are_what_the_program_prints(name: str, line: int, block: str) -> None:
    assert generate.comparable(block) == generate.comparable(generate.transcript(block)), (
        f"{name}:{line}: run: make docs"
    )


def test_transcripts_fit_eighty_columns() -> None:
    wide = [
        f"{name}:{line}: {row}"
        for name, line, block in blocks()
        for row in block.splitlines()
        if len(row) > 80 and not row.startswith("$ ")
    ]
    assert wide == []


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")]
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []
