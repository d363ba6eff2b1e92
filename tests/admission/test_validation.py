"""Object validation in the API server's words."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_gpuadmit.admission import chain, defaults, validation
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.verdict import Evidence, Finding
from tests.admission.objects import cluster, container, pod


def texts(one: Pod) -> list[str]:
    stored = defaults.prepare(defaults.decode(one))
    return [error.text for error in validation.errors(stored)]


def test_a_plain_gpu_pod_is_valid() -> None:
    assert texts(pod(container(limits={"nvidia.com/gpu": "8", "memory": "64Gi"}))) == []


def test_one_error_becomes_a_finding_with_the_field_and_the_whole_message() -> None:
    one = pod(container(requests={"nvidia.com/gpu": "1"}))
    where = "spec.containers[0].resources.limits"
    text = f"{where}: Required value: Limit must be set for non overcommitable resources"
    assert validation.findings(defaults.decode(one)) == (
        Finding(
            reason="invalid/requests-limits",
            detail=f'Pod "p" is invalid: {text}',
            evidence=(
                Evidence(
                    "Pod p",
                    where,
                    None,
                    None,
                    "Limit must be set for non overcommitable resources",
                ),
                Evidence("kube-apiserver", "message", f'Pod "p" is invalid: {text}', None),
            ),
            field="/spec/containers/0/resources/limits",
        ),
    )


def test_several_errors_share_one_message_and_keep_their_own_fields() -> None:
    one = pod(container(limits={"gpu": "1"}, requests={"gpu": "1"}))
    found = validation.findings(one)
    assert {f.reason for f in found} == {"invalid/resource-name"}
    assert [f.field for f in found] == [
        "/spec/containers/0/resources/limits/gpu",
        "/spec/containers/0/resources/limits/gpu",
        "/spec/containers/0/resources/requests/gpu",
        "/spec/containers/0/resources/requests/gpu",
    ]
    standard = "must be a standard resource type or fully qualified"
    containers = "must be a standard resource for containers"
    limits, requests = (f"spec.containers[0].resources.{s}[gpu]" for s in ("limits", "requests"))
    assert {f.evidence[-1].observed for f in found} == {
        f'Pod "p" is invalid: [{limits}: Invalid value: "gpu": {standard},'
        f' {limits}: Invalid value: "gpu": {containers},'
        f' {requests}: Invalid value: "gpu": {standard},'
        f' {requests}: Invalid value: "gpu": {containers}]'
    }


RESOURCES = [
    (
        {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "1"}},
        ['.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'],
    ),
    (
        {"limits": {"nvidia.com/gpu": "500m"}},
        [
            '.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
            '.requests[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
        ],
    ),
    ({"limits": {"nvidia.com/gpu": "1k"}}, []),
    (
        {"limits": {"cpu": "1"}, "requests": {"cpu": "1001m"}},
        ['.requests: Invalid value: "1001m": must be less than or equal to cpu limit of 1'],
    ),
    (
        {"requests": {"cpu": "-1"}},
        ['.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
    ),
    (
        {"limits": {"hugepages-2Mi": "4Mi"}},
        [": Forbidden: HugePages require cpu or memory"],
    ),
    (
        {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}},
        [
            '.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of'
            " hugepages-2Mi",
            '.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple'
            " of hugepages-2Mi",
        ],
    ),
    (
        {"limits": {"requests.nvidia.com/gpu": "1"}},
        [
            '.limits[requests.nvidia.com/gpu]: Invalid value: "requests.nvidia.com/gpu": doesn\'t'
            " follow extended resource name standard",
            '.requests[requests.nvidia.com/gpu]: Invalid value: "requests.nvidia.com/gpu":'
            " doesn't follow extended resource name standard",
        ],
    ),
]


@pytest.mark.parametrize(("resources", "tails"), RESOURCES)
def test_resources_are_refused_as_the_api_does(resources: dict[str, Any], tails: list[str]) -> None:
    base = "spec.containers[0].resources"
    assert texts(pod(container(**resources))) == [base + tail for tail in tails]


@pytest.mark.parametrize("amount", ["four", "1GB", "", "0x10"])
def test_an_unreadable_quantity_stops_everything_else(amount: str) -> None:
    one = pod(container(limits={"nvidia.com/gpu": amount, "memory": "-1"}))
    admitted = chain.mutate(one, cluster())
    assert admitted == chain.Admitted(one)
    found = chain.validate(admitted.pod, cluster()).findings
    assert found == validation.unreadable(one)
    assert [(f.reason, f.field) for f in found] == [
        ("invalid/quantity", "/spec/containers/0/resources/limits/nvidia.com~1gpu")
    ]


def test_gpus_do_not_belong_into_pod_level_resources() -> None:
    one = pod(
        container("a", requests={"cpu": "2"}, limits={"cpu": "9"}),
        resources={"requests": {"cpu": "1"}, "limits": {"cpu": "4", "nvidia.com/gpu": "1"}},
    )
    assert texts(one) == [
        'spec.resources.limits[nvidia.com/gpu]: Unsupported value: "nvidia.com/gpu": supported'
        ' values: "cpu", "hugepages-", "memory"',
        'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to'
        " aggregate container requests of 2",
        'spec.resources.containers[0][cpu].limits: Invalid value: "9": must be less than or equal'
        " to pod limits of 4",
    ]


CLAIMS = [
    (
        [{"name": "gpu"}],
        [
            'spec.resourceClaims[0]: Invalid value: {"Name":"gpu","ResourceClaimName":null,'
            '"ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`,'
            " `resourceClaimTemplateName`"
        ],
    ),
    (
        [{"name": "gpu", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}],
        [
            'spec.resourceClaims[0]: Invalid value: {"Name":"gpu","ResourceClaimName":"a",'
            '"ResourceClaimTemplateName":"b"}: at most one of `resourceClaimName` or'
            " `resourceClaimTemplateName` may be specified"
        ],
    ),
    (
        [{"name": "gpu", "resourceClaimName": "a"}, {"name": "gpu", "resourceClaimName": "b"}],
        ['spec.resourceClaims[1].name: Duplicate value: "gpu"'],
    ),
]


@pytest.mark.parametrize(("claims", "expected"), CLAIMS)
def test_malformed_claims_are_refused(claims: list[Any], expected: list[str]) -> None:
    assert texts(pod(resourceClaims=claims)) == expected


def test_containers_may_use_only_claims_of_the_pod_and_each_once() -> None:
    one = pod(
        container(claims=[{"name": "gpu", "request": "a"}, {"name": "gpu"}, {"name": "x"}]),
        resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}],
    )
    base = "spec.containers[0].resources.claims"
    assert texts(one) == [
        f'{base}[1]: Duplicate value: "gpu"',
        f'{base}[2]: Not found: "x": must be one of the names in pod.spec.resourceClaims: gpu',
    ]
    assert texts(pod(container(claims=[{"name": "x"}]))) == [
        f'{base}[0]: Not found: "x": must be one of the names in pod.spec.resourceClaims which is'
        " empty"
    ]


def test_names_images_and_duplicates() -> None:
    one = pod(
        container("Main", image=""),
        container("b", image=" img"),
        container("b"),
        initContainers=[container("b")],
        name="My_Pod",
    )
    assert [text.split(" (e.g.")[0] for text in texts(one)] == [
        'metadata.name: Invalid value: "My_Pod": a lowercase RFC 1123 subdomain must consist of'
        " lower case alphanumeric characters, '-' or '.', and must start and end with an"
        " alphanumeric character",
        'spec.containers[0].name: Invalid value: "Main": a lowercase RFC 1123 label must consist'
        " of lower case alphanumeric characters or '-', and must start and end with an"
        " alphanumeric character",
        "spec.containers[0].image: Required value",
        'spec.containers[2].name: Duplicate value: "b"',
        'spec.initContainers[0].name: Duplicate value: "b"',
        'spec.containers[1].image: Invalid value: " img": must not have leading or trailing'
        " whitespace",
    ]


def test_a_pod_without_containers_is_refused() -> None:
    one = Pod(metadata=pod().metadata)
    assert [e.text for e in validation.errors(one)] == ["spec.containers: Required value"]


@pytest.mark.parametrize(
    ("owner", "policy", "detail"),
    [
        (
            "Deployment",
            "Never",
            "Deployment is invalid: spec.template.spec.restartPolicy: Unsupported value:"
            ' "Never": supported values: "Always"',
        ),
        (
            "Job",
            "Always",
            "Job is invalid: spec.template.spec.restartPolicy: Required value: valid values:"
            ' "OnFailure", "Never"',
        ),
        ("Job", "Never", None),
        ("StatefulSet", "Always", None),
        ("Pod", "Never", None),
    ],
)
def test_restart_policies_follow_the_kind(owner: str, policy: str, detail: str | None) -> None:
    found = validation.findings(defaults.decode(pod(restartPolicy=policy)), owner=owner)
    assert [f.detail for f in found] == ([detail] if detail else [])


def test_a_restart_policy_that_does_not_exist_is_refused_for_every_kind() -> None:
    assert texts(pod(container(restartPolicy="Sometimes"), restartPolicy="Sometimes")) == [
        'spec.containers[0].restartPolicy: Unsupported value: "Sometimes": supported values:'
        ' "Always", "Never", "OnFailure"',
        'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always",'
        ' "OnFailure", "Never"',
    ]


TOLERATIONS = [
    ({"operator": "Exists"}, []),
    (
        {"value": "x"},
        [
            'operator: Invalid value: "": operator must be Exists when `key` is empty, which means'
            ' "match all values and all keys"'
        ],
    ),
    (
        {"key": "gpu", "operator": "Exists", "value": "x"},
        ["operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'"],
    ),
    (
        {"key": "gpu", "operator": "Gt", "value": "4"},
        [
            'operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"',
        ],
    ),
    (
        {"key": "gpu", "operator": "Has"},
        ['operator: Unsupported value: "Has": supported values: "Equal", "Exists"'],
    ),
    (
        {"key": "gpu", "effect": "NoRun", "tolerationSeconds": 1},
        [
            "effect: Invalid value: \"NoRun\": effect must be 'NoExecute' when `tolerationSeconds`"
            " is set",
            'effect: Unsupported value: "NoRun": supported values: "NoSchedule",'
            ' "PreferNoSchedule", "NoExecute"',
        ],
    ),
]


@pytest.mark.parametrize(("toleration", "expected"), TOLERATIONS)
def test_tolerations(toleration: dict[str, Any], expected: list[str]) -> None:
    assert texts(pod(tolerations=[toleration])) == [f"spec.tolerations[0].{e}" for e in expected]


def test_affinity_terms() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    one = pod(
        affinity={
            "nodeAffinity": {
                required: {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "gpu", "operator": "In"},
                                {"key": "gpu", "operator": "Has"},
                                {"key": "gpu", "operator": "Exists", "values": ["a"]},
                                {"key": "gpu", "operator": "Gt", "values": ["1", "2"]},
                            ],
                            "matchFields": [{"key": "spec.x", "operator": "In", "values": ["a"]}],
                        }
                    ]
                },
                preferred: [{"weight": 0, "preference": {}}],
            },
            "podAffinity": {required: [{"topologyKey": ""}]},
            "podAntiAffinity": {preferred: [{"weight": 101, "podAffinityTerm": {}}]},
        }
    )
    node = f"spec.affinity.nodeAffinity.{required}.nodeSelectorTerms[0]"
    assert [t for t in texts(one) if "name part" not in t] == [
        f"{node}.matchExpressions[0].values: Required value: must be specified when `operator` is"
        " 'In' or 'NotIn'",
        f'{node}.matchExpressions[1].operator: Invalid value: "Has": not a valid selector operator',
        f"{node}.matchExpressions[2].values: Forbidden: may not be specified when `operator` is"
        " 'Exists' or 'DoesNotExist'",
        f"{node}.matchExpressions[3].values: Required value: must be specified single value when"
        " `operator` is 'Lt' or 'Gt'",
        f'{node}.matchFields[0].key: Invalid value: "spec.x": not a valid field selector key',
        f"spec.affinity.nodeAffinity.{preferred}[0].weight: Invalid value: 0: must be in the range"
        " 1-100",
        f"spec.affinity.podAffinity.{required}[0].topologyKey: Required value: can not be empty",
        f"spec.affinity.podAntiAffinity.{preferred}[0].weight: Invalid value: 101: must be in the"
        " range 1-100",
        f"spec.affinity.podAntiAffinity.{preferred}[0].podAffinityTerm.topologyKey: Required value:"
        " can not be empty",
    ]


def test_topology_spread_constraints() -> None:
    same = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}
    one = pod(
        labels={"app": "a"},
        topologySpreadConstraints=[
            {**same, "maxSkew": 0, "matchLabelKeys": ["app"]},
            {**same, "minDomains": 0, "nodeTaintsPolicy": "Maybe"},
            {
                "topologyKey": "",
                "whenUnsatisfiable": "Perhaps",
                "maxSkew": 1,
                "minDomains": 2,
                "labelSelector": {"matchLabels": {"app": "a"}},
                "matchLabelKeys": ["app"],
            },
        ],
    )
    base = "spec.topologySpreadConstraints"
    assert texts(one) == [
        f"{base}[0].maxSkew: Invalid value: 0: must be greater than zero",
        f'{base}[0].{{topologyKey, whenUnsatisfiable}}: Duplicate value: "{{zone, DoNotSchedule}}"',
        f"{base}[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
        f"{base}[1].minDomains: Invalid value: 0: must be greater than zero",
        f'{base}[1].nodeTaintsPolicy: Unsupported value: "Maybe": supported values: "Honor",'
        ' "Ignore"',
        f"{base}[2].topologyKey: Required value: can not be empty",
        f'{base}[2].whenUnsatisfiable: Unsupported value: "Perhaps": supported values:'
        ' "DoNotSchedule", "ScheduleAnyway"',
        f"{base}[2].minDomains: Invalid value: 2: can only use minDomains if"
        " whenUnsatisfiable=DoNotSchedule, not Perhaps",
        f'{base}[2][0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector',
    ]


def test_ports_and_volumes() -> None:
    one = pod(
        container(
            "a",
            ports=[
                {"containerPort": 0, "hostPort": 80},
                {"containerPort": 70000, "protocol": "tcp", "name": "a--b"},
            ],
            volumeMounts=[{"name": "v", "mountPath": "/x"}, {"name": "w", "mountPath": "/x"}],
        ),
        container("b", ports=[{"containerPort": 8, "hostPort": 80}]),
        volumes=[{"name": "v"}, {"name": "v"}, {"name": ""}],
    )
    base = "spec.containers[0]"
    assert texts(one) == [
        'spec.volumes[1].name: Duplicate value: "v"',
        "spec.volumes[2].name: Required value",
        f"{base}.ports[0].containerPort: Required value",
        f'{base}.ports[1].name: Invalid value: "a--b": must not contain consecutive hyphens',
        f"{base}.ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535,"
        " inclusive",
        f'{base}.ports[1].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP",'
        ' "UDP"',
        f'{base}.volumeMounts[1].name: Not found: "w"',
        f'{base}.volumeMounts[1].mountPath: Invalid value: "/x": must be unique',
        'spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"',
    ]


def test_host_networking_wants_equal_ports() -> None:
    one = pod(container(ports=[{"containerPort": 8, "hostPort": 9}]), hostNetwork=True)
    assert texts(one) == [
        "spec.containers[0].ports[0].hostPort: Invalid value: 9: must match `containerPort` when"
        " `hostNetwork` is true"
    ]


def test_the_remaining_fields_of_the_spec() -> None:
    one = pod(
        nodeSelector={"pool": "bad value!"},
        schedulingGates=[{"name": "a"}, {"name": "a"}],
        nodeName="n1",
        activeDeadlineSeconds=0,
        preemptionPolicy="Sometimes",
    )
    assert [text.split(" (e.g.")[0] for text in texts(one)] == [
        'spec.nodeSelector: Invalid value: "bad value!": a valid label must be an empty string or'
        " consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
        " alphanumeric character",
        'spec.schedulingGates[1]: Duplicate value: "a"',
        "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
        'spec.preemptionPolicy: Unsupported value: "Sometimes": supported values:'
        ' "PreemptLowerPriority", "Never"',
        "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
    ]


def test_an_app_armor_annotation_must_name_a_container_and_a_profile() -> None:
    prefix = "container.apparmor.security.beta.kubernetes.io/"
    given = {f"{prefix}gone": "runtime/default", f"{prefix}a": "mine"}
    plain = pod(container(name="a"))
    one = replace(plain, metadata=replace(plain.metadata, annotations=given))
    assert texts(one) == [
        f'metadata.annotations[{prefix}a]: Invalid value: "mine": invalid AppArmor profile name: '
        '"mine"',
        f'metadata.annotations[{prefix}gone]: Invalid value: "gone": container not found',
    ]
