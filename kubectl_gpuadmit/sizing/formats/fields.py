"""Typed access to one JSON object of a model file; a wrong type or an absurd number is an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from kubectl_gpuadmit.errors import BadModelFile

MOST = 1 << 40
"""No count of elements in a model's configuration is larger: such a number is a broken file."""
LAYERS = 10_000
NAMES = 200_000
"""Longest list of names that is kept (modules that are not quantised)."""


class Fields:
    """One object, and where it stands in the file. Several names mean one fact in several
    spellings: the first that is there counts."""

    def __init__(self, data: Mapping[str, Any], *, file: str, at: str = "") -> None:
        self.data = data
        self.file = file
        self.at = at

    def fail(
        self, name: str, message: str, *, ref: str = "model-field", hint: str = ""
    ) -> NoReturn:
        field = f"{self.at}.{name}" if self.at else name
        raise BadModelFile(ref, message, file=self.file, field=field, hint=hint)

    def has(self, *names: str) -> bool:
        return any(self.data.get(name) is not None for name in names)

    def _found(self, names: tuple[str, ...]) -> tuple[str, Any]:
        for name in names:
            value = self.data.get(name)
            if value is not None:
                return name, value
        return names[0], None

    def count(self, *names: str, most: int = MOST, least: int = 0) -> int | None:
        """A whole number, None where none of the names is there."""
        name, value = self._found(names)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(name, f"expected a whole number, found {kind_of(value)}")
        if not least <= value <= most:
            self.fail(name, f"{value} is not between {least} and {most}")
        return value

    def needed(self, *names: str, most: int = MOST) -> int:
        value = self.count(*names, most=most, least=1)
        if value is None:
            spelt = " or ".join(names[:3])
            self.fail(names[0], f"{spelt} is missing", ref="model-field-missing")
        return value

    def number(self, *names: str) -> float | None:
        name, value = self._found(names)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(name, f"expected a number, found {kind_of(value)}")
        return float(value)

    def flag(self, *names: str) -> bool | None:
        name, value = self._found(names)
        if value is None:
            return None
        if not isinstance(value, bool):
            self.fail(name, f"expected true or false, found {kind_of(value)}")
        return value

    def text(self, *names: str) -> str:
        name, value = self._found(names)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.fail(name, f"expected text, found {kind_of(value)}")
        return value

    def inner(self, *names: str) -> Fields | None:
        name, value = self._found(names)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.fail(name, f"expected an object, found {kind_of(value)}")
        return Fields(value, file=self.file, at=f"{self.at}.{name}" if self.at else name)

    def items(self, *names: str, most: int = LAYERS) -> list[Any]:
        name, value = self._found(names)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fail(name, f"expected a list, found {kind_of(value)}")
        if len(value) > most:
            self.fail(name, f"{len(value):,} entries, more than the {most:,} that are read")
        return value

    def texts(self, *names: str, most: int = LAYERS) -> tuple[str, ...]:
        name, _ = self._found(names)
        items = self.items(*names, most=most)
        for item in items:
            if not isinstance(item, str):
                self.fail(name, f"expected a list of texts, found {kind_of(item)} in it")
        return tuple(items)

    def counts(self, *names: str) -> tuple[int, ...]:
        name, _ = self._found(names)
        items = self.items(*names)
        for item in items:
            if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item <= MOST:
                self.fail(name, f"expected a list of whole numbers, found {kind_of(item)} in it")
        return tuple(items)


def kind_of(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"[:60]
        case str():
            return f"the text {value[:40]!r}"
        case list():
            return "a list"
        case dict():
            return "an object"
    return "null"
