"""Objects that a run brings along beside its workloads (claims, quotas, volumes …): as policies see
them. Claims and their templates are known in every field, with their defaults; of other kinds, what
is written.

Source: k8s.io/kubernetes v1.37.2 pkg/apis/resource/v1/defaults.go, zz_generated.defaults.go.
"""

from __future__ import annotations

import copy
from typing import Any

from kubectl_gpuadmit.admission.native.request import Partial, Request
from kubectl_gpuadmit.admission.native.workloads import labels
from kubectl_gpuadmit.cel.values import Unknown
from kubectl_gpuadmit.verdict import Ref

Json = dict[str, Any]

_CLAIMS = ("ResourceClaim", "ResourceClaimTemplate")
_ADMISSION = "admissionregistration.k8s.io"


def request(document: Json, ref: Ref) -> Request | None:
    """The creation of the object; None for policies themselves, about which none is asked, and for
    what lives in no namespace."""
    group, _, version = ref.apiVersion.rpartition("/")
    if group == _ADMISSION or not ref.namespace:
        return None
    raw = _object(copy.deepcopy(document), ref)
    return Request(
        group=group,
        version=version,
        resource=_plural(ref.kind),
        kind=ref.kind,
        namespace=ref.namespace,
        name=ref.name,
        labels=labels(raw),
        object=raw,
    )


def _plural(kind: str) -> str:
    lower = kind.lower()
    return lower + ("es" if lower.endswith("s") else "s")


def _object(document: Json, ref: Ref) -> Json:
    what = f"{ref.kind} {ref.name}"
    head = document.get("metadata")
    head = dict(head) if isinstance(head, dict) else {}
    for field in ("uid", "creationTimestamp", "resourceVersion", "generation"):
        head.pop(field, None)
    head |= {"namespace": ref.namespace, "managedFields": Unknown("metadata.managedFields")}
    known = {**document, "metadata": head}
    known.pop("status", None)
    spec = known.get("spec")
    if ref.kind in _CLAIMS and ref.apiVersion == "resource.k8s.io/v1" and isinstance(spec, dict):
        _claim(spec.setdefault("spec", {}) if ref.kind == "ResourceClaimTemplate" else spec)
        return known if ref.kind == "ResourceClaimTemplate" else {**known, "status": {}}
    if isinstance(spec, dict):
        known["spec"] = Partial.of(f"{what} spec", spec)
    return Partial.of(what, known)


def _claim(spec: Any) -> None:
    devices = spec.setdefault("devices", {}) if isinstance(spec, dict) else {}
    for one in (devices.get("requests") if isinstance(devices, dict) else None) or ():
        if isinstance(one, dict):
            for each in (one.get("exactly"), *(one.get("firstAvailable") or ())):
                _device_request(each)


def _device_request(one: Any) -> None:
    if not isinstance(one, dict):
        return
    if not one.get("allocationMode"):
        one["allocationMode"] = "ExactCount"
    if one["allocationMode"] == "ExactCount" and not one.get("count"):
        one["count"] = 1
    for toleration in one.get("tolerations") or ():
        if isinstance(toleration, dict) and not toleration.get("operator"):
            toleration["operator"] = "Equal"


def stored(raw: Json) -> Json:
    """The same prepared for storing."""
    after = copy.copy(raw)
    head = dict(raw["metadata"])
    for field in ("uid", "creationTimestamp"):
        head[field] = Unknown(f"metadata.{field}")
    after["metadata"] = head
    return after
