"""What the API server fills in by itself."""

from __future__ import annotations

import pytest

from kubectl_gpuadmit.admission import defaults
from kubectl_gpuadmit.kube.objects import LabelSelectorRequirement, ResourceRequirements
from tests.admission.objects import container, pod


def test_requests_are_taken_from_limits_per_container_and_init_container() -> None:
    one = pod(
        container("a", limits={"nvidia.com/gpu": "4", "cpu": "2"}, requests={"cpu": "1"}),
        container("b"),
        initContainers=[container("i", limits={"memory": "1Gi"})],
    )
    spec = defaults.decode(one).spec
    assert spec.containers is not None and spec.initContainers is not None
    assert [c.resources for c in (*spec.containers, *spec.initContainers)] == [
        ResourceRequirements(
            limits={"nvidia.com/gpu": "4", "cpu": "2"}, requests={"cpu": "1", "nvidia.com/gpu": "4"}
        ),
        None,
        ResourceRequirements(limits={"memory": "1Gi"}, requests={"memory": "1Gi"}),
    ]


def test_the_rest_of_the_pod_gets_the_usual_values() -> None:
    spec = defaults.decode(pod()).spec
    assert (spec.restartPolicy, spec.schedulerName, spec.terminationGracePeriodSeconds) == (
        "Always",
        "default-scheduler",
        30,
    )
    assert (
        defaults.decode(pod(terminationGracePeriodSeconds=-9)).spec
        == defaults.decode(pod(terminationGracePeriodSeconds=1)).spec
    )


def test_a_pod_that_lacks_nothing_comes_back_as_the_same_object() -> None:
    done = defaults.decode(pod(container(limits={"cpu": "1"}, ports=[{"containerPort": 80}])))
    assert defaults.decode(done) is done
    assert defaults.prepare(done) is done


@pytest.mark.parametrize(
    ("host_network", "ports"),
    [(False, [("TCP", None), ("UDP", 81)]), (True, [("TCP", 80), ("UDP", 81)])],
)
def test_host_networking_turns_container_ports_into_host_ports(
    host_network: bool, ports: list[tuple[str, int | None]]
) -> None:
    written = [{"containerPort": 80}, {"containerPort": 90, "hostPort": 81, "protocol": "UDP"}]
    one = defaults.decode(pod(container(ports=written), hostNetwork=host_network))
    assert one.spec.containers is not None
    assert [(p.protocol, p.hostPort) for p in one.spec.containers[0].ports or ()] == ports


def test_pod_level_requests_come_from_containers_and_limits_from_both() -> None:
    one = pod(
        container("a", limits={"cpu": "2"}, requests={"cpu": "1", "memory": "1Gi"}),
        container("b", limits={"cpu": "1"}, requests={"cpu": "1"}),
        resources={"requests": {"cpu": "4"}, "limits": {"memory": "8Gi"}},
    )
    assert defaults.prepare(one).spec.resources == ResourceRequirements(
        requests={"cpu": "4", "memory": "1Gi"}, limits={"memory": "8Gi", "cpu": "4"}
    )


def test_pod_level_limits_stay_open_where_one_container_has_none() -> None:
    one = pod(
        container("a", limits={"cpu": "2"}),
        container("b", requests={"cpu": "1"}),
        resources={"requests": {"cpu": "4"}},
    )
    assert defaults.prepare(one).spec.resources == ResourceRequirements(requests={"cpu": "4"})


def test_huge_pages_of_containers_become_pod_level_limits_and_requests() -> None:
    one = pod(
        container("a", limits={"hugepages-2Mi": "4Mi", "cpu": "1"}),
        container("b", limits={"hugepages-2Mi": "2Mi"}),
        resources={"limits": {"cpu": "2"}},
    )
    own = defaults.prepare(defaults.decode(one)).spec.resources
    assert own == ResourceRequirements(
        limits={"cpu": "2", "hugepages-2Mi": "6Mi"},
        requests={"cpu": "1", "hugepages-2Mi": "6Mi"},
    )


def test_before_1_37_pod_level_requests_are_filled_in_when_the_pod_is_read() -> None:
    one = pod(container(requests={"cpu": "1"}), resources={"limits": {"cpu": "2", "memory": "1Gi"}})
    wanted = ResourceRequirements(
        limits={"cpu": "2", "memory": "1Gi"}, requests={"cpu": "1", "memory": "1Gi"}
    )
    assert defaults.decode(one, kubernetes="v1.36.2").spec.resources == wanted
    assert defaults.decode(one).spec.resources == one.spec.resources
    assert defaults.prepare(defaults.decode(one)).spec.resources == wanted


def test_before_1_35_only_a_sidecar_keeps_a_restart_policy_of_its_own() -> None:
    one = pod(
        container(restartPolicy="Never"),
        initContainers=[
            container(name="side", restartPolicy="Always"),
            container(name="once", restartPolicy="OnFailure"),
        ],
    )

    def policies(kubernetes: str) -> list[str | None]:
        spec = defaults.prepare(defaults.decode(one), kubernetes=kubernetes).spec
        return [c.restartPolicy for c in (*(spec.initContainers or ()), *(spec.containers or ()))]

    assert policies("1.34") == ["Always", None, None]
    assert policies("1.35") == ["Always", "OnFailure", "Never"]


def test_match_label_keys_become_selector_terms_of_the_pods_own_labels() -> None:
    one = pod(
        labels={"app": "a", "version": "7"},
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "a"}},
                "matchLabelKeys": ["version", "absent"],
            }
        ],
        affinity={
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "podAffinityTerm": {
                            "topologyKey": "rack",
                            "labelSelector": {},
                            "mismatchLabelKeys": ["app"],
                        },
                    }
                ]
            }
        },
    )
    spec = defaults.prepare(one).spec
    assert spec.topologySpreadConstraints and spec.topologySpreadConstraints[0].labelSelector
    assert spec.topologySpreadConstraints[0].labelSelector.matchExpressions == (
        LabelSelectorRequirement("version", "In", ("7",)),
    )
    assert spec.affinity and spec.affinity.podAntiAffinity
    choice = spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution
    assert choice and choice[0].podAffinityTerm.labelSelector
    assert choice[0].podAffinityTerm.labelSelector.matchExpressions == (
        LabelSelectorRequirement("app", "NotIn", ("a",)),
    )


@pytest.mark.parametrize(
    ("text", "version"), [("1.37", (1, 37)), ("v1.36.2", (1, 36)), ("1.33+", (1, 33))]
)
def test_versions_are_read_with_and_without_patch(text: str, version: tuple[int, int]) -> None:
    assert defaults.version(text) == version
