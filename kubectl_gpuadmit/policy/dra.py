"""The policy's sections about devices, ``ledger`` and ``tenants``: sound data -> values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kubectl_gpuadmit.devices import maturity
from kubectl_gpuadmit.devices.gates import NVIDIA, Release
from kubectl_gpuadmit.devices.maturity import Entry, Ledger, Versions
from kubectl_gpuadmit.kube import times
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
