"""The functions of CEL in Kubernetes, one module for each library; ``table`` joins them."""

from __future__ import annotations

from functools import cache

from kubectl_gpuadmit.cel.functions import Overload, Table
from kubectl_gpuadmit.cel.library import (
    collections,
    formats,
    network,
    quantities,
    standard,
    strings,
)


@cache
def everything() -> tuple[Overload, ...]:
    return (
        *standard.OVERLOADS,
        *strings.OVERLOADS,
        *collections.OVERLOADS,
        *quantities.OVERLOADS,
        *network.OVERLOADS,
        *formats.OVERLOADS,
    )


@cache
def table() -> Table:
    """All of them. An overload tells by ``since`` in which versions of Kubernetes it is there."""
    return Table(everything())
