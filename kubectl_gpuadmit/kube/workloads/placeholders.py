"""Values that a template engine should have replaced before the manifest was applied.

Knows the marks of envsubst and shells (``$N``, ``${N:-1}``), Helm, Jinja and Argo (``{{ … }}``) and
of documentation (``<name>``). It reads no environment and replaces nothing.
"""

from __future__ import annotations

import re

_MARK = re.compile(
    r"\$\{[A-Za-z_][^}]*\}|\$\([A-Za-z_][^)]*\)|\$[A-Za-z_][A-Za-z0-9_]*|\{\{.*?\}\}|<[A-Za-z][^<>]*>"
)
_SHELL_DEFAULT = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*:?[-=]([^}]*)\}")


def unresolved(value: object) -> str:
    """The first mark in ``value``, '' if it holds none or is no text."""
    if not isinstance(value, str) or not ("$" in value or "{" in value or "<" in value):
        return ""
    found = _MARK.search(value)
    return found[0] if found else ""


def shell_default(value: str) -> str:
    """``1`` of ``${GPU_LIMIT:-1}``: what a shell would put there if nobody sets the variable."""
    found = _SHELL_DEFAULT.fullmatch(value.strip())
    return found[1] if found else ""
