"""How the engine asks rules: one after another, each entry under its own name and level."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.kube.manifests import read_documents
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.policy.load import load_policy
from kubectl_gpuadmit.verdict import Source, Verdict
from tests.rules.cases import NOW, decoded

POLICY = """\
apiVersion: gpu-admit.io/v1
kind: AdmissionPolicy
pools:
  train:
    nodeSelector: {gpu-partition: train}
    tolerations: [{key: dedicated, operator: Exists}]
classes:
  train: {match: {labels: {workload-type: batch}}, pool: train}
rules:
  partition/route: deny
  partition/confine: deny
  labels/required: {level: deny, settings: {labels: [team]}}
  ephemeral/overrun: warn
static:
- name: add-zone
  match: {labels: {workload-type: batch}}
  mutate: {nodeSelector: {zone: a}, labels: {team: batch}}
- name: told
  level: warn
  match: {labels: {team: batch}}
  deny: {message: no more than told}
- name: silent
  level: off
  match: {}
  deny: {message: never said}
exceptions:
- rules: [static/told]
  match: {labels: {app: old}}
  owner: ann
  reason: moves soon
  expires: 2026-12-01
"""


def judged(manifest: str, *objects: dict[str, Any]) -> Verdict:
    cluster: list[KubeObject] = [decoded(data) for data in objects]
    report = evaluate(
        read_documents(manifest.encode(), "m.yaml"),
        Cluster.of(cluster, known=("Pod", "Node", "Namespace", "ResourceQuota")),
        load_policy(POLICY.encode(), "p.yaml"),
        now=NOW,
        source=Source("none", ""),
        with_remedies=False,
    )
    (verdict,) = report.workloads
    return verdict


JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: default, labels: {app: %s}, annotations: {gpu-admit.io/ttl: 1h}}
spec:
  template:
    metadata: {labels: {workload-type: batch}}
    spec:
      restartPolicy: Never
      containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]
"""


def of_rules(verdict: Verdict) -> list[tuple[str, str, str]]:
    ours = ("labels/", "static/", "partition/", "ephemeral/")
    return [(f.rule, f.reason, f.level) for f in verdict.findings if f.rule.startswith(ours)]


def test_each_rule_sees_the_changes_of_the_ones_before_it() -> None:
    verdict = judged(JOB % "new")
    assert [(m.rule, m.level) for m in verdict.mutations] == [
        ("partition/route", "deny"),
        ("static/add-zone", "deny"),
    ]
    assert [op["path"] for op in verdict.patch if "nodeSelector" in op["path"]] == [
        "/spec/nodeSelector",
        "/spec/nodeSelector/zone",
    ]
    assert verdict.admission == "mutated"


def test_an_entry_is_levelled_by_its_own_name_and_silent_when_off() -> None:
    assert of_rules(judged(JOB % "new")) == [("static/told", "static/denied", "warn")]


def test_an_exception_by_a_label_of_the_workload_leaves_a_record() -> None:
    verdict = judged(JOB % "old")
    assert of_rules(verdict) == [("static/told", "static/denied", "audit")]
    (found,) = (f for f in verdict.findings if f.rule == "static/told")
    assert found.detail == (
        "told: no more than told (excepted until 2026-12-01T23:59:59Z by ann: moves soon)"
    )


def test_pods_of_the_workload_itself_are_shown_to_its_rules() -> None:
    running = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "j-1",
            "namespace": "default",
            "creationTimestamp": "2026-11-29T09:00:00Z",
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": "j",
                    "uid": "u",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": "trn-0",
            "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": 1}}}],
        },
        "status": {"phase": "Running"},
    }
    verdict = judged(JOB % "new", running)
    assert ("ephemeral/overrun", "ephemeral/overrun", "warn") in of_rules(verdict)
    (found,) = (f for f in verdict.findings if f.rule == "ephemeral/overrun")
    assert found.field == "/metadata/annotations/gpu-admit.io~1ttl"
