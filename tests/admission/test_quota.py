"""ResourceQuota: what is charged, what still fits, and how a refusal reads."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit.admission import defaults, quota_usage, resource_lists
from kubectl_gpuadmit.admission.quota import Ledger
from kubectl_gpuadmit.kube.objects import KubeObject, Pod, ResourceQuota
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy, Unknown
from tests.admission.objects import cluster, container, gpus, obj, pod, quota

GPU = "requests.nvidia.com/gpu"


def used(ledger: Ledger, namespace: str = "team-a") -> dict[str, dict[str, str]]:
    return {
        row.quota.name: {key: str(amount) for key, amount in sorted(row.used.items())}
        for row in ledger.rows(namespace)
    }


def usage(one: Pod) -> dict[str, str]:
    return {key: str(amount) for key, amount in sorted(quota_usage.of_pod(one).usage.items())}


def messages(findings: tuple[Finding, ...]) -> list[Any]:
    return [finding.evidence[-1].observed for finding in findings]


# -- what one pod is charged -------------------------------------------------------------------


def test_a_pod_is_charged_under_every_name_of_a_resource() -> None:
    one = pod(
        container(
            requests={"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"},
            limits={"cpu": "2", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"},
        )
    )
    assert usage(one) == {
        "count/pods": "1",
        "cpu": "1",
        "hugepages-2Mi": "4Mi",
        "limits.cpu": "2",
        "memory": "1Gi",
        "pods": "1",
        "requests.cpu": "1",
        "requests.hugepages-2Mi": "4Mi",
        "requests.memory": "1Gi",
        "requests.nvidia.com/gpu": "2",
    }


def test_a_pod_that_has_ended_is_charged_as_an_object_alone() -> None:
    assert usage(gpus(4, status={"phase": "Succeeded"})) == {"count/pods": "1"}


def test_sidecars_overhead_and_pod_level_resources_are_charged() -> None:
    one = pod(
        container(requests={"nvidia.com/gpu": "1"}, limits={"nvidia.com/gpu": "1"}),
        initContainers=[
            container(
                "side",
                requests={"nvidia.com/gpu": "1", "cpu": "1"},
                limits={"nvidia.com/gpu": "1"},
                restartPolicy="Always",
            )
        ],
        resources={"requests": {"cpu": "4"}},
        overhead={"cpu": "250m"},
    )
    assert usage(one) == {
        "count/pods": "1",
        "cpu": "4250m",
        "pods": "1",
        "requests.cpu": "4250m",
        "requests.nvidia.com/gpu": "2",
    }


SCOPES = [
    ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 60}, True),
    ({"scopes": ["Terminating"]}, {}, False),
    ({"scopes": ["NotTerminating"]}, {}, True),
    ({"scopes": ["BestEffort"]}, {}, True),
    ({"scopes": ["NotBestEffort"]}, {}, False),
    ({"scopes": ["NotBestEffort"]}, {"resources": {"requests": {"cpu": "1"}}}, True),
    ({"scopes": ["PriorityClass"]}, {}, False),
    ({"scopes": ["PriorityClass"]}, {"priorityClassName": "high"}, True),
    ({"scopes": ["Terminating", "BestEffort"]}, {}, False),
    (
        {"scopes": ["CrossNamespacePodAffinity"]},
        {
            "affinity": {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "zone", "namespaces": ["b"]}
                    ]
                }
            }
        },
        True,
    ),
    ({"scopes": ["CrossNamespacePodAffinity"]}, {}, False),
    ({"scopes": ["VolumeAttributesClass"]}, {}, False),
]
SELECTORS = [
    ("In", ["high"], "high", True),
    ("In", ["high"], "low", False),
    ("In", ["high"], None, False),
    ("NotIn", ["high"], "low", True),
    ("NotIn", ["high"], None, True),
    ("Exists", None, None, False),
    ("DoesNotExist", None, None, True),
]


@pytest.mark.parametrize(("spec", "fields", "concerned"), SCOPES)
def test_scopes_decide_which_pods_a_quota_concerns(
    spec: dict[str, Any], fields: dict[str, Any], concerned: bool
) -> None:
    ledger = Ledger.of(cluster(quota(hard={"pods": "0"}, **spec)))
    assert ledger.admit_pods(gpus(1, **fields), "team-a", 1)[0] == (0 if concerned else 1)


@pytest.mark.parametrize(("operator", "values", "name", "concerned"), SELECTORS)
def test_scope_selectors_read_the_priority_class_as_a_label(
    operator: str, values: list[str] | None, name: str | None, concerned: bool
) -> None:
    term = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    ledger = Ledger.of(
        cluster(quota(hard={"pods": "0"}, scopeSelector={"matchExpressions": [term]}))
    )
    one = pod(priorityClassName=name) if name else pod()
    assert ledger.admit_pods(one, "team-a", 1)[0] == (0 if concerned else 1)


# -- admitting ---------------------------------------------------------------------------------


def test_two_of_three_pods_fit_and_the_third_is_refused_with_all_numbers() -> None:
    ledger = Ledger.of(cluster(quota(hard={GPU: "8", "pods": "9"})))
    admitted, findings, unknowns = ledger.admit_pods(gpus(4, generateName="llama-"), "team-a", 3)
    assert (admitted, unknowns) == (2, ())
    words = "asked 4 · used 8 (8 by pods 1-2) · limit 8"
    assert findings == (
        Finding(
            reason="quota/exceeded",
            detail=f"pod 3 of 3: ResourceQuota gpus: {GPU} {words}",
            evidence=(
                Evidence("ResourceQuota gpus", GPU, "12", "8", f"{words} · status.used", "most"),
                Evidence(
                    "kube-apiserver",
                    "message",
                    'pods "llama-xxxxx" is forbidden: exceeded quota: gpus,'
                    f" requested: {GPU}=4, used: {GPU}=8, limited: {GPU}=8",
                    None,
                ),
            ),
            permanent=True,
            suggest=(
                Remedy(
                    summary=f"raise ResourceQuota gpus to {GPU}=12",
                    command="kubectl -n team-a patch resourcequota gpus --type=merge -p"
                    f' \'{{"spec":{{"hard":{{"{GPU}":"12"}}}}}}\'',
                    cost=90,
                ),
            ),
        ),
    )
    assert used(ledger) == {"gpus": {"pods": "2", GPU: "8"}}


def test_what_others_use_may_end_and_what_the_limit_lacks_never_does() -> None:
    ledger = Ledger.of(cluster(quota(used={GPU: "6"}, hard={GPU: "8"})))
    _, (found,), _ = ledger.admit_pods(gpus(4), "team-a", 1)
    assert (found.permanent, found.detail) == (
        False,
        f"ResourceQuota gpus: {GPU} asked 4 · used 6 · limit 8",
    )
    _, (found,), _ = ledger.admit_pods(gpus(9), "team-a", 1)
    assert found.permanent


def test_earlier_workloads_of_the_run_are_named_apart() -> None:
    ledger = Ledger.of(cluster(quota(used={GPU: "1"}, hard={GPU: "8"})))
    assert ledger.admit_pods(gpus(1), "team-a", 2)[0] == 2
    _, (found,), _ = ledger.admit_pods(gpus(3), "team-a", 2)
    assert found.detail == (
        f"pod 2 of 2: ResourceQuota gpus: {GPU} asked 3 · used 6"
        " (3 by pod 1, 2 earlier in this run) · limit 8"
    )


def test_every_quota_that_is_exceeded_is_told_and_the_tightest_decides() -> None:
    ledger = Ledger.of(
        cluster(
            quota("a", hard={GPU: "8"}),
            quota("b", hard={"pods": "3", GPU: "100"}),
            quota("c", hard={"count/pods": "3"}),
        )
    )
    admitted, findings, _ = ledger.admit_pods(gpus(1), "team-a", 5)
    assert admitted == 3
    assert messages(findings) == [
        'pods "p" is forbidden: exceeded quota: b, requested: pods=1, used: pods=3,'
        " limited: pods=3",
        'pods "p" is forbidden: exceeded quota: c, requested: count/pods=1, used: count/pods=3,'
        " limited: count/pods=3",
    ]
    assert used(ledger)["a"] == {GPU: "3"}


def test_keys_that_enforce_nothing_let_everything_pass() -> None:
    hard = {"nvidia.com/gpu": "0", "limits.nvidia.com/gpu": "0", "request.nvidia.com/gpu": "0"}
    assert Ledger.of(cluster(quota(hard=hard))).admit_pods(gpus(8), "team-a", 10)[0] == 10


def test_cpu_keys_oblige_every_container_to_name_cpu() -> None:
    ledger = Ledger.of(cluster(quota(hard={"limits.cpu": "10", "requests.memory": "1Gi"})))
    one = pod(container("b", limits={"memory": "1Gi"}), container("a", limits={"cpu": "1"}))
    admitted, findings, _ = ledger.admit_pods(one, "team-a", 2)
    text = "must specify limits.cpu for: b; requests.memory for: a,b"
    assert (admitted, [f.detail for f in findings]) == (0, [f"ResourceQuota gpus: {text}"])
    assert messages(findings) == [f'pods "p" is forbidden: failed quota: gpus: {text}']
    assert used(ledger) == {"gpus": {"limits.cpu": "0", "requests.memory": "0"}}


def test_pod_level_resources_lift_that_obligation() -> None:
    ledger = Ledger.of(cluster(quota(hard={"limits.cpu": "10"})))
    one = pod(container(), resources={"limits": {"memory": "1Gi"}})
    assert ledger.admit_pods(one, "team-a", 1)[0] == 1


def test_a_key_that_was_never_counted_refuses_what_it_counts() -> None:
    spec = {"hard": {"pods": "5"}}
    lacking = obj(
        "ResourceQuota",
        "new",
        "team-a",
        spec=spec,
        status={"hard": {"pods": "5", GPU: "5"}, "used": {"pods": "0"}},
    )
    admitted, findings, _ = Ledger.of(cluster(lacking)).admit_pods(pod(), "team-a", 1)
    assert (admitted, [f.reason for f in findings]) == (0, ["quota/status-unknown"])
    assert messages(findings) == [
        f'pods "p" is forbidden: status unknown for quota: new, resources: pods,{GPU}'
    ]


def test_a_negative_amount_is_refused() -> None:
    one = pod(container(requests={"cpu": "-1"}))
    _, findings, _ = Ledger.of(cluster(quota(hard={"pods": "5"}))).admit_pods(one, "team-a", 1)
    assert messages(findings) == [
        'pods "p" is forbidden: quota usage is negative for resource(s): cpu,requests.cpu'
    ]


def test_a_quota_that_is_over_its_limit_still_admits_what_it_does_not_count() -> None:
    ledger = Ledger.of(cluster(quota(used={GPU: "9"}, hard={GPU: "8"})))
    assert ledger.admit_pods(pod(), "team-a", 3)[0] == 3
    assert ledger.admit_pods(gpus(1), "team-a", 3)[0] == 0


def test_ten_thousand_replicas_are_counted_by_arithmetic() -> None:
    ledger = Ledger.of(cluster(quota(hard={GPU: "80000", "limits.memory": "100Ti"})))
    one = defaults.decode(pod(container(limits={"nvidia.com/gpu": "8", "memory": "16Gi"})))
    admitted, findings, _ = ledger.admit_pods(one, "team-a", 10_000)
    assert (admitted, findings[0].evidence[0].what) == (6400, "limits.memory")
    assert used(ledger) == {"gpus": {"limits.memory": "100Ti", GPU: "51200"}}


def test_quotas_that_were_not_exported_are_unknown_and_admit() -> None:
    assert Ledger.of(cluster(known=())).admit_pods(gpus(1), "team-a", 4) == (
        4,
        (),
        (
            Unknown(
                rule="admission/quota",
                missing="ResourceQuota objects of namespace team-a: not in the snapshot",
                hint="kubectl -n team-a get resourcequotas -o yaml",
            ),
        ),
    )


# -- quotas and objects that the run brings along ----------------------------------------------


def brought(name: str, **hard: str) -> ResourceQuota:
    limits = {key.replace("__", "."): value for key, value in hard.items()}
    made = obj("ResourceQuota", name, "team-a", spec={"hard": limits})
    assert isinstance(made, ResourceQuota)
    return made


def test_a_quota_of_the_run_counts_what_already_runs_and_what_came_before() -> None:
    running = pod(container(limits={"cpu": "2"}, requests={"cpu": "1"}), name="old")
    ended = pod(container(requests={"cpu": "8"}), name="done", status={"phase": "Failed"})
    ledger = Ledger.of(cluster(running, ended, quota("other", hard={"pods": "50"})))
    ledger.admit_pods(pod(container(requests={"cpu": "2"})), "team-a", 2)
    ledger.apply(
        obj("ResourceQuota", "new", "team-a", spec={"hard": {"cpu": "6", "count/pods": "9"}})
    )
    assert used(ledger)["new"] == {"count/pods": "4", "cpu": "5"}
    _, (found,), _ = ledger.admit_pods(pod(container(requests={"cpu": "2"})), "team-a", 1)
    assert found.detail == (
        "ResourceQuota new: cpu asked 2 · used 5 (4 earlier in this run) · limit 6"
    )
    assert found.evidence[0].source.endswith("counted from the objects of the namespace")


def test_a_quota_of_the_run_is_unsure_where_pods_were_not_exported() -> None:
    ledger = Ledger.of(cluster(known=("ResourceQuota",)))
    ledger.apply_quota(brought("new", pods="5"))
    admitted, _, unknowns = ledger.admit_pods(pod(), "team-a", 1)
    assert (admitted, [u.missing for u in unknowns]) == (
        1,
        ["what ResourceQuota new has used: Pod objects are not in the snapshot"],
    )


def test_objects_of_the_run_are_charged_once_and_updates_are_not() -> None:
    have = obj("ConfigMap", "have", "team-a")
    ledger = Ledger.of(cluster(have, quota(hard={"configmaps": "1", "count/configmaps": "9"})))
    assert ledger.apply(have) == ((), ())
    assert ledger.apply(obj("ConfigMap", "one", "team-a")) == ((), ())
    findings, _ = ledger.apply(obj("ConfigMap", "two", "team-a"))
    assert messages(findings) == [
        'configmaps "two" is forbidden: exceeded quota: gpus, requested: configmaps=1,'
        " used: configmaps=1, limited: configmaps=1"
    ]


def test_workloads_are_charged_by_number() -> None:
    ledger = Ledger.of(cluster(quota(hard={"count/deployments.apps": "1", "pods": "9"})))
    assert ledger.admit_objects("team-a", {"deployments.apps": 1, "pods": 7}) == ((), ())
    findings, _ = ledger.admit_objects("team-a", {"deployments.apps": 1})
    assert messages(findings) == [
        'deployments.apps "Unknown" is forbidden: exceeded quota: gpus,'
        " requested: count/deployments.apps=1, used: count/deployments.apps=1,"
        " limited: count/deployments.apps=1"
    ]
    assert used(ledger)["gpus"]["pods"] == "0"


def test_volume_claims_are_charged_by_size_and_storage_class() -> None:
    fast = "fast.storageclass.storage.k8s.io/requests.storage"
    claim = obj(
        "PersistentVolumeClaim",
        "data",
        "team-a",
        spec={"storageClassName": "fast", "resources": {"requests": {"storage": "1.5Gi"}}},
    )
    hard = {fast: "2Gi", "requests.storage": "10Gi", "persistentvolumeclaims": "5"}
    ledger = Ledger.of(cluster(quota(hard=hard)))
    assert ledger.admit_object(claim, "team-a") == ((), ())
    assert used(ledger) == {
        "gpus": {fast: "1536Mi", "persistentvolumeclaims": "1", "requests.storage": "1536Mi"}
    }
    assert len(ledger.admit_object(claim, "team-a")[0]) == 1


def test_services_are_charged_by_type() -> None:
    hard = {"services": "9", "services.loadbalancers": "0", "services.nodeports": "1"}
    ledger = Ledger.of(cluster(quota(hard=hard)))

    def service(**spec: Any) -> KubeObject:
        return obj("Service", "s", "team-a", spec=spec)

    ports = [{"port": 80, "nodePort": 30000}, {"port": 81}]
    assert ledger.admit_object(service(ports=ports), "team-a")[0] == ()
    assert len(ledger.admit_object(service(type="NodePort", ports=ports), "team-a")[0]) == 1
    quiet = service(type="LoadBalancer", allocateLoadBalancerNodePorts=False, ports=ports)
    (found,) = ledger.admit_object(quiet, "team-a")[0]
    assert [e.what for e in found.evidence[:-1]] == ["services.loadbalancers"]


def claim_template(**device: Any) -> KubeObject:
    return obj(
        "ResourceClaimTemplate",
        "one-gpu",
        "team-a",
        apiVersion="resource.k8s.io/v1",
        spec={"spec": {"devices": {"requests": [{"name": "r", **device}]}}},
    )


DEVICES = [
    ({"exactly": {"deviceClassName": "gpu", "count": 2}}, {"gpu": "2"}),
    ({"exactly": {"deviceClassName": "gpu"}}, {"gpu": "1"}),
    ({"exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}, {"gpu": "32"}),
    ({"deviceClassName": "gpu", "count": 3}, {"gpu": "3"}),
    (
        {
            "firstAvailable": [
                {"deviceClassName": "gpu", "count": 4},
                {"deviceClassName": "mig", "count": 7},
                {"deviceClassName": "gpu", "count": 1},
            ]
        },
        {"gpu": "4", "mig": "7"},
    ),
    ({"exactly": {"deviceClassName": "gpu", "allocationMode": "New"}}, {"gpu": "0"}),
]


@pytest.mark.parametrize(("request_", "devices"), DEVICES)
def test_claims_are_charged_for_the_worst_case_per_class(
    request_: dict[str, Any], devices: dict[str, str]
) -> None:
    claim = obj(
        "ResourceClaim",
        "c",
        "team-a",
        apiVersion="resource.k8s.io/v1",
        spec={"devices": {"requests": [{"name": "r", **request_}]}},
    )
    charge = quota_usage.of(claim, {"gpu": "nvidia.com/gpu"})
    expected = {"count/resourceclaims.resource.k8s.io": "1"}
    for name, number in devices.items():
        expected[f"{name}.deviceclass.resource.k8s.io/devices"] = number
        if number != "0":
            expected[f"requests.deviceclass.resource.kubernetes.io/{name}"] = number
    if devices.get("gpu", "0") != "0":
        expected[GPU] = devices["gpu"]
    assert {key: str(amount) for key, amount in charge.usage.items()} == expected


def test_claims_of_a_mapped_class_count_against_the_extended_resource() -> None:
    mapped = obj(
        "DeviceClass",
        "gpu",
        apiVersion="resource.k8s.io/v1",
        spec={"extendedResourceName": "nvidia.com/gpu"},
    )
    claim = obj(
        "ResourceClaim",
        "c",
        "team-a",
        apiVersion="resource.k8s.io/v1",
        spec={"devices": {"requests": [{"exactly": {"deviceClassName": "gpu", "count": 9}}]}},
    )
    plain = Ledger.of(cluster(quota(hard={GPU: "8"})))
    assert plain.admit_object(claim, "team-a")[0] == ()
    plain.apply(mapped)
    assert len(plain.admit_object(claim, "team-a")[0]) == 1


def test_template_claims_over_quota_are_a_warning_for_pods_that_are_admitted() -> None:
    key = "gpu.deviceclass.resource.k8s.io/devices"
    ledger = Ledger.of(cluster(quota(hard={key: "3"})))
    ledger.apply(claim_template(exactly={"deviceClassName": "gpu", "count": 2}))
    one = pod(resourceClaims=[{"name": "g", "resourceClaimTemplateName": "one-gpu"}])
    admitted, findings, _ = ledger.admit_pods(one, "team-a", 2)
    assert (admitted, [(f.reason, f.level, f.permanent) for f in findings]) == (
        2,
        [("quota/template-trap", "warn", False)],
    )
    assert findings[0].detail == (
        "claim g from template one-gpu is refused after the pod is admitted, which then stays"
        " Pending: resourceclaims.resource.k8s.io 2 of 2: ResourceQuota gpus:"
        f" {key} asked 2 · used 2 (2 by the first) · limit 3"
    )


# -- what if -----------------------------------------------------------------------------------


def test_a_pod_that_leaves_gives_back_what_it_was_charged_and_never_more() -> None:
    running = gpus(4, name="old")
    counted = quota(used={GPU: "6", "pods": "0"}, hard={GPU: "8", "pods": "9"})
    ledger = Ledger.of(cluster(running, counted))
    ledger.release(running)
    assert used(ledger) == {"gpus": {"pods": "0", GPU: "2"}}


def test_raising_what_is_needed_admits_all() -> None:
    ledger = Ledger.of(cluster(quota(used={GPU: "6"}, hard={GPU: "8", "pods": "1"})))
    one = gpus(4)
    needed = ledger.needed(one, "team-a", 3)
    assert {name: {k: str(q) for k, q in keys.items()} for name, keys in needed.items()} == {
        "gpus": {GPU: "18", "pods": "3"}
    }
    for name, keys in needed.items():
        ledger.raise_limits("team-a", name, keys)
    assert ledger.admit_pods(one, "team-a", 3) == (3, (), ())


AMOUNTS = st.builds(
    lambda cpu, gpu, memory: defaults.decode(
        pod(
            container(
                limits={"cpu": f"{cpu}m", "nvidia.com/gpu": str(gpu), "memory": f"{memory}Mi"}
            )
        )
    ),
    st.integers(0, 4000),
    st.integers(0, 8),
    st.integers(0, 64),
)
HARD = st.fixed_dictionaries(
    {},
    optional={
        "limits.cpu": st.integers(0, 40).map(str),
        GPU: st.integers(0, 40).map(str),
        "requests.memory": st.integers(0, 400).map(lambda n: f"{n}Mi"),
        "pods": st.integers(0, 9).map(str),
    },
)


@settings(max_examples=60, deadline=None)
@given(AMOUNTS, HARD, HARD, st.integers(1, 12))
def test_many_at_once_is_one_after_another(
    one: Pod, first: dict[str, str], second: dict[str, str], count: int
) -> None:
    base = cluster(quota("a", hard=first), quota("b", hard=second))
    at_once, one_by_one = Ledger.of(base), Ledger.of(base)
    admitted, findings, _ = at_once.admit_pods(one, "team-a", count)
    single = [one_by_one.admit_pods(one, "team-a", 1)[0] for _ in range(count)]
    assert single == [1] * admitted + [0] * (count - admitted)
    assert used(at_once) == used(one_by_one)
    assert bool(findings) == (admitted < count)


@settings(max_examples=60, deadline=None)
@given(st.lists(AMOUNTS, max_size=6), st.randoms(use_true_random=False))
def test_usage_adds_up_whatever_the_order(pods: list[Pod], shuffler: Any) -> None:
    base = cluster(quota(hard={"limits.cpu": "999", GPU: "999", "pods": "99"}))
    forward, shuffled = Ledger.of(base), Ledger.of(base)
    for one in pods:
        forward.admit_pods(one, "team-a", 1)
    mixed = list(pods)
    shuffler.shuffle(mixed)
    for one in mixed:
        shuffled.admit_pods(one, "team-a", 1)
    assert used(forward) == used(shuffled)
    total: resource_lists.ResourceList = {}
    for one in pods:
        resource_lists.add(total, quota_usage.of_pod(one).usage)
    assert used(forward)["gpus"] == {
        key: str(total.get(key, resource_lists.ZERO)) for key in ("limits.cpu", "pods", GPU)
    }


@settings(max_examples=30, deadline=None)
@given(st.permutations(["a", "b", "c"]), st.integers(0, 4))
def test_the_order_of_objects_never_matters(order: list[str], asked: int) -> None:
    quotas = {name: quota(name, hard={GPU: str(2 * i)}) for i, name in enumerate("abc")}
    ledger = Ledger.of(cluster(*(quotas[name] for name in order)))
    sorted_ = Ledger.of(cluster(*(quotas[name] for name in "abc")))
    one = gpus(asked)
    assert ledger.admit_pods(one, "team-a", 2) == sorted_.admit_pods(one, "team-a", 2)


@settings(max_examples=30, deadline=None)
@given(AMOUNTS, st.integers(1, 5))
def test_charging_a_fork_leaves_its_origin_as_it_was(one: Pod, count: int) -> None:
    ledger = Ledger.of(cluster(quota(hard={GPU: "20", "pods": "9"})))
    ledger.admit_pods(one, "team-a", 1)
    before = used(ledger)
    fork = ledger.fork()
    fork.admit_pods(one, "team-a", count)
    fork.apply_quota(brought("more", pods="1"))
    fork.raise_limits("team-a", "gpus", {})
    fork.release(one)
    assert used(ledger) == before
    assert [row.quota.name for row in ledger.rows("team-a")] == ["gpus"]
