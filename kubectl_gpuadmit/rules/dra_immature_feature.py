"""Rule dra/immature-feature."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import features, maturity, pod_claims
from kubectl_gpuadmit.devices.features import Use
from kubectl_gpuadmit.devices.gates import KUBERNETES, Release
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.kube.dra import ResourceSlice
from kubectl_gpuadmit.kube.versions import version
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown

_TITLES = {"kubernetes": "Kubernetes", "nvidia-dra-driver": "NVIDIA DRA driver"}


@rule(
    "dra/immature-feature",
    reasons={
        "dra/immature-feature": "A claim uses a feature that is alpha in the release that runs, and"
        " the policy's ledger does not allow it. Leave it out, or have somebody own it in the"
        " ledger until a day.",
        "dra/feature-absent": "A claim uses a feature that the release which runs does not have."
        " Leave it out, or upgrade.",
    },
    reads={"DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"},
    level="warn",
)
def dra_immature_feature(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Alpha features of DRA, unless the policy's ledger allows them.

    Looked at are the pod's claims and templates with the configuration of their DeviceClasses:
    MPS, time-slicing with its own settings, MIG devices made on demand, consumable shares,
    passthrough, health taints; and fields whose gate is alpha in this version of Kubernetes, such
    as ``capacity`` in 1.34 or ``tolerations`` in 1.33. The ledger allows what has an ``owner`` and
    ``expires`` in the future. A policy with a ``ledger`` denies at its default level even where it
    does not name this rule. ``kubectl gpu-admit policy ledger`` prints stages and decisions.
    """
    for claim in pod_claims.of_pod(ask.pod, ask.namespace, cluster):
        if claim.claim is None:
            if not claim.known and claim.kind:
                yield Unknown(
                    rule="dra/immature-feature",
                    missing=f"{claim}: {claim.kind} objects are not in the source",
                    hint=f"kubectl get {claim.kind.lower()}s -A -o json",
                )
            continue
        if claim.claim.requests and not cluster.knows("DeviceClass"):
            yield Unknown(
                rule="dra/immature-feature",
                missing="the configuration of device classes: DeviceClass objects are not in the"
                " source",
                hint="kubectl get deviceclasses -o json",
            )
        classes = Inventory.of(cluster).classes
        for use in features.of_claim(claim.claim, classes.get, _shown(cluster)):
            if finding := _finding(ask, use, str(claim), claim.index):
                yield finding


def _shown(cluster: Cluster) -> features.Shown:
    """What the slices show to be on."""

    def shown() -> features.Shown:
        slices = (s for s in cluster.every("ResourceSlice") if isinstance(s, ResourceSlice))
        return frozenset((use.component, use.feature) for use in features.of_slices(slices))

    found: Any = cluster.remembered("features that slices show", ("ResourceSlice",), shown)
    return frozenset(found)


def _finding(ask: Ask, use: Use, claim: str, index: int) -> Finding | None:
    ledger = ask.policy.ledger
    gate = maturity.BY_NAME[(use.component, use.feature)]
    release: Release = ledger.versions.of(use.component)
    if use.component == KUBERNETES:
        release = version(ask.kubernetes)
    there = maturity.step(gate, release)
    title = f"{_TITLES[use.component]} {maturity.spell(release)}"
    where = f"{claim}, {use.where}"
    field = ask.field(f"/spec/resourceClaims/{index}")
    source = gate.source if there is None else f"{gate.source}: since {_since(there.since)}"
    if there is None:
        return Finding(
            reason="dra/feature-absent",
            detail=f"{where}: {use.what} needs {use.feature}, which {title} does not have",
            evidence=(Evidence(title, use.feature, None, "alpha or later", source),),
            field=field,
        )
    if there.stage != "alpha":
        return None
    entry = ledger.entry(use.component, use.feature)
    if entry and entry.allows(ask.now):
        return None
    return Finding(
        reason="dra/immature-feature",
        detail=f"{where}: {use.what} needs {use.feature}, alpha in {title} and {_state(use, ask)};"
        f" {_decision(ask, entry)}",
        evidence=(Evidence(title, use.feature, "alpha", "beta, or allowed by the ledger", source),),
        field=field,
    )


def _state(use: Use, ask: Ask) -> str:
    gates, release = ask.policy.feature_gates, version(ask.kubernetes)
    if use.component == KUBERNETES and maturity.enabled(use.feature, release, gates):
        return "switched on here"
    return "off by default"


def _since(release: Release) -> str:
    return maturity.spell(release)


def _decision(ask: Ask, entry: maturity.Entry | None) -> str:
    if entry is None:
        return "the policy's ledger does not name it"
    if entry.expires and ask.now > entry.expires:
        ago = times.spell(ask.now - entry.expires)
        return f"the ledger's decision expired {ago} ago"
    lacking = [name for name in ("owner", "expires") if name in entry.empty]
    return f"the ledger names it without {' and '.join(lacking)}"
