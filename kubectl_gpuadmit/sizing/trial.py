"""What ``fit`` tries: a model, an engine's arguments and a GPU, put to the envelope together."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, structs

from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.checkpoint import Checkpoint
from kubectl_gpuadmit.sizing.envelope import Envelope, Want, envelope
from kubectl_gpuadmit.sizing.products import Product
from kubectl_gpuadmit.sizing.registry import Facts
from kubectl_gpuadmit.sizing.serving import Serving


class Asked(Struct, frozen=True, kw_only=True):
    """What was asked about, whether or not the model is known."""

    model: str
    source: str
    """Where its architecture was read."""
    serving: Serving = Serving()
    product: Product | None = None
    assumed: tuple[str, ...] = ()
    """What was read into the model's name."""

    @property
    def engine(self) -> str:
        return f"{self.serving.engine} {self.serving.version}".strip()


class Trial(Asked, frozen=True, kw_only=True):
    """One start that can be tried. ``product`` None: of the GPU nothing is known."""

    architecture: Architecture
    checkpoint: Checkpoint | None = None
    want: Want = Want()

    def served(self, **arguments: Any) -> Trial:
        """The same with other arguments of the engine."""
        return structs.replace(self, serving=structs.replace(self.serving, **arguments))

    def envelope(self) -> Envelope:
        """What comes of it."""
        return envelope(
            self.architecture,
            self.serving,
            device_mib=self.product.mib if self.product else None,
            product=self.product.name if self.product else "",
            checkpoint=self.checkpoint,
            want=self.want,
        )


def trial_of(facts: Facts) -> Trial | None:
    """A trial of a model under its engine's defaults; None where its architecture is not known."""
    if facts.architecture is None:
        return None
    return Trial(
        model=facts.name,
        source=facts.source,
        assumed=facts.assumed,
        architecture=facts.architecture,
        checkpoint=facts.checkpoint,
    )
