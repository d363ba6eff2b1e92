"""CEL selectors against devices: each expression is compiled once, each answer worked out once.

An expression that names the attributes it reads is asked once for all devices with the same values
of them; 5,000 nodes of one kind have few of those.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from kubectl_gpuadmit.devices.allocator.outcome import Unsure
from kubectl_gpuadmit.devices.model import Device
from kubectl_gpuadmit.devices.values import Value, Version
from kubectl_gpuadmit.kube.versions import LATEST

if TYPE_CHECKING:
    from kubectl_gpuadmit.cel import dra as cel

_Key = tuple[object, ...]


class CelError(Exception):
    """An expression does not compile, or fails on a device. ``str()`` is Kubernetes' text."""

    def __init__(self, text: str, *, compiling: bool = False) -> None:
        super().__init__(text)
        self.compiling = compiling


class Selectors:
    """Answers whether expressions match devices, for one Kubernetes version."""

    def __init__(self, kubernetes: str = LATEST, *, shows_sharing: bool = True) -> None:
        self._kubernetes = kubernetes
        self._shows_sharing = shows_sharing
        self._last: tuple[Device, cel.Device] | None = None
        self._compiled: dict[str, cel.Selector | Exception] = {}
        self._keys: dict[str, Callable[[Device], _Key]] = {}
        self._answers: dict[tuple[str, _Key], bool | Exception] = {}
        self._derived: dict[tuple[str, _Key], Value | Exception] = {}

    def matches(self, expression: str, device: Device) -> bool:
        """Raises CelError where the scheduler would fail, Unsure where it cannot be evaluated."""
        key_of = self._keys.get(expression)
        if key_of is None:
            key_of = self._keys[expression] = _reads(expression)
        key = (expression, key_of(device))
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._asked(expression, device)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def derived(self, expression: str, device: Device) -> Value:
        """What an expression makes of a device (derivedAttributes). Raises as ``matches`` does."""
        key_of = self._keys.get(expression)
        if key_of is None:
            key_of = self._keys[expression] = _reads(expression)
        key = (expression, key_of(device))
        if key not in self._derived:
            self._derived[key] = self._made(expression, device)
        answer = self._derived[key]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _made(self, expression: str, device: Device) -> Value | Exception:
        from kubectl_gpuadmit.cel import dra as cel

        compiled = cel.derivation(expression, kubernetes=self._kubernetes)
        if isinstance(compiled, cel.Problem):
            return CelError(compiled.message, compiling=True)
        found = compiled.of(self._seen(device))
        match found:
            case cel.RuntimeProblem():
                return CelError(found.message)
            case cel.NotEvaluable():
                return Unsure(f"a derived attribute was not evaluated: {found.why}")
            case cel.Version():
                return Version(found.text)
            case bool() | int() | str():
                return found
        return tuple(Version(one.text) if isinstance(one, cel.Version) else one for one in found)

    def _asked(self, expression: str, device: Device) -> bool | Exception:
        from kubectl_gpuadmit.cel import dra as cel

        selector = self._compiled.get(expression)
        if selector is None:
            compiled = cel.compile(
                expression,
                kubernetes=self._kubernetes,
            )
            if isinstance(compiled, cel.Problem):
                selector = CelError(compiled.message, compiling=True)
            else:
                selector = compiled
            self._compiled[expression] = selector
        if isinstance(selector, Exception):
            return selector
        found = selector.matches(self._seen(device))
        match found:
            case bool():
                return found
            case cel.RuntimeProblem():
                return CelError(found.message)
        return Unsure(f"a selector was not evaluated: {found.why}")

    def _seen(self, device: Device) -> cel.Device:
        """The device as expressions see it; the last one is kept, several ask about it in a row."""
        from kubectl_gpuadmit.cel import dra as cel

        if self._last is None or self._last[0] is not device:
            attributes: dict[str, cel.Attribute] = {}
            for name, value in device.attributes.items():
                if isinstance(value, Version):
                    attributes[name] = cel.Version(value.text)
                elif isinstance(value, tuple):
                    attributes[name] = tuple(
                        cel.Version(one.text) if isinstance(one, Version) else one for one in value
                    )
                elif value is not None:
                    attributes[name] = value
            amounts = {name: held.value for name, held in device.capacity.items()}
            shared = self._shows_sharing and device.shareable
            seen = cel.Device(device.driver, attributes, amounts, allow_multiple=shared)
            self._last = (device, seen)
        return self._last[1]


_ATTRIBUTE = re.compile(
    r"""\bdevice\s*\.\s*(attributes|capacity)\s*
    \[\s*(?P<q>["'])(?P<domain>[-.\w/]+)(?P=q)\s*\]
    (?:\s*\.\s*\??(?P<id>[A-Za-z_]\w*)(?!\s*\()
      |\s*\[\s*\??(?P<q2>["'])(?P<id2>[A-Za-z_]\w*)(?P=q2)\s*\])?""",
    re.VERBOSE,
)
_DRIVER = re.compile(r"\bdevice\s*\.\s*(driver|allowMultipleAllocations)\b")
_DEVICE = re.compile(r"\bdevice\b")


def attributes_read(expression: str) -> frozenset[str] | None:
    """Full names of the attributes that the expression can depend on; None: maybe any."""
    names = _names(expression)
    return None if names is None else frozenset(n for kind, n in names if kind == "attributes")


def _names(expression: str) -> frozenset[tuple[str, str]] | None:
    """(``attributes`` or ``capacity``, full name); None where it cannot be told from the text."""
    names: set[tuple[str, str]] = set()
    rest = ""
    at = 0
    for found in _ATTRIBUTE.finditer(expression):
        name = found["id"] or found["id2"]
        if name is None:
            return None
        names.add((str(found[1]), f"{found['domain']}/{name}"))
        rest += expression[at : found.start()]
        at = found.end()
    rest += expression[at:]
    return None if _DEVICE.search(_DRIVER.sub("", rest)) else frozenset(names)


def _reads(expression: str) -> Callable[[Device], _Key]:
    """What of a device the expression can depend on, as something to compare.

    Where that cannot be told from the text, the device itself.
    """
    names = _names(expression)
    if names is None:
        return _itself
    attributes = [_parts(name) for kind, name in sorted(names) if kind == "attributes"]
    capacities = [_parts(name) for kind, name in sorted(names) if kind == "capacity"]

    def key(device: Device) -> _Key:
        raw, driver = device.raw, device.driver
        seen: list[object] = [driver, raw.allowMultipleAllocations]
        for wanted, held in ((attributes, raw.attributes), (capacities, raw.capacity)):
            for full, domain, name in wanted:
                value: object = held.get(full) if held else None
                if value is None and held and domain == driver:
                    value = held.get(name)
                seen.append(value)
        return tuple(seen)

    return key


def _parts(name: str) -> tuple[str, str, str]:
    domain, _, own = name.partition("/")
    return name, domain, own


def _itself(device: Device) -> _Key:
    return (id(device), device)
