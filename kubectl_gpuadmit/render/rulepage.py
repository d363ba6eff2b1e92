"""A rule's or a reason code's own documentation, as ``--rule NAME`` prints it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kubectl_gpuadmit.errors import BadInput
from kubectl_gpuadmit.render.page import BOLD, DIM, Page
from kubectl_gpuadmit.render.wording import flow
from kubectl_gpuadmit.rule import Rule

if TYPE_CHECKING:
    from rich.text import Text


def rule_page(
    name: str,
    *,
    rules: Mapping[str, Rule],
    catalogue: Mapping[str, str],
    width: int = 80,
    ascii: bool = False,
) -> Text:
    """The page of a rule, or of a reason code. Raises BadInput with the nearest names otherwise."""
    page = Page(width, ascii=ascii)
    if name in rules:
        _rule(page, rules[name])
    if name in catalogue:
        page.blank()
        _reason(page, name, catalogue[name], rules)
    if name not in rules and name not in catalogue:
        known = sorted({*rules, *catalogue})
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        near = near or [k for k in known if k.startswith(name.split("/", 1)[0] + "/")][:5]
        raise BadInput(
            "unknown-rule",
            f"there is no rule or reason {name!r}",
            field="--rule",
            hint=f"did you mean {' or '.join(near)}" if near else "",
        )
    return page.text


def _rule(page: Page, rule: Rule) -> None:
    page.line((rule.name, BOLD), right=(f"rule · {rule.stage} · {rule.fidelity}", DIM))
    page.blank()
    for paragraph in rule.documentation.split("\n\n"):
        rows = paragraph.splitlines()
        if any(row.startswith((" ", "-", "*")) for row in rows):
            for row in rows:
                bare = row.lstrip(" ")
                page.block([(" " * (len(row) - len(bare)), "")], bare, indent=len(row) - len(bare))
        else:
            page.block([], " ".join(rows), indent=0)
        page.blank()
    page.line(
        (f"{'Level':<10}", BOLD), (f"{rule.default_level} unless the policy says otherwise", "")
    )
    needs = ", ".join(sorted(rule.needs | rule.reads)) or "nothing but the workload"
    page.block([(f"{'Needs':<10}", BOLD)], needs, indent=10)
    page.line((f"{'Settings':<10}", BOLD), ("" if rule.settings else "none", ""))
    for name, default in rule.settings.items():
        page.block([(f"  {name}: ", "")], f"{_default(default)}", indent=4)
    page.line(("Reasons", BOLD))
    for code, meaning in sorted(rule.reasons.items()):
        page.line((f"  {code}", ""))
        page.block([], meaning, indent=6)


def _default(value: object) -> str:
    if isinstance(value, tuple | frozenset | set):
        value = sorted(value, key=str) if isinstance(value, frozenset | set) else list(value)
    if isinstance(value, str | int | float | bool | list | dict | None):
        return flow(value)
    return str(value)


def _reason(page: Page, code: str, meaning: str, rules: Mapping[str, Rule]) -> None:
    owners = [rule.name for rule in rules.values() if code in rule.reasons]
    page.line((code, BOLD), right=("reason", DIM))
    page.blank()
    page.block([], meaning, indent=0)
    if owners and owners != [code]:
        page.blank()
        page.line((f"{'Rule':<10}", BOLD), (", ".join(owners), ""))
