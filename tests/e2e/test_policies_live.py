"""Admission policies of a running cluster: what they make of workloads, who asks, parameters."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from jsonpatch import apply_patch

from kubectl_gpuadmit.cli.main import main
from tests.controlplane.bed import RBAC, ControlPlane
from tests.controlplane.client import ApiError, Json
from tests.controlplane.test_bed import node
from tests.e2e.test_live import TEAM, workload

GROUP = "admissionregistration.k8s.io/v1"
Ask = Callable[..., Json]


@pytest.fixture
def bed(control_plane: ControlPlane) -> ControlPlane:
    control_plane.namespace(TEAM)
    control_plane.node(node("n-0", gpus=8))
    return control_plane


@pytest.fixture
def ask(bed: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """The one verdict of ``explain -f``, against the running cluster or a snapshot."""

    def explain(document: Json, *words: str, live: bool = True) -> Json:
        file = tmp_path / "manifest.json"
        file.write_text(json.dumps(document))
        config = ["--kubeconfig", str(bed.kubeconfig)] if live else []
        main(["explain", "-f", str(file), *config, "-o", "json", "-n", TEAM, *words])
        out, err = capsys.readouterr()
        assert out, err
        (verdict,) = json.loads(out)["workloads"]
        found: Json = verdict
        return found

    return explain


def rule(group: str, *resources: str) -> Json:
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": list(resources),
    }


def mutating(name: str, mutation: str, *rules: Json, **spec: Any) -> list[Json]:
    kind, field = "ApplyConfiguration", "applyConfiguration"
    if mutation.startswith("[JSONPatch"):
        kind, field = "JSONPatch", "jsonPatch"
    whole = {
        "matchConstraints": {"resourceRules": list(rules)},
        "mutations": [{"patchType": kind, field: {"expression": mutation}}],
        "reinvocationPolicy": "Never",
        **spec,
    }
    return _with_binding("MutatingAdmissionPolicy", name, whole, {})


def validating(name: str, check: str, *rules: Json, ref: Json | None = None, **spec: Any) -> Any:
    whole = {
        "matchConstraints": {"resourceRules": list(rules)},
        "validations": [{"expression": check, "message": f"{name} says no"}],
        **spec,
    }
    bound: Json = {"validationActions": ["Deny"], **({"paramRef": ref} if ref else {})}
    return _with_binding("ValidatingAdmissionPolicy", name, whole, bound)


def _with_binding(kind: str, name: str, spec: Json, bound: Json) -> list[Json]:
    where = {"matchResources": {"namespaceSelector": {"matchLabels": HERE}}}
    binding = {"policyName": name, **where, **bound}
    return [
        {"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec},
        {
            "apiVersion": GROUP,
            "kind": f"{kind}Binding",
            "metadata": {"name": name},
            "spec": binding,
        },
    ]


HERE = {"kubernetes.io/metadata.name": TEAM}


NUMBERS = count()


def in_force(bed: ControlPlane, *documents: Json) -> None:
    """Creates policies and waits until the API server obeys the last of either kind, two probes: it
    reads the policies of one kind anew together."""
    name = f"probe-{next(NUMBERS)}"
    seen = "Object{metadata: Object.metadata{annotations: {'probe': object.metadata.name}}}"
    checks = f"object.metadata.name != '{name}' || !has(object.metadata.annotations)"
    probes = [
        *mutating(f"m-{name}", seen, rule("", "configmaps")),
        *validating(name, checks, rule("", "configmaps")),
    ]
    for document in (*documents, *probes):
        bed.client.create(document)
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": TEAM},
    }
    bed.wait(
        lambda: f"{name} says no" in refusal(bed, config), what="the policies in force", timeout=60
    )


def refusal(bed: ControlPlane, document: Json) -> str:
    """The message of a dry run; '' where it is let in."""
    try:
        bed.client.create(document, dry_run="All")
    except ApiError as problem:
        return str(problem.body.get("message", problem))
    return ""


def said(verdict: Json) -> list[str]:
    """The API server's words of every policy that refuses."""
    return [
        str(found["evidence"][-1]["observed"])
        for found in verdict["findings"]
        if found["reason"].startswith("admission-policy/")
    ]


def unknown(verdict: Json) -> list[str]:
    return [one["missing"] for one in verdict["unknowns"] if one["rule"] == "admission/policy"]


POOL = (
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
    "priorityClassName: 'system-node-critical', terminationGracePeriodSeconds: 7}}}}"
)
FEWER = (
    "[JSONPatch{op: 'test', path: '/kind', value: 'Deployment'}] + (object.spec.replicas > 2 ?"
    " [JSONPatch{op: 'replace', path: '/spec/replicas', value: 2},"
    " JSONPatch{op: 'add', path: '/spec/template/metadata/labels/cut', value: 'yes'}] : [])"
)


def test_pods_come_from_the_deployment_that_policies_have_changed(
    bed: ControlPlane, ask: Ask
) -> None:
    in_force(
        bed,
        *mutating("a-pool", POOL, rule("apps", "deployments")),
        *mutating("b-fewer", FEWER, rule("apps", "deployments")),
    )
    document = workload("Deployment", "web", replicas=4)
    verdict = ask(document)
    assert verdict["admission"] == "mutated"
    assert verdict["pods"] == 2
    assert [m["summary"] for m in verdict["mutations"]] == [
        "MutatingAdmissionPolicy a-pool (binding a-pool)",
        "MutatingAdmissionPolicy b-fewer (binding b-fewer)",
    ]
    bed.client.create(document)
    stored = bed.client.get(bed.client.path_of(document))
    ours = json.loads(json.dumps(document))
    for mutation in verdict["mutations"]:
        ours = apply_patch(ours, mutation["ops"])
    for field in ("replicas", "template"):
        assert _contains(stored["spec"][field], ours["spec"][field]), field
    pods = bed.wait(
        lambda: (found := bed.client.list("v1", "Pod", TEAM)) and len(found) == 2 and found,
        what="two pods",
    )
    for pod in pods:
        assert pod["metadata"]["labels"]["cut"] == "yes"
        assert pod["spec"]["terminationGracePeriodSeconds"] == 7
        assert pod["spec"]["priority"] == 2000001000


def _contains(whole: Any, part: Any) -> bool:
    """Whether everything of ``part`` is in ``whole``: the API server adds defaults."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and _contains(whole[key], value) for key, value in part.items()
        )
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(_contains, whole, part))
    return bool(whole == part)


def test_the_replica_set_is_what_we_say_of_it(bed: ControlPlane, ask: Ask) -> None:
    check = (
        "object.metadata.ownerReferences[0].name == 'large' || object.spec.replicas == 2"
        " && object.metadata.annotations['deployment.kubernetes.io/desired-replicas'] == '2'"
        " && 'pod-template-hash' in object.spec.selector.matchLabels"
        " && object.metadata.labels['app'] == 'web' && request.userInfo.username != 'admin'"
    )
    in_force(
        bed,
        *validating("a-seen", check, rule("apps", "replicasets")),
        *validating("b-small", "object.spec.replicas < 3", rule("apps", "replicasets")),
    )
    document = workload("Deployment", "web", replicas=2)
    verdict = ask(document)
    assert (said(verdict), unknown(verdict)) == ([], [])
    bed.client.create(document)
    bed.wait(lambda: len(bed.client.list("v1", "Pod", TEAM)) == 2, what="two pods")
    large = workload("Deployment", "large", replicas=3)
    (ours,) = [one for one in said(ask(large)) if "b-small" in one]
    bed.client.create(large)
    path = bed.client.path_of(large)

    def failure() -> str:
        conditions = bed.client.get(path).get("status", {}).get("conditions") or []
        return next(
            (c["message"] for c in conditions if c["reason"] == "ReplicaSetCreateError"), ""
        )

    theirs = bed.wait(failure, what="the refusal of the ReplicaSet")
    wording = "ValidatingAdmissionPolicy 'b-small' with binding 'b-small' denied request: "
    assert wording in theirs
    assert wording in ours


def test_claims_and_templates_are_as_we_show_them_to_a_policy(
    bed: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = (
        "(has(object.spec.devices) ? object.spec : object.spec.spec).devices.requests.all(r,"
        " r.exactly.allocationMode == 'ExactCount' && r.exactly.count <= 2 &&"
        " r.exactly.?tolerations.orValue([]).all(t, t.operator == 'Equal'))"
        " && has(object.status) == (object.kind == 'ResourceClaim')"
    )
    rules = rule("resource.k8s.io", "resourceclaims", "resourceclaimtemplates")
    in_force(bed, *validating("few", check, rules))
    exactly: Json = {
        "deviceClassName": "gpu.nvidia.com",
        "tolerations": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
    }
    for kind in ("ResourceClaim", "ResourceClaimTemplate"):
        for number in (1, 4):
            more = {} if number == 1 else {"count": number}
            spec: Json = {"devices": {"requests": [{"name": "g", "exactly": {**exactly, **more}}]}}
            document = {
                "apiVersion": "resource.k8s.io/v1",
                "kind": kind,
                "metadata": {"name": f"of-{number}", "namespace": TEAM},
                "spec": spec if kind == "ResourceClaim" else {"spec": spec},
            }
            theirs = refusal(bed, document)
            assert bool(theirs) == (number == 4), theirs
            file = tmp_path / "claim.json"
            file.write_text(json.dumps(document))
            main(["explain", "-f", str(file), "--kubeconfig", str(bed.kubeconfig), "-o", "json"])
            out, err = capsys.readouterr()
            workloads = json.loads(out)["workloads"] if out else []
            assert [one for verdict in workloads for one in said(verdict)] == (
                [theirs] if theirs else []
            ), err


def test_the_controllers_make_pods_as_accounts_of_their_own(bed: ControlPlane, ask: Ask) -> None:
    check = "request.userInfo.username.startsWith('system:')"
    in_force(bed, *validating("of-system", check, rule("", "pods")))
    pod = {"apiVersion": "v1", "kind": "Pod", **workload("Job", "x")["spec"]["template"]}
    pod["metadata"] = {"name": "alone", "namespace": TEAM}
    theirs = refusal(bed, pod)
    assert "of-system says no" in theirs
    assert said(ask(pod)) == [theirs]
    for kind in ("Deployment", "Job", "StatefulSet"):
        document = workload(kind, kind.lower())
        verdict = ask(document)
        assert (said(verdict), unknown(verdict)) == ([], []), kind
        bed.client.create(document)
    bed.wait(lambda: len(bed.client.list("v1", "Pod", TEAM)) == 3, what="a pod of each")


def test_one_policy_tells_the_controllers_apart(bed: ControlPlane, ask: Ask) -> None:
    check = "request.userInfo.username.endsWith(':job-controller')"
    in_force(bed, *validating("jobs-only", check, rule("", "pods")))
    verdict = ask(workload("Deployment", "web"))
    assert said(verdict) != [], "no candidate is the job controller"
    bed.client.create(workload("Deployment", "web"))
    event = bed.wait(
        lambda: [e for e in bed.client.list("v1", "Event", TEAM) if e["reason"] == "FailedCreate"],
        what="a refusal of the ReplicaSet's pods",
    )[0]
    assert "jobs-only says no" in event["message"]
    (missing,) = unknown(ask(workload("Job", "batch")))
    assert "whether system:serviceaccount:kube-system:job-controller or" in missing


def test_who_applies_is_known_to_the_api_server(bed: ControlPlane, ask: Ask) -> None:
    check = "'system:masters' in request.userInfo.groups && !request.dryRun"
    in_force(bed, *validating("masters", check, rule("apps", "deployments")))
    document = workload("Deployment", "web")
    assert said(ask(document)) == []
    readers = [
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "reads-policies"},
            "rules": [
                {
                    "apiGroups": ["admissionregistration.k8s.io"],
                    "resources": ["*"],
                    "verbs": ["list"],
                },
                {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list"]},
            ],
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "reads-policies"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "reads-policies"},
            "subjects": [{"kind": "Group", "name": "developers", "apiGroup": RBAC}],
        },
    ]
    for one in readers:
        bed.client.create(one)
    try:
        as_developer = ask(document, "--as", "developer", "--as-group", "developers")
    finally:
        for one in readers:
            bed.client.delete(one)
    assert said(as_developer) == [
        "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'masters' with binding"
        " 'masters' denied request: masters says no"
    ]


LIMITS: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "limits.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {
            "plural": "limits",
            "singular": "limit",
            "kind": "Limit",
            "listKind": "LimitList",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"gpus": {"type": "integer"}},
                            }
                        },
                    }
                },
            }
        ],
    },
}


def test_parameters_of_any_kind_are_read_live_and_kept_in_a_snapshot(
    bed: ControlPlane, ask: Ask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.client.create(LIMITS)
    try:
        _parameters(bed, ask, tmp_path, capsys)
    finally:
        bed.client.delete(LIMITS)


def _parameters(
    bed: ControlPlane, ask: Ask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meta = {"name": "gpu", "namespace": TEAM, "labels": {"for": "gpu"}}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"team": "b"}}
    limit = {
        "apiVersion": "example.com/v1",
        "kind": "Limit",
        "metadata": meta,
        "spec": {"gpus": 1},
    }
    bed.wait(lambda: not refusal(bed, limit), what="the kind Limit", timeout=60)
    bed.client.create(config)
    bed.client.create(limit)
    wants = "int(object.spec.containers[0].resources.limits['nvidia.com/gpu'])"
    selector = {"selector": {"matchLabels": {"for": "gpu"}}, "parameterNotFoundAction": "Deny"}
    gone = {"name": "gone", "parameterNotFoundAction": "Deny"}
    maps, own = (
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {
            "apiVersion": "example.com/v1",
            "kind": "Limit",
        },
    )
    in_force(
        bed,
        *validating(
            "a-team", "params.data.team == 'a'", rule("", "pods"), ref=selector, paramKind=maps
        ),
        *validating(
            "b-gpus", f"{wants} <= params.spec.gpus", rule("", "pods"), ref=selector, paramKind=own
        ),
        *validating("c-gone", "true", rule("", "pods"), ref=gone, paramKind=own),
    )
    pod = {"apiVersion": "v1", "kind": "Pod", **workload("Job", "x", gpus=2)["spec"]["template"]}
    pod["metadata"] = {"name": "alone", "namespace": TEAM}
    theirs = bed.wait(lambda: refusal(bed, pod), what="a refusal")
    ours = said(ask(pod))
    assert len(ours) == 3
    assert theirs in ours, "of several the API server names any one"
    file = tmp_path / "cluster.json"
    config_flags = ["--kubeconfig", str(bed.kubeconfig)]
    assert main(["snapshot", "-o", str(file), *config_flags]) == 0
    capsys.readouterr()
    assert said(ask(pod, "--snapshot", str(file), live=False)) == ours
