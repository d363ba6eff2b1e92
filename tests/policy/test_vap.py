"""Policies compiled to Kubernetes' own admission policies give our engine's answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest
import yaml

from kubectl_gpuadmit.admission.native import validating
from kubectl_gpuadmit.admission.native.request import Request
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.kube.manifests import read_documents
from kubectl_gpuadmit.kube.objects import Namespace
from kubectl_gpuadmit.policy.expressions import regex
from kubectl_gpuadmit.policy.load import load_policy
from kubectl_gpuadmit.policy.model import Policy
from kubectl_gpuadmit.policy.vap import Compiled, LeftOut, compile_policy
from kubectl_gpuadmit.verdict import Source, Verdict
from tests.controlplane.binaries import Missing
from tests.controlplane.referee_client import Referee
from tests.differential.ours import decode
from tests.differential.vocabulary import GPU, Json, chance, some
from tests.rules.cases import NOW

HEAD = "apiVersion: gpu-admit.io/v1\nkind: AdmissionPolicy\n"
EVERYTHING = (
    HEAD
    + """\
classes:
  batch: {match: {labels: {workload-type: batch}, priorityClasses: [low-*]}}
  online: {match: {labels: {workload-type: online}}}
rules:
  labels/required:
    level: deny
    settings: {labels: [team, cost-centre]}
    namespaces: {team-a: deny, research-*: warn, kube-system: "off"}
static:
- name: no-more-than-four
  match:
    resources: {nvidia.com/gpu: ">4"}
    matchExpressions: [{key: tier, operator: NotIn, values: [gold]}]
  deny: {message: at most 4 GPUs for each pod.}
- name: batch-not-here
  match: {classes: [batch], namespaces: [team-*]}
  deny: {message: batch work belongs elsewhere}
- name: zone
  level: deny
  match: {labels: {workload-type: online}}
  mutate:
    nodeSelector: {zone: a}
    labels: {routed: "yes"}
    tolerations: [{key: dedicated, operator: Equal, value: online, effect: NoSchedule}]
"""
)


def compiled(text: str) -> Compiled:
    return compile_policy(policy(text))


def policy(text: str) -> Policy:
    return load_policy(text.encode(), "p.yaml")


@pytest.fixture(scope="module")
def referee() -> Iterator[Referee]:
    try:
        running = Referee(build=False)
    except Missing as missing:
        pytest.skip(f"{missing}: compiled policies not held to the API server")
    with running:
        yield running


def pod(rng: Random, namespace: str) -> Json:
    labels = {
        key: rng.choice(values)
        for key, values in (
            ("team", ("a", "b", "")),
            ("cost-centre", ("1", "2")),
            ("workload-type", ("batch", "online", "other")),
            ("tier", ("gold", "silver")),
        )
        if chance(rng, 0.7)
    }

    def container(name: str) -> Json:
        made: Json = {"name": name, "image": "i:1"}
        if chance(rng, 0.75):
            made["resources"] = {"limits": {GPU: str(rng.choice((1, 2, 3, 5)))}}
        return made

    spec: Json = {"containers": [container(f"c{n}") for n in range(rng.randint(1, 2))]}
    if chance(rng, 0.4):
        spec["initContainers"] = [container(f"i{n}") for n in range(rng.randint(1, 2))]
        for one in some(rng, spec["initContainers"], 0, 1):
            one["restartPolicy"] = "Always"
    if chance(rng, 0.3):
        spec["nodeSelector"] = rng.choice(({"zone": "b"}, {"disk": "ssd"}))
    if chance(rng, 0.3):
        spec["tolerations"] = [{"key": "x", "operator": "Exists"}]
    if chance(rng, 0.2):
        spec["priorityClassName"] = rng.choice(("low-1", "high"))
    metadata: Json = {"name": "p", "namespace": namespace}
    if labels:
        metadata["labels"] = labels
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}


def of_engine(manifest: Json, rules: Policy, namespace: str) -> Verdict:
    report = evaluate(
        read_documents(yaml.safe_dump(manifest).encode(), "m.yaml"),
        Cluster.of(
            [decode({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": namespace}})],
            known=("Pod", "Node", "Namespace", "ResourceQuota", "LimitRange", "PriorityClass"),
        ),
        rules,
        now=NOW,
        source=Source("none", ""),
        with_remedies=False,
    )
    return report.workloads[0]


def test_the_api_server_with_compiled_policies_says_what_our_engine_says(referee: Referee) -> None:
    made, rules = compiled(EVERYTHING), policy(EVERYTHING)
    assert made.left_out == ()
    by_kind: dict[str, list[Json]] = {}
    for one in made.objects:
        by_kind.setdefault(one["kind"], []).append(one)
    rng = Random("vap")
    admitted = 0
    for number in range(120):
        namespace = rng.choice(("team-a", "research-x", "kube-system", "other"))
        manifest = pod(rng, namespace)
        case = {
            "objects": [{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": namespace}}],
            "pod": {
                "pod": manifest,
                "policies": by_kind["ValidatingAdmissionPolicy"],
                "bindings": by_kind["ValidatingAdmissionPolicyBinding"],
                "mutatingPolicies": by_kind["MutatingAdmissionPolicy"],
                "mutatingBindings": by_kind["MutatingAdmissionPolicyBinding"],
            },
        }
        theirs = referee.ask(["policies"], case)["policies"]
        verdict = of_engine(manifest, rules, namespace)
        own = [f for f in verdict.findings if f.rule.startswith(("labels/", "static/"))]
        denied = {f.rule for f in own if f.level == "deny"}
        warned = {f.rule for f in own if f.level == "warn"}
        assert theirs["allowed"] == (not denied), (number, manifest, theirs, own)
        assert bool(theirs.get("warnings")) == bool(warned), (number, manifest, theirs, own)
        admitted += theirs["allowed"]
        stored, wanted = theirs["pod"], verdict.mutations
        if wanted:
            assert stored["spec"]["nodeSelector"]["zone"] == "a"
            assert stored["metadata"]["labels"]["routed"] == "yes"
            listed = [t for t in stored["spec"]["tolerations"] if t["key"] == "dedicated"]
            assert listed == [
                {"key": "dedicated", "operator": "Equal", "value": "online", "effect": "NoSchedule"}
            ]
        else:
            assert "routed" not in stored["metadata"].get("labels", {})
    assert 30 <= admitted <= 100


def test_a_compiled_change_made_twice_changes_nothing(referee: Referee) -> None:
    made = compiled(EVERYTHING)
    mutating = [one for one in made.objects if one["kind"].startswith("Mutating")]
    manifest = pod(Random("again"), "other")
    manifest["metadata"]["labels"] = {"workload-type": "online"}
    question: Json = {
        "objects": [{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "other"}}],
        "pod": {
            "pod": manifest,
            "mutatingPolicies": mutating[:1],
            "mutatingBindings": mutating[1:],
        },
    }
    once = referee.ask(["policies"], question)["policies"]["pod"]
    question["pod"]["pod"] = {key: once[key] for key in ("kind", "apiVersion", "metadata", "spec")}
    twice = referee.ask(["policies"], question)["policies"]["pod"]
    assert twice["spec"] == once["spec"]
    assert twice["metadata"]["labels"] == once["metadata"]["labels"]


def test_every_level_has_the_actions_that_fit_it() -> None:
    text = HEAD + "rules:\n  labels/required: {level: LEVEL, settings: {labels: [team]}}\n"
    for level, actions, failure in (
        ("audit", ["Audit"], "Ignore"),
        ("warn", ["Warn", "Audit"], "Ignore"),
        ("deny", ["Deny"], "Fail"),
    ):
        rule, binding = compiled(text.replace("LEVEL", level)).objects
        assert binding["spec"] == {
            "policyName": "gpu-admit-labels-required",
            "validationActions": actions,
        }
        assert rule["spec"]["failurePolicy"] == failure
        assert [one["name"] for one in rule["spec"]["matchConditions"]] == ["uses-gpus"]
    assert compiled(text.replace("LEVEL", '"off"')) == Compiled((), ())


def test_what_cannot_be_said_is_listed_with_the_reason() -> None:
    text = (
        HEAD
        + """\
pools: {train: {nodeSelector: {a: b}}}
classes: {jobs: {match: {ownerKinds: [Job]}}}
rules:
  capacity/burst: warn
  quota/dead-key: {level: deny, pools: {train: warn}}
static:
- {name: memory, match: {resources: {gpuMemoryGB: ">40"}}, deny: {message: m}}
- {name: owners, match: {classes: [jobs]}, deny: {message: m}}
- {name: told, level: warn, match: {}, mutate: {labels: {a: b}}}
- {name: one, match: {}, mutate: {labels: {c: d}}}
- {name: two, match: {}, mutate: {labels: {c: e}}}
- {name: old, match: {}, deny: {message: m}}
exceptions:
- {rules: [static/old], match: {namespaces: [a]}, owner: a, reason: r, expires: 2027-01-01}
"""
    )
    assert compiled(text).left_out == (
        LeftOut("quota/dead-key", "its level depends on the pool of nodes that a pod is bound to"),
        LeftOut("static/memory", "the memory of a GPU is known from Nodes, which CEL cannot read"),
        LeftOut(
            "static/owners",
            "a pod does not say which kind of workload it belongs to (ownerKinds of a class)",
        ),
        LeftOut(
            "static/told",
            "a MutatingAdmissionPolicy changes or does not: it has no level audit or warn",
        ),
        LeftOut(
            "static/two",
            "it sets label c as static/one does, and MutatingAdmissionPolicies have no order",
        ),
        LeftOut(
            "static/old",
            "exceptions of the policy cover it until a date, and CEL in a policy knows no time:"
            " excepted work would be refused",
        ),
        LeftOut("capacity/burst", "needs what nodes have and hold, which CEL cannot read"),
    )


DEVICES = (
    HEAD
    + """\
rules:
  dra/admin-access: {level: deny, settings: {namespaces: [platform-*]}}
  quota/dead-key: deny
tenants:
- name: research
  namespaces: [research-*]
  deviceClasses: [gpu.nvidia.com, mig-*]
  selectors: ["device.driver  == 'a'"]
"""
)


def claim(**request: Any) -> Json:
    return {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"count": 1, **request}}]}}}


def template(**request: Any) -> Json:
    return {"spec": claim(**request)}


@pytest.mark.parametrize(
    ("resource", "namespace", "labelled", "document", "denied"),
    [
        ("resourceclaims", "research-a", False, claim(deviceClassName="gpu.nvidia.com"), []),
        ("resourceclaims", "research-a", False, claim(deviceClassName="mig-1g"), []),
        ("resourceclaims", "research-a", False, claim(deviceClassName="tpu"), ["tenant-research"]),
        (
            "resourceclaimtemplates",
            "research-a",
            False,
            template(deviceClassName="tpu"),
            ["tenant-research"],
        ),
        ("resourceclaims", "elsewhere", False, claim(deviceClassName="tpu"), []),
        (
            "resourceclaims",
            "research-a",
            False,
            claim(
                deviceClassName="mig-1g",
                selectors=[{"cel": {"expression": "device.driver\n == 'a'"}}],
            ),
            [],
        ),
        (
            "resourceclaims",
            "research-a",
            False,
            claim(deviceClassName="mig-1g", selectors=[{"cel": {"expression": "true"}}]),
            ["tenant-research"],
        ),
        ("resourceclaims", "platform-x", True, claim(adminAccess=True), []),
        ("resourceclaims", "platform-x", False, claim(adminAccess=True), ["admin-access"]),
        ("resourceclaimtemplates", "other", True, template(adminAccess=True), ["admin-access"]),
        (
            "resourcequotas",
            "other",
            False,
            {"spec": {"hard": {"requests.nvidia.com/gpu": "4", "cpu": "3"}}},
            [],
        ),
        (
            "resourcequotas",
            "other",
            False,
            {"spec": {"hard": {"nvidia.com/gpu": "4"}}},
            ["dead-key"],
        ),
        (
            "resourcequotas",
            "other",
            False,
            {"spec": {"hard": {"limits.nvidia.com/gpu": "4"}}},
            ["dead-key"],
        ),
    ],
)
def test_claims_and_quotas_are_refused_when_they_are_created(
    resource: str, namespace: str, labelled: bool, document: Json, denied: list[str]
) -> None:
    labels = {"resource.kubernetes.io/admin-access": "true"} if labelled else {}
    objects = [decode(one) for one in compiled(DEVICES).objects]
    home = Namespace(
        metadata=decode({"kind": "Namespace", "metadata": {"name": namespace}}).metadata
    )
    metadata = msgspec.structs.replace(home.metadata, labels=labels)
    home = msgspec.structs.replace(home, metadata=metadata)
    asked = Request(
        group="" if resource == "resourcequotas" else "resource.k8s.io",
        version="v1",
        resource=resource,
        kind="X",
        namespace=namespace,
        name="n",
        labels={},
        object={"metadata": {"name": "n"}, **json.loads(json.dumps(document))},
    )
    said = list(validating.asked(asked, Cluster.of([*objects, home]), version=37))
    assert [one.outcome for one in said] == ["denied"] * len(denied)
    for one, part in zip(said, denied, strict=True):
        assert part in one.bound.policy


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a.b", r"^a\.b$"),
        ("research-*", "^research\\-.*$"),
        ("mig-?g", "^mig\\-.g$"),
        ("[!a-c]x", "^[^a-c]x$"),
        ("[x", r"^\[x$"),
    ],
)
def test_shell_patterns_become_regular_expressions(pattern: str, expected: str) -> None:
    assert regex(pattern) == expected
