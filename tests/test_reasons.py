"""Every reason code has one owner, one sentence and its place in the documentation."""

from __future__ import annotations

import datetime as dt
import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import kubectl_gpuadmit
from kubectl_gpuadmit import rules
from kubectl_gpuadmit.adapters.files import read_inputs
from kubectl_gpuadmit.adapters.snapshot import load_snapshot
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.kube.manifests import read_documents
from kubectl_gpuadmit.policy.load import load_policy
from kubectl_gpuadmit.rule import REGISTRY
from kubectl_gpuadmit.verdict import Report, Source

ROOT = Path(__file__).parent.parent
CODE = re.compile(r"[a-z]+(?:-[a-z]+)*/[a-z0-9]+(?:-[a-z0-9]+)*")
assert rules.__all__


@cache
def owners() -> dict[str, list[tuple[str, str]]]:
    """Reason code -> (owner, sentence) of each module or rule that catalogues it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for module in pkgutil.walk_packages(kubectl_gpuadmit.__path__, "kubectl_gpuadmit."):
        loaded = importlib.import_module(module.name)
        if getattr(loaded, "REASONS", None) is None:
            continue
        for code, text in vars(loaded)["REASONS"].items():
            found.setdefault(code, []).append((module.name, text))
    for rule in REGISTRY.values():
        for code, text in rule.reasons.items():
            found.setdefault(code, []).append((f"rule {rule.name}", text))
    return found


def shared() -> set[str]:
    """Codes that a second module takes over from the first, by the same table or the same text."""
    return {code for code, told in owners().items() if len({text for _, text in told}) > 1}


def test_every_code_means_one_thing() -> None:
    assert shared() == set()


def test_every_code_has_exactly_one_owner() -> None:
    assert {code: told for code, told in owners().items() if len(told) != 1} == {}


def test_every_code_is_spelled_as_family_and_what() -> None:
    assert [code for code in owners() if not CODE.fullmatch(code)] == []


def test_every_rules_code_is_of_the_rules_own_family() -> None:
    strange = [
        (rule.name, code)
        for rule in REGISTRY.values()
        for code in rule.reasons
        if code.split("/")[0] != rule.family
    ]
    assert strange == []


def test_every_meaning_is_a_sentence_that_may_begin_with_a_fields_name() -> None:
    odd = [
        code
        for code, told in owners().items()
        for _, text in told
        if not re.match(r"[A-Z]|[a-z]+[.A-Z]|kubectl ", text) or "\n" in text or len(text) < 20
    ]
    assert odd == []


def test_every_code_is_in_the_documentation() -> None:
    page = (ROOT / "docs/reasons.md").read_text()  # made of the same table, see test_docs
    assert [code for code in owners() if f"**{code}**" not in page] == []


def literal_codes() -> Iterator[tuple[str, str]]:
    """(module, code) of each literal that is given as a reason somewhere in the package."""
    pattern = re.compile(
        r'reason="([a-z-]+/[a-z0-9-]+)"|(?:Finding|note)\(\s*"([a-z-]+/[a-z0-9-]+)"'
    )
    for path in sorted((ROOT / "kubectl_gpuadmit").rglob("*.py")):
        for match in pattern.finditer(path.read_text()):
            yield str(path.relative_to(ROOT)), match[1] or match[2]


def test_every_code_that_is_written_in_the_source_is_catalogued() -> None:
    unknown = [(module, code) for module, code in literal_codes() if code not in owners()]
    assert unknown == []
    assert len(list(literal_codes())) > 40, "the pattern finds what it looks for"


@cache
def examples() -> Report:
    snapshot = load_snapshot(str(ROOT / "examples/cluster"))
    policy = load_policy((ROOT / "examples/policy.yaml").read_bytes(), "policy.yaml")
    documents = [
        document
        for raw, name in read_inputs([str(ROOT / "examples/workloads")])
        for document in read_documents(raw, name)
    ]
    return evaluate(
        documents,
        snapshot.cluster,
        policy,
        now=snapshot.as_of or dt.datetime.now(dt.UTC),
        source=Source("snapshot", "examples/cluster"),
    )


def test_every_code_in_the_verdicts_of_the_examples_is_catalogued() -> None:
    codes = {f.reason for v in examples().workloads for f in v.findings}
    codes |= {s.code for v in examples().workloads for n in v.nodes for s in n.shortfalls}
    codes |= {code for v in examples().workloads for code in v.blockers}
    assert codes - owners().keys() == set()
    assert len(codes) > 20


@pytest.mark.parametrize("what", ["findings", "unknowns", "mutations"])
def test_every_rule_in_the_verdicts_of_the_examples_has_a_name_that_a_policy_may_level(
    what: str,
) -> None:
    named = {item.rule for v in examples().workloads for item in getattr(v, what)} - {""}
    static = {name for name in named if name.startswith("static/")}
    places = {"placement", "manifest", "spec/pods"}
    stray = {
        name
        for name in named - static - places - REGISTRY.keys() - owners().keys()
        if not name.startswith("admission/")
    }
    assert stray == set()
