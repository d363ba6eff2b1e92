"""A selector that fails on a device ends the pod's whole attempt: which one, and what was meant.

Mostly it reads an attribute by a name that no device has, or one that some devices lack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubectl_gpuadmit.devices.allocator.outcome import FailedSelector
from kubectl_gpuadmit.devices.model import Device
from kubectl_gpuadmit.devices.values import Version
from kubectl_gpuadmit.placement import suggest
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.placement.filters.dynamic_resources import ABORTS
from kubectl_gpuadmit.verdict import Evidence, Finding, NodeVerdict

REASONS = {
    "placement/attribute-missing": (
        "A selector reads an attribute that a device does not have, and the scheduler gives the"
        " whole pod up with that error. Correct the name; for one that only some devices have,"
        ' write `.?name.orValue("")`.'
    ),
}
_KEY = re.compile(r"no such key: (\S+?)(?:\. consider |$)")
_QUOTED = re.compile(r"""(["'])([-.\w/]+)\1""")


def of(cycle: Cycle, nodes: tuple[NodeVerdict, ...]) -> FailedSelector | None:
    """That of the first node at which a selector fails."""
    if cycle.dra is None:
        return None
    for verdict in nodes:  # one node's error is told of all
        if any(short.code == ABORTS for short in verdict.shortfalls):
            cycle.dra.judge(cycle.cluster.nodes[verdict.node])
            if problem := cycle.dra.failed.get(verdict.node):
                return problem.selector
    return None


def missing(failed: FailedSelector) -> str:
    """The key that the device does not have, '' where something else has failed."""
    found = _KEY.search(failed.error)
    return found[1] if found else ""


def findings(
    cycle: Cycle, nodes: tuple[NodeVerdict, ...], found: tuple[Finding, ...]
) -> tuple[Finding, ...]:
    """``found`` with the bare ``placement/attempt-fails`` in words that say what to correct."""
    bare = next((f for f in found if f.reason == ABORTS), None)
    failed = of(cycle, nodes) if bare is not None else None
    if bare is None or failed is None or not (key := missing(failed)):
        return found
    whose = f"DeviceClass {failed.device_class}" if failed.device_class else ""
    whose = whose or f"request {failed.request}"
    meant = [text.partition(" instead of ")[0] for _, text in corrections(failed)]
    hint = f" (did you mean {' or '.join(meant[:2])}?)" if meant else ""
    own = f"{failed.device.driver}/"
    names = sorted(
        n.removeprefix(own) for n in (*failed.device.attributes, *failed.device.capacity)
    )
    told = Finding(
        reason="placement/attribute-missing",
        detail=f"selector {failed.number + 1} of {whose} reads {key}, which device"
        f" {failed.device.id} does not have{hint}: the scheduler gives the pod up with an error",
        evidence=(
            Evidence(whose, "expression", failed.expression, None),
            Evidence(f"device {failed.device.id}", "has", ", ".join(names) or None, None),
            *bare.evidence,
        ),
        permanent=bare.permanent,
        field="/spec/resourceClaims",
        rule=bare.rule,
        level=bare.level,
    )
    return tuple(told if one is bare else one for one in found)


def corrections(failed: FailedSelector) -> Iterator[tuple[str, str]]:
    """(the whole expression corrected, what it then says), the likeliest first.

    Another name of the same device, the same name in the domain that has it.
    """
    key = missing(failed)
    names = _names(failed.device)
    if domain := next((d for d, keys in sorted(names.items()) if key in keys), ""):
        wrong = next(
            (f[2] for f in _QUOTED.finditer(failed.expression) if _is_domain(f[2], names, domain)),
            "",
        )
        if wrong:
            yield failed.expression.replace(wrong, domain), f"{domain} instead of {wrong}"
    meant = suggest.near(key, {name for keys in names.values() for name in keys})
    if meant and meant != key:
        yield (
            re.sub(rf"\b{re.escape(key)}\b", meant, failed.expression),
            f"{meant} instead of {key}",
        )


def _is_domain(text: str, names: dict[str, set[str]], meant: str) -> bool:
    """Whether a quoted text stands where ``meant`` should: another domain, or a misspelt one."""
    return "." in text and text != meant and (text in names or suggest.near(text, [meant]) != "")


def guarded(failed: FailedSelector, devices: Iterator[Device]) -> tuple[str, str] | None:
    """The expression so that devices without the attribute do not match, and what it then reads.

    None where no device has it: then it is misspelt.
    """
    key = missing(failed)
    for device in devices:
        for name, value in device.attributes.items():
            if name.rpartition("/")[2] == key and isinstance(value, str | bool | int | Version):
                zero = (
                    '""' if isinstance(value, str) else "false" if value in (True, False) else "0"
                )
                if isinstance(value, Version):
                    return None
                text = rf"?{key}.orValue({zero})"
                changed = re.sub(rf"(?<=\.){re.escape(key)}\b", text, failed.expression)
                return (changed, text) if changed != failed.expression else None
    return None


def _names(device: Device) -> dict[str, set[str]]:
    """Domain -> names of what the device has."""
    found: dict[str, set[str]] = {}
    for name in (*device.attributes, *device.capacity):
        domain, slash, own = name.rpartition("/")
        found.setdefault(domain if slash else device.driver, set()).add(own)
    return found
