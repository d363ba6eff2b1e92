"""The feature-maturity ledger: what is known of each DRA feature, and what a team decided of it.

Knowledge comes from ``gates``, decisions from the policy's ``ledger`` section. An alpha feature is
in use by decision only: somebody owns it, until a day. Rules of this module

1. A decision that lacks its owner or its end decides nothing; it is printed as unresolved.
2. An alpha feature that nobody names is off: that is settled, not open.
3. A version that nobody gave is taken to be the newest known, and said to be assumed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from kubectl_gpuadmit.devices.gates import (
    CALENDAR_DRIVER,
    GATES,
    KUBERNETES,
    NEWEST,
    NVIDIA,
    OPERATOR_DRIVER,
    Component,
    Gate,
    Release,
    Stage,
    Step,
)
from kubectl_gpuadmit.kube.gates import DEFAULT, Gates

State = Literal["settled", "absent", "off", "allowed", "expired", "unresolved"]
"""settled: beta or GA, nothing to decide. absent: not in this release. off: alpha, named by nobody.
allowed: alpha, owned, until a day. expired: that day is over. unresolved: named, and something that
a decision needs is empty."""

BY_NAME: dict[tuple[Component, str], Gate] = {(gate.component, gate.name): gate for gate in GATES}


class Entry(Struct, frozen=True):
    """One decision of the policy's ledger; '' and None are fields that nobody has filled in."""

    feature: str
    component: Component = NVIDIA
    owner: str = ""
    expires: dt.datetime | None = None
    reason: str = ""
    testCluster: str = ""
    index: int = 0
    """Place in the list, counted from 0."""

    @property
    def empty(self) -> tuple[str, ...]:
        """Names of the fields that nobody has filled in, as the policy spells them."""
        given = {
            "owner": self.owner,
            "expires": self.expires,
            "reason": self.reason,
            "testCluster": self.testCluster,
        }
        return tuple(name for name, value in given.items() if not value)

    @property
    def decides(self) -> bool:
        return bool(self.owner and self.expires)

    def allows(self, now: dt.datetime) -> bool:
        return bool(self.owner) and self.expires is not None and now <= self.expires


class Versions(Struct, frozen=True):
    """The releases in use; None where nobody said which."""

    kubernetes: Release | None = None
    driver: Release | None = None
    """NVIDIA's DRA driver."""
    operator: Release | None = None

    def of(self, component: Component) -> Release:
        """The release in use, the newest known where nobody said."""
        return self.given(component) or NEWEST[component]

    def given(self, component: Component) -> Release | None:
        if component == KUBERNETES:
            return self.kubernetes
        if self.driver is None and self.operator is not None:
            return _of_operator(self.operator)
        return self.driver

    @property
    def without_driver(self) -> bool:
        """True where the Operator in use carries no DRA driver and none was named beside it."""
        return (
            self.driver is None
            and self.operator is not None
            and _of_operator(self.operator) is None
        )


def _of_operator(release: Release) -> Release | None:
    """The driver of the newest known Operator that is not newer than this one."""
    known = [one for one in OPERATOR_DRIVER if one <= release]
    return OPERATOR_DRIVER[max(known)] if known else None


class Ledger(Struct, frozen=True):
    """The policy's ``ledger`` section."""

    versions: Versions = Versions()
    entries: tuple[Entry, ...] = ()

    def entry(self, component: Component, feature: str) -> Entry | None:
        return next(
            (e for e in self.entries if e.feature == feature and e.component == component), None
        )


class Row(Struct, frozen=True):
    """One feature as the ledger prints it."""

    gate: Gate
    release: Release
    step: Step | None
    """Its stage and default there; None where this release does not have it."""
    state: State
    entry: Entry | None = None
    empty: tuple[str, ...] = ()
    """Fields of the decision that nobody has filled in."""
    conflicts: tuple[str, ...] = ()
    """Sentences: what cannot stand beside it, what it needs and has not."""

    @property
    def stage(self) -> Stage | None:
        return self.step.stage if self.step else None


def step(gate: Gate, release: Release) -> Step | None:
    """The stage and default of a feature in a release; None where the release does not have it."""
    found = [one for one in gate.steps if one.since <= release]
    return found[-1] if found else None


def enabled(name: str, at: Release, gates: Gates = DEFAULT) -> bool:
    """Whether a gate of Kubernetes is on in a release; what is locked cannot be switched."""
    there = step(BY_NAME[(KUBERNETES, name)], at)
    if there is None or there.locked:
        return there is not None and there.on
    for said in (gates.get(name), gates.of_stage(there.stage)):
        if said is not None:
            return said
    return there.on


def unmet(at: Release, gates: Gates) -> Iterator[tuple[str, str]]:
    """(gate that is on, gate that it needs and that is off): no component starts with those."""
    for gate in GATES:
        if gate.component == KUBERNETES and enabled(gate.name, at, gates):
            for other in gate.needs:
                if (KUBERNETES, other) in BY_NAME and not enabled(other, at, gates):
                    yield gate.name, other


def driver_release(text: str) -> Release:
    """``0.5``, ``v0.5.0`` or the former ``25.8.1`` -> (0, 5), (0, 5), (0, 2). Raises ValueError."""
    major, minor = release(text)
    if major == 0:
        return major, minor
    known = [one for one in CALENDAR_DRIVER if one <= (major, minor)]
    if not known:
        raise ValueError(f"{text!r} is older than any DRA driver")
    return CALENDAR_DRIVER[max(known)]


def release(text: str) -> Release:
    """``v26.7.0`` -> (26, 7). Raises ValueError."""
    parts = text.strip().removeprefix("v").split(".")
    if len(parts) < 2 or not all(p.isascii() and p.isdecimal() and len(p) < 5 for p in parts[:2]):
        raise ValueError(f"{text!r} is not a version such as 0.5 or 26.7.0")
    return int(parts[0]), int(parts[1])


def spell(version: Release) -> str:
    return f"{version[0]}.{version[1]}"


def rows(ledger: Ledger, *, now: dt.datetime) -> tuple[Row, ...]:
    """Every known feature with what is known and decided of it, in the order of the gates."""
    decided = {(e.component, e.feature) for e in ledger.entries}
    return tuple(_row(gate, ledger, decided, now) for gate in GATES)


def _row(gate: Gate, ledger: Ledger, decided: set[tuple[Component, str]], now: dt.datetime) -> Row:
    at = ledger.versions.of(gate.component)
    there = None if _missing_driver(gate, ledger.versions) else step(gate, at)
    entry = ledger.entry(gate.component, gate.name)
    empty = entry.empty if entry else ()
    if entry and ledger.versions.given(gate.component) is None:
        empty = (*empty, f"versions.{_VERSION_KEY[gate.component]}")
    return Row(
        gate=gate,
        release=at,
        step=there,
        state=_state(there, entry, empty, now),
        entry=entry,
        empty=empty,
        conflicts=tuple(_conflicts(gate, ledger, decided)) if entry else (),
    )


_VERSION_KEY: Mapping[Component, str] = {KUBERNETES: "kubernetes", NVIDIA: "nvidiaDraDriver"}


def _missing_driver(gate: Gate, versions: Versions) -> bool:
    return gate.component == NVIDIA and versions.without_driver


def _state(
    there: Step | None, entry: Entry | None, empty: tuple[str, ...], now: dt.datetime
) -> State:
    if there is None:
        return "absent"
    if there.stage != "alpha":
        return "settled"
    if entry is None:
        return "off"
    if entry.expires is not None and now > entry.expires:
        return "expired"
    return "unresolved" if empty else "allowed"


def _conflicts(gate: Gate, ledger: Ledger, decided: set[tuple[Component, str]]) -> Iterable[str]:
    for other in gate.excludes:
        if (gate.component, other) in decided:
            yield f"cannot be on beside {other}"
    for other in gate.beside:
        partner = BY_NAME[(gate.component, other)]
        there = step(partner, ledger.versions.of(gate.component))
        if (gate.component, other) not in decided and not (there and there.on):
            yield f"needs {other}, which is off"
    at = ledger.versions.of(KUBERNETES)
    for other in gate.needs:
        needed = BY_NAME.get((KUBERNETES, other))
        there = step(needed, at) if needed else None
        if needed and there is None:
            yield f"needs {other}, which Kubernetes {spell(at)} does not have"
        elif there and not there.on and (KUBERNETES, other) not in decided:
            yield f"needs {other}, off by default on Kubernetes {spell(at)}"
