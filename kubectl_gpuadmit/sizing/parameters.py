"""The plan of any model that is known, and its parameter count."""

from __future__ import annotations

from functools import lru_cache

from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.encoders import bert_plan, modernbert_plan, whisper_plan
from kubectl_gpuadmit.sizing.families import decoder_plan
from kubectl_gpuadmit.sizing.plan import NoPlan, Plan
from kubectl_gpuadmit.sizing.traits import FAMILIES, family_name

_PLANNERS = {
    "bert": bert_plan,
    "roberta": bert_plan,
    "xlm-roberta": bert_plan,
    "modernbert": modernbert_plan,
    "whisper": whisper_plan,
}

KNOWN = tuple(sorted({*_PLANNERS, *FAMILIES}))
"""``model_type`` of every family that can be counted."""

LARGEST = 1 << 24
"""Sizes of a configuration above this are a mistake or an attack, not a model."""


@lru_cache(maxsize=256)
def plan(architecture: Architecture) -> Plan:
    """The parts of a model; raises NoPlan with what is missing to know them."""
    for name in architecture.__struct_fields__:
        value = getattr(architecture, name)
        if isinstance(value, int) and not 0 <= value <= LARGEST:
            raise NoPlan(f"a sound {name} ({value} cannot be)")
    if architecture.num_hidden_layers > 1024:
        raise NoPlan(f"a sound num_hidden_layers ({architecture.num_hidden_layers} cannot be)")
    planner = _PLANNERS.get(family_name(architecture), decoder_plan)
    return planner(architecture)


def parameters(architecture: Architecture) -> int:
    """All parameters, without layers for multi-token prediction."""
    return plan(architecture).elements
