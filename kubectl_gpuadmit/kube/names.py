"""What makes a name, label key or value legal, and the words in which the API refuses one.

Source: k8s.io/apimachinery v0.37.2 pkg/api/validate/content and pkg/util/validation. Each function
gives the list of complaints, empty where the value is legal; ``prefix`` variants do not exist here,
``generate_name`` stands for names that get a suffix.
"""

from __future__ import annotations

import re
from functools import lru_cache

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"

_LABEL_RE = re.compile(_LABEL)
_SUBDOMAIN_RE = re.compile(_SUBDOMAIN)
_KEY_RE = re.compile(_KEY)
_VALUE_RE = re.compile(_VALUE)
_IDENTIFIER_RE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_PORT_RE = re.compile("[-a-z0-9]+")
_LETTER_RE = re.compile("[a-z]")

Complaints = tuple[str, ...]


def _shape(message: str, pattern: str, *examples: str) -> str:
    given = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {given}regex used for validation is '{pattern}')"


_LABEL_SHAPE = _shape(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must"
    " start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_SHAPE = _shape(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_CASELESS_SHAPE = _shape(
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character",
    _SUBDOMAIN,
    "Example.com",
)
_KEY_SHAPE = _shape(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character",
    _KEY,
    "MyName",
    "my.name",
    "123-abc",
)
_VALUE_SHAPE = _shape(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character",
    _VALUE,
    "MyValue",
    "my_value",
    "12345",
)

_IDENTIFIER_SHAPE = _shape(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of"
    " alphanumeric characters or '_'",
    "[A-Za-z_][A-Za-z0-9_]*",
    "my_name",
    "MY_NAME",
    "MyName",
)


def _too_long(limit: int, unit: str = "characters") -> str:
    """Object names are measured in bytes too, but the API says characters."""
    return f"must be no more than {limit} {unit}"


def _bytes(value: str) -> int:
    return len(value.encode())


@lru_cache(maxsize=4096)
def dns_label(value: str) -> Complaints:
    """RFC 1123 label: container names, claim names, namespaces."""
    found = []
    if _bytes(value) > 63:
        found.append(_too_long(63))
    if not _LABEL_RE.fullmatch(value):
        dotted = _SUBDOMAIN_RE.fullmatch(value)
        found.append("must not contain dots" if dotted else _LABEL_SHAPE)
    return tuple(found)


@lru_cache(maxsize=4096)
def dns_subdomain(value: str) -> Complaints:
    """RFC 1123 subdomain: names of most objects."""
    found = []
    if _bytes(value) > 253:
        found.append(_too_long(253))
    if not _SUBDOMAIN_RE.fullmatch(value):
        found.append(_SUBDOMAIN_SHAPE)
    return tuple(found)


@lru_cache(maxsize=4096)
def long_name(value: str) -> Complaints:
    """The same as validation by declaration words it (validate.LongName)."""
    found = []
    if _bytes(value) > 253:
        found.append(_too_long(253, "bytes"))
    if not _SUBDOMAIN_RE.fullmatch(value):
        found.append(_SUBDOMAIN_SHAPE)
    return tuple(found)


@lru_cache(maxsize=4096)
def long_name_caseless(value: str) -> Complaints:
    """The same, capitals allowed: names of drivers (validate.LongNameCaseless)."""
    found = []
    if _bytes(value) > 253:
        found.append(_too_long(253, "bytes"))
    if not _SUBDOMAIN_RE.fullmatch(value.lower()):
        found.append(_CASELESS_SHAPE)
    return tuple(found)


def generate_name(value: str) -> Complaints:
    """metadata.generateName of a kind whose names are subdomains: a trailing dash is allowed."""
    if len(value) > 1 and value.endswith("-"):
        value = value[:-2] + "a"
    return dns_subdomain(value)


@lru_cache(maxsize=4096)
def label_key(value: str) -> Complaints:
    """Qualified name: label keys, taint keys, resource names, scheduling gates."""
    parts = value.split("/")
    if len(parts) > 2:
        return (
            f"a valid label key {_KEY_SHAPE} with an optional DNS subdomain prefix and '/'"
            " (e.g. 'example.com/MyName')",
        )
    found = []
    name = parts[-1]
    if len(parts) == 2:
        if not parts[0]:
            found.append("prefix part must be non-empty")
        else:
            if _bytes(parts[0]) > 253:
                found.append(f"prefix part {_too_long(253, 'bytes')}")
            if not _SUBDOMAIN_RE.fullmatch(parts[0]):
                found.append(f"prefix part {_SUBDOMAIN_SHAPE}")
    if not name:
        found.append("name part must be non-empty")
    elif _bytes(name) > 63:
        found.append(f"name part {_too_long(63, 'bytes')}")
    if not _KEY_RE.fullmatch(name):
        found.append(f"name part {_KEY_SHAPE}")
    return tuple(found)


@lru_cache(maxsize=4096)
def label_value(value: str) -> Complaints:
    """Label values, also those in selectors and tolerations."""
    found = []
    if _bytes(value) > 63:
        found.append(_too_long(63, "bytes"))
    if not _VALUE_RE.fullmatch(value):
        found.append(_VALUE_SHAPE)
    return tuple(found)


def c_identifier(value: str) -> Complaints:
    """The part of a device attribute's or capacity's name after its domain; of any length."""
    return () if _IDENTIFIER_RE.fullmatch(value) else (_IDENTIFIER_SHAPE,)


def port_name(value: str) -> Complaints:
    """containers[].ports[].name."""
    found = []
    if _bytes(value) > 15:
        found.append(_too_long(15))
    if not _PORT_RE.fullmatch(value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _LETTER_RE.search(value):
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value[:1] == "-" or value[-1:] == "-":
        found.append("must not begin or end with a hyphen")
    return tuple(found)


def variable(value: str) -> Complaints:
    """An environment variable: printable ASCII but ``=`` (IsRelaxedEnvVarName, on since 1.32)."""
    if all(" " <= letter <= "~" and letter != "=" for letter in value):
        return ()
    return (
        "a valid environment variable name must consist only of printable ASCII characters"
        " other than '='",
    )
