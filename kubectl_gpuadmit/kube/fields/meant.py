"""What a field that the decoder refuses was probably meant to be, as words and as a patch.

A guess is made only where the value fits the field that it names; whether the patched object is
then admitted is for others to try.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.kube.fields.decoding import Problem, fits, problems_of
from kubectl_gpuadmit.kube.fields.table import Table, Type
from kubectl_gpuadmit.kube.pointers import resolve, steps, token

Op = dict[str, Any]
_DEEPEST = 3
"""Structs that a field is looked for below its place: spec → template → spec of a Deployment."""

_REMOVED = {
    ("core/v1.PodResourceClaim", "source"): "1.31",
    ("meta/v1.ObjectMeta", "clusterName"): "1.25",
    ("meta/v1.ObjectMeta", "initializers"): "1.16",
}
"""Fields that went before the oldest version of the table."""


class Meant(Struct, frozen=True):
    """``words``: an end of a sentence, '' where only the patch speaks; ``name``: the field to
    write, for a table of found and wanted; ``ops``: what makes it so, () where nobody can tell."""

    words: str
    name: str = ""
    ops: tuple[Op, ...] = ()
    summary: str = ""


def meant(problem: Problem, data: dict[str, Any], known: Table) -> Meant | None:
    """None where nothing is near. ``data``: the manifest that the problem's pointer is of."""
    if problem.what == "type":
        return None if is_secret(data) else _fitting(problem, data)
    found = next(_guesses(problem, data), None)
    past = _history(problem, data, known)
    if found is None:
        return Meant(past) if past else None
    return Meant("; ".join(filter(None, (past, found.words))), found.name, found.ops, found.summary)


def is_secret(data: dict[str, Any]) -> bool:
    """Of a Secret no value is shown, and no patch holds one."""
    return data.get("kind") == "Secret"


def without(problem: Problem) -> Op:
    """What a client without strict validation would send: nothing of this field."""
    return {"op": "remove", "path": problem.pointer}


# -- unknown fields --------------------------------------------------------------------------------


def _guesses(problem: Problem, data: dict[str, Any]) -> Iterator[Meant]:
    around = problem.pointer.rpartition("/")[0]
    holder = resolve(data, around)
    if not isinstance(holder, dict) or problem.name not in holder:
        return
    value = holder[problem.name]
    near = _near(problem, holder, value)
    if near is not None and _plain(near) == _plain(problem.name):
        yield _renamed(problem, near, value)
    if not is_secret(data):
        yield from _lifted(problem, around, holder, value)
    place = next(_below(problem.holder, problem.name, value, holder), None)
    if place is not None:
        yield _moved(problem, data, f"{around}/{'/'.join(place)}", f"write it under {place[-2]}")
    above = _above(problem, data, value)
    if above is not None:
        yield above
    if near is not None:
        yield _renamed(problem, near, value)
    if problem.holder.name == "core/v1.ResourceRequirements" and _is_resource(problem.name):
        limits = holder.get("limits")
        if limits is None or (isinstance(limits, dict) and problem.name not in limits):
            path = f"{around}/limits/{token(problem.name)}"
            yield _moved(problem, data, path, "write it under limits")
    present = _near(problem, {}, value)
    if present is not None:
        yield Meant(
            f"{present} is there already", present, (without(problem),), f"remove {problem.path}"
        )


def _is_resource(name: str) -> bool:
    return "/" in name or name in ("cpu", "memory", "ephemeral-storage")


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").replace(" ", "").casefold()


def _near(problem: Problem, holder: dict[str, Any], value: Any) -> str | None:
    """The field of this type that is spelled most alike and takes the value; free in ``holder``."""
    plain = _plain(problem.name)
    most = 1 if len(plain) <= 4 else 2 if len(plain) <= 12 else 3
    best: tuple[int, str] | None = None
    for name, field in problem.holder.fields.items():
        if holder.get(name) is not None or not _takes(field.type, value):
            continue
        away = _distance(plain, _plain(name), most)
        if away <= most and (best is None or (away, name) < best):
            best = (away, name)
    return best[1] if best else None


def _takes(of: Type, value: Any) -> bool:
    """Also a list where one element was written, also with slips of its own deeper in."""
    return _roughly(value, of) or (of.kind == "list" and _roughly(value, of.item))


def _roughly(value: Any, of: Type) -> bool:
    if value is None or fits(value, of):
        return True
    if of.kind not in ("struct", "list", "map"):
        return False
    found = problems_of(value, of)
    return all(one.pointer and one.what == "unknown" for one in found) and (
        of.kind != "struct" or any(name in of.fields for name in value)
    )


def _renamed(problem: Problem, name: str, value: Any) -> Meant:
    of = problem.holder.fields[name].type
    around = problem.pointer.rpartition("/")[0]
    wrapped = of.kind == "list" and not isinstance(value, list) and value is not None
    target = f"{around}/{token(name)}"
    ops: tuple[Op, ...] = ({"op": "move", "from": problem.pointer, "path": target},)
    if wrapped:
        ops = (without(problem), {"op": "add", "path": target, "value": [value]})
    return Meant(
        f"did you mean {name}?{' It is a list' if wrapped else ''}",
        name,
        ops,
        f"{name} instead of {problem.path}",
    )


def _lifted(problem: Problem, around: str, holder: dict[str, Any], value: Any) -> Iterator[Meant]:
    """``source: {resourceClaimName: x}`` -> ``resourceClaimName: x``."""
    fields = problem.holder.fields
    if not isinstance(value, dict) or not value:
        return
    if all(n in fields and holder.get(n) is None and fits(value[n], fields[n].type) for n in value):
        names = sorted(value)
        ops: tuple[Op, ...] = (
            without(problem),
            *({"op": "add", "path": f"{around}/{token(n)}", "value": value[n]} for n in names),
        )
        listed = " and ".join(names)
        yield Meant(
            f"write {listed} in its place", names[0], ops, f"{listed} in place of {problem.path}"
        )


def _below(of: Type, name: str, value: Any, holder: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Where structs inside ``of`` have the field: those that are written first, then the only one
    that is not."""
    written: list[tuple[str, ...]] = []
    absent: list[tuple[str, ...]] = []

    def look(of: Type, here: Any, path: tuple[str, ...], there: bool) -> None:
        for field in of.fields.values():
            if field.type.kind != "struct" or field.name in ("metadata", "status"):
                continue
            inside = here.get(field.name) if isinstance(here, dict) else None
            inside = inside if there and isinstance(inside, dict) else None
            exists = inside is not None
            if not exists and (path or holder.get(field.name) is not None):
                continue  # not more than one struct is begun
            further = field.type.fields.get(name)
            free = inside is None or inside.get(name) is None
            if further is not None and free and fits(value, further.type):
                (written if exists else absent).append((*path, field.name, name))
            if exists and len(path) + 1 < _DEEPEST:
                look(field.type, inside, (*path, field.name), True)

    look(of, holder, (), True)
    yield from sorted(written, key=len)
    if len(absent) == 1:
        yield absent[0]


def _above(problem: Problem, data: dict[str, Any], value: Any) -> Meant | None:
    """A struct around that has the field: ``nodeSelector`` of a container is the pod's."""
    parts = problem.pointer.split("/")[1:-1]
    for length in range(len(parts) - 1, -1, -1):
        pointer = "".join(f"/{part}" for part in parts[:length])
        of = problem.around.get(pointer)
        here = resolve(data, pointer)
        if of is None or not isinstance(here, dict) or here.get(problem.name) is not None:
            continue
        field = of.fields.get(problem.name)
        if field is not None and fits(value, field.type):
            place = steps(pointer)[-1] if pointer else "the object itself"
            return _moved(
                problem, data, f"{pointer}/{token(problem.name)}", f"it belongs to {place}"
            )
    return None


def _moved(problem: Problem, data: dict[str, Any], path: str, words: str) -> Meant:
    parent = path.rpartition("/")[0]
    ops: list[Op] = []
    if resolve(data, parent) is None:
        ops.append({"op": "add", "path": parent, "value": {}})
    ops.append({"op": "move", "from": problem.pointer, "path": path})
    name = ".".join(steps(path)[-2:])
    return Meant(words, name, tuple(ops), f"{problem.name} {_under(path)}")


def _under(path: str) -> str:
    inside = steps(path)[-2] if path.count("/") > 1 else ""
    return f"under {inside}" if inside else "at the top"


def _history(problem: Problem, data: dict[str, Any], known: Table) -> str:
    """Whether another version has the field."""
    gone = _REMOVED.get((problem.holder.name, problem.name))
    if gone:
        return f"it was removed in Kubernetes {gone}"
    first, _, last = problem.holder.when(problem.name).partition("-")
    if first and known.minor < tuple(map(int, first.split("."))):
        return f"it came with Kubernetes {first}"
    if last:
        major, minor = last.split(".")
        return f"it was removed in Kubernetes {major}.{int(minor) + 1}"
    own = problem.holder.name.rpartition(".")[0]
    api_version, kind = str(data.get("apiVersion")), str(data.get("kind"))
    for version in known.versions(api_version, kind):
        place = f"{own.rpartition('/')[0]}/{version.rpartition('/')[2]}"
        made = known.types.get(f"{place}.{problem.holder.short}")
        if isinstance(made, dict) and problem.name in made:
            return f"it is a field of {version.rpartition('/')[2]}"
    return ""


# -- values of a wrong type ------------------------------------------------------------------------


def _fitting(problem: Problem, data: dict[str, Any]) -> Meant | None:
    """The same value in the type that is wanted: in quotes, without quotes, as a list."""
    of, value = problem.wanted, resolve(data, problem.pointer)
    if of is None:
        return None
    for better, words in _in_other_words(value, of):
        if fits(better, of):
            ops = ({"op": "replace", "path": problem.pointer, "value": better},)
            return Meant(words, _written(better), ops, f"{problem.path} as {_named(of)}")
    return None


def _in_other_words(value: Any, of: Type) -> Iterator[tuple[Any, str]]:
    if of.kind == "string" and isinstance(value, bool | int | float):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        yield text, f'put it in quotes: "{text}"'
    if isinstance(value, str):
        text = value.strip()
        if of.kind in ("int", "uint") and text.lstrip("-").isdecimal() and text.isascii():
            yield int(text), f"take off the quotes: {text}"
        if of.kind == "bool" and text.lower() in ("true", "false"):
            yield text.lower() == "true", f"take off the quotes: {text.lower()}"
    if of.kind == "list" and not isinstance(value, list):
        yield [value], "it is a list: begin it with '- '"
    if of.kind in ("struct", "map", "string") and isinstance(value, list) and len(value) == 1:
        yield value[0], "it is no list: take off the '- '"


def _written(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case int() | float():
            return str(value)
        case _:
            return ""


def _named(of: Type) -> str:
    return {
        "string": "text",
        "int": "a whole number",
        "uint": "a whole number",
        "bool": "true or false",
        "list": "a list",
        "map": "a mapping",
        "struct": "a mapping",
    }.get(of.kind, "a value that fits")


def wanted(of: Type) -> str:
    """What a value should be, for people."""
    match of.name:
        case "resource.Quantity":
            return "a quantity such as 8, 500m or 64Gi"
        case "intstr.IntOrString":
            return "a whole number or text"
        case "meta/v1.Time":
            return "a time such as 2026-12-31T18:00:00Z"
    if of.kind in ("int", "uint"):
        return f"a whole number of {of.bits} bits"
    return "base64 text" if of.kind == "bytes" else _named(of)


# -- small change ----------------------------------------------------------------------------------


def _distance(one: str, two: str, most: int) -> int:
    """Letters to change, add, drop or swap with the next; ``most + 1`` where it is more."""
    if abs(len(one) - len(two)) > most:
        return most + 1
    before, last = list(range(len(two) + 1)), list[int]()
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(two, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == two[j - 2] and one[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        last, before = before, row
    return before[-1]
