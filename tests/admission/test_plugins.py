"""Priority, RuntimeClass, service account, namespace and toleration plugins."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_gpuadmit.admission import (
    namespace,
    priority,
    runtime_class,
    service_account,
    tolerations,
)
from kubectl_gpuadmit.kube.objects import Toleration
from kubectl_gpuadmit.verdict import Evidence, Finding
from tests.admission.objects import cluster, container, gpus, obj, pod


def priority_class(name: str, value: int, **fields: Any) -> Any:
    return obj("PriorityClass", name, value=value, **fields)


def messages(findings: tuple[Finding, ...]) -> list[Any]:
    return [finding.evidence[-1].observed for finding in findings]


# -- priority ----------------------------------------------------------------------------------


def test_a_named_class_gives_its_value_and_policy() -> None:
    found = priority.mutate(
        pod(priorityClassName="batch"),
        cluster(priority_class("batch", -5, preemptionPolicy="Never")),
    )
    spec = found.pod.spec
    assert (spec.priority, spec.preemptionPolicy, found.findings) == (-5, "Never", ())


def test_without_a_name_the_lowest_global_default_counts() -> None:
    two = cluster(
        priority_class("a", 9, globalDefault=True), priority_class("b", 7, globalDefault=True)
    )
    spec = priority.mutate(pod(), two).pod.spec
    assert (spec.priorityClassName, spec.priority) == ("b", 7)
    assert spec.preemptionPolicy == "PreemptLowerPriority"


def test_without_any_class_the_priority_is_zero() -> None:
    spec = priority.mutate(pod(), cluster()).pod.spec
    assert (spec.priorityClassName, spec.priority) == (None, 0)


def test_a_missing_class_is_refused_by_name() -> None:
    found = priority.mutate(pod(priorityClassName="gold"), cluster(priority_class("batch", 1)))
    text = "no PriorityClass with name gold was found"
    assert found.findings == (
        Finding(
            reason="priority/no-class",
            detail=text,
            evidence=(
                Evidence("PriorityClass", "name", "gold", "batch", "spec.priorityClassName"),
                Evidence("kube-apiserver", "message", f'pods "p" is forbidden: {text}', None),
            ),
            field="/spec/priorityClassName",
        ),
    )


def test_system_classes_exist_in_every_cluster() -> None:
    found = priority.mutate(pod(priorityClassName="system-node-critical"), cluster())
    assert (found.pod.spec.priority, found.findings) == (2_000_001_000, ())


def test_a_priority_that_contradicts_the_class_is_refused() -> None:
    one = pod(priorityClassName="batch", priority=3, preemptionPolicy="Never")
    found = priority.mutate(one, cluster(priority_class("batch", 1)))
    assert [f.reason for f in found.findings] == [
        "priority/mismatch",
        "priority/preemption-policy",
    ]
    assert messages(found.findings) == [
        'pods "p" is forbidden: the integer value of priority (3) must not be provided in pod spec;'
        " priority admission controller computed 1 from the given PriorityClass name",
        'pods "p" is forbidden: the string value of PreemptionPolicy (Never) must not be provided'
        " in pod spec; priority admission controller computed PreemptLowerPriority from the given"
        " PriorityClass name",
    ]


def test_classes_that_were_not_exported_are_unknown_and_not_missing() -> None:
    named = priority.mutate(pod(priorityClassName="gold"), cluster(known=()))
    unnamed = priority.mutate(pod(), cluster(known=()))
    assert [(u.missing, u.level, u.stage) for u in (*named.unknowns, *unnamed.unknowns)] == [
        ("PriorityClass gold: priority classes are not in the snapshot", "warn", "admission"),
        (
            "the default PriorityClass: priority classes are not in the snapshot",
            "audit",
            "placement",
        ),
    ]
    assert (named.findings, unnamed.findings, unnamed.pod.spec.priority) == ((), (), 0)


# -- runtime class -----------------------------------------------------------------------------

KATA = obj(
    "RuntimeClass",
    "kata",
    handler="kata",
    overhead={"podFixed": {"cpu": "250m"}},
    scheduling={
        "nodeSelector": {"runtime": "kata"},
        "tolerations": [{"key": "kata", "operator": "Exists"}],
    },
)


def test_a_runtime_class_adds_overhead_selector_and_tolerations() -> None:
    spec = runtime_class.mutate(
        pod(runtimeClassName="kata", nodeSelector={"pool": "a"}), cluster(KATA)
    ).pod.spec
    assert spec.overhead == {"cpu": "250m"}
    assert spec.nodeSelector == {"pool": "a", "runtime": "kata"}
    assert spec.tolerations == (Toleration(key="kata", operator="Exists"),)


def test_the_same_overhead_in_other_words_is_no_contradiction() -> None:
    same = runtime_class.mutate(
        pod(runtimeClassName="kata", overhead={"cpu": "0.25"}), cluster(KATA)
    )
    assert (same.findings, runtime_class.validate(same.pod, cluster(KATA))) == ((), ())


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        (
            {"runtimeClassName": "gone"},
            "runtime-class/missing",
            'pod rejected: RuntimeClass "gone" not found',
        ),
        (
            {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
            "runtime-class/overhead",
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "kata", "nodeSelector": {"runtime": "runc"}},
            "runtime-class/node-selector",
            "conflict: runtimeClass.scheduling.nodeSelector[runtime] = kata;"
            " pod.spec.nodeSelector[runtime] = runc",
        ),
    ],
)
def test_contradictions_with_a_runtime_class_are_refused(
    spec: dict[str, Any], reason: str, message: str
) -> None:
    found = runtime_class.mutate(pod(**spec), cluster(KATA)).findings
    assert [f.reason for f in found] == [reason]
    assert messages(found) == [f'pods "p" is forbidden: {message}']


def test_overhead_without_a_runtime_class_is_refused() -> None:
    found = runtime_class.validate(pod(overhead={"cpu": "1"}), cluster())
    assert messages(found) == [
        'pods "p" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass'
        " defined Overhead"
    ]


def test_runtime_classes_that_were_not_exported_are_unknown() -> None:
    found = runtime_class.mutate(pod(runtimeClassName="nvidia"), cluster(known=()))
    assert [u.missing for u in found.unknowns] == [
        "RuntimeClass nvidia: runtime classes are not in the snapshot"
    ]
    assert (found.findings, runtime_class.validate(found.pod, cluster(known=()))) == ((), ())


def test_merged_tolerations_keep_the_wider_one() -> None:
    wide = Toleration(key="gpu", operator="Exists")
    narrow = Toleration(key="gpu", operator="Equal", value="a", effect="NoSchedule")
    everything = Toleration(operator="Exists")
    assert runtime_class.merged((narrow,), (wide,)) == (wide,)
    assert runtime_class.merged((wide, narrow), (wide,)) == (wide,)
    assert runtime_class.merged((narrow, wide), (everything,)) == (everything,)
    short = Toleration(key="gpu", operator="Exists", effect="NoExecute", tolerationSeconds=10)
    long = Toleration(key="gpu", operator="Exists", effect="NoExecute", tolerationSeconds=60)
    assert runtime_class.merged((short,), (long,)) == (long,)


# -- service account and namespace -------------------------------------------------------------


def test_the_default_account_is_named_and_taken_to_exist_in_a_new_namespace() -> None:
    found = service_account.mutate(pod(), "team-a", cluster())
    assert (found.pod.spec.serviceAccountName, found.findings) == ("default", ())


def test_the_default_account_is_missed_only_in_a_namespace_that_was_stored() -> None:
    other = obj("ServiceAccount", "bot", "team-a")
    assert service_account.mutate(pod(), "team-a", cluster(other)).findings == ()
    stored = obj("Namespace", "team-a", metadata={"uid": "1"}, status={"phase": "Active"})
    found = service_account.mutate(pod(), "team-a", cluster(stored, other)).findings
    assert [f.detail for f in found] == [
        "service account default does not exist in namespace team-a"
    ]


def test_an_account_that_does_not_exist_is_refused() -> None:
    one = cluster(obj("ServiceAccount", "default", "team-a"), obj("ServiceAccount", "b", "other"))
    found = service_account.mutate(pod(serviceAccountName="b"), "team-a", one)
    assert messages(found.findings) == [
        'pods "p" is forbidden: error looking up service account team-a/b: serviceaccount "b" not'
        " found"
    ]
    assert [r.command for r in found.findings[0].suggest] == [
        "kubectl -n team-a create serviceaccount b"
    ]


def test_accounts_that_were_not_exported_are_unknown_unless_default() -> None:
    assert service_account.mutate(pod(), "team-a", cluster(known=())).unknowns == ()
    found = service_account.mutate(pod(serviceAccountName="b"), "team-a", cluster(known=()))
    assert [u.missing for u in found.unknowns] == [
        "ServiceAccount b in team-a: accounts are not in the snapshot"
    ]


def test_a_missing_and_a_terminating_namespace_take_nothing() -> None:
    ending = obj("Namespace", "old", status={"phase": "Terminating"})
    assert messages(namespace.check(pod(), "gone", cluster())[0]) == ['namespaces "gone" not found']
    assert messages(namespace.check(pod(), "old", cluster(ending))[0]) == [
        'pods "p" is forbidden: unable to create new content in namespace old because it is being'
        " terminated"
    ]
    assert namespace.check(pod(), "team-a", cluster()) == ((), ())
    assert namespace.check(pod(), "default", cluster()) == ((), ())


def test_a_namespace_is_unknown_where_none_was_exported() -> None:
    from kubectl_gpuadmit.cluster import Cluster

    findings, unknowns = namespace.check(pod(), "gone", Cluster.of([]))
    assert (findings, [u.level for u in unknowns]) == ((), ["audit"])


# -- tolerations -------------------------------------------------------------------------------


def test_node_problems_are_tolerated_for_300_seconds_unless_the_pod_says_otherwise() -> None:
    assert tolerations.node_problems(pod()).spec.tolerations == tuple(
        Toleration(
            key=f"node.kubernetes.io/{what}",
            operator="Exists",
            effect="NoExecute",
            tolerationSeconds=300,
        )
        for what in ("not-ready", "unreachable")
    )
    for own in (
        {"operator": "Exists"},
        {"operator": "Exists", "effect": "NoExecute"},
    ):
        one = pod(tolerations=[own])
        assert tolerations.node_problems(one) is one
    scheduling = pod(tolerations=[{"operator": "Exists", "effect": "NoSchedule"}])
    assert len(tolerations.node_problems(scheduling).spec.tolerations or ()) == 3


def test_extended_resources_are_tolerated_once_and_in_order() -> None:
    one = pod(
        container(requests={"nvidia.com/gpu": "1", "cpu": "1"}),
        initContainers=[container("i", requests={"example.com/fpga": "1"})],
        tolerations=[
            {
                "key": "nvidia.com/gpu",
                "operator": "Exists",
                "effect": "NoSchedule",
                "tolerationSeconds": 5,
            }
        ],
    )
    assert tolerations.extended_resources(one).spec.tolerations == (
        Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule"),
        Toleration(key="example.com/fpga", operator="Exists", effect="NoSchedule"),
    )
    plain = pod(container(requests={"cpu": "1"}))
    assert tolerations.extended_resources(plain) is plain
    assert tolerations.extended_resources(gpus(1)).spec.tolerations == (
        Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule"),
    )
