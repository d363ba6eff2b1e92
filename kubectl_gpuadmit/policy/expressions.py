"""Parts of a policy file as CEL expressions over a pod: what counts as a GPU pod, matches, amounts.

Patterns become regular expressions. What a pod asks for is summed as the scheduler sums it: the
containers and sidecars together, or one init container with the sidecars before it where that is
more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from kubectl_gpuadmit.policy.entries import Comparison, StaticMatch, WorkloadClass

LABELS = "object.metadata.?labels.orValue({})"
ANNOTATIONS = "object.metadata.?annotations.orValue({})"
CONTAINERS = "object.spec.containers"
INITS = "object.spec.?initContainers.orValue([])"


class NotCompiled(Exception):
    """CEL cannot say it; ``str()`` is the reason."""


def text(value: str) -> str:
    """A string literal of CEL."""
    return json.dumps(value, ensure_ascii=False)


def texts(values: Iterable[str]) -> str:
    return "[" + ", ".join(text(value) for value in values) + "]"


def any_of(parts: Sequence[str]) -> str:
    return " || ".join(parts) if len(parts) == 1 else "(" + " || ".join(parts) + ")"


def all_of(parts: Sequence[str]) -> str:
    return " && ".join(parts) or "true"


def is_pattern(value: str) -> bool:
    return any(sign in value for sign in "*?[")


def matches(of: str, patterns: Sequence[str]) -> str:
    """Whether the text ``of`` is one of the patterns."""
    plain = [one for one in patterns if not is_pattern(one)]
    parts = [f"{of} in {texts(plain)}"] if len(plain) > 1 else []
    if len(plain) == 1:
        parts.append(f"{of} == {text(plain[0])}")
    parts += [f"{of}.matches({text(regex(one))})" for one in patterns if is_pattern(one)]
    return any_of(parts) if parts else "false"


def regex(pattern: str) -> str:
    """A shell pattern as a regular expression of the whole text."""
    out, at = [], 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter == "*":
            out.append(".*")
        elif letter == "?":
            out.append(".")
        elif letter == "[":
            close = pattern.find("]", at + 1)
            if close < 0:
                out.append(r"\[")
                continue
            body = pattern[at:close].replace("\\", r"\\")
            out.append(f"[^{body[1:]}]" if body.startswith("!") else f"[{body}]")
            at = close + 1
        else:
            out.append(re.escape(letter))
    return "^" + "".join(out) + "$"


def has_all(holder: str, wanted: Mapping[str, str]) -> list[str]:
    """Every key is there, with a value that matches."""
    return [
        f"{text(key)} in {holder} && {matches(f'{holder}[{text(key)}]', [value])}"
        for key, value in wanted.items()
    ]


# -- GPUs ------------------------------------------------------------------------------------------

ASKED = "c.?resources.?requests.orValue({})"


def resource_keys(patterns: Sequence[str]) -> str:
    """Whether the container ``c`` asks for one of these resources at all."""
    of = "r"
    return f"{ASKED}.exists(r, {matches(of, patterns)} && !{zero('r')})"


def zero(key: str) -> str:
    return f"(sign(quantity({ASKED}[{key}])) == 0)"


def gpu_pod(patterns: Sequence[str]) -> str:
    """Pods that ask for GPUs or claim devices."""
    ask = resource_keys(patterns)
    return (
        f"({CONTAINERS}.exists(c, {ask}) || {INITS}.exists(c, {ask})"
        " || object.spec.?resourceClaims.orValue([]).size() > 0)"
    )


def amount(name: str, wanted: Comparison) -> str:
    """Whether what the pod asks for of a resource, or of all that match a pattern, compares so."""
    if name in ("cpu", "memory") or name.startswith("hugepages-"):
        raise NotCompiled(f"amounts of {name} are not compared: only counted resources are")
    of = f"{ASKED}.filter(r, {matches('r', [name])}).map(r, {_count('r')}).sum()"
    lasting = 'c.?restartPolicy.orValue("") == "Always"'
    together = f"{CONTAINERS}.map(c, {of}).sum() + {INITS}.filter(c, {lasting}).map(c, {of}).sum()"
    # of an init container the sidecars before it count as well
    before = (
        f"{INITS}.transformList(i, c, !({lasting}), {of} + {INITS}.transformList(j, d, j < i &&"
        f' d.?restartPolicy.orValue("") == "Always", {of.replace("c.?", "d.?")}).sum())'
    )
    number = f"([{together}] + {before}).max()"
    operator = "==" if wanted.operator in ("", "=") else wanted.operator
    if wanted.number != int(wanted.number):
        raise NotCompiled(f"{name} is compared with {wanted.number:g}, which is no whole number")
    return f"{number} {operator} {int(wanted.number)}"


def _count(key: str) -> str:
    return f"quantity({ASKED}[{key}]).asInteger()"


# -- matches of static entries ---------------------------------------------------------------------


def static_match(match: StaticMatch, classes: Mapping[str, WorkloadClass]) -> list[str]:
    """The conditions of an entry's match, each one expression. Raises NotCompiled."""
    found = [*has_all(LABELS, match.labels), *has_all(ANNOTATIONS, match.annotations)]
    for term in match.matchExpressions:
        key, values = text(term.key), texts(term.values or ())
        value = f'{LABELS}[?{key}].orValue("")'
        there = f"{key} in {LABELS}"
        if term.operator == "In":
            found.append(f"{there} && {value} in {values}")
        elif term.operator == "NotIn":
            found.append(f"!({there} && {value} in {values})")
        elif term.operator == "Exists":
            found.append(there)
        elif term.operator == "DoesNotExist":
            found.append(f"!({there})")
        else:
            raise NotCompiled(f"the operator {term.operator} of matchExpressions is not known")
    if match.namespaces:
        found.append(matches("request.namespace", match.namespaces))
    if match.kinds and not any(one == "*" for one in match.kinds):
        raise NotCompiled("a pod does not say which kind of workload it belongs to (match.kinds)")
    if match.classes:
        found.append(_of_class(match.classes, classes))
    for name, wanted in match.resources.items():
        if name == "gpuMemoryGB":
            raise NotCompiled("the memory of a GPU is known from Nodes, which CEL cannot read")
        found.append(amount(name, wanted))
    return found


def _of_class(names: Sequence[str], classes: Mapping[str, WorkloadClass]) -> str:
    """Whether the strongest sign of the pod names one of these classes."""
    if any(cls.match.ownerKinds for cls in classes.values()):
        raise NotCompiled(
            "a pod does not say which kind of workload it belongs to (ownerKinds of a class)"
        )
    signs: list[tuple[int, str, str]] = []
    for cls in classes.values():
        if cls.match.labels:
            signs.append((0, cls.name, all_of(has_all(LABELS, cls.match.labels))))
        if cls.match.annotations:
            signs.append((1, cls.name, all_of(has_all(ANNOTATIONS, cls.match.annotations))))
        if cls.match.priorityClasses:
            of = 'object.spec.?priorityClassName.orValue("")'
            held = f'{of} != "" && {matches(of, cls.match.priorityClasses)}'
            signs.append((2, cls.name, held))
    signs.sort(key=lambda one: one[0])
    chosen = "false"
    for _, name, condition in reversed(signs):
        chosen = f"(({condition}) ? {'true' if name in names else 'false'} : {chosen})"
    return chosen
