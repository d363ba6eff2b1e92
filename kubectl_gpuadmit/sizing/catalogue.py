"""Models that people really serve: architecture, parameters and where both were read; no guesses.

The data are ``models/*.json``, one entry for each architecture with the names that share it. A name
that says how a checkpoint is quantised (``-AWQ``, ``-FP8``) finds its base model, and the answer
says that the quantisation was taken from the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.named_quantization import named_quantization


class Known(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One entry. ``parameters`` is the published count, ``also`` other names of one shape."""

    name: str
    architecture: Architecture
    parameters: int
    source: str
    """Where the architecture was read."""
    parameters_source: str
    digits: int | None = None
    """Digits that the published count has, where it was published rounded (``27B``: 2)."""
    counts: Literal["all", "text", "stored"] = "all"
    """What the count is of: all but prediction layers, the text model, the whole checkpoint."""
    also: tuple[str, ...] = ()
    task: str = "generate"
    """``generate · embed · rerank · transcribe``."""
    note: str = ""


class Found(Struct, frozen=True, kw_only=True):
    """What a name led to."""

    known: Known
    architecture: Architecture
    """With the quantisation that the name says, where it says one."""
    assumed: str = ""
    """What was read into the name; empty where the entry is the model itself."""


@cache
def models() -> tuple[Known, ...]:
    """All entries, by file and place in it."""
    folder = files(__package__).joinpath("models")
    decoder = msgspec.json.Decoder(tuple[Known, ...])
    listed = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".json")),
        key=lambda entry: entry.name,
    )
    return tuple(known for entry in listed for known in decoder.decode(entry.read_bytes()))


def find(name: str) -> Found | None:
    """The entry of a model, by its name on the Hub with or without owner, in any case.

    A path's last part counts (``/models/Qwen3-8B``). None where nobody knows it.
    """
    wanted = _plain(name)
    if not wanted:
        return None
    if known := _by_name().get(wanted):
        return Found(known=known, architecture=known.architecture)
    base, quantization = named_quantization(wanted)
    found = _by_name().get(base)
    if base == wanted or found is None:
        return None
    if quantization is None:
        plain = msgspec.structs.replace(found.architecture, quantization=None)
        assumed = f"{found.name} in 16 bits, as the name says"
        return Found(known=found, architecture=plain, assumed=assumed)
    if (quantization.bits or 8) < 8 and _is_hybrid(found.architecture):
        return None  # every publisher leaves other parts of linear attention as they are
    architecture = msgspec.structs.replace(found.architecture, quantization=quantization)
    return Found(
        known=found,
        architecture=architecture,
        assumed=f"{found.name} quantised with {quantization.method}, as the name says",
    )


def suggestions(name: str) -> tuple[str, ...]:
    """Names of the catalogue that resemble an unknown one."""
    from difflib import get_close_matches

    by_name = _by_name()
    close = get_close_matches(_plain(name), list(by_name), n=3, cutoff=0.6)
    return tuple(dict.fromkeys(by_name[match].name for match in close))


@cache
def _by_name() -> Mapping[str, Known]:
    """Plain names, the full ones first: an owner's own name outranks a copy's."""
    names: dict[str, Known] = {}
    for known in models():
        for full in (known.name, *known.also):
            names.setdefault(_plain(full), known)
    return names


def _is_hybrid(architecture: Architecture) -> bool:
    kinds = {"linear_attention", "mamba", "conv"}
    return bool(architecture.full_attention_interval) or bool(kinds & set(architecture.layer_types))


def _plain(name: str) -> str:
    return name.strip().rstrip("/").rpartition("/")[2].lower()
