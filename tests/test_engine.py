"""The whole engine: what one document of a run leaves for the next, and in which order it asks."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.kube.workloads import Workload, expand
from kubectl_gpuadmit.verdict import (
    Group,
    NodeVerdict,
    PodPlace,
    Ref,
    Report,
    ServedModel,
    Unknown,
    Verdict,
)
from tests.placement.build import GPU, KNOWN, node, pod
from tests.runs import (
    QUIET,
    SOURCE,
    decoded_quota,
    deployment,
    home,
    job,
    joined,
    judged,
    only,
    outcomes,
    policy,
    quota,
    report,
    world,
)

FREE = ("admitted", "fits")
SHORT = ("placement/insufficient",)


# -- whole verdicts --------------------------------------------------------------------------------


def test_a_deployment_that_fits_is_told_with_all_its_pods_and_nodes() -> None:
    manifest = deployment("web", replicas=3, gpus=2)
    assert report(manifest, world(node("n0", 4), node("n1", 2)), QUIET) == Report(
        as_of="2026-11-29T12:00:00Z",
        source=SOURCE,
        workloads=(
            Verdict(
                ref=Ref("apps/v1", "Deployment", "default", "web"),
                location="m.yaml:1",
                pods=3,
                gpus={GPU: 6},
                admission="admitted",
                placement="fits",
                running="unknown",
                nodes=(NodeVerdict("n0", True), NodeVerdict("n1", True)),
                places=(
                    PodPlace("web-0", "", "n1"),
                    PodPlace("web-1", "", "n0"),
                    PodPlace("web-2", "", "n0"),
                ),
                groups=(Group("", 3, {GPU: 2}),),
                models=(
                    ServedModel(
                        role="",
                        container="",
                        engine="",
                        version="",
                        model="",
                        recognisedFrom="",
                        arguments=(),
                        source="",
                        gpus=0,
                        running="unknown",
                        missing=(
                            "container main starts what its image starts: no serving engine"
                            " known here",
                        ),
                    ),
                ),
            ),
        ),
        policy=QUIET.name,
        asked=(),
    )


def test_a_workload_that_is_scaled_to_zero_has_nothing_to_place_and_frees_what_runs() -> None:
    running = pod("web-1-x", 4, on="n0", meta=owned("ReplicaSet", "web-1"))
    made = report(
        joined(deployment("web", replicas=0), deployment("next", gpus=4)),
        world(node("n0", 4), running),
        QUIET,
    )
    assert made.workloads[0] == Verdict(
        ref=Ref("apps/v1", "Deployment", "default", "web"),
        location="m.yaml:1",
        pods=0,
        gpus={},
        admission="admitted",
        placement="fits",
        running="not-a-model",
    )
    assert outcomes(made)[1] == ("next", *FREE, "n0", ())


def test_without_nodes_in_the_source_placement_is_unknown_and_the_pods_are_counted() -> None:
    cluster = Cluster.of(home(), [kind for kind in KNOWN if kind != "Node"])
    made = only(report(deployment("web", replicas=2), cluster, QUIET))
    assert (made.pods, made.gpus, made.admission, made.placement) == (
        2, {GPU: 2}, "admitted", "unknown",
    )  # fmt: skip
    (unknown,) = (u for u in made.unknowns if u.stage == "placement")
    assert unknown == Unknown(
        rule="placement",
        missing="Node objects: not in the source",
        hint="kubectl get nodes -o yaml",
        stage="placement",
    )


def test_what_is_known_only_to_a_controller_makes_placement_unknown() -> None:
    (document,) = read_documents(job("j").encode(), "m.yaml")
    assert isinstance(document, Document)
    workload = expand(document)
    assert isinstance(workload, Workload)
    unsure = Unknown(rule="spec/pods", missing="a webhook's change", stage="placement")
    workload = structs.replace(workload, unknowns=(unsure,))
    verdict = judged(workload, world(node("n0")))
    assert (verdict.admission, verdict.placement, verdict.unknowns) == (
        "admitted",
        "unknown",
        (unsure,),
    )


# -- cumulative ------------------------------------------------------------------------------------


def test_what_earlier_documents_take_is_gone_for_later_ones() -> None:
    made = report(
        joined(*(deployment(name, replicas=2, gpus=2) for name in "abc")),
        world(node("n0", 4), node("n1", 4)),
        QUIET,
    )
    assert outcomes(made) == [
        ("a", *FREE, "n0 n0", ()),
        ("b", *FREE, "n1 n1", ()),
        ("c", "admitted", "waits", "", SHORT),
    ]


def test_replicas_that_found_a_node_keep_it_though_others_wait() -> None:
    made = report(
        joined(deployment("a", replicas=3, gpus=2), job("b")), world(node("n0", 5)), QUIET
    )
    assert outcomes(made) == [
        ("a", "admitted", "never", "n0 n0", ("placement/too-many-replicas", *SHORT)),
        ("b", *FREE, "n0", ()),
    ]


def test_a_quota_is_used_up_across_documents_and_admits_what_is_left() -> None:
    cluster = world(node("n0", 16), decoded_quota("4", used="1"))
    made = report(joined(*(deployment(n, replicas=2) for n in "abc")), cluster, QUIET)
    exceeded = ("quota/exceeded",)
    assert outcomes(made) == [
        ("a", *FREE, "n0 n0", ()),
        ("b", "denied", "fits", "n0 n0", exceeded),
        ("c", "denied", "fits", "n0 n0", exceeded),
    ]
    assert [f.detail for v in made.workloads for f in v.findings] == [
        "pod 2 of 2: ResourceQuota gpus: requests.nvidia.com/gpu asked 1 ·"
        " used 4 (1 by pod 1, 2 earlier in this run) · limit 4",
        "pod 1 of 2: ResourceQuota gpus: requests.nvidia.com/gpu asked 1 ·"
        " used 4 (3 earlier in this run) · limit 4",
    ]


def test_pods_of_equal_names_in_different_workloads_are_all_counted() -> None:
    stateful = f"""\
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: same}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: same}}}}
  template:
    metadata: {{labels: {{app: same}}}}
    spec: {{containers: [{{name: c, image: i, resources: {{limits: {{{GPU}: 1}}}}}}]}}
"""
    made = report(
        joined(stateful, deployment("same", replicas=2), job("same"), job("last")),
        world(node("n0", 5)),
        QUIET,
    )
    assert [(n, p, placed) for n, _, p, placed, _ in outcomes(made)] == [
        ("same", "fits", "n0 n0"),
        ("same", "fits", "n0 n0"),
        ("same", "fits", "n0"),
        ("last", "waits", ""),
    ]


def test_the_same_object_a_second_time_replaces_the_first() -> None:
    twice = joined(deployment("web", gpus=3), deployment("web", gpus=4), job("after"))
    assert outcomes(report(twice, world(node("n0", 4)), QUIET)) == [
        ("web", *FREE, "n0", ()),
        ("web", *FREE, "n0", ()),
        ("after", "admitted", "waits", "", SHORT),
    ]


def test_a_workload_that_is_denied_takes_neither_places_nor_quota() -> None:
    deny = policy(
        "rules: {spec/rollout-surge: off}\n"
        "static: [{name: stop, match: {labels: {app: a}}, deny: {message: stop}}]\n"
    )
    cluster = world(node("n0", 1), decoded_quota("1"))
    made = report(joined(deployment("a"), deployment("b")), cluster, deny)
    assert outcomes(made) == [
        ("a", "denied", "fits", "n0", ("static/denied",)),
        ("b", *FREE, "n0", ()),
    ]


def test_pods_that_wait_count_for_the_burst_guard_of_the_next_document() -> None:
    guarded = policy(
        "rules: {capacity/burst: {level: deny, settings: {maxPods: 3}}, spec/rollout-surge: off}\n"
    )
    made = report(
        joined(deployment("a", replicas=3), deployment("b")), world(node("n0", 0)), guarded
    )
    assert [(v.ref.name, v.admission, v.blockers) for v in made.workloads] == [
        ("a", "admitted", ("placement/no-such-resource",)),
        ("b", "denied", ("placement/no-such-resource", "capacity/too-many-pods")),
    ]


def test_a_daemon_set_is_cut_to_what_its_quota_admits_and_stays_on_its_own_nodes() -> None:
    daemons = f"""\
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: d}}
spec:
  selector: {{matchLabels: {{app: d}}}}
  template:
    metadata: {{labels: {{app: d}}}}
    spec: {{containers: [{{name: c, image: i, resources: {{limits: {{{GPU}: 1}}}}}}]}}
"""
    nodes = [node(f"n{i}", 1) for i in range(4)]
    elsewhere = deployment("in-b", replicas=3).replace("name: in-b", "name: in-b, namespace: b", 1)
    made = report(
        joined(quota(gpu=2), daemons, elsewhere),
        Cluster.of([*home("default", "b"), *nodes, pod("x", 1, on="n1")], KNOWN),
        QUIET,
    )
    assert [(v.ref.name, v.pods, v.admission, v.placement) for v in made.workloads] == [
        ("d", 4, "denied", "waits"),
        ("in-b", 3, "admitted", "waits"),
    ]
    assert [p.node for p in made.workloads[0].places] == ["n0", "n2", "n3"]
    assert [p.node for p in made.workloads[1].places] == ["n2", "n3"]


GANG = f"""\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: gang}}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 3
    workerTemplate:
      spec: {{containers: [{{name: c, image: i, resources: {{limits: {{{GPU}: 2}}}}}}]}}
"""


def test_a_gang_that_does_not_fit_whole_leaves_everything_to_the_next() -> None:
    made = report(joined(GANG, deployment("next", replicas=5)), world(node("n0", 5)), QUIET)
    assert outcomes(made) == [
        ("gang", "admitted", "never", "n0 n0", ("placement/too-many-replicas", *SHORT)),
        ("next", *FREE, "n0 n0 n0 n0 n0", ()),
    ]


def test_a_gang_that_fits_whole_takes_its_places_also_where_that_is_not_certain() -> None:
    nodes = node("n0", 6)
    made = report(joined(GANG, job("next")), world(nodes), QUIET)
    assert [v.placement for v in made.workloads] == ["fits", "waits"]
    blind = Cluster.of([*home(), nodes], [kind for kind in KNOWN if kind != "Pod"])
    first, second = report(joined(GANG, job("next")), blind, QUIET).workloads
    assert (first.placement, len(first.places), len(second.places)) == ("unknown", 3, 0)


# -- objects that the run brings along -------------------------------------------------------------

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: new}\n"
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default, namespace: new}\n"
URGENT = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent, namespace: nobody-minds}
value: 1000
"""
LIMITS = """\
apiVersion: v1
kind: LimitRange
metadata: {name: l, namespace: new}
spec: {limits: [{type: Container, max: {nvidia.com/gpu: 2}}]}
"""
IN_NEW = deployment("web", replicas=2, gpus=2, spec="priorityClassName: urgent").replace(
    "{name: web}", "{name: web, namespace: new}", 1
)


@pytest.mark.parametrize("order", [1, -1])
def test_what_the_run_brings_along_is_there_before_the_first_workload(order: int) -> None:
    parts = [NAMESPACE, ACCOUNT, URGENT, LIMITS, quota(namespace="new", gpu=3), IN_NEW]
    made = report(joined(*parts[::order]), world(node("n0", 8)), QUIET)
    assert outcomes(made) == [("web", "denied", "fits", "n0 n0", ("quota/exceeded",))]
    assert [(s.ref.kind, s.treated) for s in made.skipped] == [
        (kind, "applied")
        for kind in (
            "Namespace",
            "ServiceAccount",
            "PriorityClass",
            "LimitRange",
            "ResourceQuota",
        )[::order]
    ]


def test_each_of_them_is_missed_where_it_is_left_out() -> None:
    parts = {"namespace": NAMESPACE, "account": ACCOUNT, "class": URGENT}
    blocked = {}
    for left_out in parts:
        rest = [text for name, text in parts.items() if name != left_out]
        blocked[left_out] = only(
            report(joined(*rest, IN_NEW), world(node("n0", 8)), QUIET)
        ).blockers
    assert blocked == {
        "namespace": ("namespace/missing",),
        "account": (),  # made by the control plane with every namespace
        "class": ("priority/no-class",),
    }


def test_a_limit_range_of_the_run_refuses_a_pod_that_is_too_large() -> None:
    large = IN_NEW.replace('"2"', '"3"')
    made = only(report(joined(NAMESPACE, ACCOUNT, URGENT, LIMITS, large), world(node("n0")), QUIET))
    assert (made.admission, made.blockers) == ("denied", ("limit-range/max",))


def test_objects_without_a_namespace_go_where_the_run_says() -> None:
    there = Cluster.of([*home("team"), node("n0", 8)], KNOWN)
    text = joined(quota(gpu=1).replace(", namespace: default", ""), deployment("web", replicas=2))
    made = report(text, there, QUIET, namespace="team")
    assert made.skipped[0].ref == Ref("v1", "ResourceQuota", "team", "gpus")
    assert [v.ref.namespace for v in made.workloads] == ["team"]
    assert outcomes(made)[0][1] == "denied"


CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}
"""


def test_a_claim_that_quota_refuses_is_a_verdict_of_its_own_and_is_not_there() -> None:
    volumes = "volumes: [{name: v, persistentVolumeClaim: {claimName: big}}]"
    text = joined(
        quota("storage", **{"requests.storage": "10Gi"}),
        CLAIM % ("small", "8Gi"),
        CLAIM % ("big", "4Gi"),
        deployment("web", spec=volumes),
    )
    made = report(text, world(node("n0")), QUIET)
    assert [(v.ref.kind, v.ref.name, v.pods, v.admission, v.blockers) for v in made.workloads] == [
        ("PersistentVolumeClaim", "big", 0, "denied", ("quota/exceeded",)),
        ("Deployment", "web", 1, "admitted", ("placement/volume-missing",)),
    ]
    assert [(s.ref.kind, s.ref.name) for s in made.skipped] == [
        ("ResourceQuota", "storage"),
        ("PersistentVolumeClaim", "small"),
    ]


def test_kinds_of_other_groups_that_are_called_alike_are_not_applied() -> None:
    knative = "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: s}\nspec: {}\n"
    (skipped,) = report(knative, world(), QUIET).skipped
    assert skipped.treated != "applied"


# -- unreadable ------------------------------------------------------------------------------------


def test_a_document_that_cannot_be_read_stops_nobody_and_is_told_with_its_line() -> None:
    text = joined(deployment("a"), "kind: Pod\n  bad: [\n", "just text\n", deployment("b"))
    made = report(text, world(node("n0")), QUIET)
    assert [(v.ref.name, v.admission) for v in made.workloads] == [
        ("a", "admitted"),
        ("b", "admitted"),
    ]
    assert [(s.treated, s.ref, bool(s.error)) for s in made.skipped] == [
        ("unreadable", Ref("", "", "", ""), True)
    ] * 2
    assert [s.location.split(":")[1] for s in made.skipped] == ["16", "18"]


def test_an_object_to_apply_and_a_workload_that_do_not_decode_stop_nobody_either() -> None:
    bad_quota = quota(gpu=1).replace("{hard:", "{hard: 7, other:")
    bad_pod = deployment("bad").replace("replicas: 1", "replicas: many")
    unknown = "apiVersion: example.io/v1\nkind: Trainer\nmetadata: {name: t}\nspec: {gpus: 8}\n"
    made = report(joined(bad_quota, bad_pod, unknown, deployment("ok")), world(node("n0")), QUIET)
    assert [(s.treated, int(s.location.split(":")[1]), s.field) for s in made.skipped] == [
        ("unreadable", 4, "spec.hard"),
        ("unreadable", 10, "spec.replicas"),
        ("unknown-kind", 20, ""),
    ]
    assert outcomes(made) == [("ok", *FREE, "n0", ())]


# -- running pods ----------------------------------------------------------------------------------


def owned(kind: str, name: str, api: str = "apps/v1") -> dict[str, Any]:
    return {
        "ownerReferences": [{"apiVersion": api, "kind": kind, "name": name, "controller": True}]
    }


def manifest_of(kind: str, api: str) -> str:
    template = f"{{containers: [{{name: c, image: i, resources: {{limits: {{{GPU}: 1}}}}}}]}}"
    whole = f"template: {{metadata: {{labels: {{app: w}}}}, spec: {template}}}"
    once = f"template: {{spec: {{restartPolicy: Never, {template[1:]}}}"
    spec = {
        "CronJob": f"schedule: '* * * * *', jobTemplate: {{spec: {{{once}}}}}",
        "Job": once,
        "JobSet": f"replicatedJobs: [{{name: work, template: {{spec: {{{once}}}}}}}]",
        "LeaderWorkerSet": "leaderWorkerTemplate: {size: 1, workerTemplate: {spec: "
        + template
        + "}}",
        "MPIJob": "mpiReplicaSpecs: {Launcher: {replicas: 1, " + whole + "}}",
        "RayCluster": f"headGroupSpec: {{rayStartParams: {{}}, template: {{spec: {template}}}}}",
        "RayService": "rayClusterConfig: {headGroupSpec: {rayStartParams: {}, template: {spec: "
        + template
        + "}}}",
    }.get(kind, f"selector: {{matchLabels: {{app: w}}}}, {whole}")
    return f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: w}}\nspec: {{{spec}}}\n"


JOBSET = {"jobset.sigs.k8s.io/jobset-name": "w"}
LWS = {"leaderworkerset.sigs.k8s.io/name": "w"}


@pytest.mark.parametrize(
    ("kind", "api", "owner", "labels", "ours"),
    [
        ("Deployment", "apps/v1", ("ReplicaSet", "w-5d8f"), {}, True),
        ("Deployment", "apps/v1", ("ReplicaSet", "w-canary-5d8f"), {}, False),
        ("Deployment", "apps/v1", ("ReplicaSet", "w"), {}, False),
        ("ReplicaSet", "apps/v1", ("ReplicaSet", "w"), {}, True),
        ("StatefulSet", "apps/v1", ("StatefulSet", "w"), {}, True),
        ("StatefulSet", "apps/v1", ("StatefulSet", "w-0"), {}, False),
        ("Job", "batch/v1", ("Job", "w", "batch/v1"), {}, True),
        ("Job", "batch/v1", ("Job", "w", "batch.volcano.sh/v1alpha1"), {}, False),
        ("CronJob", "batch/v1", ("Job", "w-28411200", "batch/v1"), {}, True),
        ("JobSet", "jobset.x-k8s.io/v1alpha2", ("Job", "w-work-0", "batch/v1"), JOBSET, True),
        ("JobSet", "jobset.x-k8s.io/v1alpha2", ("Job", "w-work-0", "batch/v1"), {}, False),
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", ("StatefulSet", "w"), LWS, True),
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", ("StatefulSet", "w-0"), {}, True),
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", ("StatefulSet", "w-x-0"), {}, False),
        ("MPIJob", "kubeflow.org/v1", ("Job", "w-launcher", "batch/v1"), {}, True),
        ("RayCluster", "ray.io/v1", ("RayCluster", "w", "ray.io/v1"), {}, True),
        ("RayService", "ray.io/v1", ("RayCluster", "w-raycluster-x7k", "ray.io/v1"), {}, True),
        ("RayService", "ray.io/v1", ("RayCluster", "w-x7k", "ray.io/v1"), {}, True),
    ],
)
def test_pods_of_the_same_workload_that_run_make_room_for_their_successors(
    kind: str, api: str, owner: tuple[str, ...], labels: dict[str, str], ours: bool
) -> None:
    running = pod("r", 1, on="n0", labels=labels, meta=owned(*owner))
    made = only(report(manifest_of(kind, api), world(node("n0", 1), running), QUIET))
    assert (made.placement, made.pods) == ("fits" if ours else "waits", 1)


def test_a_pod_of_the_same_name_is_replaced_and_one_that_ended_is_not_counted() -> None:
    bare = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec: {{containers: [{{name: c, image: i, resources: {{limits: {{{GPU}: 1}}}}}}]}}
"""
    assert only(report(bare, world(node("n0", 1), pod("p", 1, on="n0")), QUIET)).placement == "fits"
    other = world(node("n0", 1), pod("q", 1, on="n0"))
    assert only(report(bare, other, QUIET)).placement == "waits"


def test_running_pods_give_their_quota_back_before_their_successors_are_charged() -> None:
    running = [pod(f"web-1-{i}", 2, on="n0", meta=owned("ReplicaSet", "web-1")) for i in range(2)]
    cluster = world(node("n0", 8), decoded_quota("6", used="4"), *running)
    made = report(deployment("web", replicas=3, gpus=2), cluster, QUIET)
    assert outcomes(made) == [("web", *FREE, "n0 n0 n0", ())]


def test_running_pods_stay_where_none_of_their_successors_is_admitted() -> None:
    deny = policy(
        "rules: {spec/rollout-surge: off}\n"
        "static: [{name: stop, match: {labels: {app: web}}, deny: {message: stop}}]\n"
    )
    running = pod("web-1-x", 1, on="n0", meta=owned("ReplicaSet", "web-1"))
    cluster = world(node("n0", 1), decoded_quota("2", used="1"), running)
    made = report(joined(deployment("web"), deployment("next"), job("last")), cluster, deny)
    assert [(v.ref.name, v.admission, v.placement) for v in made.workloads] == [
        ("web", "denied", "fits"),
        ("next", "admitted", "waits"),
        ("last", "denied", "waits"),
    ]


# -- what the policy says of the API server --------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "placement"), [("{}", "never"), ("[ExtendedResourceToleration]", "fits")]
)
def test_gpu_taints_are_tolerated_where_the_policy_says_that_the_plugin_is_on(
    told: str, placement: str
) -> None:
    tainted = node("n0", 4, taints=[{"key": GPU, "effect": "NoSchedule"}])
    key = f"admissionPlugins: {told}\n" if told != "{}" else ""
    made = report(deployment("web", gpus=1), world(tainted), policy("rules: {}\n" + key))
    assert only(made).placement == placement
