"""Policies that ``policy vap`` compiles: a running API server takes them, and says what we say."""

from __future__ import annotations

from random import Random
from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.kube.manifests import read_documents
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.verdict import Source, Verdict
from tests.controlplane.bed import ControlPlane
from tests.controlplane.client import ApiError
from tests.differential.ours import decode
from tests.policy.test_vap import EVERYTHING, compiled, pod
from tests.rules.cases import NOW

Json = dict[str, Any]

PODS = 80
NAMESPACES = ("team-a", "research-x", "other")


def refusal(bed: ControlPlane, document: Json) -> str:
    """The message of a dry run; '' where the pod is let in."""
    try:
        bed.client.create(document, dry_run="All")
    except ApiError as problem:
        return str(problem.body.get("message", problem))
    return ""


def judged(document: Json, cluster: Cluster) -> Verdict:
    import json

    report = evaluate(
        read_documents(json.dumps(document).encode(), "m.json"),
        cluster,
        Policy.default(),
        now=NOW,
        source=Source("none", ""),
        with_remedies=False,
    )
    return report.workloads[0]


def test_a_running_api_server_takes_the_compiled_policies_and_says_what_explain_says(
    control_plane: ControlPlane,
) -> None:
    bed, made = control_plane, compiled(EVERYTHING)
    for name in NAMESPACES:
        bed.namespace(name)
    created = [bed.client.create(one) for one in made.objects]
    try:
        probe = pod(Random("probe"), "team-a")
        probe["metadata"] = {"name": "probe", "namespace": "team-a"}
        probe["spec"] = {
            "containers": [
                {"name": "c", "image": "i:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
            ]
        }
        bed.wait(
            lambda: "ValidatingAdmissionPolicy" in refusal(bed, probe),
            what="the policies in the API server's view",
            timeout=60,
        )
        cluster = Cluster.of(
            [
                *(decode(one) for one in created),
                *(decode(bed.client.get(f"/api/v1/namespaces/{name}")) for name in NAMESPACES),
            ],
            known=("Namespace", "Pod", "Node", "LimitRange", "ResourceQuota", "PriorityClass"),
        )
        rng, admitted = Random("native"), 0
        for number in range(PODS):
            document = pod(rng, rng.choice(NAMESPACES))
            document["metadata"]["name"] = f"p{number}"
            document["spec"].pop("priorityClassName", None)
            theirs = refusal(bed, document)
            verdict = judged(document, cluster)
            ours = [
                str(found.evidence[-1].observed)
                for found in verdict.findings
                if found.level == "deny" and found.reason.startswith("admission-policy/")
            ]
            if not theirs:
                assert ours == [], (document, ours)
                admitted += 1
            else:
                assert theirs in ours, (document, theirs, ours)
        assert 0.2 * PODS < admitted < 0.9 * PODS, "the cases do not tell much"
    finally:
        for one in created:
            bed.client.delete(one)
