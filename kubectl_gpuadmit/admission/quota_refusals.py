"""The words in which quota admission refuses an object: the API server's, and numbers for people.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/resourcequota/controller.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission.quota_row import Row
from kubectl_gpuadmit.admission.quota_usage import Charge
from kubectl_gpuadmit.admission.refusal import forbidden, refusal
from kubectl_gpuadmit.admission.resource_lists import ZERO, ResourceList, plus, times
from kubectl_gpuadmit.kube import quota_keys
from kubectl_gpuadmit.kube.quantity import Quantity
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy

REASONS = {
    "quota/exceeded": "A ResourceQuota of the namespace has less left than the object asks for. Ask"
    " for less, wait until others end, or have the quota raised.",
    "quota/must-specify": "A ResourceQuota counts cpu or memory, so every container must name it."
    " Set the requests or limits that the text lists, or a LimitRange default.",
    "quota/status-unknown": "The quota controller has not counted a key of a ResourceQuota yet, so"
    " the API server refuses what the key counts. Try again in a moment.",
    "quota/template-trap": "A claim that the pod gets from a template would exceed a ResourceQuota."
    " The pod is admitted and then stays Pending. Ask for fewer devices, or have the quota raised.",
    "quota/negative": "The object asks for a negative amount. Correct the number.",
}


def _listed(amounts: ResourceList, keys: list[str]) -> str:
    return ",".join(f"{key}={amounts[key]}" for key in keys if key in amounts)


def _share(row: Row, key: str, delta: ResourceList, fit: int, *, pods: bool) -> str:
    """``(8 by pods 1-2, 4 earlier in this run)``: which part of the use is the run's own."""
    own = times(delta[key], fit)
    earlier = Quantity(row.run.get(key, ZERO).nano - own.nano, own.format)
    parts = []
    if own.nano:
        if pods:
            which = "pod 1" if fit == 1 else f"pods 1-{fit}"
        else:
            which = "the first" if fit == 1 else f"the first {fit}"
        parts.append(f"{own} by {which}")
    if earlier.nano > 0:
        parts.append(f"{earlier} earlier in this run")
    return f" ({', '.join(parts)})" if parts else ""


def exceeded(
    row: Row, charge: Charge, delta: ResourceList, keys: list[str], fit: int, count: int
) -> Finding:
    name = row.quota.name
    text = (
        f"exceeded quota: {name}, requested: {_listed(delta, keys)},"
        f" used: {_listed(row.used, keys)}, limited: {_listed(row.hard, keys)}"
    )
    evidence = []
    lines = []
    raised: dict[str, str] = {}
    pods = charge.resource == "pods"
    for key in keys:
        used, limit = row.used.get(key, ZERO), row.hard[key]
        share = _share(row, key, delta, fit, pods=pods)
        words = f"asked {delta[key]} · used {used}{share} · limit {limit}"
        lines.append(f"{key} {words}")
        evidence.append(
            Evidence(
                f"ResourceQuota {name}",
                key,
                str(plus(used, delta[key])),
                str(limit),
                f"{words} · {row.source}",
                bound="most",
            )
        )
        raised[key] = str(plus(used, times(delta[key], count - fit)))
    what = "pod" if pods else charge.resource
    which = f"{what} {fit + 1} of {count}: " if count > 1 else ""
    alone = any(times(delta[key], count).nano > row.hard[key].nano for key in keys)
    return refusal(
        "quota/exceeded",
        f"{which}ResourceQuota {name}: {'; '.join(lines)}",
        forbidden(charge.name, text, charge.resource),
        evidence=evidence,
        permanent=alone,
        suggest=(
            Remedy(
                summary=f"raise ResourceQuota {name} to "
                + ", ".join(f"{key}={amount}" for key, amount in raised.items()),
                command=quota_keys.patch_command(row.quota.namespace, name, raised),
                cost=90,
            ),
        ),
    )


def must_specify(row: Row, charge: Charge, missing: dict[str, list[str]]) -> Finding:
    name = row.quota.name
    text = "must specify " + "; ".join(
        f"{key} for: {','.join(containers)}" for key, containers in missing.items()
    )
    evidence = [
        Evidence(
            f"ResourceQuota {name}",
            f"{key} of container {', '.join(containers)}",
            None,
            str(row.hard[key]),
            "status.hard" if row.quota.status.hard is not None else "spec.hard",
        )
        for key, containers in missing.items()
    ]
    return refusal(
        "quota/must-specify",
        f"ResourceQuota {name}: {text}",
        forbidden(charge.name, f"failed quota: {name}: {text}", charge.resource),
        evidence=evidence,
        field="/spec/containers",
    )


def status_unknown(row: Row, charge: Charge, counted: frozenset[str]) -> Finding:
    name = row.quota.name
    text = f"status unknown for quota: {name}, resources: {','.join(sorted(counted))}"
    evidence = [
        Evidence(f"ResourceQuota {name}", key, None, str(row.hard[key]), row.source)
        for key in sorted(counted - row.used.keys())
    ]
    return refusal(
        "quota/status-unknown",
        f"ResourceQuota {name} has not been counted yet: "
        + ", ".join(sorted(counted - row.used.keys())),
        forbidden(charge.name, text, charge.resource),
        evidence=evidence,
        permanent=False,
    )


def negative(charge: Charge) -> Finding:
    keys = sorted(key for key, amount in charge.usage.items() if amount.nano < 0)
    text = f"quota usage is negative for resource(s): {','.join(keys)}"
    return refusal(
        "quota/negative",
        text,
        forbidden(charge.name, text, charge.resource),
        evidence=[Evidence(charge.resource, key, str(charge.usage[key]), "0") for key in keys],
    )
