"""Machines as their makers build them, by GPU product and count; used where nobody has looked.

The data is ``shapes.json``, each entry with its source. A match is an assumption and is named as
such: whoever runs the machine may have another board, a VM may show a part of it. NUMA is filled in
only where the name of the whole machine is known: it is the server's maker, and its firmware's
settings, that decide about it.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Literal

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.topology.model import NO_NVLINK, Gpu, Link


class Shape(Struct, frozen=True):
    """One machine. ``product`` and ``machine`` are regular expressions over ``plain`` names."""

    name: str
    product: str
    source: str
    machine: str = ""
    gpus: int | None = None
    """None for any number."""
    nvlinks: int | None = None
    """Between each two GPUs."""
    generation: int | None = None
    matrix: tuple[str, ...] = ()
    """Rows as ``nvidia-smi topo -m`` prints them, where pairs differ."""
    numa: tuple[int, ...] = ()
    nvlink: Literal["fixed", "none", "optional"] = "fixed"
    """``optional``: bridges may be fitted or not, so nothing is known."""
    rack: int | None = None
    """Nodes in one NVLink domain, for trays of a rack."""

    @property
    def assumption(self) -> str:
        what = [f"{self.name}: "]
        if self.nvlink == "none":
            what.append("no NVLink")
        elif self.matrix or self.nvlinks:
            what.append("NVLink as its maker builds it")
        if self.numa:
            what.append(" and NUMA as its maker sets it")
        return "".join(what)

    def links(self, count: int) -> tuple[Link, ...] | None:
        """What joins ``count`` GPUs; None where it is not known."""
        return _links(self, count)


@cache
def _links(shape: Shape, count: int) -> tuple[Link, ...] | None:
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    if shape.nvlink == "none":
        return tuple(Link(a, b, NO_NVLINK) for a, b in pairs)
    if shape.matrix:
        rows = [row.split() for row in shape.matrix]
        return tuple(_link(a, b, rows[a][b]) for a, b in pairs)
    if shape.nvlinks:
        return tuple(_link(a, b, f"NV{shape.nvlinks}") for a, b in pairs)
    return None


def _link(a: int, b: int, cell: str) -> Link:
    lanes = int(cell[2:]) if cell.startswith("NV") else 0
    return Link(a, b, cell, lanes, lanes or None)


class _File(Struct):
    shapes: tuple[Shape, ...]


@cache
def shapes() -> tuple[Shape, ...]:
    """All of them; the first that matches holds."""
    raw = resources.files("kubectl_gpuadmit.topology").joinpath("shapes.json").read_bytes()
    return msgspec.json.decode(raw, type=_File).shapes


def plain(name: str) -> str:
    """A product or machine name, of NVML (``NVIDIA H100 80GB HBM3``) or of GFD's label
    (``NVIDIA-H100-80GB-HBM3-SHARED``), in one form: ``h100 80gb hbm3``."""
    text = re.sub(r"[-_ ]+", " ", name.strip().lower()).removesuffix(" shared")
    text = re.sub(r" mig [0-9]+g\.[0-9]+gb.*$", "", text)
    return re.sub(r"^(?:nvidia|tesla) (?:tesla )?", "", text)


@cache
def shape(product: str, count: int, machine: str = "") -> Shape | None:
    """The machine with ``count`` GPUs of ``product``, None if none is known."""
    if count < 1:
        return None
    name, box = plain(product), plain(machine)
    for one in shapes():
        if (
            (one.gpus is None or one.gpus == count)
            and re.fullmatch(one.product, name)
            and (not one.machine or re.match(one.machine, box))
        ):
            return one
    return None


def assumed_gpus(shape: Shape, gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """The GPUs with the NUMA nodes of the shape where none is known of any of them."""
    if len(shape.numa) != len(gpus) or any(gpu.numa is not None for gpu in gpus):
        return gpus
    return tuple(
        msgspec.structs.replace(gpu, numa=node) for gpu, node in zip(gpus, shape.numa, strict=True)
    )
