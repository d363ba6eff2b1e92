"""RFC 6901 pointers into plain data: keys escaped and not, what a pointer names, fields as people
write them."""

from __future__ import annotations

from typing import Any


def token(key: str) -> str:
    """One key, escaped for use in a pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def key_of(token: str) -> str:
    """The key that a step of a pointer stands for."""
    return token.replace("~1", "/").replace("~0", "~")


def steps(pointer: str) -> list[str]:
    """``/spec/a~1b`` -> ``['spec', 'a/b']``."""
    if not pointer:
        return []
    return [key_of(part) for part in pointer[1:].split("/")]


def resolve(data: Any, pointer: str) -> Any:
    """The value at ``pointer``; None where there is none (a null reads as absent, as in the
    API)."""
    for step in steps(pointer):
        if isinstance(data, dict):
            data = data.get(step)
        elif isinstance(data, list) and step.isdecimal() and int(step) < len(data):
            data = data[int(step)]
        else:
            return None
    return data


def dotted(pointer: str) -> str:
    """``/spec/containers/0`` -> ``spec.containers[0]``, as Kubernetes writes a field."""
    text = ""
    for step in steps(pointer):
        if step.isdecimal() or not step.replace("_", "").isalnum():
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
