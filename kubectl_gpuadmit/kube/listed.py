"""The devices of ResourceSlices, kept once for all slices that differ only in what names a device.

5,000 nodes of one kind publish the same devices but for the UUID of each. Such texts are cut out of
the JSON and kept per slice; what is left is decoded once. A driver's own slices show which texts
these are: attributes that have other values in most of a few slices. Nothing is lost: read one by
one, devices are what a plain decoder makes of them. Says nothing about what an attribute means.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import overload

import msgspec
from msgspec import structs

from kubectl_gpuadmit.kube.dra import BasicDevice, SliceDevice

_MARK = "\ue000"
"""Stands for a cut text while a template is decoded; of private use, no driver writes it."""
_LOOKS = 8
"""So many slices of a driver show which attributes name a device."""


class Template:
    """The devices of a slice without the texts that name each. Equal for slices that look alike."""

    __slots__ = ("_hash", "_key", "_texts", "binds", "devices", "grouped", "places", "varying")

    def __init__(
        self,
        devices: Sequence[SliceDevice],
        places: tuple[tuple[int, str], ...] = (),
        key: object = None,
    ) -> None:
        self.devices = tuple(devices)
        """As written, with marks in place of the texts that were cut out."""
        self.places = places
        """(index of the device, name of the attribute) of each text that was cut out."""
        self.varying = frozenset(name for _, name in places)
        self.binds = any(one.bindingConditions is not None for one in contents(self))
        """Whether a device has binding conditions."""
        self.grouped = any(
            consumption.compatibilityGroups
            for one in contents(self)
            for consumption in one.consumesCounters or ()
        )
        """Whether a device names compatibility groups."""
        self._texts: dict[str, tuple[str, ...]] = {}
        self._key = key
        self._hash = object.__hash__(self) if key is None else hash(key)

    def texts(self, name: str) -> tuple[str, ...]:
        """The attribute's text of each device, '' where it has none; marks where it was cut out."""
        found = self._texts.get(name)
        if found is None:
            held = ((one.attributes or {}).get(name) for one in contents(self))
            found = self._texts[name] = tuple((one and one.string) or "" for one in held)
        return found

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Template) and self._key is not None and self._key == other._key

    def __hash__(self) -> int:
        return self._hash


class Listed(Sequence[SliceDevice]):
    """The devices of one slice: a template and its own texts. Each look makes them anew."""

    __slots__ = ("_own", "template")

    def __init__(self, template: Template, own: str) -> None:
        self.template = template
        self._own = own

    def own(self) -> list[str]:
        """The texts that were cut out, in the order of ``template.places``."""
        return self._own.split("\0") if self.template.places else []

    def __len__(self) -> int:
        return len(self.template.devices)

    def __iter__(self) -> Iterator[SliceDevice]:
        return iter(self._whole())

    @overload
    def __getitem__(self, index: int) -> SliceDevice: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[SliceDevice]: ...
    def __getitem__(self, index: int | slice) -> SliceDevice | Sequence[SliceDevice]:
        return self._whole()[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Listed) and self.template is other.template:
            return self._own == other._own
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def _whole(self) -> tuple[SliceDevice, ...]:
        if not self.template.places:
            return self.template.devices
        texts: dict[int, dict[str, str]] = {}
        for (index, name), text in zip(self.template.places, self.own(), strict=True):
            texts.setdefault(index, {})[name] = text
        return tuple(
            _filled(device, texts[index]) if index in texts else device
            for index, device in enumerate(self.template.devices)
        )


def _filled(device: SliceDevice, texts: Mapping[str, str]) -> SliceDevice:
    held: BasicDevice = device.basic or device
    attributes = dict(held.attributes or {})
    for name, text in texts.items():
        attributes[name] = structs.replace(attributes[name], string=text)
    if device.basic is not None:
        return structs.replace(device, basic=structs.replace(device.basic, attributes=attributes))
    return structs.replace(device, attributes=attributes)


def template_of(devices: Sequence[SliceDevice] | None) -> Template:
    """That of a slice's devices; of devices kept whole, one that is equal to no other."""
    if isinstance(devices, Listed):
        return devices.template
    return Template(devices) if devices else _NONE


def contents(template: Template) -> Iterator[BasicDevice]:
    """What the devices have, with marks in place of what was cut out."""
    return (device.basic or device for device in template.devices)


_NONE = Template((), (), b"")


def texts(devices: Sequence[SliceDevice] | None, name: str) -> Sequence[str]:
    """The text of an attribute, by its name as written, of each device; '' where it has none."""
    fixed = template_of(devices).texts(name)
    if not isinstance(devices, Listed) or name not in devices.template.varying:
        return fixed
    found = list(fixed)
    for (index, which), text in zip(devices.template.places, devices.own(), strict=True):
        if which == name:
            found[index] = text
    return found


def own_texts(devices: Sequence[SliceDevice] | None, names: Collection[str]) -> tuple[str, ...]:
    """Of these attributes, the texts that the template does not tell."""
    if not isinstance(devices, Listed) or devices.template.varying.isdisjoint(names):
        return ()
    pairs = zip(devices.template.places, devices.own(), strict=True)
    return tuple(text for (_, name), text in pairs if name in names)


class Packer:
    """Takes slices' devices as JSON and keeps what they have in common; for one file or cluster."""

    def __init__(self, decoder: msgspec.json.Decoder[tuple[SliceDevice, ...]]) -> None:
        self._decoder = decoder
        self._names: dict[str, re.Pattern[bytes] | None] = {}
        self._templates: dict[bytes, Template | None] = {}

    def learn(self, driver: str, written: Sequence[msgspec.Raw]) -> None:
        """Which attributes name a device, from JSON texts of the driver's slices."""
        step = max(len(written) // _LOOKS, 1)
        looks = []
        for one in written[::step]:
            try:
                looks.append(self._decoder.decode(one))
            except msgspec.ValidationError:
                continue
        names = _telling(looks)
        self._names[driver] = _cutter(names) if names else None

    def packed(self, driver: str, raw: bytes) -> Sequence[SliceDevice]:
        """Raises msgspec's errors."""
        cutter = self._names.get(driver)
        parts = cutter.split(raw) if cutter is not None else [raw]
        own = parts[2::3]
        del parts[2::3]
        key = b"\0".join(parts)
        template = self._templates.get(key)
        if template is None and key not in self._templates:
            template = self._templates[key] = self._template(key, parts, len(own))
        if template is None:
            return self._decoder.decode(raw)
        return Listed(template, b"\0".join(own).decode("ascii"))

    def _template(self, key: bytes, parts: list[bytes], cuts: int) -> Template | None:
        """None where a cut is no attribute's text, so that it could not be put back."""
        if not cuts:
            return Template(self._decoder.decode(b"".join(parts)), (), key)
        if _MARK.encode() in key or b"\\u" in key:
            return None
        text = b"".join(
            part + (f"{_MARK}{number // 2}".encode() if number % 2 else b"")
            for number, part in enumerate(parts)
        )
        devices = self._decoder.decode(text)
        places: dict[str, tuple[int, str]] = {}
        for index, device in enumerate(devices):
            held: BasicDevice = device.basic or device
            for name, attribute in (held.attributes or {}).items():
                if attribute.string and attribute.string.startswith(_MARK):
                    places[attribute.string] = (index, name)
        wanted = [f"{_MARK}{number}" for number in range(cuts)]
        if len(places) != cuts or any(mark not in places for mark in wanted):
            return None
        return Template(devices, tuple(places[mark] for mark in wanted), key)


def _telling(looks: Iterable[Sequence[SliceDevice]]) -> list[str]:
    """Names of attributes that have other texts in more than half of the slices."""
    seen: dict[str, set[tuple[str, ...]]] = {}
    times: dict[str, int] = {}
    for devices in looks:
        texts: dict[str, list[str]] = {}
        for device in devices:
            held: BasicDevice = device.basic or device
            for name, attribute in (held.attributes or {}).items():
                if attribute.string is not None:
                    texts.setdefault(name, []).append(attribute.string)
        for name, those in texts.items():
            seen.setdefault(name, set()).add(tuple(those))
            times[name] = times.get(name, 0) + 1
    return sorted(name for name, sets in seen.items() if len(sets) * 2 > max(times[name], 2))


def _cutter(names: Sequence[str]) -> re.Pattern[bytes]:
    """Splits into text before, head, own text, and so on. One name is searched fast."""
    listed = [re.escape(msgspec.json.encode(name)[1:-1]) for name in names]
    which = listed[0] if len(listed) == 1 else b"(?:" + b"|".join(listed) + b")"
    return re.compile(rb'("' + which + rb'":\s*\{\s*"string":\s*")([ !#-\[\]-~]*)(?=")')
