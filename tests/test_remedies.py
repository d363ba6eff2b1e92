"""Every change that is proposed, and that only what was tried and found enough is printed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jsonpatch
import pytest
from msgspec import structs

from kubectl_gpuadmit import proposals, remedies, rules
from kubectl_gpuadmit.admission.quota import Ledger
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.judge import State, Terms, judge
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.kube.workloads import Workload, expand
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.proposals import Case, Proposal, amounts, cluster_changes, moves, pools
from kubectl_gpuadmit.proposals import suggested as taken_over
from kubectl_gpuadmit.remedies import ENOUGH, Budget
from kubectl_gpuadmit.rule import REGISTRY
from kubectl_gpuadmit.verdict import Finding, Outcome, Remedy
from tests.placement.build import GPU, KNOWN, NOW, decoded, node, pod
from tests.runs import QUIET, deployment, job, policy, report, world

assert rules.__all__
OK = Outcome("admitted", "fits", "unknown")
AT = "/spec/template/spec/containers/0"
LIMIT = f"{AT}/resources/limits/nvidia.com~1gpu"


def case_of(manifest: str, cluster: Cluster, by: Policy = QUIET) -> Case:
    (document,) = read_documents(manifest.encode(), "m.yaml")
    assert isinstance(document, Document)
    workload = expand(document, cluster=cluster)
    assert isinstance(workload, Workload)
    state = State(cluster, Ledger.of(cluster))
    terms = Terms(by, NOW, tuple(REGISTRY[name] for name in sorted(REGISTRY)))
    return Case(document, workload, judge(workload, state, terms)[0], state, terms)


def remedies_of(manifest: str, cluster: Cluster, by: Policy = QUIET) -> tuple[Remedy, ...]:
    (verdict,) = report(manifest, cluster, by, remedies=True).workloads
    return verdict.remedies


Words = list[tuple[str, dict[str, Any]]]


def words(found: Iterator[Proposal]) -> Words:
    """Summary, and path -> value."""
    return [(p.summary, {op["path"]: op["value"] for op in p.patch}) for p in found]


# -- less of the same ------------------------------------------------------------------------------

FULL = world(node("n0", 1))


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (
            deployment("web", replicas=8),
            [
                ("7 replicas instead of 8", {"/spec/replicas": 7}),
                ("4 replicas instead of 8", {"/spec/replicas": 4}),
                ("one replica instead of 8", {"/spec/replicas": 1}),
            ],
        ),
        (deployment("web", replicas=2), [("one replica instead of 2", {"/spec/replicas": 1})]),
        (deployment("web", replicas=1), []),
        (deployment("web", replicas=0), []),
        (deployment("web", replicas=None), []),
        (
            job("j", lines="parallelism: 3\ncompletions: 90"),
            [
                ("2 pods at a time instead of 3", {"/spec/parallelism": 2}),
                ("1 pod at a time instead of 3", {"/spec/parallelism": 1}),
            ],
        ),
        (job("j", lines="parallelism: 9\ncompletions: 2"), []),
        (job("j", lines="completions: 9"), []),
        (
            job("j", lines="parallelism: 2\ncompletions: 2\ncompletionMode: Indexed"),
            [
                (
                    "1 pod at a time instead of 2",
                    {"/spec/parallelism": 1, "/spec/completions": 1},
                )
            ],
        ),
    ],
)
def test_fewer_pods_are_proposed_where_their_number_is_written(
    manifest: str, expected: Words
) -> None:
    assert words(amounts.fewer_pods(case_of(manifest, FULL))) == expected


def test_the_number_of_pods_that_found_a_place_is_proposed_too() -> None:
    made = case_of(deployment("web", replicas=8), world(node("n0", 6)))
    counts = [p.patch[0]["value"] for p in amounts.fewer_pods(made)]
    assert counts == [7, 6, 4, 1]


def test_kinds_whose_number_of_pods_has_no_single_place_get_no_such_proposal() -> None:
    ray = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: r}
spec:
  headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: h, image: i}]}}}
  workerGroupSpecs:
  - {groupName: w, replicas: 4, rayStartParams: {}, template: {spec: {containers: [{name: w, image: i}]}}}
"""  # noqa: E501
    assert words(amounts.fewer_pods(case_of(ray, FULL))) == []


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ('limits: {nvidia.com/gpu: "8"}', {"limits": "4"}),
        ("limits: {nvidia.com/gpu: 8}", {"limits": 4}),
        (
            'limits: {nvidia.com/gpu: 8}, requests: {nvidia.com/gpu: "8"}',
            {"limits": 4, "requests": "4"},
        ),
    ],
)
def test_an_amount_keeps_the_form_in_which_it_was_written(
    limits: str, expected: dict[str, Any]
) -> None:
    manifest = deployment("web", gpus=8).replace('limits: {nvidia.com/gpu: "8"}', limits)
    first, *rest = amounts.fewer_gpus(case_of(manifest, FULL))
    assert {op["path"].split("/")[-2]: op["value"] for op in first.patch} == expected
    assert [p.summary for p in (first, *rest)] == [
        f"{n} nvidia.com/gpu a pod instead of 8" for n in (4, 2, 1)
    ]


@pytest.mark.parametrize("asked", ["4000m", "4.0"])
def test_an_amount_that_is_written_in_an_odd_way_is_left_alone(asked: str) -> None:
    manifest = deployment("web", gpus=8).replace('"8"', f'"{asked}"')
    assert list(amounts.fewer_gpus(case_of(manifest, FULL))) == []


def test_powers_of_two_are_proposed_below_what_is_asked() -> None:
    sizes = {}
    for asked in (1, 2, 3, 5, 16):
        made = case_of(deployment("web", gpus=asked), FULL)
        sizes[asked] = [int(p.patch[0]["value"]) for p in amounts.fewer_gpus(made)]
    assert sizes == {1: [], 2: [1], 3: [2, 1], 5: [4, 2, 1], 16: [8, 4, 2, 1]}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("args: [--tensor-parallel-size, '4']", {"args/1": "2"}),
        ("args: [--tensor-parallel-size=4]", {"args/0": "--tensor-parallel-size=2"}),
        ("args: [--tensor_parallel_size=4]", {"args/0": "--tensor_parallel_size=2"}),
        ("command: [vllm, serve, m, -tp, '4']", {"command/4": "2"}),
        ("args: [--tp-size=4, --port=4]", {"args/0": "--tp-size=2"}),
        ("args: [--num-shard, '4']", {"args/1": "2"}),
        (
            "command: [sh, -c, 'vllm serve m --tensor-parallel-size 4 --port 8000']",
            {"command/2": "vllm serve m --tensor-parallel-size 2 --port 8000"},
        ),
        (
            "command: [sh, -c]\nargs: ['exec vllm serve m -tp=4']",
            {"args/0": "exec vllm serve m -tp=2"},
        ),
        ("args: [--tensor-parallel-size, '2', --pipeline-parallel-size, '2']", {}),
        ("args: [--max-tokens=4, '4', --http-port, '4']", {}),
    ],
)
def test_the_engine_is_told_the_same_number_in_its_own_flag(
    more: str, expected: dict[str, Any]
) -> None:
    made = case_of(deployment("web", gpus=4, more=more), FULL)
    first = next(amounts.fewer_gpus(made))
    assert {op["path"]: op["value"] for op in first.patch} == {
        LIMIT: "2",
        **{f"{AT}/{path}": value for path, value in expected.items()},
    }


def test_fewer_gpus_than_the_engines_flag_needs_are_never_proposed() -> None:
    made = case_of(deployment("web", gpus=8, more="args: [--tensor-parallel-size=4]"), FULL)
    assert [p.patch[0]["value"] for p in amounts.fewer_gpus(made)] == ["4"]


def test_kinds_without_a_template_are_patched_in_their_own_fields_or_not_at_all() -> None:
    nim = f"""\
apiVersion: apps.nvidia.com/v1alpha1
kind: NIMService
metadata: {{name: nim}}
spec:
  image: {{repository: r, tag: t}}
  replicas: 1
  resources: {{limits: {{{GPU}: 4}}}}
"""
    made = case_of(nim, FULL)
    assert words(amounts.fewer_gpus(made))[0] == (
        "2 nvidia.com/gpu a pod instead of 4",
        {"/spec/resources/limits/nvidia.com~1gpu": 2},
    )
    for proposal in proposals.for_verdict(made):
        jsonpatch.apply_patch(made.document.data, list(proposal.patch))


def test_two_containers_that_share_the_gpus_are_left_alone() -> None:
    two = deployment("web", gpus=2) + (
        "      - {name: side, image: i, resources: {limits: {nvidia.com/gpu: 2}}}\n"
    )
    assert list(amounts.fewer_gpus(case_of(two, FULL))) == []


# -- other pools -----------------------------------------------------------------------------------

POOLS = policy(
    """\
pools:
  gold: {nodeSelector: {pool: gold}}
  silver: {nodeSelector: {pool: silver, tier: two}}
  empty: {nodeSelector: {pool: none}}
rules: {spec/rollout-surge: off, spec/shared-memory: off}
"""
)
GUARDED = [
    {"key": GPU, "effect": "NoSchedule"},
    {"key": "team", "value": "x", "effect": "NoExecute"},
    {"key": "soft", "effect": "PreferNoSchedule"},
]
POOLED = world(
    node("g0", 8, labels={"pool": "gold"}, taints=GUARDED),
    node("g1", 8, labels={"pool": "gold"}, taints=[*GUARDED, {"key": "o", "effect": "NoSchedule"}]),
    node("s0", 8, labels={"pool": "silver", "tier": "two"}),
    node("n0", 0),
)


def test_a_pool_is_proposed_with_tolerations_for_what_all_its_nodes_carry() -> None:
    spec = 'nodeSelector: {pool: silver, disk: ssd}\ntolerations: [{key: "o", operator: Exists}]'
    made = case_of(deployment("web", spec=spec), POOLED, POOLS)
    assert words(pools.other_pool(made)) == [
        (
            "pool gold instead (2 nodes)",
            {
                "/spec/template/spec/nodeSelector": {"disk": "ssd", "pool": "gold"},
                "/spec/template/spec/tolerations": [
                    {"key": "o", "operator": "Exists"},
                    {"key": GPU, "operator": "Exists", "effect": "NoSchedule"},
                    {"key": "team", "operator": "Equal", "value": "x", "effect": "NoExecute"},
                ],
            },
        ),
        (
            "pool silver instead (1 nodes)",
            {
                "/spec/template/spec/nodeSelector": {
                    "disk": "ssd",
                    "pool": "silver",
                    "tier": "two",
                }
            },
        ),
    ]


LWS = f"""\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: gang}}
spec:
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      spec:
        nodeSelector: {{pool: none}}
        containers: [{{name: c, image: i, resources: {{limits: {{{GPU}: 2}}}}}}]
"""


def test_roles_that_share_one_template_share_one_change() -> None:
    first, *_ = pools.other_pool(case_of(LWS, POOLED, POOLS))
    at = "/spec/leaderWorkerTemplate/workerTemplate/spec"
    assert [op["path"] for op in first.patch] == [f"{at}/nodeSelector", f"{at}/tolerations"]
    (remedy, *_) = (r for r in remedies_of(LWS, POOLED, POOLS) if r.summary.startswith("pool"))
    assert (remedy.summary, remedy.result) == ("pool gold instead (2 nodes)", OK)


def test_a_role_that_is_in_the_pool_already_is_left_where_it_is() -> None:
    leader = LWS.replace("    size: 2\n", "    size: 2\n    leaderTemplate:\n      spec:\n        nodeSelector: {pool: silver, tier: two}\n        containers: [{name: l, image: i}]\n")  # fmt: skip  # noqa: E501
    silver = words(pools.other_pool(case_of(leader, POOLED, POOLS)))[1]
    assert list(silver[1]) == ["/spec/leaderWorkerTemplate/workerTemplate/spec/nodeSelector"]


def test_what_a_controller_tolerates_by_itself_is_not_written_into_the_manifest() -> None:
    daemons = deployment("d", replicas=None).replace("Deployment", "DaemonSet")
    gold = words(pools.other_pool(case_of(daemons, POOLED, POOLS)))[0][1]
    keys = [t["key"] for t in gold["/spec/template/spec/tolerations"]]
    assert keys == [GPU, "team"]


# -- changes of the cluster ------------------------------------------------------------------------


def quota_of(hard: int, used: int, name: str = "gpus") -> Any:
    key = f"requests.{GPU}"
    return decoded(
        {
            "kind": "ResourceQuota",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"hard": {key: str(hard)}},
            "status": {"hard": {key: str(hard)}, "used": {key: str(used)}},
        }
    )


def test_every_exceeded_quota_is_raised_to_just_what_is_needed() -> None:
    cluster = world(
        node("n0", 8), quota_of(4, 3), quota_of(5, 5, "second"), quota_of(99, 3, "wide")
    )
    (found,) = cluster_changes.quota_raised(case_of(deployment("web", replicas=3), cluster))
    assert (found.summary, found.command) == (
        f"raise ResourceQuota gpus to requests.{GPU}=6, second to requests.{GPU}=8",
        "kubectl -n default patch resourcequota gpus --type merge -p "
        f'\'{{"spec":{{"hard":{{"requests.{GPU}":"6"}}}}}}\''
        " && kubectl -n default patch resourcequota second --type merge -p "
        f'\'{{"spec":{{"hard":{{"requests.{GPU}":"8"}}}}}}\'',
    )
    assert remedies_of(deployment("web", replicas=1), cluster)[-1].result == OK


def test_a_quota_is_not_raised_for_pods_that_the_workload_replaces() -> None:
    mine = {"ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "controller": True}
    ]}  # fmt: skip
    cluster = world(node("n0", 8), quota_of(4, 3), pod("web-1-x", 3, on="n0", meta=mine))
    (found,) = cluster_changes.quota_raised(case_of(deployment("web", replicas=5), cluster))
    assert found.summary == f"raise ResourceQuota gpus to requests.{GPU}=5"


def test_a_quota_that_is_not_exceeded_is_not_touched() -> None:
    cluster = world(node("n0", 1), quota_of(9, 0))
    assert list(cluster_changes.quota_raised(case_of(deployment("w", gpus=2), cluster))) == []


def test_a_namespace_is_created_where_it_is_known_to_be_missing() -> None:
    manifest = deployment("web").replace("{name: web}", "{name: web, namespace: new}", 1)
    (remedy,) = remedies_of(manifest, world(node("n0")))
    assert remedy == Remedy(
        summary="create namespace new",
        command="kubectl create namespace new",
        cost=50,
        verified=True,
        result=OK,
    )
    unknown = Cluster.of([node("n0")], [kind for kind in KNOWN if kind != "Namespace"])
    assert list(cluster_changes.namespace_created(case_of(manifest, unknown))) == []


def test_a_node_that_lacks_nothing_else_is_uncordoned() -> None:
    cordon = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    cluster = world(
        node("full", 1),
        pod("x", 1, on="full"),
        node("shut", 1, cordoned=True, taints=cordon),
        node("shut-too", 1, cordoned=True, taints=[*cordon, {"key": "k", "effect": "NoSchedule"}]),
    )
    made = case_of(deployment("web"), cluster)
    assert [p.summary for p in cluster_changes.node_uncordoned(made)] == ["uncordon shut"]
    assert Remedy(
        summary="uncordon shut",
        command="kubectl uncordon shut",
        cost=55,
        verified=True,
        result=OK,
    ) in remedies_of(deployment("web"), cluster)


# -- moves -----------------------------------------------------------------------------------------


OWNED = {
    "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "controller": True}
    ]
}


def moved(manifest: str, *objects: Any) -> list[tuple[str, str]]:
    made = case_of(manifest, world(*objects))
    return [(p.summary, p.command) for p in moves.pods_moved(made)]


def test_the_smallest_pod_that_covers_the_lack_is_moved_to_a_node_that_takes_it() -> None:
    found = moved(
        deployment("web", gpus=4),
        node("n0", 8), pod("big", 5, on="n0"), pod("small", 2, on="n0"), pod("tiny", 1, on="n0"),
        node("n1", 4), pod("mid", 2, on="n1"),
    )  # fmt: skip
    assert found == [
        ("stop default/mid on n1", "kubectl -n default delete pod mid"),
        ("stop default/big on n0", "kubectl -n default delete pod big"),
    ]


def test_two_pods_are_moved_only_to_places_that_are_free_for_both() -> None:
    found = moved(
        deployment("web", gpus=2),
        node("n0", 2), pod("a", 1, on="n0", meta=OWNED), pod("b", 1, on="n0", meta=OWNED),
        node("n1", 1, cpu="64"),
    )  # fmt: skip
    assert found == [
        (
            "move default/a from n0 to n1 and stop default/b on n0",
            "kubectl -n default delete pod a && kubectl -n default delete pod b",
        )
    ]


def test_pods_that_are_moved_stand_on_their_new_node_when_the_change_is_tried() -> None:
    """Two replicas of 2: moving a and b to n1 leaves no place for the second there."""
    cluster = world(
        node("n0", 2),
        pod("a", 1, on="n0", meta=OWNED),
        pod("b", 1, on="n0", meta=OWNED),
        node("n1", 3),
    )
    found = [r.summary for r in remedies_of(deployment("web", replicas=2, gpus=2), cluster)]
    assert [summary for summary in found if summary.startswith("move")] == []


def test_pods_of_daemon_sets_higher_priority_and_the_workload_itself_stay() -> None:
    def owned(kind: str, name: str) -> dict[str, Any]:
        return {"ownerReferences": [
            {"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True}
        ]}  # fmt: skip

    found = moved(
        deployment("web", gpus=4),
        node("n0", 10),
        pod("mine", 4, on="n0", meta=owned("ReplicaSet", "web-1")),
        pod("daemon", 3, on="n0", meta=owned("DaemonSet", "d")),
        pod("urgent", 3, on="n0", priority=10),
        pod("other", 2, on="n0"),
    )
    assert found == [("stop default/other on n0", "kubectl -n default delete pod other")]


# -- what findings suggest -------------------------------------------------------------------------


def test_suggestions_with_a_patch_are_taken_over_from_what_refuses_or_delays() -> None:
    op = {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}
    less = {"op": "replace", "path": f"{AT}/resources/limits/nvidia.com~1gpu", "value": "1"}
    yes, command = Remedy("yes", (op,), cost=7), Remedy("command", command="kubectl x")
    made = case_of(deployment("web"), FULL)
    findings = (
        Finding("a/denies", "d", suggest=(yes, command)),
        Finding("a/warns", "d", suggest=(yes,), level="warn"),
        Finding("a/delays", "d", suggest=(yes,), level="audit", permanent=False),
        Finding("placement/insufficient", "d", suggest=(Remedy("less", (less,)),)),
    )
    made = structs.replace(made, verdict=structs.replace(made.verdict, findings=findings))
    assert list(taken_over.from_findings(made)) == [
        Proposal("yes", "a/denies", 7, (op,)),
        Proposal("yes", "a/delays", 7, (op,)),
    ]


# -- the search ------------------------------------------------------------------------------------


def test_of_several_ways_out_the_cheapest_comes_first() -> None:
    cluster = world(node("n0", 8), quota_of(2, 0))
    found = remedies_of(deployment("web", gpus=4), cluster)
    assert [r.summary for r in found] == [
        "2 nvidia.com/gpu a pod instead of 4",
        f"raise ResourceQuota gpus to requests.{GPU}=4",
    ]


def test_pairs_are_found_where_one_change_is_not_enough() -> None:
    manifest = deployment("web", gpus=4).replace("{name: web}", "{name: web, namespace: new}", 1)
    (first, *_) = remedies_of(manifest, world(node("n0", 2)))
    assert first == Remedy(
        summary="2 nvidia.com/gpu a pod instead of 4; create namespace new",
        patch=({"op": "replace", "path": LIMIT, "value": "2"},),
        command="kubectl create namespace new",
        cost=first.cost,
        verified=True,
        result=OK,
    )


def numbered(*costs: int) -> list[Proposal]:
    return [Proposal(f"{i}", f"{i}", cost) for i, cost in enumerate(costs)]


def test_combinations_come_by_cost_then_by_number() -> None:
    order = list(remedies._combinations(numbered(0, 5, 60)))
    assert order == [(0,), (1,), (0, 1), (2,), (0, 2), (1, 2), (0, 1, 2)]


@pytest.mark.parametrize(
    ("parts", "done", "larger"),
    [
        ("ab", "a", True),
        ("a", "ab", False),
        ("bc", "a", False),
        ("d", "c", True),
        ("c", "d", False),
        ("ad", "c", True),
        ("ad", "bc", False),
    ],
)
def test_a_change_is_larger_if_it_holds_another_or_gives_up_more(
    parts: str, done: str, larger: bool
) -> None:
    known = {
        "a": Proposal("a", "a", 1),
        "b": Proposal("b", "b", 1),
        "c": Proposal("2 of 4", "gpus", 45, less=True),
        "d": Proposal("1 of 4", "gpus", 47, less=True),
    }
    assert remedies._is_larger([known[p] for p in parts], [known[p] for p in done]) is larger


def test_less_than_what_is_enough_is_never_offered() -> None:
    found = remedies_of(deployment("web", replicas=8, gpus=8), world(node("n0", 32)))
    assert [r.summary for r in found] == [
        "4 replicas instead of 8",
        "4 nvidia.com/gpu a pod instead of 8",
    ]


def test_the_budget_of_a_run_is_shared_and_bounded_by_the_size_of_the_cluster() -> None:
    def left(nodes: int) -> Budget:
        return Budget.for_cluster(Cluster.of(node(f"n{i}") for i in range(nodes)))

    assert (left(0), left(1_000), left(4_000)) == (
        Budget(80, 480),
        Budget(40, 240),
        Budget(16, 96),
    )


def test_a_search_stops_when_its_budget_is_spent() -> None:
    made = case_of(deployment("web", gpus=16), world(node("n0", 1)))
    wide, narrow, none = Budget(80, 80), Budget(2, 80), Budget(80, 0)
    assert [r.summary for r in remedies.search(made, "default", wide)] == [
        "1 nvidia.com/gpu a pod instead of 16"
    ]
    assert remedies.search(made, "default", narrow) == remedies.search(made, "default", none) == ()
    assert (narrow.left, none.left) == (78, 0)
    assert wide.left < 80


def test_nothing_is_searched_for_what_is_admitted_and_placed_or_only_unknown() -> None:
    fits = case_of(deployment("web"), world(node("n0"))).verdict
    unknown = structs.replace(fits, admission="unknown", placement="unknown")
    waits = structs.replace(fits, placement="waits")
    denied = structs.replace(fits, admission="denied")
    assert [remedies.wanted(v) for v in (fits, unknown, waits, denied)] == [
        False, False, True, True,
    ]  # fmt: skip


def test_a_change_that_scales_everything_to_zero_is_no_remedy() -> None:
    nothing = Proposal(
        "none", "pods", 0, ({"op": "replace", "path": "/spec/replicas", "value": 0},)
    )
    made = case_of(deployment("web", gpus=16), world(node("n0", 1)))
    assert remedies._try(made, [nothing], "default") is None


@pytest.mark.parametrize(
    "op",
    [
        {"op": "replace", "path": "/spec/no", "value": 1},
        {"op": "replace", "path": "/kind", "value": "Secret"},
        {"op": "replace", "path": "/spec/replicas", "value": "many"},
        {"op": "add", "path": "/metadata/name/x", "value": "many"},
        {"op": "replace", "path": f"{AT}/resources/limits/nvidia.com~1gpu", "value": "x y"},
    ],
)
def test_a_change_that_makes_no_workload_of_the_manifest_is_no_remedy(op: dict[str, Any]) -> None:
    made = case_of(deployment("web", gpus=16), world(node("n0", 1)))
    assert remedies._try(made, [Proposal("x", "x", 0, (op,))], "default") is None


def test_trying_a_change_leaves_the_state_of_the_run_as_it_was() -> None:
    cluster = world(node("n0", 2), pod("a", 2, on="n0"), quota_of(1, 1))
    made = case_of(deployment("web", gpus=2), cluster)
    before = judge(made.workload, made.before, made.terms)[0]
    assert remedies.search(made, "default", Budget(80, 80))
    assert judge(made.workload, made.before, made.terms)[0] == before
    assert [p.name for p in cluster.nodes["n0"].pods] == ["a"]


# -- every remedy that is printed holds ------------------------------------------------------------

Change = Callable[[State], State]


def changes(made: Case) -> dict[str, Change]:
    """Command -> the same change in a what-if, of everything that is proposed."""
    found = {p.command: p.change for p in proposals.for_verdict(made) if p.command}
    return {command: change for command, change in found.items() if change is not None}


def again(made: Case, remedy: Remedy) -> Outcome:
    """The verdict after the remedy is carried out on copies of manifest and cluster."""
    data = jsonpatch.apply_patch(made.document.data, list(remedy.patch))
    state = made.before.fork()
    known = changes(made)
    if remedy.command:
        chosen = [
            combo
            for size in (1, 2, 3)
            for combo in itertools.permutations(known, size)
            if " && ".join(combo) == remedy.command
        ]
        assert chosen, remedy.command
        for command in chosen[0]:
            state = known[command](state)
    workload = expand(structs.replace(made.document, data=data), cluster=state.cluster)
    assert isinstance(workload, Workload)
    return judge(workload, state, made.terms)[0].outcome


BUSY = world(
    node("g0", 8, labels={"pool": "gold"}, taints=GUARDED), pod("a", 6, on="g0"),
    node("g1", 8, labels={"pool": "gold"}, taints=GUARDED, cordoned=True),
    node("s0", 4, labels={"pool": "silver", "tier": "two"}),
    pod("b", 2, on="s0"), pod("c", 1, on="s0"),
    node("s1", 4, labels={"pool": "silver", "tier": "two"}), pod("d", 3, on="s1"),
    quota_of(4, 2),
)  # fmt: skip


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("gpus", [1, 2, 4, 16])
@pytest.mark.parametrize("spec", ["", "nodeSelector: {pool: gold}", "nodeSelector: {pool: lead}"])
def test_carrying_out_a_remedy_gives_what_it_promises(replicas: int, gpus: int, spec: str) -> None:
    manifest = deployment("web", replicas=replicas, gpus=gpus, spec=spec)
    made = case_of(manifest, BUSY, POOLS)
    found = (
        remedies.search(made, "default", Budget(80, 80)) if remedies.wanted(made.verdict) else ()
    )
    assert len(found) <= ENOUGH
    for remedy in found:
        assert remedy.verified
        assert (remedy.summary, again(made, remedy)) == (remedy.summary, remedy.result)
        assert remedy.result is not None
        assert remedy.result.admission in ("admitted", "mutated")
        assert remedy.result.placement == "fits"
        assert made.verdict.outcome != remedy.result
