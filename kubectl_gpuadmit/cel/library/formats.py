"""Named formats: ``format.dns1123Label().validate(text)``; uri, date and datetime are Unsure.

Source: k8s.io/apiserver v0.37.2 pkg/cel/library/format.go; k8s.io/apimachinery v0.37.2
pkg/api/validation/name.go, pkg/util/validation/validation.go (the rules and their words).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable

from kubectl_gpuadmit.cel.functions import Overload, declare
from kubectl_gpuadmit.cel.values import (
    NONE,
    Opaque,
    Opt,
    Unsure,
)

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_QUALIFIED})?"


def _regex(said: str, pattern: str, *examples: str) -> str:
    if not examples:
        return f"{said} (regex used for validation is '{pattern}')"
    shown = "".join(
        (" or " if place else " (e.g. ") + f"'{one}', " for place, one in enumerate(examples)
    )
    return f"{said}{shown}regex used for validation is '{pattern}')"


def _too_long(most: int) -> str:
    return f"must be no more than {most} bytes"


_LABEL_SAID = _regex(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
    " must start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_SAID = _regex(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
    " '.', and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_LABEL_1035_SAID = _regex(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
    " alphabetic character, and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_NAME_SAID = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character"
)
_VALUE_SAID = _regex(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character",
    _VALUE,
    "MyValue",
    "my_value",
    "12345",
)


def _checked(text: str, most: int, pattern: str, said: str) -> list[str]:
    found = []
    if len(text.encode()) > most:
        found.append(_too_long(most))
    if not re.fullmatch(pattern, text):
        found.append(said)
    return found


def _masked(text: str) -> str:
    """A prefix may end in a dash: generateName."""
    return text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text


def _label(text: str) -> list[str]:
    return _checked(text, 63, _LABEL, _LABEL_SAID)


def _subdomain(text: str) -> list[str]:
    return _checked(text, 253, _SUBDOMAIN, _SUBDOMAIN_SAID)


def _label_1035(text: str) -> list[str]:
    return _checked(text, 63, _LABEL_1035, _LABEL_1035_SAID)


def _qualified(text: str) -> list[str]:
    found: list[str] = []
    parts = text.split("/")
    name = parts[-1]
    if len(parts) > 2:
        return [
            "a qualified name "
            + _regex(_NAME_SAID, _QUALIFIED, "MyName", "my.name", "123-abc")
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if len(parts) == 2:
        if not parts[0]:
            found.append("prefix part must be non-empty")
        else:
            found += [f"prefix part {one}" for one in _subdomain(parts[0])]
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > 63:
        found.append(f"name part {_too_long(63)}")
    if not re.fullmatch(_QUALIFIED, name):
        found.append("name part " + _regex(_NAME_SAID, _QUALIFIED, "MyName", "my.name", "123-abc"))
    return found


def _label_value(text: str) -> list[str]:
    return _checked(text, 63, _VALUE, _VALUE_SAID)


_UUID = r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"


def _uuid(text: str) -> list[str]:
    if re.fullmatch(_UUID, text):
        return []
    if len(text) >= 32:
        raise Unsure("whether the text is a UUID")
    return ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    if not text:
        raise Unsure("whether the empty text is base64")
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return []


def _not_here(name: str) -> Callable[[str], list[str]]:
    def check(text: str) -> list[str]:
        raise Unsure(f"the format {name}")

    return check


_FORMATS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": _label,
    "dns1123Subdomain": _subdomain,
    "dns1035Label": _label_1035,
    "qualifiedName": _qualified,
    "dns1123LabelPrefix": lambda text: _label(_masked(text)),
    "dns1123SubdomainPrefix": lambda text: _subdomain(_masked(text)),
    "dns1035LabelPrefix": lambda text: _label_1035(_masked(text)),
    "labelValue": _label_value,
    "uri": _not_here("uri"),
    "uuid": _uuid,
    "byte": _byte,
    "date": _not_here("date"),
    "datetime": _not_here("datetime"),
}


def _validate(format: Opaque, text: str) -> Opt:
    found = _FORMATS[format.value](text)
    return Opt(found) if found else NONE


def _named(name: str) -> Opt:
    return Opt(Opaque("kubernetes.NamedFormat", name)) if name in _FORMATS else NONE


OVERLOADS: list[Overload] = [
    declare("format::validate(string): ?list<string>", _validate, since=31),
    declare("format.named(string): ?format", _named, since=31),
    *(
        declare(
            f"format.{name}(): format",
            lambda n=name: Opaque("kubernetes.NamedFormat", n),
            since=31,
        )
        for name in _FORMATS
    ),
]
