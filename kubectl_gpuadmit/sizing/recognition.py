"""What is recognised of a pod's models, and where a policy lets them be named; recognises none."""

from __future__ import annotations

from msgspec import Struct

from kubectl_gpuadmit.sizing.engines.arguments import Given
from kubectl_gpuadmit.sizing.serving import Serving

ANNOTATIONS = ("gpu-admit.io/model", "svr.sivaro.io/model")
"""Annotations of the pod that name its model."""


class Naming(Struct, frozen=True):
    """What a policy adds: where else a pod names its model."""

    annotations: tuple[str, ...] = ANNOTATIONS
    labels: tuple[str, ...] = ()
    images: dict[str, str] = {}
    """Pattern over the whole image -> model."""


class Recognised(Struct, frozen=True, kw_only=True):
    """One engine of a pod."""

    engine: str
    """As people call it: ``vllm``, ``dynamo-sglang``, ``nim``; ``unknown`` where only the model is
    named."""
    serving: Serving
    model: str = ""
    """As it is named; '' where it is not known."""
    model_from: str = ""
    """Where: ``annotation gpu-admit.io/model``, ``args of container vllm``."""
    container: str = ""
    pointer: str = ""
    """The container inside the template."""
    gpus: int = 0
    """GPUs of the container; 0 where they come by claim."""
    given: tuple[Given, ...] = ()
    missing: tuple[str, ...] = ()
    """What was given and cannot be known, in sentences."""
    contradictions: tuple[str, ...] = ()
    """What was said twice and differently: the last one counts, as the engines have it."""
    follows: bool = False
    """It joins the engine of another pod of its group and takes that one's arguments."""

    @property
    def known(self) -> bool:
        return bool(self.model)


class Recognition(Struct, frozen=True):
    """All engines of one pod; where there is none, why, and whether it is certain that there is
    none: a Job, or nothing but programs that serve nothing."""

    found: tuple[Recognised, ...] = ()
    why: str = ""
    certain: bool = False
