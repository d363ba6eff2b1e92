"""Changes of what one container of a template asks, as RFC 6902 operations against the template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_gpuadmit.kube.pointers import resolve, token

Op = dict[str, Any]


def renamed(template: Mapping[str, Any], container: str, old: str, new: str) -> tuple[Op, ...]:
    """Asks for ``new`` instead of ``old``, the same amount, in limits and requests as written.

    An extended resource needs a limit: where only the request was written, a limit is added.
    """
    amounts = _written(template, container, old)
    ops: list[Op] = [
        {"op": "remove", "path": f"{container}/resources/{part}/{token(old)}"} for part in amounts
    ]
    return (*ops, *_set(template, container, new, amounts)) if amounts else ()


def changed(template: Mapping[str, Any], container: str, name: str, amount: Any) -> tuple[Op, ...]:
    """Another amount of the same resource wherever the container writes it, and as its limit."""
    amounts = _written(template, container, name)
    return _set(template, container, name, dict.fromkeys(amounts, amount)) if amounts else ()


def _written(template: Mapping[str, Any], container: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in ("limits", "requests"):
        listed = resolve(template, f"{container}/resources/{part}")
        if isinstance(listed, dict) and name in listed:
            found[part] = listed[name]
    return found


def _set(
    template: Mapping[str, Any], container: str, name: str, amounts: Mapping[str, Any]
) -> tuple[Op, ...]:
    ops: list[Op] = []
    wanted = {"limits": amounts.get("limits", amounts.get("requests")), **amounts}
    for part, amount in wanted.items():
        at = f"{container}/resources/{part}"
        if isinstance(resolve(template, at), dict):
            ops.append({"op": "add", "path": f"{at}/{token(name)}", "value": amount})
        else:
            ops.append({"op": "add", "path": at, "value": {name: amount}})
    return tuple(ops)
