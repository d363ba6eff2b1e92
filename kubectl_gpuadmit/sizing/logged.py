"""A start that a log tells of beside our estimate of the same start; reads no log."""

from __future__ import annotations

from msgspec import Struct, structs

from kubectl_gpuadmit.sizing.amount import Range
from kubectl_gpuadmit.sizing.constants import GIB, MIB, RESERVED
from kubectl_gpuadmit.sizing.envelope import Envelope
from kubectl_gpuadmit.sizing.products import Product
from kubectl_gpuadmit.sizing.registry import NONE, look_up
from kubectl_gpuadmit.sizing.serving import Serving
from kubectl_gpuadmit.sizing.startlog import StartLog
from kubectl_gpuadmit.sizing.trial import Asked, Trial, trial_of


class Compared(Struct, frozen=True):
    """One figure; GiB, or tokens."""

    what: str
    theirs: float
    ours: float
    error: float
    """Ours beyond theirs, as a share of theirs."""


def started(
    log: StartLog, file: str, stated: Serving, *, model: Trial | None, product: Product | None
) -> Asked:
    """What was started: what is stated counts before what the log says. It is a Trial where the
    model is known, by ``model`` or by the name in the log."""
    told = {
        field: value
        for field in stated.__struct_fields__
        if (value := getattr(stated, field)) not in (None, "", ())
    }
    found: Asked = model or _named(log, file)
    return structs.replace(
        found,
        serving=structs.replace(log.serving, **told),
        product=product or _product(log),
    )


def _named(log: StartLog, file: str) -> Asked:
    facts = look_up(NONE, log.model) if log.model else ""
    found = None if isinstance(facts, str) else trial_of(facts)
    if found is None:
        return Asked(model=log.model, source=file)
    return structs.replace(found, model=log.model, source=f"{file}, {found.source}")


def _product(log: StartLog) -> Product | None:
    return (
        None if log.total is None else Product("", round(log.total / MIB / (1 - RESERVED.likely)))
    )


def compared(log: StartLog, found: Envelope | None) -> tuple[Compared, ...]:
    """The figures that both have."""
    if found is None:
        return ()
    tokens = None if log.tokens is None else float(log.tokens)
    pairs: tuple[tuple[str, float | None, Range | None, int], ...] = (
        ("weights", log.weights, found.weights, GIB),
        ("activations", log.activations, found.activations, GIB),
        ("cache", log.cache, found.kv_cache, GIB),
        ("tokens", tokens, found.kv_tokens, 1),
    )
    return tuple(
        Compared(
            what,
            round(theirs / unit, 2),
            round(ours.likely / unit, 2),
            ours.likely / theirs - 1,
        )
        for what, theirs, ours, unit in pairs
        if theirs and ours is not None
    )
