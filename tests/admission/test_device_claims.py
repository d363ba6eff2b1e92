"""ResourceClaims, templates and DeviceClasses that the API server would not store.

Each text is compared with Kubernetes' own in the family ``claims``; here is what is made of it.
"""

from __future__ import annotations

import datetime as dt

from kubectl_gpuadmit.admission import device_claims
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.kube.gates import Gates
from kubectl_gpuadmit.kube.manifests import read_documents
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.verdict import Report, Source
from tests.rules.cases import decoded

NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)

WRONG = b"""\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus, namespace: ml}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu.nvidia.com
          allocationMode: All
          count: 2
          selectors:
          - cel: {expression: device.drive == "gpu.nvidia.com"}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ml}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]
  containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: flat, namespace: ml}
spec:
  devices:
    requests:
    - {name: gpu, deviceClassName: gpu.nvidia.com}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: flat-in-beta1, namespace: ml}
spec:
  devices:
    requests:
    - {name: gpu, deviceClassName: gpu.nvidia.com}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: whole}
spec: {extendedResourceName: gpu}
"""


def report(raw: bytes, kubernetes: str = "1.37") -> Report:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {}}
    known = frozenset(
        {"Node", "Pod", "Namespace", "ResourceSlice", "ResourceClaim", "ResourceClaimTemplate"}
    ) | {"DeviceClass", "ResourceQuota", "LimitRange"}
    return evaluate(
        read_documents(raw, "claims.yaml"),
        Cluster.of(map(decoded, [namespace, node]), known=known),
        Policy.default(),
        now=NOW,
        source=Source("snapshot", "s"),
        kubernetes=kubernetes,
    )


def test_each_is_refused_by_itself_and_its_pod_waits_for_it_in_vain() -> None:
    found = report(WRONG)
    told = {(v.ref.kind, v.ref.name): v for v in found.workloads}
    assert {key: (v.admission, v.blockers) for key, v in told.items()} == {
        ("ResourceClaimTemplate", "gpus"): (
            "denied",
            ("invalid/selector", "invalid/device-request"),
        ),
        ("ResourceClaim", "flat"): ("denied", ("invalid/unknown-field",)),
        ("DeviceClass", "whole"): ("denied", ("invalid/name",)),
        ("Pod", "p"): ("admitted", ("placement/template-missing",)),
        ("ResourceClaim", "flat-in-beta1"): ("admitted", ("placement/class-missing",)),
    }
    template = told["ResourceClaimTemplate", "gpus"]
    assert [(f.detail, f.field, f.fidelity) for f in template.findings] == [
        (
            'ResourceClaimTemplate "gpus" is invalid: spec.spec.devices.requests[0].exactly'
            '.selectors[0].cel.expression: Invalid value: "device.drive == \\"gpu.nvidia.com\\"":'
            " compilation failed: at 1:7: undefined field 'drive'",
            "/spec/spec/devices/requests/0/exactly/selectors/0/cel/expression",
            "exact",
        ),
        (
            'ResourceClaimTemplate "gpus" is invalid: spec.spec.devices.requests[0].exactly.count:'
            " Invalid value: 2: must not be specified when allocationMode is 'All'",
            "/spec/spec/devices/requests/0/exactly/count",
            "exact",
        ),
    ]
    pod = told["Pod", "p"]
    assert pod.findings[0].detail == (
        'resourceclaimtemplate.resource.k8s.io "gpus" not found: the one at claims.yaml:1 is'
        " refused"
    )


def test_a_function_newer_than_the_version_before_may_not_be_written_yet() -> None:
    """The API server must be able to go back one version (environment.NewExpressions)."""
    raw = b"""\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: whole}
spec:
  selectors:
  - cel: {expression: "device.allowMultipleAllocations == true"}
"""
    assert report(raw, "1.37").workloads == ()
    (refused,) = report(raw, "1.33").workloads
    assert refused.blockers == ("invalid/selector",)


def test_other_objects_are_not_looked_at() -> None:
    assert device_claims.findings(decoded({"apiVersion": "v1", "kind": "Node"})) == ()


DOMAINS = "device.attributes"
COSTLY = (
    f"{DOMAINS}.all(a, {DOMAINS}.all(b, {DOMAINS}.all(c, {DOMAINS}.all(d, a + b + c + d != a))))"
)
"""Four loops, each over as many domains as the API allows: 32."""


def device_class(*expressions: str) -> KubeObject:
    return decoded(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": one}} for one in expressions]},
        }
    )


def test_a_selector_that_may_cost_too_much_is_forbidden_where_it_stands() -> None:
    (found,) = device_claims.findings(device_class("true", COSTLY))
    assert (found.reason, found.field, found.detail) == (
        "invalid/selector",
        "/spec/selectors/1/cel/expression",
        'DeviceClass "gpu" is invalid: spec.selectors[1].cel.expression: Forbidden: too complex,'
        " exceeds cost limit",
    )


def test_an_object_that_is_stored_as_it_is_was_taken_once() -> None:
    stored = device_class(COSTLY)
    assert device_claims.findings(device_class(COSTLY), stored=stored) == ()
    assert len(device_claims.findings(device_class("true", COSTLY), stored=stored)) == 1


def test_the_place_in_v1beta1_is_that_of_the_manifest() -> None:
    """Kubernetes names the field of v1; the file has no ``exactly``."""
    asks = {"name": "r", "deviceClassName": "gpu", "selectors": [{"cel": {"expression": COSTLY}}]}
    (found,) = device_claims.findings(
        decoded(
            {
                "apiVersion": "resource.k8s.io/v1beta1",
                "kind": "ResourceClaim",
                "metadata": {"name": "c", "namespace": "team"},
                "spec": {"devices": {"requests": [asks]}},
            }
        )
    )
    at = "/spec/devices/requests/0/selectors/0/cel/expression"
    assert (found.field, "requests[0].exactly.selectors[0]" in found.detail) == (at, True)


def test_what_is_said_of_alpha_fields_is_not_called_exact() -> None:
    """Derived attributes are validated as read in Kubernetes' source, and not compared with it."""
    derived = {"name": "a.b/c", "expression": "1 +"}
    asks = {"deviceClassName": "gpu", "derivedAttributes": [derived]}
    found = device_claims.findings(
        decoded(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "c", "namespace": "team"},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": asks}]}},
            }
        ),
        gates=Gates.of({"DRADerivedAttributes": True}),
    )
    assert {(f.reason, f.fidelity) for f in found} == {
        ("invalid/device-constraint", "modelled"),
        ("invalid/selector", "modelled"),
    }
