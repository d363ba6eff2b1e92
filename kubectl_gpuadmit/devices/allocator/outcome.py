"""How an attempt to allocate can end other than well or badly: what aborts it, what stays open."""

from __future__ import annotations

from typing import NamedTuple

from kubectl_gpuadmit.devices.model import Device


class FailedSelector(NamedTuple):
    """A CEL selector that fails on a device."""

    request: str
    device_class: str
    """Whose selector it is; '' for one of the request's own."""
    number: int
    """From 0."""
    expression: str
    device: Device
    error: str
    """Kubernetes' text."""


class Fatal(Exception):
    """Something in a claim, class or pool is wrong: the scheduler gives the whole attempt up.

    ``str()`` is the scheduler's own text; ``general`` is the same without the device at which it
    happened, for many nodes have others of the same kind.
    """

    def __init__(
        self, text: str, *, general: str = "", selector: FailedSelector | None = None
    ) -> None:
        super().__init__(text)
        self.general = general or text
        self.selector = selector


class NodeRefused(Exception):
    """This node cannot serve the claims; others may. ``str()`` is the scheduler's own text."""


class Unsure(Exception):
    """What the scheduler would do here is not known. ``str()`` says why."""
