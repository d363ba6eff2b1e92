"""Admission policies of the cluster, evaluated: whom they match, what they say, what is unknown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubectl_gpuadmit.admission import native
from kubectl_gpuadmit.admission.native import mutating, request, told, validating
from kubectl_gpuadmit.admission.native.bound import LEFT_OUT
from kubectl_gpuadmit.admission.native.typed import table, typed
from kubectl_gpuadmit.admission.native.who import Makers
from kubectl_gpuadmit.cel.values import Unknown
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.kube.manifests import read_documents
from kubectl_gpuadmit.kube.new_pods import NewPod
from kubectl_gpuadmit.kube.objects import Generic, KubeObject, ObjectMeta
from kubectl_gpuadmit.kube.policy_parameters import KEPT, record, written
from kubectl_gpuadmit.kube.requester import impersonated
from kubectl_gpuadmit.kube.workloads import Workload
from kubectl_gpuadmit.narrowed import Absence, narrowed
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.verdict import Ref, Report, Source, Verdict
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


CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}
LIMIT = {"apiVersion": "example.com/v1", "kind": "Limit"}


def limit(name: str, namespace: str = "", **spec: Any) -> KubeObject:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return Generic(
        apiVersion=LIMIT["apiVersion"],
        realKind="Limit",
        metadata=ObjectMeta(name=name, namespace=namespace or None),
        document={**LIMIT, "metadata": metadata, "spec": spec},
    )


def test_every_parameter_that_a_selector_finds_is_evaluated() -> None:
    chosen = policy("params.data['max'] == '8'", paramKind=CONFIG_MAP)
    ref = {"selector": {"matchLabels": {"for": "gpu"}}, "parameterNotFoundAction": "Deny"}
    labels = {"labels": {"for": "gpu"}}
    maps = [
        obj("ConfigMap", "a", "team-a", metadata=labels, data={"max": "8"}),
        obj("ConfigMap", "b", "team-a", metadata=labels, data={"max": "2"}),
        obj("ConfigMap", "c", "team-a", data={"max": "1"}),
        obj("ConfigMap", "d", "elsewhere", metadata=labels, data={"max": "1"}),
    ]
    said = ("denied", "failed expression: params.data['max'] == '8'")
    assert asked(template(), chosen, binding(paramRef=ref), *maps) == [said]
    there = {**ref, "namespace": "elsewhere"}
    assert asked(template(), chosen, binding(paramRef=there), *maps) == [said]
    nowhere = {**ref, "namespace": "nowhere"}
    ((outcome, message),) = asked(template(), chosen, binding(paramRef=nowhere), *maps)
    assert (outcome, message.split(": ")[0]) == ("failed", "failed to configure binding")


def test_parameters_may_be_objects_of_any_kind() -> None:
    few = policy("int(params.spec.max) > 3 && params.kind == 'Limit'", paramKind=LIMIT)
    bound = binding(paramRef={"name": "a", "parameterNotFoundAction": "Allow"})
    missing = "Limit objects, the parameters of the policy: not in the snapshot"
    assert asked(template(), few, bound) == [("unknown", missing)]
    for one in (limit("a", max=2), limit("a", "team-a", max=2)):
        ((outcome, _),) = asked(template(), few, bound, one)
        assert outcome == "denied"
    assert asked(template(), few, bound, limit("a", "other", max=2)) == []
    elsewhere = binding(paramRef={"name": "a", "namespace": "x", "parameterNotFoundAction": "Deny"})
    ((outcome, message),) = asked(template(), few, elsewhere, limit("a", max=2))
    assert (outcome, message) == (
        "failed",
        "failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped"
        " `paramKind`",
    )


def test_a_kind_that_the_api_server_does_not_serve_breaks_the_policy_once() -> None:
    gone = record("example.com/v1", "Limit", served=False, namespaced=False)
    refs = [binding(name=name, paramRef={"name": "a"}) for name in ("b", "c")]
    broken = policy("false", paramKind=LIMIT)
    assert asked(template(), gone, broken, *refs) == [
        (
            "failed",
            "failed to configure policy: failed to find resource referenced by paramKind:"
            " 'example.com/v1, Kind=Limit'",
        )
    ]
    ignored = policy("false", paramKind=LIMIT, failurePolicy="Ignore")
    assert asked(template(), gone, ignored, *refs) == []
    assert asked(template(), gone, broken) == [], "a policy without a binding is not looked at"


def test_a_record_says_that_all_parameters_were_read() -> None:
    read = record("v1", "ConfigMap", served=True, namespaced=True)
    chosen = policy("false", paramKind=CONFIG_MAP)
    for action, expected in (("Allow", []), ("Deny", ["failed"])):
        bound = binding(paramRef={"name": "a", "parameterNotFoundAction": action})
        assert [one for one, _ in asked(template(), chosen, bound, read)] == expected


def test_refused_parameters_are_told_with_the_right_that_would_make_them_known() -> None:
    few = policy("params.data.max == '1'", paramKind=CONFIG_MAP)
    bound = binding(paramRef={"name": "a", "parameterNotFoundAction": "Deny"})
    report = evaluate(
        read_documents(DEPLOYMENT.encode(), "m.yaml"),
        cluster(few, bound, obj("Namespace", "team-a")),
        Policy.default(),
        now=NOW,
        source=Source("none", ""),
        with_remedies=False,
    )
    why = 'user "dev" may not list configmaps in namespace team-a'
    hint = 'a Role in team-a would need: apiGroups: [""], resources: [configmaps], verbs: [list]'
    told_now = narrowed(report, [Absence(("ConfigMap",), why, hint)]).workloads[0]
    (unknown,) = [one for one in told_now.unknowns if one.rule == "admission/policy"]
    assert unknown.missing == (
        "what ValidatingAdmissionPolicy p (binding b) would say: ConfigMap objects, the parameters"
        f" of the policy: {why}"
    )
    assert unknown.hint == hint


def test_secrets_are_never_parameters_that_are_read() -> None:
    secret = policy("params.data.x == 'y'", paramKind={"apiVersion": "v1", "kind": "Secret"})
    held = obj("Secret", "a", "team-a", data={"x": "eQ=="})
    bound = binding(paramRef={"name": "a", "parameterNotFoundAction": "Deny"})
    unknown = ("unknown", "Secrets, the parameters of the policy: never read")
    assert asked(template(), secret, bound, held) == [unknown]


def test_what_was_not_kept_of_a_parameter_is_unknown_and_what_was_not_there_is_absent() -> None:
    kept = {"annotations": {KEPT: written(["data/max", "data/least"])}}
    part = obj("ConfigMap", "a", "team-a", metadata=kept, data={"max": "8"})
    bound = binding(paramRef={"name": "a", "parameterNotFoundAction": "Deny"})

    def said(text: str) -> list[str]:
        return [
            one for one, _ in asked(template(), policy(text, paramKind=CONFIG_MAP), bound, part)
        ]

    assert said("params.data.max == '8' && !('least' in params.data)") == []
    assert said("!has(params.data.least) && params.data.?least.orValue('1') == '1'") == []
    for reads in ("params.data.other == '1'", "has(params.data.other)", "size(params.data) == 1"):
        assert said(reads) == ["unknown"], reads
    assert said("params.data.all(k, v, v == '8')") == ["unknown"]


def test_a_redacted_policy_is_unknown_and_no_pass() -> None:
    silent = policy()
    assert asked(template(), silent, binding()) == [("unknown", LEFT_OUT)]
    after = changed(template(), *mutation())
    assert [(one.message, one.unknown) for one in after.troubles] == [(LEFT_OUT, True)]


# -- who asks --------------------------------------------------------------------------------------


def said_to(makers: Makers, *objects: KubeObject) -> list[str]:
    """Outcomes for a pod that one of the makers creates."""
    document, known = template(), cluster(*objects)
    pod = msgspec.convert(document, NewPod)
    raw = request.stored(request.new_pod(document, pod, pod, known))
    found = validating.asked_by(request.of_pod(raw, pod), makers, known, version=37)
    return [one.outcome for one in found]


def made_by(kind: str, api_version: str) -> Makers:
    ref = Ref(api_version, kind, "team-a", "web")
    return Makers.of_pods(Workload(ref, "", {}, ()), impersonated("alice"))


def test_the_user_of_an_applied_object_is_who_as_names() -> None:
    alice = Makers.of_object(impersonated("alice", ["developers"]))
    knows = (
        "request.userInfo.username == 'alice' && !has(request.userInfo.uid)",
        "request.userInfo.groups == ['developers', 'system:authenticated']",
        "!has(request.userInfo.extra) && !request.dryRun",
    )
    assert said_to(alice, policy(*knows), binding()) == []
    admins = policy("'system:masters' in request.userInfo.groups")
    assert said_to(alice, admins, binding()) == ["denied"]
    assert said_to(Makers.of_object(None), admins, binding()) == ["unknown"]
    account = impersonated("system:serviceaccount:ci:deployer")
    assert account.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:ci",
        "system:authenticated",
    )
    assert impersonated("system:anonymous").groups == ("system:unauthenticated",)


@pytest.mark.parametrize(
    ("expression", "outcome"),
    [
        ("request.userInfo.username.startsWith('system:')", []),
        ("request.userInfo.username == 'alice'", ["denied"]),
        ("'system:masters' in request.userInfo.groups", ["denied"]),
        (
            "request.userInfo.username.endsWith(':kube-system:replicaset-controller')",
            ["unknown"],
        ),
        ("request.userInfo.groups.exists(g, g == 'system:serviceaccounts')", ["unknown"]),
        ("has(request.userInfo.uid)", ["unknown"]),
    ],
)
def test_pods_of_a_deployment_are_made_by_one_of_two_accounts(
    expression: str, outcome: list[str]
) -> None:
    makers = made_by("Deployment", "apps/v1")
    assert said_to(makers, policy(expression), binding()) == outcome


def test_who_makes_the_pods_depends_on_the_kind() -> None:
    for kind, version, name in (
        ("Job", "batch/v1", "job-controller"),
        ("CronJob", "batch/v1", "job-controller"),
        ("StatefulSet", "apps/v1", "statefulset-controller"),
        ("DaemonSet", "apps/v1", "daemon-set-controller"),
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", "statefulset-controller"),
        ("JobSet", "jobset.x-k8s.io/v1alpha2", "job-controller"),
    ):
        account, manager = made_by(kind, version).candidates
        assert account.username == f"system:serviceaccount:kube-system:{name}"
        assert manager.username == "system:kube-controller-manager"
    assert [one.username for one in made_by("Pod", "v1").candidates] == ["alice"]
    for kind, version in (("RayCluster", "ray.io/v1"), ("Job", "batch.volcano.sh/v1alpha1")):
        strange = made_by(kind, version)
        assert strange.candidates == ()
        assert said_to(strange, policy("request.userInfo.username == ''"), binding()) == ["unknown"]


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


def judged(*objects: KubeObject, manifest: str = DEPLOYMENT, user: str = "") -> Verdict:
    report = evaluate(
        read_documents(manifest.encode(), "m.yaml"),
        cluster(*objects, obj("Namespace", "team-a")),
        Policy.default(),
        now=NOW,
        source=Source("none", ""),
        with_remedies=False,
        requester=impersonated(user) if user else None,
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


DEPLOYMENTS = {
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["deployments"],
}


def of_deployments(*parts: str, name: str = "m", **spec: Any) -> tuple[KubeObject, KubeObject]:
    return mutation(*parts, name=name, matchConstraints={"resourceRules": [DEPLOYMENTS]}, **spec)


POOL = (
    "Object{spec: Object.spec{replicas: 1, template: Object.spec.template{metadata:"
    " Object.spec.template.metadata{labels: {'tier': 'gold'}}}}}"
)


def test_pods_are_made_from_what_a_policy_has_made_of_the_deployment() -> None:
    few = policy("object.spec.replicas <= 2", rules=[DEPLOYMENTS])
    gold = policy("object.metadata.labels['tier'] == 'gold'", name="q")
    verdict = judged(
        *of_deployments(POOL), few, binding(), gold, binding(name="c", of="q"), user="alice"
    )
    assert (verdict.admission, verdict.pods, verdict.findings) == ("mutated", 1, ())
    (change,) = verdict.mutations
    assert (change.of, change.summary) == ("object", "MutatingAdmissionPolicy m (binding m)")
    assert change.ops == (
        {"op": "replace", "path": "/spec/replicas", "value": 1},
        {"op": "add", "path": "/spec/template/metadata/labels/tier", "value": "gold"},
    )
    assert change.before == {"/spec/replicas": 3}
    assert verdict.object_patch == (), "nobody has to carry it out: the API server does"
    without = judged(few, binding(), gold, binding(name="c", of="q"))
    assert (without.admission, without.pods) == ("denied", 3)


def test_later_policies_see_what_earlier_ones_made_of_the_workload() -> None:
    sees = "object.spec.replicas == 1 ? Object{spec: Object.spec{minReadySeconds: 5}} : Object{}"
    patch = "[JSONPatch{op: 'remove', path: '/spec/minReadySeconds'}]"
    verdict = judged(
        *of_deployments(POOL, name="a"),
        *of_deployments(sees, name="b"),
        *of_deployments(patch, name="c"),
    )
    assert [change.summary.split()[1] for change in verdict.mutations] == ["a", "b", "c"]
    assert verdict.mutations[2].ops == ({"op": "remove", "path": "/spec/minReadySeconds"},)
    assert verdict.unknowns == judged().unknowns


def test_a_policy_that_fails_on_the_workload_refuses_it_and_nobody_else_is_asked() -> None:
    never = policy("false", rules=[DEPLOYMENTS])
    wrong = of_deployments("[JSONPatch{op: 'add', path: '/spec/unheard', value: 1}]")
    verdict = judged(*wrong, never, binding())
    (found,) = [f for f in verdict.findings if f.reason in told.REASONS]
    assert (found.reason, verdict.admission) == ("admission-policy/failed", "denied")
    assert str(found.evidence[-1].observed).endswith(
        'Internal error occurred: strict decoding error: unknown field "spec.unheard"'
    )


JOB_SET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: web, namespace: team-a}
spec:
  replicatedJobs:
  - name: w
    replicas: 2
    template:
      spec:
        template:
          spec:
            containers: [{name: main, image: "nginx:1"}]
"""


def test_a_patch_changes_a_custom_workload_and_a_merge_into_it_is_unknown() -> None:
    rule = {**DEPLOYMENTS, "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["jobsets"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}}
    patch = "[JSONPatch{op: 'replace', path: '/spec/replicatedJobs/0/replicas', value: 5}]"
    verdict = judged(*mutation(patch, **spec), manifest=JOB_SET)
    assert (verdict.admission, verdict.pods) == ("mutated", 5)
    merge = judged(*mutation("Object{spec: Object.spec{suspend: true}}", **spec), manifest=JOB_SET)
    (unknown,) = [one for one in merge.unknowns if one.rule == "admission/policy"]
    assert "how an apply configuration is merged into a" in unknown.missing


def only(resource: str, group: str = "apps") -> Json:
    return {**DEPLOYMENTS, "apiGroups": [group], "resources": [resource]}


def test_the_replica_set_of_a_deployment_is_asked_about_as_its_controller_makes_it() -> None:
    sees = (
        "object.metadata.name.startsWith('web-') && object.spec.replicas == 3",
        "object.metadata.ownerReferences[0].kind == 'Deployment'",
        "has(object.spec.selector.matchLabels) && 'pod-template-hash' in object.metadata.labels",
        "object.metadata.annotations['deployment.kubernetes.io/desired-replicas'] == '3'",
        "object.spec.template.spec.restartPolicy == 'Always'",
        "request.userInfo.username.startsWith('system:') && request.resource.resource =="
        " 'replicasets'",
    )
    verdict = judged(policy(*sees, rules=[only("replicasets")]), binding(), user="alice")
    assert [f for f in verdict.findings if f.reason in told.REASONS] == []
    assert [u for u in verdict.unknowns if u.rule == "admission/policy"] == []
    refused = judged(policy("object.spec.replicas < 3", rules=[only("replicasets")]), binding())
    (found,) = [f for f in refused.findings if f.reason in told.REASONS]
    assert str(found.evidence[-1].observed).startswith(
        'replicasets.apps "web-xxxxx" is forbidden: '
    )
    assert refused.admission == "denied"
    changes = mutation(
        "Object{spec: Object.spec{replicas: 1}}",
        matchConstraints={"resourceRules": [only("replicasets")]},
    )
    (unknown,) = [u for u in judged(*changes).unknowns if u.rule == "admission/policy"]
    assert unknown.missing == (
        "what becomes of a ReplicaSet that MutatingAdmissionPolicy m (binding m) changes under its"
        " owner"
    )


CRON_JOB = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: web, namespace: team-a}
spec:
  schedule: "0 * * * *"
  concurrencyPolicy: Forbid
  jobTemplate:
    metadata: {labels: {team: a}}
    spec:
      parallelism: 2
      completions: 4
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: "nginx:1"}]
"""


def test_the_job_of_a_cron_job_is_changed_on_its_way() -> None:
    fewer = (
        "object.metadata.labels['team'] == 'a' && object.metadata.name.startsWith('web-') ?"
        " Object{spec: Object.spec{parallelism: 1}} : Object{}"
    )
    spec = {"matchConstraints": {"resourceRules": [only("jobs", "batch")]}}
    verdict = judged(*mutation(fewer, **spec), manifest=CRON_JOB)
    assert (verdict.admission, verdict.pods) == ("mutated", 1)
    (change,) = verdict.mutations
    assert change.ops == (
        {"op": "replace", "path": "/spec/jobTemplate/spec/parallelism", "value": 1},
    )
    assert change.before == {"/spec/jobTemplate/spec/parallelism": 2}
    assert change.summary == (
        "MutatingAdmissionPolicy m (binding m), of the Job that is made from it"
    )


LEADER_WORKER_SET = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: web, namespace: team-a}
spec:
  leaderWorkerTemplate:
    size: 2
    workerTemplate: {spec: {containers: [{name: main, image: "nginx:1"}]}}
"""


def test_what_other_controllers_make_on_the_way_is_named() -> None:
    sets = policy("object.spec.replicas < 3", rules=[only("statefulsets")])
    verdict = judged(sets, binding(), manifest=LEADER_WORKER_SET)
    (unknown,) = [u for u in verdict.unknowns if u.rule == "admission/policy"]
    assert unknown.missing == (
        "what ValidatingAdmissionPolicy p (binding b) would say: of the statefulsets.apps that"
        " controllers make for leaderworkerset/web"
    )
    assert unknown.level == "warn"
    elsewhere = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}
    quiet = judged(sets, binding(matchResources=elsewhere), manifest=LEADER_WORKER_SET)
    assert [u for u in quiet.unknowns if u.rule == "admission/policy"] == []


CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two, namespace: team-a}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: gpu.nvidia.com%s}
---
"""
_REQUESTS = "object.spec.spec.devices.requests"
TEMPLATES = {
    "apiGroups": ["resource.k8s.io"],
    "apiVersions": ["*"],
    "operations": ["CREATE"],
    "resources": ["resourceclaimtemplates"],
}


def told_of_claims(*objects: KubeObject, more: str = "") -> Report:
    return evaluate(
        read_documents((CLAIM % more + DEPLOYMENT).encode(), "m.yaml"),
        cluster(*objects, obj("Namespace", "team-a")),
        Policy.default(),
        now=NOW,
        source=Source("none", ""),
        with_remedies=False,
        requester=impersonated("alice"),
    )


def test_claims_that_a_run_brings_along_are_asked_about_too() -> None:
    few = policy(
        f"{_REQUESTS}.all(r, r.exactly.allocationMode == 'ExactCount' && r.exactly.count <= 2)",
        f"{_REQUESTS}.all(r, !has(r.exactly.adminAccess)) && request.userInfo.username == 'alice'",
        rules=[TEMPLATES],
    )
    fine = told_of_claims(few, binding())
    assert [one.treated for one in fine.skipped] == ["applied"]
    assert [u for u in fine.workloads[0].unknowns if u.rule == "admission/policy"] == []
    refused, _ = told_of_claims(few, binding(), more=", count: 4").workloads
    assert (refused.ref.name, refused.admission) == ("two", "denied")
    (found,) = refused.findings
    assert str(found.evidence[-1].observed).startswith(
        'resourceclaimtemplates.resource.k8s.io "two" is forbidden: '
    )


def test_what_cannot_be_said_of_a_claim_is_told_with_the_workloads_of_its_namespace() -> None:
    reads = "authorizer.group('').resource('pods').check('get').allowed()"
    (verdict,) = told_of_claims(policy(reads, rules=[TEMPLATES]), binding()).workloads
    (unknown,) = [u for u in verdict.unknowns if u.rule == "admission/policy"]
    assert "what the authorizer would say" in unknown.missing
    warned = told_of_claims(policy("false", rules=[TEMPLATES]), binding(validationActions=["Warn"]))
    assert [f.level for f in warned.workloads[0].findings if f.reason in told.REASONS] == ["warn"]


def test_claims_that_are_made_of_templates_are_named() -> None:
    claims = policy("false", rules=[{**TEMPLATES, "resources": ["resourceclaims"]}])
    entry = "resourceClaims: [{name: g, resourceClaimTemplateName: two}]\n      containers:"
    verdict = judged(claims, binding(), manifest=DEPLOYMENT.replace("containers:", entry))
    (unknown,) = [u for u in verdict.unknowns if u.rule == "admission/policy"]
    assert unknown.missing == (
        "what ValidatingAdmissionPolicy p (binding b) would say: of the"
        " resourceclaims.resource.k8s.io that controllers make for deployment/web"
    )
    assert [u for u in judged(claims, binding()).unknowns if u.rule == "admission/policy"] == []


def test_a_claim_is_changed_on_its_way_into_the_cluster() -> None:
    patch = "[JSONPatch{op: 'add', path: '/spec/spec/devices/requests/0/exactly/count', value: 3}]"
    changes = mutation(patch, matchConstraints={"resourceRules": [TEMPLATES]})
    (skipped,) = told_of_claims(*changes).skipped
    assert skipped.detail == "changed by MutatingAdmissionPolicy m (binding m)"
    few = policy(f"{_REQUESTS}[0].exactly.count < 3", rules=[TEMPLATES])
    refused = told_of_claims(*changes, few, binding()).workloads[0]
    assert refused.admission == "denied", "the change is seen by those that come after it"


@pytest.mark.parametrize(
    "wrong", ["strategy: x", "revisionHistoryLimit: [1]", "selector: 3", "minReadySeconds: {a: 1}"]
)
def test_an_object_that_the_api_server_cannot_read_is_unknown_to_policies(wrong: str) -> None:
    reads = policy("object.spec.strategy.type == 'Recreate'", rules=[DEPLOYMENTS])
    changes = of_deployments(POOL)
    broken = DEPLOYMENT.replace("  replicas: 3", f"  {wrong}")
    broken = broken if "selector" not in wrong else broken.replace("  selector: {m", "  s: {m")
    verdict = judged(reads, binding(), *changes, manifest=broken)
    assert len([u for u in verdict.unknowns if u.rule == "admission/policy"]) >= 1


def test_who_applies_a_workload_is_another_than_who_makes_its_pods() -> None:
    mine = "request.userInfo.username == 'alice'"
    both = policy(mine, rules=[DEPLOYMENTS, PODS])
    verdict = judged(both, binding(), user="alice")
    (found,) = [f for f in verdict.findings if f.reason in told.REASONS]
    assert str(found.evidence[-1].observed).startswith("pods "), "alice creates no pod herself"
    nobody = judged(policy(mine, rules=[DEPLOYMENTS]), binding())
    (unknown,) = [one for one in nobody.unknowns if one.rule == "admission/policy"]
    assert unknown.hint == "--as USER --as-group GROUP says who"


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
