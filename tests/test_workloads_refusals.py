"""What cannot be read is refused with the place; strangers are reported, never taken for empty."""

from __future__ import annotations

from typing import Any

import pytest
from given import Given, devices, given
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.workloads import DeclaredKind, Workload, expand, kinds
from kubectl_gpuadmit.kube.workloads.paths import matches, parse_path
from kubectl_gpuadmit.verdict import Skipped

JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 2
  template:
    spec:
      containers:
        - name: c
          env: [{name: A, value: b}]
          resources:
            limits: {nvidia.com/gpu: 1}
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "parallelism: 2",
            'parallelism: "2"',
            "given.yaml:5:16 spec.parallelism: expected a whole number, found the text '2' "
            "[wrong-type]",
        ),
        (
            "parallelism: 2",
            "parallelism: -1",
            "given.yaml:5:16 spec.parallelism: -1 is not between 0 and 2147483647 [bad-number]",
        ),
        (
            "value: b",
            "value: 1",
            "given.yaml:10:34 spec.template.spec.containers[0].env[0].value: expected text, found "
            "the number 1 [wrong-type]",
        ),
        (
            "nvidia.com/gpu: 1",
            "nvidia.com/gpu: two",
            "given.yaml:12:38 spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]: "
            "'two' is not a quantity [bad-quantity]",
        ),
        (
            "nvidia.com/gpu: 1",
            "nvidia.com/gpu: [1]",
            "given.yaml:12:38 spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]: "
            "expected a quantity, found a list [wrong-type]",
        ),
        (
            "  template:",
            "  templates:",
            "given.yaml:5:3 spec.template: there is no pod template [missing-field]",
        ),
        (
            "metadata: {name: train}",
            "metadata: {name: train, labels: {a: 1}}",
            "given.yaml:3:37 metadata.labels.a: expected text, found the number 1 [wrong-type]",
        ),
        ("kind: Job", "kind: 7", "given.yaml:2:7 kind: kind must be text [missing-field]"),
        ("kind: Job", "kinds: Job", "given.yaml:1:1 kind: kind is missing [missing-field]"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_where_it_stands(
    old: str, new: str, said: str
) -> None:
    with pytest.raises(BadManifest) as caught:
        expand(given(JOB.replace(old, new, 1)))
    assert str(caught.value) == said


def test_a_number_in_quotes_gets_the_hint_to_remove_them() -> None:
    with pytest.raises(BadManifest) as caught:
        expand(given(JOB.replace("parallelism: 2", 'parallelism: "2"')))
    assert caught.value.hint == "remove the quotes"


STRANGER = {
    "apiVersion": "ml.example.com/v1",
    "kind": "Training",
    "metadata": {"name": "t"},
    "spec": {
        "copies": 2,
        "parts": {
            "a/b": {
                "count": 3,
                "template": {
                    "spec": {
                        "containers": [
                            {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 4}}},
                            {"name": "d", "resources": {"limits": {"nvidia.com/gpu": 1}}},
                        ]
                    }
                },
            }
        },
    },
}


def test_an_unknown_kind_says_what_it_seems_to_ask_and_how_to_declare_it() -> None:
    made = expand(Given(STRANGER))
    assert isinstance(made, Skipped)
    assert (made.treated, made.detail) == (
        "unknown-kind",
        "unknown kind, not judged; a pod template at /spec/parts/a~1b/template asks 5 "
        "nvidia.com/gpu; declare it in the policy: kinds: [{apiVersion: ml.example.com/v1, kind: "
        "Training, podTemplate: .spec.parts['a/b'].template}]",
    )


def test_a_declared_kind_is_expanded_by_its_paths() -> None:
    declared = DeclaredKind(
        kind="Training",
        group="ml.example.com",
        podTemplate=".spec.parts[*].template",
        replicas=".spec.parts[*].count",
        multiply=(".spec.copies",),
        gang=True,
    )
    made = expand(Given(STRANGER), declared=[declared])
    assert isinstance(made, Workload)
    assert [(g.role, g.count, g.pointer) for g in made.groups] == [
        ("a/b", 6, "/spec/parts/a~1b/template")
    ]
    assert (devices(made), made.gang, declared.problem()) == ({"nvidia.com/gpu": 30}, True, "")


def test_a_declaration_whose_path_leads_nowhere_is_an_error_and_no_zero() -> None:
    declared = DeclaredKind(kind="Training", podTemplate=".spec.template")
    with pytest.raises(BadManifest) as caught:
        expand(Given(STRANGER), declared=[declared])
    assert caught.value.message == (
        "no pod template at .spec.template, where the policy says Training keeps it"
    )


def test_a_declaration_says_what_is_wrong_with_its_path() -> None:
    wrong = DeclaredKind(kind="X", podTemplate=".spec.]x")
    assert wrong.problem() == "path '.spec.]x' is not understood from '.]x' on" or (
        wrong.problem() == "path '.spec.]x' is not understood from ']x' on"
    )


def test_paths_of_all_three_spellings_mean_the_same() -> None:
    data = {"spec": {"a.b": [{"t": 1}, {"t": 2}]}}
    found = [
        [pointer for pointer, _ in matches(data, parse_path(path))]
        for path in ("$.spec['a.b'][*].t", '.spec["a.b"].*.t', "/spec/a.b/1/t")
    ]
    assert found == [
        ["/spec/a.b/0/t", "/spec/a.b/1/t"],
        ["/spec/a.b/0/t", "/spec/a.b/1/t"],
        ["/spec/a.b/1/t"],
    ]


def test_objects_that_describe_other_pods_make_none() -> None:
    for api_version, kind in (
        ("scheduling.k8s.io/v1alpha3", "PodGroup"),
        ("scheduling.k8s.io/v1alpha3", "Workload"),
        ("scheduling.x-k8s.io/v1alpha1", "ElasticQuota"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("v1", "Service"),
    ):
        made = expand(Given({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}))
        assert isinstance(made, Skipped)
        assert (made.treated, made.detail) == ("not-a-workload", "makes no pods")


# -- anything at all -------------------------------------------------------------------------------

NAMES = (
    "Launcher",
    "Worker",
    "annotations",
    "completions",
    "components",
    "container",
    "containers",
    "count",
    "dag",
    "elasticPolicy",
    "enabled",
    "entrypoint",
    "env",
    "extraPodSpec",
    "gpu",
    "headGroupSpec",
    "hpa",
    "image",
    "inference",
    "initContainers",
    "jobTemplate",
    "labels",
    "leaderTemplate",
    "leaderWorkerTemplate",
    "limits",
    "maxReplicas",
    "metadata",
    "minReplicas",
    "model",
    "mpiReplicaSpecs",
    "multiNode",
    "multinode",
    "name",
    "nodeSelector",
    "nvidia.com/gpu",
    "parallelism",
    "podTemplate",
    "predictor",
    "prefill",
    "pytorchReplicaSpecs",
    "rayClusterConfig",
    "rayClusterSpec",
    "replicas",
    "replicatedJobs",
    "requests",
    "resource",
    "resources",
    "roles",
    "runPolicy",
    "runtimeRef",
    "scale",
    "scaling",
    "services",
    "size",
    "spec",
    "steps",
    "suspend",
    "tasks",
    "template",
    "templates",
    "tolerations",
    "trainer",
    "volumeClaimTemplates",
    "volumes",
    "withItems",
    "worker",
    "workerGroupSpecs",
    "workerSpec",
    "workerTemplate",
)
FIELDS = st.sampled_from(NAMES)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(["", "1", "8", "$N", "${N:-1}", "{{ .x }}", "<name>", "main", "500m", "\x00"])
    | st.text(max_size=6)
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=5),
    max_leaves=25,
)
KINDS = st.sampled_from(sorted((f"{g}/v1" if g else "v1", k) for g, k in kinds()))


@settings(max_examples=600, deadline=None)
@examples(
    kind=KINDS, metadata=ANYTHING, spec=ANYTHING, more=st.dictionaries(FIELDS, ANYTHING, max_size=2)
)
def test_any_content_of_any_kind_is_a_workload_or_one_clear_refusal(
    kind: tuple[str, str], metadata: Any, spec: Any, more: dict[str, Any]
) -> None:
    data = {**more, "apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": spec}
    try:
        made = expand(Given(data))
    except BadManifest as refused:
        assert refused.message
        return
    assert isinstance(made, Workload | Skipped)
    if isinstance(made, Workload):
        devices(made)
        for group in made.groups:
            group.name(0)
            group.in_manifest("/spec/containers/0/resources")


@settings(max_examples=300, deadline=None)
@examples(
    data=st.dictionaries(st.text(max_size=5), ANYTHING, max_size=4),
    api=st.text(max_size=9),
    kind=st.text(max_size=9),
)
def test_any_object_of_any_unknown_kind_is_reported(
    data: dict[str, Any], api: str, kind: str
) -> None:
    try:
        made = expand(Given({**data, "apiVersion": api, "kind": kind}))
    except BadManifest as refused:
        assert refused.message
        return
    assert isinstance(made, Workload | Skipped)
