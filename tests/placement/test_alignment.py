"""The engine's word on pods that the scheduler places and a kubelet would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.needs import ALIGNMENT, needs
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.rule import REGISTRY
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown, Verdict
from tests.placement.build import GPU, decoded, node, pod
from tests.runs import only, policy, report, world

SINGLE = {"topologyPolicy": "single-numa-node", "topologyScope": "container", "cpuPolicy": "none"}
STATIC = {**SINGLE, "cpuPolicy": "static", "reservedCpus": "0,32", "assignments": []}


def agent_map(
    name: str,
    kubelet: dict[str, Any] | None = None,
    *,
    gpus: int = 8,
    held: dict[str, list[int]] | None = None,
    numa: bool = True,
) -> KubeObject:
    """The agent's map of a node with two NUMA nodes; ``held``: pod -> indexes of its GPUs."""
    spec: dict[str, Any] = {
        "schema": 2,
        "asOf": "2026-11-29T11:59:50Z",
        "heartbeatSeconds": 60,
        "gpus": [
            {
                "index": n,
                "uuid": f"GPU-{name}-{n}",
                "product": "NVIDIA H100 80GB HBM3",
                **({"numaNode": n * 2 // gpus} if numa else {}),
            }
            for n in range(gpus)
        ],
        "numa": [
            {"id": 0, "cpus": "0-31", "memoryMiB": 131072, "distances": [10, 21]},
            {"id": 1, "cpus": "32-63", "memoryMiB": 131072, "distances": [21, 10]},
        ],
        "holders": [
            {
                "device": f"GPU-{name}-{n}",
                "namespace": "default",
                "pod": who,
                "container": "c",
                "via": "device-plugin",
                "resource": GPU,
            }
            for who, which in (held or {}).items()
            for n in which
        ],
    }
    if kubelet is not None:
        spec["kubelet"] = kubelet
    head = {"apiVersion": "gpu-admit.io/v1alpha1", "kind": "GpuTopology"}
    return decoded({**head, "metadata": {"name": name}, "spec": spec})


def running(name: str, gpus: int) -> KubeObject:
    resources = {"limits": {GPU: str(gpus)}, "requests": {GPU: str(gpus)}}
    return pod(name, on="inf-0", containers=[{"name": "c", "resources": resources}])


def manifest(gpus: int, *, cpu: str = "", more: str = "") -> str:
    both = f", cpu: {cpu}, memory: 16Gi" if cpu else ""
    return f"""\
apiVersion: v1
kind: Pod
metadata: {{name: train}}
spec:
  containers:
  - name: main
    image: i
    resources: {{limits: {{{GPU}: {gpus}{both}}}}}
{more}"""


def verdict(text: str, *objects: KubeObject, by: Policy | None = None) -> Verdict:
    return only(report(text, world(*objects), by, remedies=True))


def placement_findings(made: Verdict) -> list[Finding]:
    return [f for f in made.findings if f.reason.startswith("placement/numa")]


SPLIT = {"a": [0, 1], "b": [4, 5]}
"""Two GPUs are free on each NUMA node."""


def split(kubelet: dict[str, Any]) -> list[KubeObject]:
    return [
        node("inf-0"),
        agent_map("inf-0", kubelet, held=SPLIT),
        running("a", 2),
        running("b", 2),
    ]


def test_four_free_gpus_on_two_numa_nodes_do_not_take_a_pod_of_four() -> None:
    made = verdict(manifest(4), *split(SINGLE))
    assert (made.admission, made.placement) == ("admitted", "waits")
    assert placement_findings(made) == [
        Finding(
            "placement/numa-refused",
            "the scheduler would send it to inf-0, whose kubelet would refuse it: single-numa-node"
            " wants 4 nvidia.com/gpu (container main) on one NUMA node; free by NUMA node:"
            " nvidia.com/gpu 2 + 2; every pod that is sent there stays Failed",
            evidence=(
                Evidence(
                    "Node inf-0",
                    "nvidia.com/gpu free on NUMA node 0",
                    2,
                    4,
                    "agent map",
                    bound="least",
                ),
                Evidence(
                    "Node inf-0",
                    "nvidia.com/gpu free on NUMA node 1",
                    2,
                    4,
                    "agent map",
                    bound="least",
                ),
                Evidence(
                    "Node inf-0",
                    "topology policy and scope",
                    "single-numa-node, container",
                    None,
                    "agent map",
                ),
            ),
            permanent=False,
            field="/spec/containers",
            rule="placement",
            fidelity="exact",
        )
    ]
    assert made.waits_for == ("the kubelet of inf-0 takes it once a ends",)
    assert [(r.summary, r.verified) for r in made.remedies] == [
        (f"2 {GPU} a pod instead of 4", True),
        ("stop default/a on inf-0", True),
        ("stop default/b on inf-0", True),
    ]
    (line,) = made.nodes
    assert (
        line.fits,
        [s.reason for s in line.shortfalls],
        [s.subject for s in line.shortfalls],
    ) == (
        False,
        ["its kubelet would refuse it (TopologyAffinityError)"],
        ["free by NUMA node: nvidia.com/gpu 2 + 2"],
    )


def test_eight_gpus_never_fit_one_numa_node_of_four() -> None:
    made = verdict(manifest(8), node("inf-0"), agent_map("inf-0", SINGLE))
    (finding,) = placement_findings(made)
    assert (made.placement, finding.permanent) == ("never", True)
    assert "even with nothing else on it: single-numa-node wants 8" in finding.detail
    assert [r.summary for r in made.remedies] == [
        f"4 {GPU} a pod instead of 8",
        "topologyManagerPolicy best-effort on inf-0 instead of single-numa-node",
    ]


def test_restricted_takes_eight_because_one_numa_node_never_could() -> None:
    restricted = {**SINGLE, "topologyPolicy": "restricted"}
    made = verdict(manifest(8), node("inf-0"), agent_map("inf-0", restricted))
    assert (made.placement, placement_findings(made)) == ("fits", [])
    assert verdict(manifest(4), *split(restricted)).placement == "waits"


def test_a_choice_that_comes_after_the_gate_does_not_make_it_unsure() -> None:
    restricted = {**SINGLE, "topologyPolicy": "restricted"}
    made = verdict(manifest(3), node("inf-0", 4), agent_map("inf-0", restricted, gpus=4))
    assert (made.placement, placement_findings(made), made.unknowns) == ("fits", [], ())


def test_running_pods_of_which_nobody_tells_the_devices_may_leave_it_open() -> None:
    restricted = {**SINGLE, "topologyPolicy": "restricted"}
    nodes = [node("inf-0", 4), agent_map("inf-0", restricted, gpus=4), running("a", 3)]
    assert verdict(manifest(1), *nodes).placement == "unknown"
    nodes = [node("inf-0", 8), agent_map("inf-0", SINGLE), running("a", 3)]
    made = verdict(manifest(4), *nodes)
    assert made.placement == "fits"  # it must have them of one NUMA node: the first
    (finding,) = placement_findings(verdict(manifest(3), *nodes, running("b", 2)))
    assert (finding.fidelity, "nvidia.com/gpu 1 + 2" in finding.detail) == ("modelled", True)


def test_cpus_that_nobody_tells_by_numa_node_leave_a_pinned_pod_open() -> None:
    untold = {**SINGLE, "cpuPolicy": None}
    nodes = [node("inf-0"), agent_map("inf-0", untold)]
    (unknown,) = verdict(manifest(2, cpu="8"), *nodes).unknowns
    assert unknown.missing.endswith("refuses it: CPUs by NUMA node")
    assert verdict(manifest(2), *nodes).unknowns == ()


@pytest.mark.parametrize("name", ["none", "best-effort"])
def test_a_policy_that_refuses_nothing_changes_nothing(name: str) -> None:
    made = verdict(manifest(4), *split({**SINGLE, "topologyPolicy": name}))
    assert (made.placement, placement_findings(made), made.unknowns) == ("fits", [], ())


def test_where_some_nodes_would_refuse_it_the_verdict_says_which() -> None:
    free = [node("inf-1"), agent_map("inf-1", SINGLE)]
    made = verdict(manifest(4), *split(SINGLE), *free)
    (finding,) = placement_findings(made)
    assert (made.placement, [p.node for p in made.places]) == ("fits", ["inf-1"])
    assert (finding.reason, finding.level, finding.fidelity) == (
        "placement/numa-risk",
        "warn",
        "exact",
    )
    assert finding.detail.startswith(
        "the scheduler may choose inf-0, whose kubelet would refuse it: single-numa-node wants 4"
    )
    assert finding.evidence[0] == Evidence(
        "2 nodes the scheduler may choose",
        "whose kubelet would refuse it",
        1,
        0,
        "agent map",
        bound="most",
    )
    assert [(v.node, v.fits) for v in made.nodes] == [("inf-0", False), ("inf-1", True)]


def test_replicas_take_numa_nodes_one_after_another() -> None:
    text = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve}
spec:
  replicas: 3
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      containers:
      - {name: main, image: i, resources: {limits: {nvidia.com/gpu: 3}}}
"""
    made = verdict(text, node("inf-0", 12), agent_map("inf-0", SINGLE, gpus=12))
    assert (made.placement, len(made.places)) == ("fits", 3)
    made = verdict(text, node("inf-0", 10), agent_map("inf-0", SINGLE, gpus=10))
    (finding,) = placement_findings(made)
    assert (made.placement, len(made.places)) == ("waits", 2)
    assert finding.detail.startswith("pod 3 of 3: the scheduler would send it to inf-0")
    assert "nvidia.com/gpu 2 + 2" in finding.detail


def test_fewer_cpus_pass_where_cpus_are_pinned() -> None:
    made = verdict(manifest(2, cpu="40"), node("inf-0"), agent_map("inf-0", STATIC))
    (finding,) = placement_findings(made)
    assert "wants 2 nvidia.com/gpu and 40 cpu (container main)" in finding.detail
    assert "cpu 31 + 31" in finding.detail
    assert [r.summary for r in made.remedies][:2] == [
        "31 CPUs a pod instead of 40",
        "no CPU limit: the pod shares CPUs and is not pinned to some",
    ]


def test_another_scope_passes_where_the_pod_scope_does_not() -> None:
    text = manifest(3) + f"  - {{name: side, image: i, resources: {{limits: {{{GPU}: 3}}}}}}\n"
    by_pod = {**SINGLE, "topologyScope": "pod"}
    made = verdict(text, node("inf-0"), agent_map("inf-0", by_pod))
    (finding,) = placement_findings(made)
    assert "wants 6 nvidia.com/gpu on one NUMA node" in finding.detail
    assert "topologyManagerScope container on inf-0 instead of pod" in [
        r.summary for r in made.remedies
    ]


def test_exclusive_cpus_of_others_count_as_the_agent_tells_them() -> None:
    busy = {
        **STATIC,
        "assignments": [
            {"namespace": "default", "pod": "a", "container": "c", "cpus": "1-20"},
            {"namespace": "default", "pod": "gone", "container": "c", "cpus": "32-60"},
        ],
    }
    others = [running("a", 1)]
    made = verdict(
        manifest(4, cpu="16"),
        *(node("inf-0"), agent_map("inf-0", busy, held={"a": [0]})),
        *others,
    )
    assert made.placement == "fits"
    made = verdict(
        manifest(3, cpu="30"),
        *(node("inf-0"), agent_map("inf-0", busy, held={"a": [0], "b": [4, 5]})),
        *(*others, running("b", 2)),
    )
    (finding,) = placement_findings(made)
    assert "nvidia.com/gpu 3 + 2, cpu 11 + 31" in finding.detail


# -- where a policy is known from ------------------------------------------------------------------

CONFIGZ = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "metadata": {"name": "inf-0"},
}


def test_what_the_kubelet_says_itself_counts_before_the_agent() -> None:
    says = decoded({**CONFIGZ, "topologyManagerPolicy": "best-effort"})
    assert verdict(manifest(4), *split(SINGLE), says).placement == "fits"
    says = decoded({**CONFIGZ, "topologyManagerPolicy": "single-numa-node"})
    made = verdict(manifest(4), *split({**SINGLE, "topologyPolicy": "none"}), says)
    (finding,) = placement_findings(made)
    assert {e.source for e in finding.evidence} == {"kubelet /configz"}


def zone(number: int, gpus: int, free: int) -> dict[str, Any]:
    return {
        "name": f"node-{number}",
        "type": "Node",
        "costs": [{"name": f"node-{n}", "value": 10 if n == number else 21} for n in (0, 1)],
        "resources": [
            {"name": GPU, "capacity": str(gpus), "allocatable": str(gpus), "available": str(free)},
            {"name": "cpu", "capacity": "32", "allocatable": "31", "available": "20"},
        ],
    }


NRT: dict[str, Any] = {
    "apiVersion": "topology.node.k8s.io/v1alpha2",
    "kind": "NodeResourceTopology",
    "metadata": {"name": "inf-0"},
    "attributes": [
        {"name": "topologyManagerPolicy", "value": "single-numa-node"},
        {"name": "topologyManagerScope", "value": "container"},
    ],
    "zones": [zone(0, 4, 2), zone(1, 4, 2)],
}


def nrt(**changes: Any) -> KubeObject:
    from kubectl_gpuadmit.kube.decode import decode_object
    from kubectl_gpuadmit.kube.manifests import Document

    return decode_object(Document("nrt.yaml", 0, 1, {**NRT, **changes}))


def test_node_resource_topology_tells_policy_and_what_is_left_on_each_numa_node() -> None:
    made = verdict(manifest(4), node("inf-0"), nrt(), running("a", 4))
    (finding,) = placement_findings(made)
    assert "nvidia.com/gpu 2 + 2" in finding.detail
    assert (finding.fidelity, {e.source for e in finding.evidence}) == (
        "modelled",
        {"NodeResourceTopology"},
    )
    assert verdict(manifest(2), node("inf-0"), nrt(), running("a", 4)).placement == "fits"


def test_replicas_of_this_run_count_besides_what_the_object_counted() -> None:
    text = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve}
spec:
  replicas: 3
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      containers:
      - {name: main, image: i, resources: {limits: {nvidia.com/gpu: 1}}}
      - {name: side, image: i, resources: {limits: {nvidia.com/gpu: 1}}}
"""
    pod_scope = nrt(
        attributes=[NRT["attributes"][0], {"name": "topologyManagerScope", "value": "pod"}]
    )
    made = verdict(text, node("inf-0"), pod_scope, running("a", 1))
    (finding,) = placement_findings(made)
    assert (made.placement, len(made.places)) == ("waits", 2)
    assert "nvidia.com/gpu 0 + 0" in finding.detail


def test_the_older_spelling_of_a_policy_is_read_too() -> None:
    old = nrt(
        apiVersion="topology.node.k8s.io/v1alpha1",
        attributes=None,
        topologyPolicies=["SingleNUMANodePodLevel"],
    )
    made = verdict(manifest(4), node("inf-0"), old)
    (finding,) = placement_findings(made)
    assert "single-numa-node, pod" in [e.observed for e in finding.evidence]


def test_an_unreadable_object_says_nothing() -> None:
    broken = nrt(zones=[{"name": "no number", "type": "Node"}])
    made = verdict(manifest(4), node("inf-0"), broken)
    assert (made.placement, placement_findings(made)) == ("fits", [])


POOL = policy(
    """\
pools:
  inference:
    nodeSelector: {gpu-partition: inf}
    kubelet: {topologyManagerPolicy: single-numa-node, topologyManagerScope: pod}
"""
)


def test_a_pool_may_declare_the_policy_of_its_kubelets() -> None:
    nodes = [
        node("inf-0", labels={"gpu-partition": "inf"}),
        agent_map("inf-0", held=SPLIT),
        running("a", 2),
        running("b", 2),
    ]
    assert verdict(manifest(4), *nodes).placement == "fits"
    made = verdict(manifest(4), *nodes, by=POOL)
    (finding,) = placement_findings(made)
    assert {e.source for e in finding.evidence} == {"policy pool inference"}


# -- what is not known -----------------------------------------------------------------------------


def test_a_cluster_that_says_nothing_of_its_kubelets_hears_nothing_of_them() -> None:
    made = verdict(manifest(4), node("inf-0"), node("inf-1"))
    assert (made.placement, placement_findings(made), made.unknowns) == ("fits", [], ())


def test_a_policy_without_numa_nodes_makes_a_pod_of_several_gpus_unknown() -> None:
    nodes = [node("inf-0", labels={"gpu-partition": "inf"})]
    made = verdict(manifest(4), *nodes, by=POOL)
    assert made.placement == "unknown"
    assert made.unknowns == (
        Unknown(
            "placement",
            "whether the kubelet of inf-0 (single-numa-node, by policy pool inference) refuses it:"
            " the NUMA node of its GPUs",
            "warn",
            "run kubectl gpu-admit agent there, or NFD's topology updater",
            "placement",
        ),
    )


def test_a_kubelet_that_has_refused_pods_for_numa_is_suspected_of_doing_so_again() -> None:
    failed = [
        decoded(
            {
                "kind": "Pod",
                "metadata": {"name": f"train-{n}", "namespace": "default"},
                "spec": {"nodeName": "inf-0", "containers": [{"name": "c"}]},
                "status": {"phase": "Failed", "reason": reason},
            }
        )
        for n, reason in enumerate(["TopologyAffinityError", "Topology Affinity Error", "Evicted"])
    ]
    made = verdict(manifest(4), node("inf-0"), *failed)
    assert made.placement == "unknown"
    assert [(u.level, u.missing) for u in made.unknowns] == [
        (
            "warn",
            "whether the kubelet of inf-0 (some topology policy, by 2 pods that it refused) refuses"
            " it: its policy and its NUMA nodes",
        )
    ]
    made = verdict(manifest(4), node("inf-0"), *failed, node("inf-1"))
    assert (made.placement, [p.node for p in made.places]) == ("fits", ["inf-1"])
    assert [u.level for u in made.unknowns] == ["audit"]
    assert verdict(manifest(4), node("inf-0"), failed[2]).unknowns == ()


def test_another_node_that_passes_makes_it_a_remark() -> None:
    nodes = [node("inf-0"), agent_map("inf-0", SINGLE), node("inf-1")]
    made = verdict(manifest(4), *nodes)
    assert (made.placement, [(u.level, u.missing) for u in made.unknowns]) == (
        "fits",
        [("audit", "the topology policy of one more kubelet")],
    )
    assert verdict(manifest(1), *nodes).unknowns == ()


def test_a_map_that_contradicts_the_node_is_not_believed() -> None:
    made = verdict(manifest(4), node("inf-0", 7), agent_map("inf-0", SINGLE))
    (unknown,) = made.unknowns
    assert made.placement == "unknown"
    assert "the map has 8, the node lists 7" in unknown.missing


def test_settings_with_which_no_kubelet_starts_are_told_as_that() -> None:
    odd = {**SINGLE, "topologyOptions": {"max-allowable-numa-nodes": "2"}}
    (unknown,) = verdict(manifest(4), node("inf-0"), agent_map("inf-0", odd)).unknowns
    assert "agent map: no kubelet starts so: the minimum value" in unknown.missing


def test_a_pod_without_devices_and_pinned_cpus_is_nobodys_business() -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c, image: i}]}"
    )
    made = verdict(text, node("inf-0"), agent_map("inf-0", SINGLE))
    assert (made.placement, placement_findings(made), made.unknowns) == ("fits", [], ())


# -- what is read of a live cluster ----------------------------------------------------------------


def read_kinds(text: str, by: Policy) -> set[str]:
    from kubectl_gpuadmit.kube.manifests import Document, read_documents
    from kubectl_gpuadmit.kube.workloads import Workload, expand

    (document,) = read_documents(text.encode(), "m.yaml")
    assert isinstance(document, Document)
    workload = expand(document, cluster=Cluster())
    assert isinstance(workload, Workload)
    return {need.kind for need in needs([workload], by, REGISTRY)}


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (manifest(1), False),
        (manifest(2), True),
        (manifest(1, cpu="8"), True),
        (manifest(1, cpu="1500m"), False),
    ],
)
def test_kubelets_are_asked_about_several_devices_or_pinned_cpus(text: str, asked: bool) -> None:
    kinds = {need.kind for need in ALIGNMENT}
    assert (kinds <= read_kinds(text, Policy.default())) == asked


# -- pods that no scheduler sends ------------------------------------------------------------------


def test_a_pod_that_names_its_node_meets_the_same_gate() -> None:
    text = manifest(4, more="  nodeName: inf-0\n")
    made = verdict(text, *split(SINGLE))
    (finding,) = placement_findings(made)
    assert (made.placement, made.places, finding.field) == ("never", (), "/spec/nodeName")
    assert finding.detail.startswith("spec.nodeName names inf-0, whose kubelet would refuse it: ")
    assert verdict(manifest(2, more="  nodeName: inf-0\n"), *split(SINGLE)).placement == "fits"


def test_a_daemon_set_is_placed_where_the_kubelets_take_it() -> None:
    text = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: probe}
spec:
  selector: {matchLabels: {app: probe}}
  template:
    metadata: {labels: {app: probe}}
    spec:
      containers:
      - {name: main, image: i, resources: {limits: {nvidia.com/gpu: 4}}}
"""
    made = verdict(text, *split(SINGLE), node("inf-1"), agent_map("inf-1", SINGLE))
    (finding,) = placement_findings(made)
    assert (made.placement, [p.node for p in made.places]) == ("waits", ["inf-1"])
    assert "would send it to inf-0" in finding.detail
