"""Admission policies of the cluster, evaluated: whom they match, what they say, what is unknown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubectl_gpuadmit.admission import native
from kubectl_gpuadmit.admission.native import mutating, request, told, validating
from kubectl_gpuadmit.admission.native.typed import table, typed
from kubectl_gpuadmit.cel.values import Unknown
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.kube.manifests import read_documents
from kubectl_gpuadmit.kube.new_pods import NewPod
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.verdict import Source, Verdict
from tests.admission.objects import cluster, obj
from tests.controlplane.binaries import Missing
from tests.controlplane.referee_client import Referee
from tests.rules.cases import NOW

PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}

Json = dict[str, Any]


def policy(*expressions: str, name: str = "p", rules: Any = (PODS,), **spec: Any) -> KubeObject:
    constraints = {"resourceRules": list(rules), **spec.pop("constraints", {})}
    validations = [{"expression": one} for one in expressions]
    whole = {"matchConstraints": constraints, "validations": validations, **spec}
    return obj("ValidatingAdmissionPolicy", name, spec=whole)


def binding(name: str = "b", of: str = "p", **spec: Any) -> KubeObject:
    spec = {"policyName": of, "validationActions": ["Deny"], **spec}
    return obj("ValidatingAdmissionPolicyBinding", name, spec=spec)


def template(**spec: Any) -> Json:
    labels = spec.pop("labels", None)
    metadata: Json = {"name": "web", "namespace": "team-a"}
    if labels:
        metadata["labels"] = labels
    containers = spec.pop("containers", [{"name": "main", "image": "nginx"}])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, **spec},
    }


def asked(document: Json, *objects: KubeObject) -> list[tuple[str, str]]:
    """(outcome, message) of every policy that says something about a pod."""
    known = cluster(*objects)
    pod = msgspec.convert(document, NewPod)
    raw = request.stored(request.new_pod(document, pod, pod, known))
    found = validating.asked(request.of_pod(raw, pod), known, version=37)
    return [(one.outcome, one.message) for one in found]


REFUSED = [("denied", "failed expression: false")]


def test_a_policy_without_a_binding_says_nothing() -> None:
    assert asked(template(), policy("false")) == []
    assert asked(template(), policy("false"), binding(of="other")) == []
    assert asked(template(), policy("false"), binding()) == REFUSED


@pytest.mark.parametrize(
    ("constraints", "matches"),
    [
        ({}, True),
        ({"resourceRules": []}, True),
        ({"resourceRules": [{**PODS, "resources": ["*"]}]}, True),
        ({"resourceRules": [{**PODS, "resources": ["pods/*"]}]}, True),
        ({"resourceRules": [{**PODS, "resources": ["pods/exec"]}]}, False),
        ({"resourceRules": [{**PODS, "resources": ["services"]}]}, False),
        ({"resourceRules": [{**PODS, "operations": ["UPDATE"]}]}, False),
        ({"resourceRules": [{**PODS, "scope": "Cluster"}]}, False),
        ({"resourceRules": [{**PODS, "resourceNames": ["web"]}]}, True),
        ({"resourceRules": [{**PODS, "resourceNames": ["other"]}]}, False),
        ({"excludeResourceRules": [PODS]}, False),
        ({"excludeResourceRules": [{**PODS, "resourceNames": ["other"]}]}, True),
        ({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}, False),
        ({"objectSelector": {"matchLabels": {"app": "web"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"env": "prod"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"env": "dev"}}}, False),
        (
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "team-a"}}},
            True,
        ),
    ],
)
def test_a_policy_and_a_binding_match_by_the_same_rules(constraints: Json, matches: bool) -> None:
    home = obj("Namespace", "team-a", metadata={"labels": {"env": "prod"}})
    document = template(labels={"app": "web"})
    expected = REFUSED if matches else []
    assert asked(document, home, policy("false", constraints=constraints), binding()) == expected
    narrowed = binding(matchResources=constraints)
    assert asked(document, home, policy("false"), narrowed) == expected


def test_labels_of_a_namespace_that_is_not_there_are_unknown() -> None:
    selected = {"namespaceSelector": {"matchLabels": {"env": "prod"}}}
    document = template()
    document["metadata"]["namespace"] = "elsewhere"
    found = asked(document, policy("false", constraints=selected), binding())
    assert found == [("unknown", "the labels of namespace elsewhere")]


def test_a_policy_sees_the_pod_with_its_defaults_and_without_empty_fields() -> None:
    document = template(containers=[{"name": "a", "image": "x:1", "args": [], "tty": False}])
    sees = (
        "object.spec.restartPolicy == 'Always' && object.spec.terminationGracePeriodSeconds == 30",
        "object.spec.containers[0].imagePullPolicy == 'IfNotPresent'",
        "!has(object.spec.containers[0].args) && !has(object.spec.containers[0].tty)",
        "object.spec.containers[0].resources.size() == 0 && has(object.spec.securityContext)",
        "object.status.phase == 'Pending' && object.status.qosClass == 'BestEffort'",
        "object.spec.volumes.exists(v, has(v.projected))",
        "object.spec.containers[0].volumeMounts[0].readOnly == true",
    )
    assert asked(document, policy(*sees), binding()) == []


def test_an_expression_that_fails_refuses_unless_the_failure_policy_is_ignore() -> None:
    said = "expression 'object.spec.nothing == 1' resulted in error: no such key: nothing"
    failing = policy("object.spec.nothing == 1")
    assert asked(template(), failing, binding()) == [("failed", said)]
    ignored = policy("object.spec.nothing == 1", failurePolicy="Ignore")
    assert asked(template(), ignored, binding()) == []


def test_who_asks_is_unknown_unless_another_term_decides() -> None:
    user = "request.userInfo.username == 'admin'"
    allowed = "authorizer.group('').resource('pods').check('get').allowed()"
    for reads, what in ((user, "userInfo"), (allowed, "authorizer")):
        ((outcome, message),) = asked(template(), policy(reads), binding())
        assert outcome == "unknown"
        assert what in message
        assert asked(template(), policy(f"{reads} || true"), binding()) == []
        assert asked(template(), policy(f"{reads} && false"), binding()) == [
            ("denied", f"failed expression: {reads} && false")
        ]
    hidden = policy("false", matchConditions=[{"name": "m", "expression": user}])
    ((outcome, message),) = asked(template(), hidden, binding())
    assert (outcome, message.split(":")[0]) == ("unknown", "whether its match conditions hold")


def test_parameters_are_looked_up_and_unknown_where_nobody_exported_them() -> None:
    spec = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    limited = policy("int(params.data['max']) > 3", **spec)
    bound = binding(paramRef={"name": "limits", "parameterNotFoundAction": "Deny"})
    assert asked(template(), limited, bound) == [
        ("unknown", "ConfigMap objects, the parameters of the policy: not in the snapshot")
    ]
    there = obj("ConfigMap", "limits", "team-a", data={"max": "2"})
    assert asked(template(), limited, bound, there) == [
        ("denied", "failed expression: int(params.data['max']) > 3")
    ]
    other = obj("ConfigMap", "other", "team-a", data={})
    message = (
        "failed to configure binding: no params found for policy binding with `Deny`"
        " parameterNotFoundAction"
    )
    assert asked(template(), limited, bound, other) == [("failed", message)]
    kept = obj("ConfigMap", "limits", "team-a")
    ((outcome, what),) = asked(template(), limited, bound, kept)
    assert outcome == "unknown"
    assert "the data of ConfigMap limits: not kept in a snapshot" in what


def test_the_message_is_the_expression_s_the_policy_s_or_the_check_itself() -> None:
    for validation, message in (
        ({"expression": "false"}, "failed expression: false"),
        ({"expression": "false", "message": " no "}, "no"),
        ({"expression": "false", "messageExpression": "'at ' + object.metadata.name"}, "at web"),
        ({"expression": "false", "messageExpression": "''", "message": "m"}, "m"),
        ({"expression": "false", "messageExpression": "object.nothing", "message": "m"}, "m"),
        ({"expression": "false", "messageExpression": "'a\\nb'"}, "failed expression: false"),
    ):
        made = policy(validations=[validation])
        assert asked(template(), made, binding()) == [("denied", message)]


# -- mutations -------------------------------------------------------------------------------------


def mutation(*parts: str, name: str = "m", **spec: Any) -> tuple[KubeObject, KubeObject]:
    mutations = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": one}}
        if one.startswith("[")
        else {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": one}}
        for one in parts
    ]
    whole = {
        "matchConstraints": {"resourceRules": [PODS]},
        "mutations": mutations,
        "reinvocationPolicy": "Never",
        **spec,
    }
    return (
        obj("MutatingAdmissionPolicy", name, spec=whole),
        obj("MutatingAdmissionPolicyBinding", name, spec={"policyName": name}),
    )


def changed(document: Json, *objects: KubeObject) -> mutating.Mutated:
    known = cluster(*objects)
    pod = msgspec.convert(document, NewPod)
    raw = request.new_pod(document, pod, pod, known, token=False)
    return mutating.mutated(request.of_pod(raw, pod), known, version=37)


LABEL = "Object{metadata: Object.metadata{labels: {'team': 'a'}}}"


def test_apply_configurations_merge_items_by_their_keys() -> None:
    env = (
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'main',"
        " env: [Object.spec.containers.env{name: 'B', value: '2'}]}]}}"
    )
    one = {"name": "main", "image": "x:1", "env": [{"name": "A", "value": "1"}]}
    after = changed(template(containers=[one]), *mutation(LABEL, env))
    assert after.troubles == []
    assert after.object["metadata"]["labels"] == {"team": "a"}
    assert after.object["spec"]["containers"][0]["env"] == [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "2"},
    ]


def test_what_is_one_unit_must_not_be_applied() -> None:
    after = changed(template(), *mutation("Object{spec: Object.spec{tolerations: []}}"))
    assert [one.text for one in after.troubles] == [
        "policy 'm' with binding 'm' denied request: error applying patch: invalid"
        " ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.tolerations"
    ]


def test_only_policies_that_ask_for_it_see_what_later_ones_changed() -> None:
    sees = (
        "has(object.metadata.labels) ? Object{metadata: Object.metadata{annotations:"
        " {'seen': 'yes'}}} : Object{}"
    )
    for reinvoked, seen in (("IfNeeded", {"seen": "yes"}), ("Never", None)):
        first = mutation(sees, name="a", reinvocationPolicy=reinvoked)
        after = changed(template(), *first, *mutation(LABEL, name="b"))
        assert after.object["metadata"].get("annotations") == seen


# -- in the engine ---------------------------------------------------------------------------------


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team-a}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "nginx:latest"}
"""


def judged(*objects: KubeObject) -> Verdict:
    report = evaluate(
        read_documents(DEPLOYMENT.encode(), "m.yaml"),
        cluster(*objects, obj("Namespace", "team-a")),
        Policy.default(),
        now=NOW,
        source=Source("none", ""),
        with_remedies=False,
    )
    return report.workloads[0]


def test_explain_says_which_policy_denies_the_pods_of_a_workload() -> None:
    no_latest = policy("object.spec.containers.all(c, !c.image.endsWith(':latest'))")
    verdict = judged(no_latest, binding())
    assert verdict.admission == "denied"
    (found,) = [f for f in verdict.findings if f.reason in told.REASONS]
    assert found.reason == "admission-policy/denied"
    assert found.evidence[-1].observed == (
        "pods \"web-xxxxx\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied"
        " request: failed expression: object.spec.containers.all(c, !c.image.endsWith(':latest'))"
    ).replace("web-xxxxx", str(found.evidence[-1].observed).split('"')[1])


@pytest.mark.parametrize(
    ("actions", "level", "admission"),
    [
        (["Deny"], "deny", "denied"),
        (["Warn", "Audit"], "warn", "admitted"),
        (["Audit"], "audit", "admitted"),
    ],
)
def test_the_workload_s_own_object_is_asked_about_too(
    actions: list[str], level: str, admission: str
) -> None:
    rule = {**PODS, "apiGroups": ["apps"], "resources": ["deployments"]}
    wanted = "object.spec.replicas <= 2 && object.spec.revisionHistoryLimit == 10"
    few = policy(wanted, rules=[rule])
    verdict = judged(few, binding(validationActions=actions))
    (found,) = [f for f in verdict.findings if f.reason in told.REASONS]
    assert (found.level, verdict.admission) == (level, admission)
    if level == "deny":
        assert str(found.evidence[-1].observed).startswith('deployments.apps "web" is forbidden: ')


def test_explain_shows_what_a_mutating_policy_changes_and_goes_on_with_the_changed_pod() -> None:
    seen = policy("object.metadata.labels['team'] == 'a'", "object.spec.dnsPolicy == 'Default'")
    patch = "[JSONPatch{op: 'replace', path: '/spec/dnsPolicy', value: 'Default'}]"
    verdict = judged(*mutation(LABEL, patch), seen, binding())
    assert verdict.admission == "mutated"
    (change,) = verdict.mutations
    assert change.summary == "MutatingAdmissionPolicy m (binding m)"
    assert change.ops == (
        {"op": "add", "path": "/metadata/labels/team", "value": "a"},
        {"op": "add", "path": "/spec/dnsPolicy", "value": "Default"},
    )


def test_a_cluster_without_policies_costs_nothing() -> None:
    assert not native.present(cluster())
    assert native.present(cluster(policy("true")))


# -- types -----------------------------------------------------------------------------------------


def test_the_table_of_types_is_kubernetes_own() -> None:
    try:
        running = Referee(build=False)
    except Missing as missing:
        pytest.skip(f"{missing}: the table of types not compared")
    with running:
        answer = running.ask(["fields"], {"objects": [], "pod": {}})["fields"]
    assert {name: answer["types"][name] for name in table().types} == table().types
    assert {name: answer["lists"][name] for name in table().lists} == table().lists


def test_plain_data_takes_the_form_of_its_type() -> None:
    given = {
        "metadata": {"name": "p", "labels": {}, "uid": Unknown("uid")},
        "spec": {
            "hostNetwork": False,
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": "a",
                    "resources": {"limits": {"cpu": "1000m", "nvidia.com/gpu": 2}},
                    "unheard": 1,
                    "env": [{"name": "X", "value": ""}],
                }
            ],
        },
    }
    assert typed(given, "v1.Pod") == {
        "metadata": {"name": "p", "uid": Unknown("uid")},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": "a",
                    "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "2"}},
                    "env": [{"name": "X"}],
                }
            ],
        },
        "status": {},
    }
