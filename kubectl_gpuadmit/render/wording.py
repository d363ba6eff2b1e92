"""Words and numbers as a person reads them, from values that a cluster's users may have written.

Rules of this module
1. Text from a cluster or a manifest passes through ``clean`` before it reaches any renderer for
   people: it must not move the cursor, recolour the screen or turn the direction of writing.
2. A number is always named the same way; deficits are spelled out, never left to subtraction.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs
from msgspec.json import encode

from kubectl_gpuadmit.kube.pointers import steps
from kubectl_gpuadmit.verdict import Evidence, Group, Shortfall, Source, Verdict

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_ASCII = str.maketrans({"·": "-", "×": "x", "→": "->", "…": "...", "–": "-", "—": "-", "≤": "<=",
                        "≥": ">=", "’": "'", "“": '"', "”": '"'})  # fmt: skip
SHORT_KINDS = {
    "Deployment": "deploy", "StatefulSet": "sts", "DaemonSet": "ds", "ReplicaSet": "rs",
    "Pod": "pod", "CronJob": "cj", "ReplicationController": "rc", "LeaderWorkerSet": "lws",
    "InferenceService": "isvc",
}  # fmt: skip
"""kubectl's own short names, for rows that must hold."""


def clean(text: object, *, ascii: bool = False) -> str:
    """One line of visible text: white space folded, control and direction characters escaped."""
    line = " ".join(str(text).split()) if not str(text).isprintable() else str(text)
    line = _UNSAFE.sub(lambda m: _escape(m[0]), line)
    if ascii and not line.isascii():
        line = line.translate(_ASCII)
        line = "".join(c if c.isascii() else _escape(c) for c in line)
    return line


def escape_json(text: str) -> str:
    """JSON text with the same meaning, in which such characters stand as ``\\u`` escapes."""

    def escaped(match: re.Match[str]) -> str:
        if match[0] == "\n":
            return match[0]
        raw = match[0].encode("utf-16-be", "surrogatepass").hex()
        return "".join(f"\\u{raw[i : i + 4]}" for i in range(0, len(raw), 4))

    return _UNSAFE.sub(escaped, text)


def unsafe(text: str) -> bool:
    """True where ``clean`` would show an escape for something in it."""
    return bool(_UNSAFE.search(text.replace("\n", "")))


def _escape(char: str) -> str:
    code = ord(char)
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )


def cells(text: str) -> int:
    """Columns that a terminal gives to cleaned text: wide characters take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(_cell(c) for c in text)


def _cell(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, width: int, *, ascii: bool = False) -> str:
    """The text in at most ``width`` columns, cut in the middle: names differ at both ends."""
    if cells(text) <= width:
        return text
    gap = "..." if ascii else "…"
    room = max(width - len(gap), 0)
    tail = _last(text, room // 2)
    return _first(text, room - cells(tail)) + gap + tail if room else gap[:width]


def cut_head(text: str, width: int, *, ascii: bool = False) -> str:
    """The text in at most ``width`` columns without its beginning: of a path, the file matters."""
    if cells(text) <= width:
        return text
    gap = "..." if ascii else "…"
    return (gap + _last(text, max(width - len(gap), 0)))[: max(width, 0)]


def _first(text: str, width: int) -> str:
    taken = 0
    for at, char in enumerate(text):
        taken += _cell(char)
        if taken > width:
            return text[:at]
    return text


def _last(text: str, width: int) -> str:
    return _first(text[::-1], width)[::-1]


LONGEST_WORD = 400
"""Columns of one unbroken word that are shown at all: a Kubernetes name has at most 253."""


def wrap(text: str, width: int, *, first: int | None = None) -> list[str]:
    """Lines of at most ``width`` columns, the first of ``first``. Longer words are broken; words
    beyond ``LONGEST_WORD`` lose their middle, which says how much it was."""
    width = max(width, 8)
    room = max(width if first is None else first, 8)
    lines: list[str] = []
    line = ""
    for piece in text.split(" "):
        if len(piece) > LONGEST_WORD:
            gone = len(piece) - 80
            piece = f"{piece[:40]}...({gone:,}_characters)...{piece[-40:]}"
        while True:
            joined = f"{line} {piece}" if line else piece
            if cells(joined) <= room:
                line = joined
                break
            if line:
                lines.append(line)
                line, room = "", width
                continue
            head = _first(piece, room) or piece[:1]
            lines.append(head)
            piece, room = piece[len(head) :], width
    return [*lines, line] if line or not lines else lines


def plural(number: int, noun: str, several: str = "") -> str:
    """``1 pod``, ``3 pods``, ``2,000 nodes``."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


def amount(resource: str, number: int | float | None) -> str:
    """A scheduler amount as a person writes it: cores for cpu, GiB for bytes, else the count."""
    if number is None:
        return "?"
    if resource == "cpu":
        return f"{number / 1000:,.3f}".rstrip("0").rstrip(".")
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return size(number)
    return f"{number:,}"


def size(number: int | float) -> str:
    """Bytes in the largest binary unit that keeps it readable: ``33.3 GiB``."""
    value = float(number)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(value) < 1024 or unit == "PiB":
            break
        value /= 1024
    return f"{value:,.1f}".removesuffix(".0") + f" {unit}"


def shown(value: str | int | float | bool | None) -> str:
    """An evidence value: numbers with separators, None as ``absent``."""
    match value:
        case None:
            return "absent"
        case bool():
            return str(value).lower()
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.2f}".rstrip("0").rstrip(".")
        case "":
            return '""'
        case _:
            return value


_ROLES = ("asked", "used", "limit", "free", "has", "needs", "needed", "allocatable", "capacity")


def evidence_lines(evidence: Sequence[Evidence]) -> list[tuple[str, str, str]]:
    """(what, numbers, source) a line. Facts about one thing whose names end in what they are of it
    (``requests.nvidia.com/gpu asked``, ``… used``, ``… limit``) share a line, and so do equal facts
    about several things."""
    lines: dict[tuple[str, ...], tuple[list[str], list[str]]] = {}
    for fact in evidence:
        what, _, role = fact.what.rpartition(" ")
        if what and role in _ROLES and fact.wanted is None:
            said, key = f"{role} {shown(fact.observed)}", (fact.subject, what, fact.source, "")
        else:
            what, said = fact.what, _compared(fact)
            key = ("", what, fact.source, said)
        saying, about = lines.setdefault(key, ([], []))
        saying += [said] if said not in saying else []
        about += [fact.subject] if fact.subject not in about else []
    return [
        (key[1], " · ".join(said) + (f" · {_several(about)}" if len(about) > 1 else ""), key[2])
        for key, (said, about) in lines.items()
    ]


def _several(subjects: list[str]) -> str:
    more = f" and {len(subjects) - 3:,} more" if len(subjects) > 3 else ""
    return ", ".join(subjects[:3]) + more


def _compared(fact: Evidence) -> str:
    if fact.wanted is None:
        return shown(fact.observed)
    has, wanted = shown(fact.observed), shown(fact.wanted)
    match fact.bound:
        case "least":
            return f"has {has} · needs {wanted}"
        case "most":
            return f"would be {has} · limit {wanted}"
        case _:
            return f"is {has} · should be {wanted}"


def shortfall(short: Shortfall) -> str:
    """One filter's refusal of one node: the scheduler's words, then the numbers."""
    if short.requested is None or short.capacity is None:
        return short.reason + (f" ({short.subject})" if short.subject not in short.reason else "")
    name = short.subject
    has = max(short.capacity - (short.used or 0), 0)
    asked, used = amount(name, short.requested), amount(name, short.used or 0)
    limit, free = amount(name, short.capacity), amount(name, has)
    return f"{short.reason}: asked {asked} · used {used} · limit {limit}, has {free} free"


def gpus(counts: Mapping[str, int]) -> str:
    """``64 nvidia.com/gpu``, several joined; ``no GPU`` for none."""
    some = [f"{n:,} {name}" for name, n in sorted(counts.items()) if n]
    return ", ".join(some) or "no GPU"


def asks(verdict: Verdict) -> str:
    """``3 pods × 4 nvidia.com/gpu``, by role where roles differ; the totals where nobody knows."""

    def one(group: Group, noun: str) -> str:
        counts = {**group.gpus, **group.devices}
        several = noun if noun != "pod" and group.role else noun + "s"
        pods = f"{group.pods:,} {noun if group.pods == 1 else several}"
        counted = bool(group.devices or group.shared)
        claims = [] if counted or not group.claims else [plural(group.claims, "claim")]
        shared = [gpus(group.shared)] if any(group.shared.values()) else []
        if not any(counts.values()):
            if claims:
                return f"{plural(group.pods, noun)} × {claims[0]}"
            if shared:
                return f"{pods} {'with' if group.pods == 1 else 'sharing'} {shared[0]}"
            return f"{group.pods:,} {noun}" if group.role else f"{plural(group.pods, noun)}, no GPU"
        times = " × " if sum(1 for n in counts.values() if n) == 1 else " with "
        more = [*claims, *(f"{one} shared" for one in shared)]
        return f"{pods}{times}{gpus(counts)}" + "".join(f" and {one}" for one in more)

    if verdict.ref.kind in ("ResourceClaim", "ResourceClaimTemplate"):
        return "judged by itself"
    shapes = {encode(structs.replace(g, role="", pods=0)) for g in verdict.groups}
    if len(shapes) == 1:
        return one(structs.replace(verdict.groups[0], role="", pods=verdict.pods), "pod")
    if verdict.groups:
        return " + ".join(one(g, g.role or "pod") for g in verdict.groups)
    return totals(verdict)


def totals(verdict: Verdict) -> str:
    """``4 pods · 24 nvidia.com/gpu``, whatever the roles."""
    return f"{plural(verdict.pods, 'pod')} · {gpus({**verdict.gpus, **verdict.devices})}"


def age(seconds: int) -> str:
    """``12 s old``, ``4 min old``, ``3 h old``, ``9 days old``."""
    if seconds < 120:
        return f"{max(seconds, 0)} s old"
    if seconds < 2 * 3600:
        return f"{seconds // 60} min old"
    if seconds < 2 * 86400:
        return f"{seconds // 3600} h old"
    return f"{seconds // 86400} days old"


def source(facts: Source) -> str:
    """``snapshot examples/cluster, 4 min old``; an unknown age is said."""
    if facts.kind == "none":
        return "no cluster"
    if facts.kind == "live":
        return f"live cluster {facts.name}"
    old = "age unknown" if facts.ageSeconds is None else age(facts.ageSeconds)
    return f"snapshot {facts.name}, {old}"


def pointer(text: str) -> str:
    """An RFC 6901 pointer as kubectl writes a field: ``spec.containers[0].image``."""
    out = ""
    for step in steps(text):
        if step.isdigit() or step == "-":
            out += f"[{step}]" if step != "-" else "[+]"
        elif "." in step or "/" in step:
            out += f'["{step}"]'
        else:
            out += ("." if out else "") + step
    return out


def change(op: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str:
    """One RFC 6902 operation in a few words: ``spec.replicas: 3 → 2``."""
    path = str(op.get("path", ""))
    name = pointer(path)
    old = (before or {}).get(path)
    match op.get("op"):
        case "remove":
            return f"remove {name}"
        case "move" | "copy":
            return f"{op['op']} {pointer(str(op.get('from', '')))} to {name}"
        case "replace" if old is not None:
            return f"{name}: {flow(old)} → {flow(op.get('value'))}"
        case _:
            return f"{name}: {flow(op.get('value'))}"


def changes(patch: Sequence[Mapping[str, Any]]) -> list[str]:
    """A patch as one line an operation; a ``test`` gives the value that the next one replaces."""
    before = {str(op["path"]): op.get("value") for op in patch if op.get("op") == "test"}
    return [change(op, before) for op in patch if op.get("op") != "test"]


def encodable(value: Any) -> Any:
    """The value as UTF-8 and 64-bit writers take it: lone surrogates, which a YAML escape can make,
    become U+FFFD; integers beyond 64 bits become text."""
    match value:
        case str():
            return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        case dict():
            return {encodable(k): encodable(v) for k, v in value.items()}
        case list() | tuple():
            return [encodable(item) for item in value]
        case int() if not -(2**63) <= value < 2**64:
            return str(value)
        case _:
            return value


def flow(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return str(value)
    import yaml

    text: str = yaml.dump(
        encodable(value),
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        default_flow_style=True,
        sort_keys=False,
        allow_unicode=True,
        width=2**31 - 1,
    )
    return text.removesuffix("\n").removesuffix("\n...").strip()
