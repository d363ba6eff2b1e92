"""What happened to a workload: folding, disagreements, the API server's own word."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from msgspec import structs

from kubectl_gpuadmit import rules
from kubectl_gpuadmit.agreement import ServerAnswer, compared, expanded_pod
from kubectl_gpuadmit.happened import with_history
from kubectl_gpuadmit.happened.history import History, placed
from kubectl_gpuadmit.kube.workloads import Workload, expand
from kubectl_gpuadmit.narrowed import Absence, narrowed
from kubectl_gpuadmit.needs import LIVING_PODS, Need, needs
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.rule import REGISTRY
from kubectl_gpuadmit.verdict import Evidence, Finding, Ref, Report, Source, Unknown, Verdict
from tests.given import given

assert rules.__all__

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
FITS = Verdict(
    ref=Ref("apps/v1", "Deployment", "team-a", "web"),
    location="deployment/web in team-a",
    pods=2,
    gpus={"nvidia.com/gpu": 2},
    admission="admitted",
    placement="fits",
    running="unknown",
)
DENIED = structs.replace(
    FITS,
    admission="denied",
    blockers=("quota/exceeded",),
    findings=(Finding("quota/exceeded", "too much", rule="admission/quota"),),
)
QUOTA = 'Error creating: pods "web-5-{}" is forbidden: exceeded quota: gpus, requested: x=1'
HOOK = 'Error creating: admission webhook "gate.corp.example" denied the request: no'


def obj(kind: str, name: str, **parts: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "uid": name}, **parts}


def event(
    kind: str, name: str, reason: str, message: str, *, count: int = 1, at: str = "11:59:00"
) -> dict[str, Any]:
    return {
        "involvedObject": {"kind": kind, "name": name, "uid": name},
        "reason": reason,
        "message": message,
        "count": count,
        "lastTimestamp": f"2026-03-01T{at}Z",
    }


def pod(name: str, *, node: str = "", phase: str = "Pending", **status: Any) -> dict[str, Any]:
    spec = {"nodeName": node} if node else {}
    return obj("Pod", name, spec=spec, status={"phase": phase, **status})


def condition(type_: str, status: str, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


WEB = obj("Deployment", "web")


def told(verdict: Verdict, **history: Any) -> list[tuple[str, str, str]]:
    after = with_history(verdict, History(WEB, **history), now=NOW)
    return [(f.reason, f.level, f.detail) for f in after.findings[len(verdict.findings) :]]


def test_refusals_of_a_replica_set_are_folded_into_one() -> None:
    events = (
        event("ReplicaSet", "web-5", "FailedCreate", QUOTA.format("aaaaa"), at="11:50:00"),
        event(
            "ReplicaSet",
            "web-5",
            "FailedCreate",
            "(combined from similar events): " + QUOTA.format("bbbbb"),
            count=7,
        ),
    )
    assert told(DENIED, events=events) == [
        (
            "live/not-created",
            "warn",
            "ReplicaSet web-5 (8 times, last 60 s ago): FailedCreate: " + QUOTA.format("bbbbb"),
        )
    ]


def test_a_message_is_read_and_says_whose_move_it_is() -> None:
    message = (
        'Error creating: pods "web-5-aaaaa" is forbidden: exceeded quota: gpus, requested: '
        "requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=8, limited: "
        "requests.nvidia.com/gpu=8"
    )
    events = (event("ReplicaSet", "web-5", "FailedCreate", message),)
    after = with_history(DENIED, History(WEB, events=events), now=NOW)
    assert after.findings[-1].evidence == (
        Evidence("ReplicaSet web-5", "FailedCreate", 1, None, "last 60 s ago"),
        Evidence(
            "quota/exceeded",
            "yours to solve",
            "ResourceQuota gpus: requests.nvidia.com/gpu asked 2 · used 8 · limit 8, 0 left",
            None,
            "quota",
        ),
        Evidence("next", "next", "kubectl describe resourcequota gpus", None),
    )


def test_pods_that_a_kubelet_refuses_again_and_again_are_one_cause() -> None:
    message = "Resources cannot be allocated with Topology locality"
    failed = [
        pod(f"web-{n}", node="n", phase="Failed", reason="TopologyAffinityError", message=message)
        for n in range(4)
    ]
    assert told(FITS, pods=tuple(failed)) == [
        (
            "live/refused-by-kubelet",
            "warn",
            f"4 pods, such as web-3: TopologyAffinityError: {message}".replace(
                "web-3", "Pod web-3"
            ),
        ),
        (
            "live/runaway",
            "warn",
            "4 pods ended TopologyAffinityError, all on n: the scheduler does not see NUMA, to it"
            " the node looks free, and it sends the next one there again; waiting does not end"
            " this",
        ),
        (
            "live/disagrees",
            "warn",
            f"we say placement fits, but TopologyAffinityError: {message}",
        ),
    ]


def failed(count: int, reason: str, *nodes: str) -> tuple[dict[str, Any], ...]:
    """Failed pods, one every 5 s, on these nodes in turn."""
    made = []
    for n in range(count):
        one = pod(f"web-{n}", node=nodes[n % len(nodes)], phase="Failed", reason=reason)
        one["metadata"]["creationTimestamp"] = f"2026-03-01T11:59:{5 * n:02}Z"
        made.append(one)
    return tuple(made)


def runaway(pods: tuple[dict[str, Any], ...], ref: Ref | None = None) -> list[Finding]:
    verdict = structs.replace(FITS, ref=ref or FITS.ref)
    after = with_history(verdict, History(WEB, pods=pods), now=NOW)
    return [f for f in after.findings if f.reason == "live/runaway"]


def test_a_runaway_says_how_fast_where_to_and_what_stops_it() -> None:
    (finding,) = runaway(failed(7, "TopologyAffinityError", "n-0", "n-0", "n-1"))
    assert finding.detail == (
        "7 pods within 30s ended TopologyAffinityError, 5 of them on n-0: the scheduler does not"
        " see NUMA, to it the node looks free, and it sends the next one there again; waiting does"
        " not end this"
    )
    assert finding.evidence == (
        Evidence("Node n-0", "pods that its kubelet refused", 5, None),
        Evidence("Node n-1", "pods that its kubelet refused", 2, None),
        Evidence("next", "stop it", "kubectl -n team-a scale deployment/web --replicas=0", None),
        Evidence(
            "next",
            "then clear up",
            "kubectl -n team-a delete pods --field-selector status.phase=Failed",
            None,
        ),
        Evidence(
            "next",
            "then mend it",
            "keep off n-0: node affinity kubernetes.io/hostname NotIn [n-0]; or ask for what one of"
            " its NUMA nodes has free",
            None,
        ),
    )


def test_the_status_text_of_old_kubelets_is_the_same_trouble() -> None:
    (finding,) = runaway(failed(4, "Topology Affinity Error", "n-0"))
    assert "ended TopologyAffinityError, all on n-0" in finding.detail


def test_a_job_is_suspended_and_not_scaled() -> None:
    ref = Ref("batch/v1", "Job", "team-a", "sweep")
    (finding,) = runaway(failed(4, "UnexpectedAdmissionError", "n-0"), ref)
    assert finding.evidence[1].observed == (
        'kubectl -n team-a patch job/sweep --type=merge -p \'{"spec":{"suspend":true}}\''
    )


@pytest.mark.parametrize(
    ("count", "reason"), [(2, "TopologyAffinityError"), (9, "Evicted"), (9, "Error")]
)
def test_two_refusals_or_other_ends_are_no_runaway(count: int, reason: str) -> None:
    assert runaway(failed(count, reason, "n-0")) == []


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"phase": "Failed", "reason": "OutOfnvidia.com/gpu"}, "live/refused-by-kubelet"),
        ({"phase": "Failed", "reason": "UnexpectedAdmissionError"}, "live/refused-by-kubelet"),
        ({"phase": "Failed", "reason": "Evicted"}, "live/evicted"),
        (
            {"conditions": [condition("DisruptionTarget", "True", "PreemptionByScheduler")]},
            "live/evicted",
        ),
        (
            {"conditions": [condition("PodScheduled", "False", "SchedulingGated")]},
            "live/gated",
        ),
        (
            {"conditions": [condition("PodScheduled", "False", "Unschedulable", "0/3 nodes")]},
            "live/unschedulable",
        ),
        (
            {
                "containerStatuses": [
                    {"name": "m", "state": {"waiting": {"reason": "ErrImagePull"}}}
                ]
            },
            "live/container-failing",
        ),
        (
            {
                "containerStatuses": [
                    {
                        "name": "m",
                        "restartCount": 3,
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
                    }
                ]
            },
            "live/container-failing",
        ),
    ],
)
def test_what_became_of_a_pod(status: dict[str, Any], reason: str) -> None:
    made = obj("Pod", "web-0", status={"phase": "Pending", **status})
    never = structs.replace(FITS, placement="never")
    assert [row[0] for row in told(never, pods=(made,))] == [reason]


def test_containers_that_are_still_being_made_are_no_finding() -> None:
    waiting = [{"name": "m", "state": {"waiting": {"reason": "ContainerCreating"}}}]
    made = pod("web-0", node="n", containerStatuses=waiting)
    assert told(FITS, pods=(made,)) == []


def test_where_all_pods_are_on_nodes_a_verdict_of_never_is_contradicted() -> None:
    ready = [condition("Ready", "True")]
    pods = tuple(pod(f"w-{n}", node=f"n{n}", phase="Running", conditions=ready) for n in range(2))
    never = structs.replace(FITS, placement="never")
    assert told(FITS, pods=pods) == [
        ("live/placed", "audit", "2 of 2 pods are on nodes (n0, n1), 2 of them ready")
    ]
    assert [row[2] for row in told(never, pods=pods)][1:] == [
        "we say placement never, but all 2 pods are on nodes"
    ]
    assert [row[2] for row in told(DENIED, pods=pods)][1:] == [
        "we say admission denied, but all 2 pods are on nodes"
    ]
    assert placed(FITS, History(WEB, pods=pods))
    assert not placed(FITS, History(WEB, pods=pods[:1]))


def test_the_scheduler_and_our_verdict_differ_with_both_words_as_evidence() -> None:
    waits = pod("w", conditions=[condition("PodScheduled", "False", "Unschedulable", "0/3 nodes")])
    after = with_history(FITS, History(WEB, pods=(waits,)), now=NOW)
    assert after.findings[-1].reason == "live/disagrees"
    assert after.findings[-1].evidence == (
        Evidence("this verdict", "placement", "fits", None, "kubectl gpu-admit"),
        Evidence(
            "the cluster", "placement", "Unschedulable: 0/3 nodes", None, "conditions and events"
        ),
    )
    assert (after.admission, after.placement) == ("admitted", "fits")


def test_a_fresh_refusal_by_a_webhook_is_a_refusal() -> None:
    fresh = History(WEB, events=(event("ReplicaSet", "r", "FailedCreate", HOOK),))
    after = with_history(FITS, fresh, now=NOW)
    assert (after.admission, after.blockers) == ("denied", ("live/not-created",))
    assert [f.reason for f in after.findings] == ["live/not-created"]


def test_an_old_one_only_differs() -> None:
    old = History(WEB, events=(event("ReplicaSet", "r", "FailedCreate", HOOK, at="11:30:00"),))
    after = with_history(FITS, old, now=NOW)
    assert (after.admission, after.blockers) == ("admitted", ())
    assert [f.reason for f in after.findings] == ["live/not-created", "live/disagrees"]


def test_a_job_that_has_given_up_and_one_that_has_ended_well() -> None:
    failed = obj(
        "Job", "j", status={"conditions": [condition("Failed", "True", "DeadlineExceeded")]}
    )
    well = obj("Job", "j", status={"conditions": [condition("Complete", "True")]})
    for made, reason in ((failed, "live/stopped"), (well, "live/complete")):
        after = with_history(FITS, History(made), now=NOW)
        assert [f.reason for f in after.findings] == [reason]


# -- the server's word -----------------------------------------------------------------------------


def workload(text: str) -> Workload:
    made = expand(given(text), namespace="team-a")
    assert isinstance(made, Workload)
    return made


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team-a}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: m, resources: {limits: {nvidia.com/gpu: 1}}}]}
"""


def test_the_pod_that_is_asked_about_is_the_one_that_the_controller_would_send() -> None:
    made = workload(DEPLOYMENT)
    assert expanded_pod(made, made.groups[0], uid="u-1") == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": {"app": "web"},
            "namespace": "team-a",
            "generateName": "web-",
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web-xxxxx",
                    "uid": "00000000-0000-0000-0000-000000000000",
                    "controller": True,
                }
            ],
        },
        "spec": {"containers": [{"name": "m", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
    }


OURS = structs.replace(FITS, pods=1)
HOOK_UNKNOWN = Unknown("admission/webhook", "what admission webhook gate.corp.example would say")


@pytest.mark.parametrize(
    ("ours", "answer", "reason", "level", "admission"),
    [
        (OURS, ServerAnswer("", True), "live/server-agrees", "audit", "admitted"),
        (
            DENIED,
            ServerAnswer("", False, "exceeded quota"),
            "live/server-agrees",
            "audit",
            "admitted",
        ),
        (OURS, ServerAnswer("", False, "no"), "live/server-disagrees", "deny", "denied"),
        (OURS, ServerAnswer("", False, HOOK), "live/server-refuses", "deny", "denied"),
        (DENIED, ServerAnswer("", True), "live/server-disagrees", "warn", "admitted"),
    ],
)
def test_agreement_with_the_api_server(
    ours: Verdict, answer: ServerAnswer, reason: str, level: str, admission: str
) -> None:
    asked = structs.replace(FITS, unknowns=(HOOK_UNKNOWN,))
    after = compared(asked, ours, answer)
    found = after.findings[-1]
    assert (found.reason, found.level, after.admission) == (reason, level, admission)
    assert after.unknowns == (), "the server's answer settles what a webhook would say"
    if reason == "live/server-refuses":
        assert found.evidence[0].subject == "webhook gate.corp.example"


def test_a_right_that_is_missing_to_ask_is_an_unknown() -> None:
    answer = ServerAnswer("", False, 'user "dev" may not create pods in team-a', not_asked="a Role")
    after = compared(FITS, OURS, answer)
    assert after.findings == ()
    assert [(u.missing, u.hint) for u in after.unknowns] == [
        (
            'what the API server would say to a pod: user "dev" may not create pods in team-a',
            "a Role",
        )
    ]


# -- needs and absences ----------------------------------------------------------------------------


def test_only_what_a_question_needs_is_read() -> None:
    plain = needs([workload(DEPLOYMENT)], Policy.default(), REGISTRY)
    kinds = [need.kind for need in plain]
    assert kinds[:4] == ["Pod", "Node", "Namespace", "ResourceQuota"]
    assert plain[0] == Need("Pod", fields=LIVING_PODS)
    assert plain[3] == Need("ResourceQuota", ("team-a",))
    wanted = {need.kind for need in plain if not need.optional}
    assert {"PersistentVolumeClaim", "RuntimeClass", "ResourceClaim", "Job"} & wanted == set()
    assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]", "PersistentVolumeClaim"),
        ("runtimeClassName: nvidia", "RuntimeClass"),
        ("resourceClaims: [{name: g, resourceClaimTemplateName: t}]", "ResourceSlice"),
    ],
)
def test_a_feature_of_a_pod_adds_its_kinds(spec: str, kind: str) -> None:
    text = f"""
apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  {spec}
  containers: [{{name: m}}]
"""
    assert kind in {need.kind for need in needs([workload(text)], Policy.default(), REGISTRY)}


def test_a_refused_kind_is_named_with_its_rule_wherever_it_is_missed() -> None:
    verdict = structs.replace(
        FITS,
        unknowns=(
            Unknown("a", "Node objects: not in the source", hint="kubectl get nodes"),
            Unknown("b", "Node objects: not in the source", level="deny", hint="kubectl get nodes"),
            Unknown("c", "PriorityClass x: priority classes are not in the snapshot"),
            Unknown("d", "pool of node n: no Node objects given"),
            Unknown("e", "something else"),
        ),
    )
    report = Report("now", Source("live", "c", 0), (verdict,))
    absences = [
        Absence(("Node",), "dev may not list nodes", "add nodes"),
        Absence(("PriorityClass",), "dev may not list classes", "add classes"),
        Absence(("DeviceClass",), "dev may not list d", "a ClusterRole would need: d"),
        Absence(("CSINode",), "dev may not list c", "a ClusterRole would need: c"),
    ]
    assert narrowed(report, absences).workloads[0].unknowns == (
        Unknown("b", "Node objects: dev may not list nodes", level="deny", hint="add nodes"),
        Unknown("c", "PriorityClass x: dev may not list classes", hint="add classes"),
        Unknown("d", "pool of node n: dev may not list nodes", hint="add nodes"),
        Unknown("e", "something else"),
        Unknown(
            "live/forbidden",
            "also not looked at: dev may not list d; c",
            level="audit",
            hint="a ClusterRole would need: d; c",
        ),
    )
