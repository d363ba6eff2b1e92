"""How an attempt to allocate can end other than well or badly: what aborts it, what stays open."""

from __future__ import annotations


class Fatal(Exception):
    """Something in a claim, class or pool is wrong: the scheduler gives the whole attempt up.

    ``str()`` is the scheduler's own text.
    """


class NodeRefused(Exception):
    """This node cannot serve the claims; others may. ``str()`` is the scheduler's own text."""


class Unsure(Exception):
    """What the scheduler would do here is not known. ``str()`` says why."""
