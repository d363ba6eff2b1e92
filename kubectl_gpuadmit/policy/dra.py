"""The policy's sections about devices: ``featureGates``, ``ledger`` and ``tenants`` as values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kubectl_gpuadmit.devices import maturity
from kubectl_gpuadmit.devices.gates import KUBERNETES, NVIDIA, Release
from kubectl_gpuadmit.devices.maturity import Entry, Ledger, Versions
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.kube.gates import ALL_OF_STAGE, DEFAULT, Gates
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.policy.entries import Tenant
from kubectl_gpuadmit.policy.shape import entries

if TYPE_CHECKING:
    from kubectl_gpuadmit.policy.build import Builder

Data = dict[str, Any]


def ledger(data: Data | None, builder: Builder) -> Ledger:
    """The ``ledger`` section; an unknown feature, version or time is reported."""
    if not data:
        return Ledger()
    versions = data.get("versions", {})
    found: dict[tuple[str, str], Entry] = {}
    for index, entry in entries(data.get("features")):
        pointer = f"/ledger/features/{index}"
        component, feature = entry.get("component", NVIDIA), entry["feature"]
        if "component" not in entry and (NVIDIA, feature) not in maturity.BY_NAME:
            component = next((c for c, name in maturity.BY_NAME if name == feature), component)
        if (component, feature) not in maturity.BY_NAME:
            known = {name for _, name in maturity.BY_NAME}
            builder.unknown(f"{pointer}/feature", "feature", feature, known)
            continue
        if (component, feature) in found:
            builder.report(pointer, "policy-duplicate-name", f"a second decision for {feature}")
            continue
        found[(component, feature)] = Entry(
            feature=feature,
            component=component,
            owner=entry.get("owner", "").strip(),
            expires=_instant(entry.get("expires", ""), f"{pointer}/expires", builder),
            reason=entry.get("reason", "").strip(),
            testCluster=entry.get("testCluster", "").strip(),
            index=index,
        )
    return Ledger(
        versions=Versions(
            kubernetes=_release(versions, "kubernetes", builder, maturity.release),
            driver=_release(versions, "nvidiaDraDriver", builder, maturity.driver_release),
            operator=_release(versions, "gpuOperator", builder, maturity.release),
        ),
        entries=tuple(found.values()),
    )


def _instant(text: str, pointer: str, builder: Builder) -> dt.datetime | None:
    if not text.strip():
        return None
    try:
        return times.parse_instant(text)
    except times.TimeError as error:
        builder.report(pointer, "policy-bad-value", str(error))
        return None


def _release(
    versions: Data, key: str, builder: Builder, read: Callable[[str], Release]
) -> Release | None:
    if key not in versions:
        return None
    try:
        return read(versions[key])
    except ValueError as error:
        builder.report(f"/ledger/versions/{key}", "policy-bad-value", str(error))
        return None


def feature_gates(data: Data | None, ledger: Ledger, builder: Builder) -> Gates:
    """The ``featureGates`` section; what no component of Kubernetes would start with is reported.

    The release is the ledger's, the newest where that names none.
    """
    if not data:
        return DEFAULT
    gates = Gates.of(data)
    release = ledger.versions.of(KUBERNETES)
    title = f"Kubernetes {maturity.spell(release)}"
    known = {name for component, name in maturity.BY_NAME if component == KUBERNETES}
    sound = True
    for name, on in data.items():
        pointer = f"/featureGates/{token(name)}"
        if name in ALL_OF_STAGE:
            continue
        if name not in known:
            builder.unknown(pointer, "feature-gate", name, known)
            sound = False
            continue
        there = maturity.step(maturity.BY_NAME[(KUBERNETES, name)], release)
        if there is None:
            problem = f"{title} does not have {name}"
        elif there.locked and there.on is not on:
            problem = f"{name} is locked in {title} and cannot be switched {_on(on)}"
        else:
            continue
        sound = False
        builder.report(
            pointer,
            "policy-bad-feature-gate",
            problem,
            "name the version in use under ledger.versions.kubernetes, or leave the gate out",
        )
    for name, needs in maturity.unmet(release, gates) if sound else ():
        builder.report(
            f"/featureGates/{token(needs if needs in data else name)}"
            if {needs, name} & data.keys()
            else "/featureGates",
            "policy-bad-feature-gate",
            f"{name} is on and needs {needs}, which is off: no component of {title} starts so",
            f"switch {needs} on, or {name} off as well",
        )
    return gates


def _on(on: bool) -> str:
    return "on" if on else "off"


def tenants(items: list[Any] | None, builder: Builder) -> tuple[Tenant, ...]:
    """The ``tenants`` list; names are unique."""
    found: dict[str, Tenant] = {}
    for index, entry in entries(items):
        if entry["name"] in found:
            builder.report(
                f"/tenants/{index}/name", "policy-duplicate-name", f"a second {entry['name']}"
            )
        maximum = entry.get("maxDevices")
        found[entry["name"]] = Tenant(
            name=entry["name"],
            namespaces=tuple(entry["namespaces"]),
            deviceClasses=_texts(entry, "deviceClasses"),
            selectors=_texts(entry, "selectors"),
            maxDevices=None if maximum is None else int(maximum),
            runtimeClasses=_texts(entry, "runtimeClasses"),
        )
    return tuple(found.values())


def _texts(entry: Data, key: str) -> tuple[str, ...] | None:
    return tuple(entry[key]) if key in entry else None
