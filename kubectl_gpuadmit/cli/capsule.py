"""``--capsule`` and ``--from-capsule``: one answer as a file, and the answer of such a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit import __version__
from kubectl_gpuadmit.adapters.snapshot import read_packed
from kubectl_gpuadmit.adapters.writing import write_whole
from kubectl_gpuadmit.cli.answer import load_policy
from kubectl_gpuadmit.cli.progress import Progress
from kubectl_gpuadmit.kube.decode import decode_bulk
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.render.data import document
from kubectl_gpuadmit.snapshots import capsule
from kubectl_gpuadmit.snapshots.capsule import Asked as Asked
from kubectl_gpuadmit.verdict import Report


class Replayed(Struct, frozen=True):
    """Today's answer, and how it compares with the recorded one."""

    report: Report
    same: bool
    comparison: str


def plain(report: Report) -> dict[str, Any]:
    """The report as it comes back from a file."""
    read: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document(report)))
    return read


def keeper(file: str, asked: Asked, report: Report) -> Callable[[], None]:
    """Gives what writes the capsule of a question whose whole answer is ``report``.

    It raises as ``write_whole``, and Unanswerable (``capsule-insufficient``).
    """

    def keep() -> None:
        with Progress() as progress:
            progress.step(f"writing the capsule {file}")
            raw = capsule.made(asked, program=__version__, plain=plain)
            capsule.prove(raw, report, load=_policy, decode=objects_of, plain=plain)
            write_whole(Path(file), raw)

    return keep


def replay(file: str) -> Replayed:
    """Answers the question that a capsule holds. Raises BadSnapshot."""
    held = capsule.opened(read_packed(Path(file)), file)
    report = capsule.restored(held, load=_policy, decode=objects_of).answer()
    again = plain(report)
    which = f"{file}: recorded by version {held.program}; version {__version__} gives"
    if again == held.verdict:
        return Replayed(report, True, f"{which} the same verdict")
    changed = "; ".join(_changes(held.verdict, again)) or "in its details"
    said = f"warning: {which} another verdict: {changed}"
    return Replayed(report, False, said)


def _changes(recorded: Any, again: dict[str, Any]) -> list[str]:
    """``deployment/x: was admitted, fits; is denied, fits`` for each workload that differs."""
    listed = recorded.get("workloads", []) if isinstance(recorded, dict) else []
    olds = {_name(one): _said(one) for one in listed}
    news = {_name(one): _said(one) for one in again["workloads"]}
    return [
        f"{name} was {olds.get(name, 'not there')}, is {news.get(name, 'not there')}"
        for name in {**olds, **news}
        if olds.get(name) != news.get(name)
    ]


def _name(workload: dict[str, Any]) -> str:
    ref = workload["ref"]
    return f"{ref['kind'].lower()}/{ref['name']}"


def _said(workload: dict[str, Any]) -> str:
    by = f" by {', '.join(workload['blockers'])}" if workload["blockers"] else ""
    return f"{workload['admission']}, {workload['placement']}{by}"


def _policy(raw: bytes, name: str) -> Policy:
    return load_policy((raw, name))


def objects_of(items: list[dict[str, Any]]) -> list[KubeObject]:
    """Plain objects as structs."""
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    return decode_bulk(msgspec.json.encode(listed), "the capsule")[0] if items else []
