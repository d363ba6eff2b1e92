"""Every remedy that is printed admits and places the workload when a person applies it."""

from __future__ import annotations

import datetime as dt
import json
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from kubectl_gpuadmit.adapters.snapshot import load_snapshot
from kubectl_gpuadmit.cli.catalogue import catalogue
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.kube.decode import decode_object
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.kube.objects import Namespace, ResourceQuota
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.policy.load import load_policy
from kubectl_gpuadmit.verdict import Remedy, Report, Source, Verdict

EXAMPLES = Path(__file__).parent.parent / "examples"
NOW = dt.datetime(2026, 11, 29, 14, tzinfo=dt.UTC)

TAINTED = """\
apiVersion: v1
kind: Pod
metadata: {name: bare, namespace: etl}
spec:
  containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 1}}}]
"""

MISSPELT = """\
apiVersion: v1
kind: Pod
metadata: {name: misspelt, namespace: etl}
spec:
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpus: 1}}}]
"""

MANY = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: many, namespace: team-a}
spec:
  replicas: 10000
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 1}}}]
"""


@cache
def example_cluster() -> Cluster:
    return load_snapshot(str(EXAMPLES / "cluster")).cluster


@cache
def example_policy() -> Policy:
    return load_policy((EXAMPLES / "policy.yaml").read_bytes(), "policy.yaml", catalogue=catalogue)


def judged(text: str, *, cluster: Cluster | None = None, policy: Policy | None = None) -> Report:
    return evaluate(
        read_documents(text.encode(), "m.yaml"),
        cluster or example_cluster(),
        policy or Policy.default(),
        now=NOW,
        source=Source("none", ""),
    )


def only(report: Report) -> Verdict:
    (verdict,) = report.workloads
    return verdict


def applied(text: str, remedy: Remedy, verdict: Verdict) -> tuple[str, Cluster]:
    """The manifest and the cluster as a person would have them after following the remedy."""
    objects = [d.data for d in read_documents(text.encode(), "m.yaml") if isinstance(d, Document)]
    index = next(i for i, o in enumerate(objects) if o["metadata"]["name"] == verdict.ref.name)
    if remedy.patch:
        objects[index] = jsonpatch.apply_patch(objects[index], list(remedy.patch))
    cluster = example_cluster().fork()
    for command in remedy.command.split(" && ") if remedy.command else ():
        run(shlex.split(command), cluster)
    return yaml.safe_dump_all(objects), cluster


def run(words: list[str], cluster: Cluster) -> None:
    """What the commands that we print do to a cluster."""
    match words:
        case ["kubectl", "-n", namespace, "delete", "pod", name]:
            assert cluster.get("Pod", namespace, name)
            cluster.remove("Pod", namespace, name)
        case ["kubectl", "-n", namespace, "patch", "resourcequota", name, *_, patch]:
            quota = cluster.get("ResourceQuota", namespace, name)
            assert isinstance(quota, ResourceQuota)
            hard = json.loads(patch)["spec"]["hard"]
            data = {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"hard": {**(quota.spec.hard or {}), **hard}},
            }
            (document,) = read_documents(json.dumps(data).encode(), "q.json")
            assert isinstance(document, Document)
            cluster.apply(decode_object(document))
        case ["kubectl", "create", "namespace", name]:
            (document,) = read_documents(
                f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}".encode(), "n.yaml"
            )
            assert isinstance(document, Document)
            made = decode_object(document)
            assert isinstance(made, Namespace)
            cluster.apply(made)
        case ["kubectl", "uncordon", name]:
            node = cluster.nodes[name].node
            taints = tuple(t for t in node.spec.taints or () if "unschedulable" not in t.key)
            spec = structs.replace(node.spec, unschedulable=None, taints=taints)
            cluster.apply(structs.replace(node, spec=spec))
        case _:
            raise AssertionError(f"a command that nobody here knows: {words}")


def broken_promises(text: str, *, policy: Policy | None = None) -> list[tuple[str, str, str, str]]:
    """Remedies that, applied, do not admit and place their workload as they say."""
    wrong = []
    for verdict in judged(text, policy=policy).workloads:
        for remedy in verdict.remedies:
            changed, cluster = applied(text, remedy, verdict)
            after = next(
                v
                for v in judged(changed, cluster=cluster, policy=policy).workloads
                if v.ref.name == verdict.ref.name
            )
            assert remedy.result is not None and remedy.verified
            if after.outcome != remedy.result or after.placement != "fits":
                wrong.append((verdict.ref.name, remedy.summary, after.admission, after.placement))
    return wrong


def test_a_pod_without_tolerations_is_told_the_one_that_it_lacks() -> None:
    verdict = only(judged(TAINTED))
    assert verdict.placement == "never"
    assert verdict.remedies[0].summary == "tolerate nvidia.com/gpu:NoSchedule"
    toleration = {
        "key": "nvidia.com/gpu",
        "operator": "Equal",
        "value": "present",
        "effect": "NoSchedule",
    }
    assert verdict.remedies[0].patch == (
        {"op": "add", "path": "/spec/tolerations", "value": [toleration]},
    )


def test_a_misspelt_resource_that_only_limits_name_is_corrected() -> None:
    verdict = only(judged(MISSPELT))
    assert verdict.placement == "never"
    assert verdict.remedies[0].summary == "nvidia.com/gpu instead of nvidia.com/gpus"
    changed, _ = applied(MISSPELT, verdict.remedies[0], verdict)
    (pod,) = yaml.safe_load_all(changed)
    assert pod["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": 1}}


def test_the_first_remedy_keeps_as_many_pods_as_quota_and_nodes_let_in() -> None:
    verdict = only(judged(MANY))
    assert [r.patch[0]["value"] for r in verdict.remedies[:1]] == [4]


def test_a_quota_is_not_raised_further_than_the_changed_workload_needs() -> None:
    summaries = [r.summary for r in only(judged(MANY)).remedies]
    assert "requests.nvidia.com/gpu=10004" not in " ".join(summaries)


@pytest.mark.parametrize("path", sorted((EXAMPLES / "workloads").glob("*.yaml")), ids=str)
def test_every_remedy_of_the_examples_keeps_its_promise(path: Path) -> None:
    assert broken_promises(path.read_text(), policy=example_policy()) == []


quantities = st.sampled_from([1, 2, 3, 4, 8, 16])
selectors = st.sampled_from(
    [{}, {"gpu-partition": "inf"}, {"gpu-partition": "train"}, {"gpu-partition": "gold"}]
)
tolerations = st.sampled_from(
    [
        [],
        [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        [{"operator": "Exists"}],
    ]
)
resources = st.sampled_from(["nvidia.com/gpu", "nvidia.com/gpus", "nvidia.com/mig-2g.10gb"])


@st.composite
def manifests(draw: st.DrawFn) -> str:
    amounts: dict[str, Any] = {draw(resources): draw(quantities)}
    if draw(st.booleans()):
        amounts["cpu"] = draw(st.sampled_from(["4", "64", "500"]))
    bounds: dict[str, Any] = {"limits": amounts}
    if draw(st.booleans()):
        bounds["requests"] = dict(amounts)
    spec: dict[str, Any] = {"containers": [{"name": "a", "image": "b", "resources": bounds}]}
    if selector := draw(selectors):
        spec["nodeSelector"] = selector
    if tolerated := draw(tolerations):
        spec["tolerations"] = tolerated
    labels = {"app": "x", "team": "a"}
    if draw(st.booleans()):
        labels["workload-type"] = draw(st.sampled_from(["inference", "training", "batch"]))
    namespace = draw(st.sampled_from(["team-a", "research", "etl", "nowhere"]))
    template = {"metadata": {"labels": labels}, "spec": spec}
    kind = draw(st.sampled_from(["Pod", "Deployment", "Job"]))
    meta = {"name": "x", "namespace": namespace}
    match kind:
        case "Pod":
            made = {"apiVersion": "v1", "kind": kind, "metadata": {**meta, "labels": labels}}
            made["spec"] = spec
        case "Deployment":
            made = {"apiVersion": "apps/v1", "kind": kind, "metadata": meta}
            made["spec"] = {
                "replicas": draw(st.sampled_from([1, 2, 5, 40])),
                "selector": {"matchLabels": {"app": "x"}},
                "template": template,
            }
        case _:
            made = {"apiVersion": "batch/v1", "kind": kind, "metadata": meta}
            spec["restartPolicy"] = "Never"
            made["spec"] = {"parallelism": draw(st.sampled_from([1, 3, 9])), "template": template}
    return yaml.safe_dump(made)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=manifests(), with_policy=st.booleans())
def test_every_printed_remedy_admits_and_places_when_applied(text: str, with_policy: bool) -> None:
    policy = example_policy() if with_policy else None
    assert broken_promises(text, policy=policy) == []
