"""Kubernetes objects as kubectl apply takes them: YAML documents, or a List in JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubectl_gpuadmit.render import encoding
from kubectl_gpuadmit.render.wording import encodable


def as_json(objects: Iterable[dict[str, Any]]) -> str:
    """A List of the objects."""
    return encoding.as_json({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def as_yaml(objects: Iterable[dict[str, Any]]) -> str:
    """One document for each object."""
    import yaml

    text: str = yaml.safe_dump_all(
        [encodable(one) for one in objects],
        sort_keys=False,
        width=100,
        allow_unicode=False,
        explicit_start=True,
    )
    return text
