"""What a funnel says: devices left after each thing that is asked, what was lost, what was near.

Values only; ``funnel`` works them out.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from kubectl_gpuadmit.kube.quantity import QuantityError, parse

StageName = Literal[
    "pools", "class", "selector", "nodes", "free", "untainted", "amounts", "together", "constraint"
]


class Loss(Struct, frozen=True):
    """Why devices were lost at a stage, most of them first."""

    why: str
    count: int
    example: str
    """One of them, ``driver/pool/device``."""


class Stage(Struct, frozen=True):
    """How many devices are left after one thing that is asked."""

    name: StageName
    asks: str
    """``of class gpu.nvidia.com``, ``after selector 1``, ``not in use``."""
    left: int
    losses: tuple[Loss, ...] = ()
    expression: str = ""
    """Of a selector, its text."""


class Lack(Struct, frozen=True):
    """A term of a selector that a device fails."""

    term: str
    values: tuple[tuple[str, str], ...]
    """(what it reads, the device's value); the value is '' where the device has none."""
    selector: int = -1
    """Place of the selector among the request's own, -1 for one of the class."""


class Near(Struct, frozen=True):
    """The devices that lack least."""

    device: str
    count: int
    """How many are alike."""
    lacks: tuple[Lack, ...]


class Funnel(Struct, frozen=True):
    """One request, or one alternative of it."""

    claim: str
    request: str
    """``gpu``, ``gpu/big`` for an alternative."""
    device_class: str
    needs: int
    """Devices together on one node, with the other requests that ask for the very same; 1 for
    allocationMode All."""
    everything: bool
    """allocationMode All: every device that matches on the node."""
    stages: tuple[Stage, ...]
    nearest: Near | None = None
    best_node: str = ""
    """The node with most of what is left."""
    unsure: str = ""
    """Why a selector could not be evaluated."""

    @property
    def falls(self) -> Stage | None:
        """The stage that leaves too few; None where there are enough.

        Of kinds that leave some but too few, the number is what is wrong: ``together``.
        """
        before = 0
        for stage in self.stages:
            few = stage.left < self.needs
            if stage.left == 0 or (few and stage.name in ("together", "constraint")):
                return stage
            if few and before >= self.needs and stage.name not in ("class", "selector"):
                return stage
            before = stage.left
        return None


def spelt(value: str) -> str:
    """``81559Mi`` -> ``79.65Gi (81559Mi)``: in the unit in which people ask."""
    if not value:
        return "not there"
    try:
        amount = parse(value).nano / 10**9 / 2**30
    except QuantityError:
        return value
    if value.endswith("Gi") or amount < 1 or not any(c.isalpha() for c in value):
        return value
    return f"{amount:.2f}Gi ({value})"
