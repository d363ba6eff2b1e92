"""Random objects of every kind in the table, and real manifests, with slips of the pen in them.

Objects are made from the shipped table of fields itself, so that every type occurs; the referee has
Kubernetes' own Go types, so a wrong table disagrees.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from kubectl_gpuadmit.kube.fields import decoded
from kubectl_gpuadmit.kube.fields.table import Table, Type, table
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from tests.controlplane import binaries
from tests.differential.vocabulary import Json, chance

EXAMPLES = Path(__file__).parents[2] / "examples"
DEEPEST = 7

WRONG: tuple[Any, ...] = (
    *(1, 0, -1, 1.5, 2.0, 2**31, 2**63, -(2**63) - 1, 1e300, 1e-7, 0.00001, 255, 256),
    *("", "text", "1", "true", "a b", "1Gi", "Zm9v", "Zm9", "=", "Zm9v=", "Zg==\n", "Z===", "é"),
    *("2026-11-29T12:00:00Z", "2026-11-29", "2026-02-30T12:00:00Z", "2026-11-29T12:00:00+25:00"),
    *(True, False, None, [], {}, ["a"], [1], [None], {"a": "b"}, {"a": 1}, [{}], {"name": {}}),
    *("1 Gi", "1GB", "10Gii", "1e", ".", "1..2", "+", "0.5", "1e9", "1E", " 5 "),
)


def case(rng: Random) -> Json:
    obj = copy.deepcopy(rng.choice(manifests())) if chance(rng, 0.4) else made(rng)
    for _ in range(rng.choice((0, 0, 1, 1, 2, 4))):
        slip(rng, obj)
    return {"objects": [], "pod": obj}


@cache
def known() -> Table:
    return table(binaries.kubernetes().rpartition(".")[0])


@cache
def kinds() -> tuple[str, ...]:
    """Those that every version of the table serves, so that an older referee has them too."""
    newer = ("MutatingAdmissionPolicy", "DeviceTaintRule", "ResourcePoolStatusRequest")
    return tuple(k for k in sorted(known().kinds) if not any(n in k for n in newer))


@cache
def manifests() -> tuple[Json, ...]:
    """Objects of our own examples that the table knows."""
    found: list[Json] = []
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        for one in read_documents(path.read_bytes(), path.name):
            if isinstance(one, Document):
                name = f"{one.data.get('apiVersion')} {one.data.get('kind')}"
                if name in kinds() and len(str(one.data)) < 20_000:
                    found.append(one.data)
    return tuple(found)


def made(rng: Random) -> Json:
    name = rng.choice(kinds())
    api_version, _, kind = name.partition(" ")
    obj: Json = value(rng, known().type(known().kinds[name]), 0)
    return {**obj, "apiVersion": api_version, "kind": kind}


def value(rng: Random, of: Type, depth: int) -> Any:
    """Something that fits, mostly."""
    match of.kind:
        case "struct":
            names = sorted(of.fields)
            if depth > DEEPEST:
                return {}
            kept = rng.sample(names, min(len(names), rng.choice((1, 2, 3, 5))))
            if "spec" in names and chance(rng, 0.9):
                kept = sorted({*kept, "spec"})
            return {n: value(rng, of.fields[n].type, depth + 1) for n in kept}
        case "list":
            return [value(rng, of.item, depth + 1) for _ in range(rng.choice((0, 1, 1, 2)))]
        case "map":
            keys = rng.sample(("a", "b.c/d", "nvidia.com/gpu", "cpu"), rng.choice((0, 1, 2)))
            return {key: value(rng, of.item, depth + 1) for key in keys}
        case "string":
            return rng.choice(("", "a", "text", "1"))
        case "bool":
            return chance(rng, 0.5)
        case "int" | "uint":
            return rng.choice((0, 1, 7, 200, 2.0))
        case "float":
            return rng.choice((0.5, 1, 2.0))
        case "bytes":
            return rng.choice(("", "Zm9v", "Zg==", "Zm8=", "Zm\n9v"))
        case _:
            return custom(rng, of)


def custom(rng: Random, of: Type) -> Any:
    match of.name:
        case "resource.Quantity":
            return rng.choice(("1", "16Gi", 8, 0.5, "100m", "1e3", "1E", " 2 "))
        case "intstr.IntOrString":
            return rng.choice((80, "http", "50%", 3.0))
        case "meta/v1.Time":
            return rng.choice((None, "2026-11-29T12:00:00Z", "2026-11-29T12:00:00.5+01:00"))
    return rng.choice(({}, {"kind": "X", "a": [1, {"b": None}]}, "text", 3, [True]))


# -- slips -----------------------------------------------------------------------------------------


def slip(rng: Random, obj: Json) -> None:
    holders = [one for one in _inside(obj) if one]
    holder = rng.choice(holders)
    if isinstance(holder, list):
        holder[rng.randrange(len(holder))] = copy.deepcopy(rng.choice(WRONG))
        return
    names = [name for name in holder if holder is not obj or name not in ("apiVersion", "kind")]
    if not names:
        return
    name = rng.choice(names)
    match rng.choice(("misspell", "misspell", "wrong", "wrong", "strange", "lift", "sink")):
        case "misspell":
            holder[misspelt(rng, name)] = holder.pop(name)
        case "wrong":
            holder[name] = copy.deepcopy(rng.choice(WRONG))
        case "strange":
            strange = rng.choice(("source", "replica", "nodeSelector", "limit", "a.b/c", 'q"', "é"))
            holder[strange] = copy.deepcopy(rng.choice(WRONG))
        case "lift" if isinstance(holder[name], dict):
            inner = copy.deepcopy(holder.pop(name))
            holder.update({key: inner[key] for key in inner if key not in ("apiVersion", "kind")})
        case "sink":
            holder[rng.choice(("spec", "exactly", "template", "resources"))] = {
                name: copy.deepcopy(holder[name])
            }


def misspelt(rng: Random, name: str) -> str:
    if len(name) < 2:
        return name + "s"
    at = rng.randrange(len(name))
    return rng.choice(
        (
            name[:-1],
            name + "s",
            name.lower(),
            name.upper(),
            name[0].upper() + name[1:],
            name[:at] + name[at + 1 :],
            name[:at] + "x" + name[at:],
        )
    )


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _inside(inner)
    elif isinstance(value, list):
        yield value
        for inner in value:
            yield from _inside(inner)


# -- comparison ------------------------------------------------------------------------------------


def differences(case: Json, referee: Json) -> list[str]:
    """The whole message, but for the end of what Go says of a text that is no time."""
    theirs = referee["decode"]["message"]
    ours = decoded(case["pod"], kubernetes=binaries.kubernetes().rpartition(".")[0]).message
    ours = ours.partition(" cannot be handled as a ")[2].partition(": ")[2]
    if ours.startswith("parsing time") and theirs.startswith(ours):
        return []
    if ours == theirs:
        return []
    return [f"kubernetes: {theirs}", f"ours:       {ours}"]
