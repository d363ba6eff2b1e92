"""The API server's admission from end to end."""

from __future__ import annotations

from kubectl_gpuadmit.admission import (
    chain,
    limit_range,
    namespace,
    priority,
    quota_refusals,
    runtime_class,
    service_account,
    validation,
)
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import ResourceRequirements, Toleration
from tests.admission.objects import cluster, container, gpus, obj, pod
from tests.admission.objects import limit_range as limits


def test_a_pod_goes_through_all_mutators_in_order() -> None:
    home = cluster(
        limits({"type": "Container", "default": {"memory": "1Gi"}}),
        obj("PriorityClass", "batch", value=7, globalDefault=True),
        obj("RuntimeClass", "nvidia", overhead={"podFixed": {"cpu": "50m"}}),
    )
    one = pod(container(limits={"nvidia.com/gpu": "1"}), runtimeClassName="nvidia")
    found = chain.mutate(one, home, plugins=frozenset({chain.EXTENDED_RESOURCE_TOLERATION}))
    spec = found.pod.spec
    assert (found.findings, found.unknowns) == ((), ())
    assert spec.containers and spec.containers[0].resources == ResourceRequirements(
        limits={"nvidia.com/gpu": "1", "memory": "1Gi"},
        requests={"nvidia.com/gpu": "1", "memory": "1Gi"},
    )
    assert (spec.serviceAccountName, spec.priorityClassName, spec.priority, spec.overhead) == (
        "default",
        "batch",
        7,
        {"cpu": "50m"},
    )
    assert [t.key for t in spec.tolerations or ()] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "nvidia.com/gpu",
    ]
    again = chain.validate(found.pod, home)
    assert (again.pod is found.pod, again.findings, again.unknowns) == (True, (), ())


def test_extended_resources_are_not_tolerated_unless_the_plugin_is_named() -> None:
    tolerations = chain.mutate(gpus(1), cluster()).pod.spec.tolerations
    assert Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule") not in (
        tolerations or ()
    )


def test_every_reason_is_kept_and_not_only_the_first() -> None:
    home = cluster(limits({"type": "Container", "max": {"nvidia.com/gpu": "2"}}))
    one = pod(
        container(limits={"nvidia.com/gpu": "4"}),
        priorityClassName="gold",
        serviceAccountName="ghost",
        restartPolicy="Sometimes",
    )
    first = chain.mutate(one, home)
    second = chain.validate(first.pod, home)
    assert [f.reason for f in (*first.findings, *second.findings)] == [
        "service-account/missing",
        "priority/no-class",
        "invalid/restart-policy",
        "limit-range/max",
    ]


def test_an_empty_cluster_refuses_nothing_and_says_what_it_does_not_know() -> None:
    found = chain.mutate(gpus(1), Cluster.of([]))
    assert (found.findings, chain.validate(found.pod, Cluster.of([])).findings) == ((), ())
    assert [u.rule for u in found.unknowns] == [
        "admission/namespace",
        "admission/limit-range",
        "admission/priority",
    ]


def test_mutating_leaves_the_given_pod_as_it_was() -> None:
    one = gpus(1, labels={"app": "a"})
    before = repr(one)
    chain.mutate(one, cluster(limits({"type": "Container", "default": {"cpu": "1"}})))
    assert repr(one) == before


def test_every_reason_is_catalogued_with_its_meaning_and_what_to_do() -> None:
    modules = (
        limit_range,
        namespace,
        priority,
        quota_refusals,
        runtime_class,
        service_account,
        validation,
    )
    for module in modules:
        for reason, meaning in module.REASONS.items():
            family, what = reason.split("/")
            assert family and what
            assert meaning.endswith(".") and ". " in meaning, reason
