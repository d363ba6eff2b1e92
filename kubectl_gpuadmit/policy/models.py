"""The policy's ``models`` key, and a catalogue file of the same form -> registry entries.

A catalogue file (``--models``) is a list of entries, an object with ``catalogue`` or ``models``, or
a ConfigMap that holds one of these under any key.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec.json import encode

from kubectl_gpuadmit.errors import BadModelFile
from kubectl_gpuadmit.policy.shape import Report, did_you_mean, entries
from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.formats import config
from kubectl_gpuadmit.sizing.recognition import ANNOTATIONS, Naming
from kubectl_gpuadmit.sizing.registry import Entry, Models

Data = dict[str, Any]

_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(GB|GiB|MiB)?")


def models(data: Data, report: Report) -> Models:
    """``data`` has the shape of the schema."""
    return Models(
        naming=Naming(
            annotations=(*data.get("annotations", ()), *ANNOTATIONS),
            labels=tuple(data.get("labels", ())),
            images=data.get("images", {}),
        ),
        entries=catalogue(data.get("catalogue"), report, "/models/catalogue", "the policy"),
        mlflow=data.get("mlflow", ""),
    )


def catalogue(
    items: list[Any] | None, report: Report, pointer: str, source: str
) -> tuple[Entry, ...]:
    """Entries of a list; what is wrong with one is reported at its place and the entry left out."""
    found: dict[str, Entry] = {}
    for index, item in entries(items):
        at = f"{pointer}/{index}"
        name = item["name"]
        if name.lower() in found:
            report(f"{at}/name", "policy-duplicate-name", f"a second {name}")
            continue
        if not any(key in item for key in ("like", "memory", "config")):
            hint = "give it like, memory or config"
            report(at, "policy-does-nothing", f"nothing says what {name} needs", hint)
            continue
        like = item.get("like", "")
        if like and not _is_known(like):
            report(f"{at}/like", "policy-unknown-model", f"unknown model {like}", _resembling(like))
            continue
        try:
            shape = _shape(item.get("config"), name)
        except BadModelFile as problem:
            report(f"{at}/config", "policy-bad-value", f"{problem.field}: {problem.message}")
            continue
        found[name.lower()] = Entry(
            name=name,
            source=source,
            also=tuple(item.get("also", ())),
            like=like,
            memory_gib=gibibytes(item.get("memory")),
            architecture=shape,
        )
    return tuple(found.values())


def gibibytes(amount: Any) -> float | None:
    """``60GB``, ``60GiB`` and 60 mean what product names mean by it: 60 x 1024 MiB."""
    if amount is None:
        return None
    if isinstance(amount, int | float) and not isinstance(amount, bool):
        return float(amount)
    found = _AMOUNT.fullmatch(str(amount).strip())
    if found is None:
        return None
    return float(found[1]) / (1024 if found[2] == "MiB" else 1)


def _shape(data: Data | None, name: str) -> Architecture | None:
    return config.architecture(encode(data), name) if data is not None else None


def _is_known(name: str) -> bool:
    from kubectl_gpuadmit.sizing import catalogue as shipped

    return shipped.find(name) is not None


def _resembling(name: str) -> str:
    from kubectl_gpuadmit.sizing import catalogue as shipped

    close = shipped.suggestions(name)
    return f"did you mean {close[0]}?" if close else did_you_mean(name, ())
