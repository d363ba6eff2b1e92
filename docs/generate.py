"""Writes the generated parts of the documentation: README transcripts, rules and reason codes.

`python -m docs.generate` writes them; `tests/test_docs.py` says which of them are not up to date. A
```console block holds commands (`$ …`) and what they print; `$ echo $?` prints the last exit code.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from kubectl_gpuadmit import rules
from kubectl_gpuadmit.agent import manifests
from kubectl_gpuadmit.cli.catalogue import catalogue, found_by_judging
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.policy.schema import policy_schema, setting_key
from kubectl_gpuadmit.rule import REGISTRY, Rule

ROOT = Path(__file__).parent.parent
WITH_TRANSCRIPTS = (
    "README.md",
    "examples/README.md",
    "docs/numa.md",
    "docs/dra.md",
    "docs/isolation.md",
    "docs/models.md",
    "docs/runbook.md",
    "docs/sizing.md",
    "docs/snapshots.md",
    "docs/why.md",
)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"<!-- rules -->\n.*?<!-- /rules -->", re.DOTALL)
assert rules.__all__, "importing the package registers every rule"

GENERATED = "<!-- written by `make docs` -->\n"
PROGRAM = "import sys; from kubectl_gpuadmit.cli.main import main; sys.exit(main())"
SECONDS = re.compile(r"\b\d+(\.\d+)? m?s$", re.MULTILINE)
RESTS = re.compile(r"^Rests on .*(?:\n {10}\S.*)*", re.MULTILINE)
AGE = re.compile(r"\b[\d,]+ \w+ old\b")


def run(command: str, there: Path) -> tuple[str, int]:
    """What one `kubectl gpu-admit …` prints at 80 columns without colour, and its exit code."""
    words = [
        name
        for word in shlex.split(command)
        for name in (sorted(map(_shown, ROOT.glob(word))) if "*" in word else [word])
    ]
    if words[:2] != ["kubectl", "gpu-admit"]:
        raise ValueError(f"a transcript may only call kubectl gpu-admit: {command}")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words[2:]],
        cwd=there,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "80", "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return "\n".join(lines).strip("\n"), done.returncode


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def transcript(block: str) -> str:
    """The block with every command's output as it is now.

    The commands see this project in a folder of their own: what they write there goes with it.
    """
    code = 0
    parts = []
    with tempfile.TemporaryDirectory() as there:
        for entry in ROOT.iterdir():
            if not entry.name.startswith("."):
                Path(there, entry.name).symlink_to(entry)
        for line in block.splitlines():
            if not line.startswith("$ "):
                continue
            if line == "$ echo $?":
                output = str(code)
            else:
                output, code = run(line[2:], Path(there))
            parts.append(f"{line}\n{output}\n" if output else f"{line}\n")
    return "".join(parts)


def comparable(text: str) -> str:
    """A transcript without what the clock says: how long the run took, how old the snapshot is."""
    text = RESTS.sub(lambda m: AGE.sub("… old", " ".join(m[0].split())), text)
    return SECONDS.sub("… s", text)


def with_transcripts(text: str) -> str:
    return CONSOLE.sub(lambda m: f"```console\n{transcript(m[1])}```", text)


def reasons_page() -> str:
    """Every reason code with its meaning, by family."""
    lines = [GENERATED, "# Reason codes\n"]
    lines.append(
        "A finding's `reason` is stable: match on it, in CI and in the policy's `exceptions`.\n"
    )
    family = ""
    by_rule = {code: name for name, rule in REGISTRY.items() for code in rule.reasons}
    for code, meaning in catalogue().items():
        if code.split("/")[0] != family:
            family = code.split("/")[0]
            lines.append(f"## {family}\n")
        origin = f" (rule {by_rule[code]})" if code in by_rule else ""
        lines.append(f"**{code}**{origin}: {_sentence(meaning)}\n")
    return "\n".join(lines)


def rules_page() -> str:
    """Every rule's own documentation, settings and reasons."""
    lines = [GENERATED, "# Rules\n"]
    lines.append(
        "Levels come from the policy; the one given here holds where the policy says nothing.\n"
    )
    for name, rule in sorted(REGISTRY.items()):
        lines.append(f"## {name}\n")
        lines.append(f"Default level `{rule.default_level}` · {rule.fidelity} · {rule.stage}\n")
        lines.append(rule.documentation + "\n")
        if rule.settings:
            lines += ["| setting | default |", "|---|---|", *_settings(rule), ""]
        lines.append("Reasons: " + ", ".join(f"`{code}`" for code in sorted(rule.reasons)) + "\n")
    return "\n".join(lines)


def _settings(rule: Rule) -> Iterator[str]:
    for name, default in rule.settings.items():
        match default:
            case dt.timedelta():
                text = times.spell(default)
            case tuple() | list() | Mapping():
                text = ", ".join(default) or "none"
            case bool():
                text = str(default).lower()
            case _:
                text = f"{default:g}" if isinstance(default, float) else str(default) or "none"
        yield f"| `{setting_key(name)}` | {text} |"


def policy_schema_text() -> str:
    """The JSON Schema of policy files, for editors."""
    made = policy_schema(REGISTRY, found_by_judging())
    return json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def rules_table() -> str:
    """README's table: one line a rule."""
    rows = [
        f"| {name} | {_first_sentence(rule.documentation)} |"
        for name, rule in sorted(REGISTRY.items())
    ]
    return "\n".join(["<!-- rules -->", "| rule | says |", "|---|---|", *rows, "<!-- /rules -->"])


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return _sentence(re.split(r"(?<=[.!?])\s", paragraph, maxsplit=1)[0])


def _sentence(text: str) -> str:
    text = " ".join(text.split()).replace("|", "\\|")
    return text if text.endswith((".", "!", "?", "`")) else text + "."


def pages() -> dict[str, str]:
    """Path from the root -> the text that it should have."""
    found = {
        "docs/reasons.md": reasons_page(),
        "docs/rules.md": rules_page(),
        "kubectl_gpuadmit/schema/policy-v1.json": policy_schema_text(),
    }
    for name, objects in manifests.files().items():
        found[f"deploy/agent/{name}"] = f"# written by `make docs`\n{manifests.text(objects)}"
    for name in WITH_TRANSCRIPTS:
        text = (ROOT / name).read_text()
        found[name] = with_transcripts(TABLE.sub(lambda _: rules_table(), text))
    return found


def main() -> None:
    for name, text in pages().items():
        path = ROOT / name
        if not path.exists() or comparable(path.read_text()) != comparable(text):
            path.write_text(text)
            print(f"wrote {name}")


if __name__ == "__main__":
    main()
