"""What the expression of a mutation returned: JSON Patch operations, or an object to merge in.

An apply configuration is merged as server-side apply does: lists whose items have keys item by
item, sets as sets; lists and maps that are one unit (atomic) must not be touched at all.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/mutating/patch;
sigs.k8s.io/structured-merge-diff v6 typed/merge.go.
"""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.admission.native.typed import table, typed
from kubectl_gpuadmit.cel.values import (
    Fail,
    MessageValue,
    Unsure,
    from_key,
)

Json = dict[str, Any]


def plain(value: Any) -> Any:
    """A CEL value as JSON. Raises Fail for what JSON cannot hold."""
    if isinstance(value, MessageValue):
        return {key: plain(one) for key, one in value.fields.items()}
    if isinstance(value, dict):
        return {str(from_key(key)): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise Unsure("how this value is written as JSON")


def check_names(value: Any, path: str = "Object") -> None:
    """``Object.spec{…}`` may stand in ``spec`` alone. Raises Fail."""
    faults = _misnamed(value, path)
    if faults:
        raise Fail("type mismatch: " + "\n".join(faults))


def _misnamed(value: Any, path: str) -> list[str]:
    found: list[str] = []
    if isinstance(value, MessageValue):
        if value.name != path:
            found.append(
                f'unexpected type name "{value.name}", expected "{path}", which matches field name'
                " path from root Object type"
            )
        for key, one in value.fields.items():
            found += _misnamed(one, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for one in value:
            found += _misnamed(one, path)
    elif isinstance(value, dict):
        for one in value.values():
            found += _misnamed(one, path)
    return found


# -- JSON Patch ------------------------------------------------------------------------------------


def operations(value: Any) -> list[Json]:
    """The operations that a patch expression returned. Raises Fail."""
    found = []
    for one in value:
        if not isinstance(one, MessageValue) or one.name != "JSONPatch":
            raise Fail(
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch"
            )
        op: Json = {"op": one.fields.get("op", ""), "path": one.fields.get("path", "")}
        if one.fields.get("from"):
            op["from"] = one.fields["from"]
        if "value" in one.fields:
            if isinstance(one.fields["value"], MessageValue):
                held = one.fields["value"]
                check_names(held, held.name)
            op["value"] = plain(one.fields["value"])
        found.append(op)
    return found


# -- apply configurations --------------------------------------------------------------------------


def applied(document: Json, configuration: Json, name: str) -> Json:
    """``document`` of the type ``name`` with the configuration merged in. Raises Fail, Unsure."""
    if name not in table().types:
        raise Unsure(f"how an apply configuration is merged into a {name}")
    _refuse_unknown(configuration, name, "")
    atomic = _atomics(configuration, name, "")
    if atomic:
        raise Fail(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps"
            f" or structs: {', '.join(atomic)}"
        )
    after = _merged(document, configuration, name)
    found: Json = typed(after, name)
    return found | {key: document[key] for key in ("apiVersion", "kind")}


def _base(mark: str) -> str:
    return mark.lstrip("?!*")


def _fields(name: str) -> dict[str, str]:
    return table().types.get(name, {})


def _refuse_unknown(value: Any, name: str, path: str) -> None:
    """A field that the type does not have: what the typed converter would refuse."""
    if not isinstance(value, dict):
        raise Unsure(f"how {path or 'the object'} is merged")
    for key, one in value.items():
        mark = _fields(name).get(key)
        if mark is None:
            raise Fail(
                "error applying patch: failed to convert patch object to typed object:"
                f" {path}.{key}: field not declared in schema"
            )
        kind = _base(mark)
        if kind in table().types:
            _refuse_unknown(one, kind, f"{path}.{key}")
        elif kind.startswith("[]") and kind[2:] in table().types:
            if not isinstance(one, list):
                raise Unsure(f"how {path}.{key} is merged")
            for item in one:
                _refuse_unknown(item, kind[2:], f"{path}.{key}")


def _atomics(value: Any, name: str, path: str) -> list[str]:
    found: list[str] = []
    if not isinstance(value, dict):
        return found
    if table().lists.get(name) == "atomic":
        found.append(path)
    for key, one in value.items():
        kind = _base(_fields(name).get(key, "any"))
        here = f"{path}.{key}"
        rule = table().lists.get(f"{name}.{key}")
        if rule == "atomic":
            found.append(here)
        if kind in table().types:
            found += _atomics(one, kind, here)
        elif kind.startswith("[]") and kind[2:] in table().types and isinstance(one, list):
            for place, item in enumerate(one):
                found += _atomics(item, kind[2:], f"{here}[{place}]")
    return found


def _merged(old: Any, new: Json, name: str) -> Json:
    after = dict(old) if isinstance(old, dict) else {}
    for key, one in new.items():
        kind = _base(_fields(name).get(key, "any"))
        rule = table().lists.get(f"{name}.{key}", "")
        if kind in table().types and isinstance(one, dict):
            after[key] = _merged(after.get(key), one, kind)
        elif kind.startswith("{}") and isinstance(one, dict):
            after[key] = {**(after.get(key) or {}), **one}
        elif kind.startswith("[]") and isinstance(one, list):
            after[key] = _merged_list(after.get(key) or [], one, kind[2:], rule)
        else:
            after[key] = one
    return after


def _merged_list(old: list[Any], new: list[Any], kind: str, rule: str) -> list[Any]:
    if rule == "set":
        return [*old, *(one for one in new if one not in old)]
    if rule in ("", "atomic"):
        return list(new)
    keys = rule.split(",")

    def key(item: Any) -> tuple[Any, ...]:
        if not isinstance(item, dict):
            raise Unsure("how this list is merged")
        defaults = {"protocol": "TCP"}
        found = tuple(item.get(part, defaults.get(part)) for part in keys)
        if None in found:
            raise Fail(
                "error applying patch: failed to convert patch object to typed object: an item of"
                f" a list lacks its key ({rule})"
            )
        return found

    wanted = {key(one): one for one in new}
    if len(wanted) != len(new):
        raise Unsure("how items with equal keys are merged")
    there = [key(one) for one in old]
    if len(set(there)) != len(there):
        raise Unsure("how items with equal keys are merged")
    both = [one for one in there if one in wanted]
    if both != [one for one in wanted if one in set(there)]:
        raise Unsure("in which order the items of a list stand after the merge")
    out: list[Any] = []
    for item in old:
        match = wanted.get(key(item))
        out.append(item if match is None else _merged(item, match, kind))
    seen = set(there)
    fresh = [one for name, one in wanted.items() if name not in seen]
    if fresh and both and list(wanted)[-len(fresh) :] != [key(one) for one in fresh]:
        raise Unsure("in which order the items of a list stand after the merge")
    return [*out, *(_merged({}, one, kind) for one in fresh)]
