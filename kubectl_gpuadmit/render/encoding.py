"""Documents as JSON and YAML text that no terminal acts on; knows no document."""

from __future__ import annotations

from typing import Any

import msgspec

from kubectl_gpuadmit.render.wording import encodable, escape_json


def as_json(document: Any) -> str:
    """Indented JSON with a newline at the end, whatever its texts and numbers hold."""
    return indented(msgspec.json.encode(encodable(document)))


def indented(raw: bytes) -> str:
    """Encoded JSON, indented, with a newline at the end."""
    text = msgspec.json.format(raw, indent=2).decode() + "\n"
    return text if raw.isascii() and b"\x7f" not in raw else escape_json(text)


def as_yaml(document: Any) -> str:
    """One YAML document, in ASCII where a value could move the cursor."""
    import yaml

    text: str = yaml.safe_dump(encodable(document), sort_keys=False, width=100, allow_unicode=False)
    return text
