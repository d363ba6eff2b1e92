"""What pure modules may not import, and what no module may be called."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "kubectl_gpuadmit"
MODULES = sorted(PACKAGE.rglob("*.py"))
IMPURE = ("adapters", "agent", "cli")
FORBIDDEN = {
    "os", "time", "random", "socket", "subprocess", "logging", "pathlib", "tempfile", "sys",
    "urllib", "http", "threading", "asyncio", "kubernetes", "pynvml", "typer", "click",
    "slack_sdk", "requests", "aiohttp",
}  # fmt: skip
PARSING = "urllib.parse"
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}


def imported(module: Path) -> set[str]:
    """Top-level packages that a module imports, at any depth of its code. ``urllib.parse`` takes
    texts apart and opens nothing: it does not count."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names |= {node.module.split(".")[0]} - ({"urllib"} if node.module == PARSING else set())
    return names


def inside(module: Path) -> str:
    return module.relative_to(PACKAGE).parts[0]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(PACKAGE)))
def test_pure_modules_touch_nothing_outside(module: Path) -> None:
    if inside(module) in IMPURE:
        assert module.exists()
        return
    assert imported(module) & FORBIDDEN == set()


def test_rich_is_imported_where_text_is_made_and_nowhere_else() -> None:
    users = {inside(m) for m in MODULES if "rich" in imported(m)}
    assert users <= {"render", "cli"}


def test_no_module_has_a_vague_name() -> None:
    assert {m.stem for m in MODULES} & VAGUE == set()


def test_every_module_says_in_its_docstring_what_it_knows() -> None:
    silent = [
        str(m.relative_to(PACKAGE))
        for m in MODULES
        if not ast.get_docstring(ast.parse(m.read_text("utf-8")))
    ]
    assert silent == []


def test_the_map_for_contributors_names_every_part_of_the_package_and_no_other() -> None:
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text("utf-8")
    table = text[text.index("| `kubectl_gpuadmit/` | what |") : text.index("| beside it |")]
    firsts = [line.split("|")[1] for line in table.splitlines()[2:] if line.startswith("|")]
    assert sorted(re.findall(r"`([^`]+)`", " ".join(firsts))) == sorted(
        f"{part.name}/" if part.is_dir() else part.name
        for part in PACKAGE.iterdir()
        if part.name not in ("__init__.py", "__pycache__", "py.typed")
    )
