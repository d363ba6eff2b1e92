"""Kubernetes objects as kubectl apply takes them: YAML documents, or a List in JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kubectl_gpuadmit.render.wording import encodable, escape_json


def as_json(objects: Iterable[dict[str, Any]]) -> str:
    """A List of the objects."""
    document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    raw = msgspec.json.encode(encodable(document))
    return escape_json(msgspec.json.format(raw, indent=2).decode()) + "\n"


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
