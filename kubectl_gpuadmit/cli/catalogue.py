"""Every reason code and its meaning, gathered from the rules and the modules that yield them."""

from __future__ import annotations

import importlib
import pkgutil

import kubectl_gpuadmit
from kubectl_gpuadmit.rule import REGISTRY

_WITHOUT_REASONS = ("adapters", "cli", "render", "schema")


def catalogue() -> dict[str, str]:
    """Reason code -> its meaning in a sentence and what to do, sorted by code.

    Rules say theirs with ``@rule(reasons=…)``, other modules in ``REASONS``.
    """
    codes: dict[str, str] = {}
    for module in pkgutil.walk_packages(kubectl_gpuadmit.__path__, "kubectl_gpuadmit."):
        if module.name.split(".")[1] not in _WITHOUT_REASONS:
            loaded = importlib.import_module(module.name)
            codes |= getattr(loaded, "REASONS", {})
    for rule in REGISTRY.values():
        codes |= rule.reasons
    return dict(sorted(codes.items()))


def found_by_judging() -> dict[str, str]:
    """The codes that a verdict may have: those of a policy's levels and exceptions. What only a
    pasted text can tell (``why/…``) is none."""
    return {code: text for code, text in catalogue().items() if not code.startswith("why/")}
