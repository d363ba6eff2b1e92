"""What a snapshot leaves out is unknown, never zero."""

from __future__ import annotations

import datetime as dt

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.kube.manifests import read_documents
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.verdict import Outcome, Source
from tests.placement.build import KNOWN, node

POD = b"""\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 1}}}]}
"""


def outcome(*missing: str) -> Outcome:
    known = tuple(kind for kind in KNOWN if kind not in missing)
    report = evaluate(
        read_documents(POD, "p.yaml"),
        Cluster.of([node("n")], known),
        Policy.default(),
        now=dt.datetime(2026, 11, 29, 14, tzinfo=dt.UTC),
        source=Source("none", ""),
    )
    return report.workloads[0].outcome


def test_with_everything_exported_the_pod_is_admitted_and_placed() -> None:
    assert outcome("Namespace") == Outcome("admitted", "fits", "unknown")


def test_without_quotas_nobody_says_admitted() -> None:
    assert outcome("Namespace", "ResourceQuota") == Outcome("unknown", "fits", "unknown")


def test_without_pods_nobody_says_fits() -> None:
    assert outcome("Namespace", "Pod") == Outcome("admitted", "unknown", "unknown")
