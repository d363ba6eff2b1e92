"""Each report in each format against the text on file; ``--update-golden`` writes them anew."""

from __future__ import annotations

import io
import json
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from golden.verdicts import DENIED, EVIL, LONG, NEVER, REPORTS
from rich.console import Console
from rich.text import Text

from kubectl_gpuadmit.render.data import to_json, to_yaml
from kubectl_gpuadmit.render.junit import to_junit
from kubectl_gpuadmit.render.markdown import to_markdown
from kubectl_gpuadmit.render.sarif import to_sarif
from kubectl_gpuadmit.render.table import check
from kubectl_gpuadmit.render.text import explain
from kubectl_gpuadmit.render.wording import cells
from kubectl_gpuadmit.verdict import Report, Verdict

HERE = Path(__file__).parent
CATALOGUE = {
    "quota/exceeded": "The namespace's quota has less left than asked. Ask for less, or raise it."
}


def position(verdict: Verdict, pointer: str) -> tuple[int, int] | None:
    return (43, 3) if pointer == "/spec/replicas" else None


def sarif(report: Report) -> str:
    return to_sarif(report, version="0.1.0", catalogue=CATALOGUE, position=position)


def coloured(text: Text, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, force_terminal=True, color_system="standard", width=width, _environ={}).print(
        text, soft_wrap=True
    )
    return out.getvalue()


FORMATS: dict[str, Callable[[Report], str]] = {
    "explain.txt": lambda r: explain(r, position=position).plain,
    "check.txt": lambda r: check(r, seconds=0.8).plain,
    "json": to_json,
    "yaml": to_yaml,
    "sarif": sarif,
    "xml": to_junit,
    "md": to_markdown,
}
CASES = [
    (name, form)
    for name in REPORTS
    for form in FORMATS
    if name != "hostile"
    or form.endswith(".txt")  # the rest is 100,000 characters; properties hold it
]


def compare(file: str, text: str, update: bool) -> None:
    path = HERE / file
    if update:
        path.write_bytes(text.encode())
    assert text == path.read_bytes().decode(), f"{file}: differs; --update-golden writes it anew"


@pytest.mark.parametrize(("name", "form"), CASES, ids=[f"{n}.{f}" for n, f in CASES])
def test_each_report_reads_as_on_file(name: str, form: str, update_golden: bool) -> None:
    compare(f"{name}.{form}", FORMATS[form](REPORTS[name]), update_golden)


def test_colour_supports_and_does_not_carry(update_golden: bool) -> None:
    text = explain(REPORTS["denied"], position=position)
    compare("denied.colour.txt", coloured(text), update_golden)
    compare("tree.check.colour.txt", coloured(check(REPORTS["tree"])), update_golden)


def test_details_unfold_nodes_and_sources(update_golden: bool) -> None:
    compare("denied.details.txt", explain(REPORTS["denied"], details=True).plain, update_golden)
    compare("never.details.txt", explain(REPORTS["never"], details=True).plain, update_golden)


def test_a_wide_terminal_gets_longer_evidence(update_golden: bool) -> None:
    compare("tree.wide.txt", check(REPORTS["tree"], width=120).plain, update_golden)


def test_a_terminal_without_unicode_gets_words(update_golden: bool) -> None:
    text = explain(REPORTS["denied"], ascii=True).plain + check(REPORTS["tree"], ascii=True).plain
    assert text.isascii()
    compare("denied.ascii.txt", text, update_golden)
    assert explain(REPORTS["hostile"], ascii=True).plain.isascii()


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("details", [False, True])
def test_no_line_is_wider_than_the_terminal(name: str, width: int, details: bool) -> None:
    report = REPORTS[name]
    for text in (
        explain(report, width=width, details=details),
        check(report, width=width, details=details),
    ):
        for line in text.plain.splitlines():
            assert cells(line) <= width, line
            assert line == line.rstrip()


def strict(schema: Any) -> Any:
    """The shipped schema, but refusing every field that it does not document."""
    if isinstance(schema, dict):
        out = {key: strict(value) for key, value in schema.items()}
        if "properties" in out:
            out.setdefault("additionalProperties", False)
        return out
    return [strict(item) for item in schema] if isinstance(schema, list) else schema


SCHEMA = json.loads(
    resources.files("kubectl_gpuadmit").joinpath("schema/verdict-v1.json").read_text()
)


@pytest.mark.parametrize("name", REPORTS)
def test_json_and_yaml_are_one_document_that_the_schema_documents(name: str) -> None:
    document = json.loads(to_json(REPORTS[name]))
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    jsonschema.Draft202012Validator(strict(SCHEMA)).validate(document)
    assert yaml.safe_load(to_yaml(REPORTS[name])) == document


def undescribed(schema: Any, path: str = "") -> list[str]:
    out = []
    for name, value in schema.get("properties", {}).items():
        if "$ref" not in value and "description" not in value:
            out.append(f"{path}/{name}")
        out += undescribed(value, f"{path}/{name}") + undescribed(
            value.get("items", {}), f"{path}/{name}"
        )
    for name, value in schema.get("$defs", {}).items():
        out += undescribed(value, f"#{name}")
    return out


def test_the_schema_describes_every_field() -> None:
    assert undescribed(SCHEMA) == []


@pytest.mark.parametrize("name", REPORTS)
def test_sarif_has_the_shape_that_code_scanning_reads(name: str) -> None:
    log = json.loads(sarif(REPORTS[name]))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert {"tool", "results", "invocations", "columnKind", "originalUriBaseIds"} == set(run)
    driver = run["tool"]["driver"]
    assert driver["name"] == "kubectl-gpu-admit"
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    for rule in driver["rules"]:
        assert (
            rule["shortDescription"]["text"] and rule["help"]["text"] and rule["help"]["markdown"]
        )
    prints = []
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert physical["region"]["startLine"] >= 1
        assert physical["artifactLocation"]["uri"].isascii()
        assert not set(physical["artifactLocation"]["uri"]) & set(' "<>|\\^`{}\n\x1b')
        prints.append(result["partialFingerprints"]["gpuAdmit/v1"])
    assert len(prints) == len(set(prints))


def test_a_sarif_result_stands_at_the_field_that_it_is_about() -> None:
    results = json.loads(sarif(REPORTS["denied"]))["runs"][0]["results"]
    assert [(r["ruleId"], r["level"], r["locations"][0]["physicalLocation"]) for r in results] == [
        (
            "quota/exceeded",
            "error",
            {
                "artifactLocation": {"uri": "serving.yaml", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 43, "startColumn": 3},
            },
        ),
        (
            "quota/dead-key",
            "warning",
            {
                "artifactLocation": {"uri": "serving.yaml", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 40},
            },
        ),
    ]


def test_a_fingerprint_survives_a_moved_line() -> None:
    moved = Report(
        "",
        REPORTS["denied"].source,
        (
            Verdict(
                **{
                    **{f: getattr(DENIED, f) for f in DENIED.__struct_fields__},
                    "location": "serving.yaml:99",
                }
            ),
        ),
    )
    before, after = (
        [r["partialFingerprints"] for r in json.loads(sarif(r))["runs"][0]["results"]]
        for r in (REPORTS["denied"], moved)
    )
    assert before == after


def test_a_refusal_without_a_finding_still_gets_a_sarif_result() -> None:
    bare = Verdict(NEVER.ref, NEVER.location, 1, {}, "admitted", "never", "not-a-model")
    log = json.loads(sarif(Report("", REPORTS["denied"].source, (bare,))))
    assert [r["ruleId"] for r in log["runs"][0]["results"]] == ["placement/never"]


def test_what_is_unreadable_is_a_sarif_notification_and_no_result() -> None:
    run = json.loads(sarif(REPORTS["bad-among-good"]))["runs"][0]
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is False
    assert [
        (n["level"], n["message"]["text"])
        for n in run["invocations"][0]["toolExecutionNotifications"]
    ] == [
        ("error", "spec.containers: a tab cannot indent YAML"),
        ("warning", "Trainer bert was not judged: no known path to its pod template"),
    ]


@pytest.mark.parametrize("name", REPORTS)
def test_junit_counts_what_it_holds(name: str) -> None:
    root = ET.fromstring(to_junit(REPORTS[name]))
    assert root.tag == "testsuites"
    cases = list(root.iter("testcase"))
    held = [len(cases), *(len(list(root.iter(tag))) for tag in ("failure", "error", "skipped"))]
    for element in (root, *root.iter("testsuite")):
        said = [int(element.attrib[key]) for key in ("tests", "failures", "errors", "skipped")]
        assert said == held


def test_junit_tells_refused_from_not_judged_from_not_checked() -> None:
    root = ET.fromstring(to_junit(REPORTS["tree"]))
    outcome = {
        case.attrib["name"]: next((c.tag for c in case if c.tag != "system-out"), "passed")
        for case in root.iter("testcase")
    }
    assert outcome == {
        "team-a/deployment/embedder": "passed",
        "team-a/leaderworkerset/deepseek": "passed",
        "team-a/deployment/llama-70b": "failure",
        "research/job/finetune": "passed",
        "research/job/pretrain": "failure",
        "team-a/statefulset/embedder": "error",
        "default/pod/notebook": "passed",
        "team-a/trainer/bert": "skipped",
    }


def unsafe(text: str) -> list[str]:
    """Characters that would move a cursor, recolour a screen or turn the direction of writing."""
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\n"]


@pytest.mark.parametrize("form", [f for f in FORMATS if f not in ("md",)])
def test_hostile_values_bring_no_control_character_into_any_output(form: str) -> None:
    assert unsafe(FORMATS[form](REPORTS["hostile"])) == []


def test_hostile_values_stay_values_in_json() -> None:
    workload = json.loads(to_json(REPORTS["hostile"]))["workloads"][0]
    assert workload["ref"]["name"] == EVIL
    assert workload["findings"][0]["detail"] == f"label {EVIL} of {LONG} is refused"


def test_hostile_values_carry_no_markup_into_colour() -> None:
    for text in (explain(REPORTS["hostile"], details=True), check(REPORTS["hostile"])):
        assert "[/x]" in text.plain
        shown = coloured(text)
        escapes = {part.split("m", 1)[0] for part in shown.split("\x1b[")[1:]}
        assert escapes <= {"0", "1", "2", "31", "32", "33", "36", "1;31", "1;33"}, escapes
        assert "\x07" not in shown


def test_hostile_values_break_no_markdown_table_and_ping_nobody() -> None:
    text = to_markdown(REPORTS["hostile"])
    assert [c for c in unsafe(text) if c != "\u200c"] == []
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    for row in rows:
        assert row.replace("\\|", "").count("|") == 6, row
    text = re.sub(r"(?ms)^(```+)diff$.*?^\1$", "", text)
    outside_code = re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", text)
    assert "<b>" not in outside_code


def test_a_long_name_says_how_much_of_it_is_not_shown() -> None:
    text = explain(REPORTS["hostile"]).plain
    assert "9,920_characters" in text
    assert len(text.splitlines()) < 80
