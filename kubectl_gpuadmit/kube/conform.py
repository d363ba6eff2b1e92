"""Plain data against a struct as the API server's decoder sees it: nulls, whole floats, misfits.

msgspec alone says neither which map key is at fault nor that ``null`` is no error in Kubernetes.
This walk runs only where msgspec has refused something, so that it may be slow and exact.

Go's rules (encoding/json and k8s.io/api types): ``null`` leaves a field at its zero value:
absent in a struct, "" or 0 as a map's value or a list's element. A whole number may be written
``2.0``: kubectl sends it on as 2.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, inspect

from kubectl_gpuadmit.kube.quantity import TEMPLATE, shown

Step = str | int


class Misfit(Struct, frozen=True):
    """The first value that does not fit its type."""

    path: tuple[Step, ...]
    """Keys and list indices from the data's root."""
    field: str
    """The same as Kubernetes writes it: ``spec.containers[0].resources.limits[nvidia.com/gpu]``."""
    message: str
    hint: str = ""


def conform(data: Any, type_: Any) -> tuple[Any, Misfit | None]:
    """The data as the API server would hold it, and what does not fit. The data is not changed."""
    walk = _Walk()
    fitted = walk.fit(data, inspect.type_info(type_), (), "")
    return fitted, walk.misfit


class _Walk:
    def __init__(self) -> None:
        self.misfit: Misfit | None = None

    def refuse(self, path: tuple[Step, ...], field: str, message: str, hint: str = "") -> None:
        if self.misfit is None:
            self.misfit = Misfit(path, field, message, hint)

    def fit(self, data: Any, kind: inspect.Type, path: tuple[Step, ...], field: str) -> Any:
        if isinstance(kind, inspect.UnionType):
            return self.fit_union(data, kind, path, field)
        if isinstance(kind, inspect.AnyType | inspect.RawType):
            return data
        if data is None:
            return _zero(kind)
        if isinstance(kind, inspect.StructType):
            return self.fit_struct(data, kind, path, field)
        if isinstance(kind, inspect.DictType):
            if not isinstance(data, dict):
                self.wrong("a mapping", data, path, field)
                return data
            return {
                key: self.fit(value, kind.value_type, (*path, key), f"{field}[{key}]")
                for key, value in data.items()
            }
        if isinstance(kind, inspect.VarTupleType | inspect.ListType):
            if not isinstance(data, list | tuple):
                self.wrong("a list", data, path, field)
                return data
            return [
                self.fit(item, kind.item_type, (*path, n), f"{field}[{n}]")
                for n, item in enumerate(data)
            ]
        return self.fit_scalar(data, (kind,), path, field)

    def fit_union(
        self, data: Any, kind: inspect.UnionType, path: tuple[Step, ...], field: str
    ) -> Any:
        options = [t for t in kind.types if not isinstance(t, inspect.NoneType)]
        if data is None:
            if len(options) < len(kind.types):
                return None
            numeric = [t for t in options if isinstance(t, inspect.IntType)]
            return _zero((numeric or options)[0])  # of a quantity, 0
        if len(options) == 1:
            return self.fit(data, options[0], path, field)
        structs = [t for t in options if isinstance(t, inspect.StructType)]
        if structs:
            tag = data.get("kind") if isinstance(data, dict) else None
            for option in structs:
                if option.tag == tag:
                    return self.fit(data, option, path, field)
            self.wrong("an object of a known kind", data, path, field)
            return data
        return self.fit_scalar(data, tuple(options), path, field)

    def fit_struct(
        self, data: Any, kind: inspect.StructType, path: tuple[Step, ...], field: str
    ) -> Any:
        if not isinstance(data, dict):
            self.wrong("a mapping", data, path, field)
            return data
        fitted = dict(data)
        for member in kind.fields:
            name = member.encode_name
            inner = f"{field}.{name}" if field else name
            if name in data:
                value = self.fit(data[name], member.type, (*path, name), inner)
                if (data[name] is None and value is None) or (
                    data[name] is None and not member.required
                ):
                    del fitted[name]
                else:
                    fitted[name] = value
            elif member.required:
                self.refuse(path, inner, f"{name} is missing", f"add {name}:")
        return fitted

    def fit_scalar(
        self, data: Any, kinds: tuple[inspect.Type, ...], path: tuple[Step, ...], field: str
    ) -> Any:
        names = []
        for kind in kinds:
            match kind:
                case inspect.StrType():
                    if isinstance(data, str):
                        return data
                    names.append("text")
                case inspect.BoolType():
                    if isinstance(data, bool):
                        return data
                    names.append("true or false")
                case inspect.IntType():
                    if isinstance(data, int) and not isinstance(data, bool):
                        return data
                    if isinstance(data, float) and data.is_integer() and abs(data) < 2**63:
                        return int(data)
                    names.append("a whole number")
                case inspect.FloatType():
                    if isinstance(data, int | float) and not isinstance(data, bool):
                        return data
                    names.append("a number")
                case _:
                    return data
        wanted = "a quantity" if len(names) > 2 else " or ".join(names)
        self.wrong(wanted, data, path, field)
        return data

    def wrong(self, wanted: str, data: Any, path: tuple[Step, ...], field: str) -> None:
        self.refuse(path, field, f"expected {wanted}, found {_found(data)}", _hint(wanted, data))


def _zero(kind: inspect.Type) -> Any:
    """What Go leaves where JSON says null."""
    match kind:
        case inspect.StrType():
            return ""
        case inspect.IntType() | inspect.FloatType():
            return 0
        case inspect.BoolType():
            return False
        case inspect.DictType() | inspect.StructType():
            return {}
        case inspect.VarTupleType() | inspect.ListType():
            return []
        case _:
            return None


def _found(data: Any) -> str:
    match data:
        case None:
            return "nothing"
        case bool():
            return f"{str(data).lower()} (true or false)"
        case int() | float():
            return f"the number {data if abs(data) < 1e30 else f'{float(data):.3g}'}"
        case str():
            return f"the text {shown(data)}"
        case list() | tuple():
            return f"a list of {len(data)}"
        case dict():
            return (
                "a mapping"
                if not data
                else f"a mapping with the key {shown(str(next(iter(data))))}"
            )
        case _:
            return f"a {type(data).__name__}"


def _hint(wanted: str, data: Any) -> str:
    if isinstance(data, str) and TEMPLATE.search(data):
        return "render the template first (envsubst, helm template, kustomize build)"
    if wanted == "text" and isinstance(data, bool | int | float):
        written = str(data).lower() if isinstance(data, bool) else str(data)[:40]
        return f'quote it: "{written}"'
    if isinstance(data, str) and wanted == "a whole number" and data.strip().isdecimal():
        return f"take off the quotes: {data.strip()[:40]}"
    if isinstance(data, str) and wanted == "true or false":
        return "write true or false without quotes"
    if wanted == "a list" and isinstance(data, dict | str):
        return "begin each element with '- '"
    if wanted == "a mapping" and isinstance(data, list):
        return "take off the '- '"
    return ""
