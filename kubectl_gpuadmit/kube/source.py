"""The text of one manifest document, which finds the places of its fields on demand."""

from __future__ import annotations

from kubectl_gpuadmit.kube import jsontext, yaml11
from kubectl_gpuadmit.kube.pointers import steps
from kubectl_gpuadmit.kube.yaml_scalars import Place


class Source:
    """The text of one document, which finds the places of its fields on demand."""

    __slots__ = ("_places", "base", "offset", "place", "text", "yaml")

    def __init__(
        self,
        place: Place,
        *,
        yaml: bytes | None = None,
        text: str = "",
        offset: int = 0,
        base: str = "",
    ) -> None:
        self.place = place
        """Of the text's beginning in its file, from 0."""
        self.yaml = yaml
        self.text = text
        self.offset = offset
        self.base = base
        """Pointer, from the top-level document, of what the text holds."""
        self._places: dict[str, Place] | None = None

    def find(self, pointer: str) -> Place:
        """Place of a field by its pointer from the top-level document, or of the nearest around."""
        inner = pointer.removeprefix(self.base)
        if self.yaml is None:
            at, _ = jsontext.find(self.text, self.offset, steps(inner))
            return jsontext.moved(self.text, self.offset, at, self.place)
        if self._places is None:
            self._places = yaml11.places(self.yaml)
        while inner and inner not in self._places:
            inner = inner.rpartition("/")[0]
        return self.shift(self._places.get(inner, (0, 0)))

    def shift(self, at: Place) -> Place:
        line, column = at
        return self.place[0] + line, column + (self.place[1] if line == 0 else 0)
