"""The labels of a namespace that set Pod Security levels, read as the API server reads them.

What the API server's own configuration sets for namespaces without labels, and whom it exempts,
is not known from objects: without labels a namespace is taken as privileged, the default.

Source: k8s.io/pod-security-admission v0.37.2 api/{helpers,constants}.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

PREFIX = "pod-security.kubernetes.io/"
ENFORCE = f"{PREFIX}enforce"
LEVELS = ("privileged", "baseline", "restricted")
"""From the least strict to the most."""

_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")
_MOST = 2**63 - 1


class Asked(Struct, frozen=True):
    """A level and a version; ``minor`` None is ``latest``."""

    level: str = "privileged"
    minor: int | None = None

    def __str__(self) -> str:
        version = "latest" if self.minor is None else f"v1.{self.minor}"
        return f"{self.level}:{version}"


class Labelled(Struct, frozen=True):
    """What a namespace asks of its pods. ``errors``: labels that mean nothing to the API server,
    as ``(label, value, complaint)``; it then enforces restricted, or latest."""

    enforce: Asked = Asked()
    audit: Asked = Asked()
    warn: Asked = Asked()
    errors: tuple[tuple[str, str, str], ...] = ()


def read(labels: Mapping[str, str]) -> Labelled:
    """Levels and versions by the labels. Without a warn label, warn follows a stricter enforce."""
    errors: list[tuple[str, str, str]] = []

    def level(mode: str, fallback: str) -> str:
        value = labels.get(PREFIX + mode)
        if value is None:
            return "privileged"
        if value in LEVELS:
            return value
        errors.append((PREFIX + mode, value, f"must be one of {', '.join(LEVELS)}"))
        return fallback

    def minor(mode: str) -> int | None:
        label = f"{PREFIX}{mode}-version"
        value = labels.get(label, "latest")
        match = _VERSION.fullmatch(value)
        if match and int(match[1]) <= _MOST:
            return int(match[1])
        if value != "latest":
            errors.append((label, value, 'must be "latest" or "v1.x"'))
        return None

    enforce = Asked(level("enforce", "restricted"), minor("enforce"))
    audit = Asked(level("audit", "privileged"), minor("audit"))
    warn = Asked(level("warn", "privileged"), minor("warn"))
    stricter = LEVELS.index(enforce.level) > LEVELS.index(warn.level)
    if PREFIX + "warn" not in labels and labels.get(ENFORCE) in LEVELS and stricter:
        named = f"{PREFIX}warn-version" in labels
        warn = Asked(enforce.level, warn.minor if named else enforce.minor)
    return Labelled(enforce, audit, warn, tuple(errors))
