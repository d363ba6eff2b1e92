"""One complaint of the API's object validation: where, what kind, which value, why.

Source: k8s.io/apimachinery v0.37.2 pkg/util/validation/field/errors.go and path.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from msgspec import Struct

from kubectl_gpuadmit.admission.refusal import refusal
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.verdict import Evidence, Finding


class Key(str):
    """A path step into a map, shown as ``[key]``; a plain str is a field, an int a list index."""

    __slots__ = ()


Where = tuple[str | int | Key, ...]


class FieldError(Struct, frozen=True):
    """``reason`` is ours, the rest is the API's."""

    reason: str
    where: Where
    kind: str
    """``Invalid value``, ``Required value`` …"""
    shown: str | None
    """The offending value as the API prints it, None where it prints none."""
    detail: str = ""

    @property
    def path(self) -> str:
        """``spec.containers[0].resources.limits[nvidia.com/gpu]``."""
        text = ""
        for step in self.where:
            if isinstance(step, Key | int):
                text += f"[{step}]"
            else:
                text += f".{step}" if text else step
        return text

    @property
    def pointer(self) -> str:
        """RFC 6901 into the pod template, of the deepest field that can exist there."""
        return "".join(f"/{token(str(step))}" for step in self.where)

    @property
    def text(self) -> str:
        """As one error reads inside ``Pod "x" is invalid: …``."""
        body = self.kind if self.shown is None else f"{self.kind}: {self.shown}"
        return f"{self.path}: {body}" + (f": {self.detail}" if self.detail else "")

    def finding(self, name: str, every: Iterable[FieldError]) -> Finding:
        """``every``: all errors of this pod, which the API server puts into one message."""
        observed = self.shown.strip('"') if self.shown is not None else None
        return refusal(
            self.reason,
            f'Pod "{name}" is invalid: {self.text}',
            message(name, every),
            evidence=(Evidence(f"Pod {name}", self.path, observed, None, self.detail),),
            field=self.pointer,
        )


def message(name: str, errors: Iterable[FieldError], kind: str = "Pod") -> str:
    """The whole text of the 422."""
    texts = list(dict.fromkeys(error.text for error in errors))
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return f'{kind} "{name}" is invalid: {joined}'


def quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def invalid(reason: str, where: Where, value: str | int | None, detail: str) -> FieldError:
    shown = quoted(value) if isinstance(value, str) else json.dumps(value)
    return FieldError(reason, where, "Invalid value", shown, detail)


def required(reason: str, where: Where, detail: str = "") -> FieldError:
    return FieldError(reason, where, "Required value", None, detail)


def forbidden(reason: str, where: Where, detail: str) -> FieldError:
    return FieldError(reason, where, "Forbidden", None, detail)


def duplicate(reason: str, where: Where, value: str) -> FieldError:
    return FieldError(reason, where, "Duplicate value", quoted(value))


def not_found(reason: str, where: Where, value: str, detail: str = "") -> FieldError:
    return FieldError(reason, where, "Not found", quoted(value), detail)


def unsupported(reason: str, where: Where, value: str, supported: Iterable[str]) -> FieldError:
    detail = "supported values: " + ", ".join(quoted(one) for one in supported)
    return FieldError(reason, where, "Unsupported value", quoted(value), detail)
