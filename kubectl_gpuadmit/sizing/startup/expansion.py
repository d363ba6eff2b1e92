"""``$(NAME)`` in environment, command and arguments, replaced as the kubelet replaces it.

Source: k8s.io/kubernetes v1.37.2 third_party/forked/golang/expansion/expand.go: ``$$`` is a dollar
sign, a name that is not there stays as written, an opened reference that is never closed too.
"""

from __future__ import annotations

from collections.abc import Mapping


def expanded(text: str, values: Mapping[str, str]) -> str:
    parts: list[str] = []
    at = 0
    while True:
        dollar = text.find("$", at)
        if dollar < 0 or dollar + 1 >= len(text):
            parts.append(text[at:])
            return "".join(parts)
        parts.append(text[at:dollar])
        following = text[dollar + 1]
        if following == "$":
            parts.append("$")
            at = dollar + 2
        elif following == "(" and (end := text.find(")", dollar + 2)) >= 0:
            name = text[dollar + 2 : end]
            parts.append(values.get(name, f"$({name})"))
            at = end + 1
        else:
            parts.append(text[dollar : dollar + 2])
            at = dollar + 2
