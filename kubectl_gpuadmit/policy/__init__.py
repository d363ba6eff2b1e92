"""The policy file: which rule holds where, at which level, with which settings and exceptions."""

from __future__ import annotations

from msgspec import Struct


class Policy(Struct, frozen=True):
    """Placeholder of the policy model."""
