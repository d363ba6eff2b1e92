"""libyaml's messages about a broken document, in words that say what to do; reads no document."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.kube.yaml_scalars import YamlError

MAX_DEPTH = 250
"""Deepest nesting read. Kubernetes allows more; whoever walks the data should not need to care."""

RENDER = "render it first: helm template, kustomize build or envsubst"
_CUT = "the document ends in the middle of a value: was the file cut?"
_ALIGN = "compare its indentation with the lines above"
_SAYINGS = {
    "found character that cannot start any token": (
        "this character cannot begin a value",
        "quote the value",
    ),
    "mapping values are not allowed": (
        "a key is not expected here",
        _ALIGN + "; quote a text that holds ': '",
    ),
    "did not find expected key": ("a key was expected here", _ALIGN),
    "did not find expected '-' indicator": ("a list element (- …) was expected here", _ALIGN),
    "could not find expected ':'": ("this line has no ':' after its key", _ALIGN),
    "block sequence entries are not allowed": ("a list element is not expected here", _ALIGN),
    "found unexpected end of stream": (_CUT, ""),
    "did not find expected node content": (
        "a value, or a closing ] or }, is missing here",
        "was the file cut?",
    ),
    "did not find expected ',' or '}'": ("a mapping in braces is not closed", "add } or ,"),
    "did not find expected ',' or ']'": ("a list in brackets is not closed", "add ] or ,"),
    "found unknown escape character": ("unknown \\ escape in double quotes", "use single quotes"),
    "exceeded maximum nesting depth": (f"nested deeper than {MAX_DEPTH} levels", ""),
    "did not find expected <document start>": (
        "kubectl reads no %YAML directive and no text before it",
        "remove the line",
    ),
    "control characters are not allowed": (
        "a control character is not allowed in YAML",
        "remove it",
    ),
}
"""How libyaml's message begins -> in other words, and what to do."""


def translated(problem: Any, raw: bytes) -> YamlError:
    """libyaml's message in words that say what to do; its own words where none are better."""
    mark = getattr(problem, "problem_mark", None) or getattr(problem, "context_mark", None)
    if mark is not None:
        at = (mark.line, mark.column)
        said = str(problem.problem or problem.context)
    else:  # a ReaderError counts bytes
        before = raw[: max(int(getattr(problem, "position", 0) or 0), 0)]
        at = (before.count(b"\n"), len(before) - before.rfind(b"\n") - 1)
        said = str(getattr(problem, "reason", problem))
    line = (raw.splitlines() or [b""])[at[0] : at[0] + 1]
    text = line[0].decode("utf-8", "replace") if line else ""
    rest = text[at[1] :]
    if rest.startswith("\t") or "\t" in text[: len(text) - len(text.lstrip())]:
        return YamlError("a tab is used where YAML needs spaces", at, "indent with spaces")
    if "{{" in text or "{{" in raw.decode("utf-8", "replace")[:100_000]:
        return YamlError(
            f"this is a template, not a manifest ({said})",
            at,
            RENDER,
        )
    for begin, (message, hint) in _SAYINGS.items():
        if said.startswith(begin):
            return YamlError(message, at, hint)
    return YamlError(said, at)
