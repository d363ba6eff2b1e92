"""Data -> structs: which struct, what Kubernetes tolerates, and where a wrong type stands."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.decode import convert, decode_bulk, decode_object
from kubectl_gpuadmit.kube.kinds import GROUPS, KNOWN_KINDS
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.kube.objects import (
    ConfigMap,
    Generic,
    GpuTopology,
    KubeObject,
    Node,
    Pod,
    PodDisruptionBudget,
    PodSpec,
    ResourceQuota,
)

POD = """\
# a pod
apiVersion: v1
kind: Pod
metadata:
  name: a
  labels: {app: a}
spec:
  nodeSelector:
    zone: a
  containers:
  - name: c
    resources:
      limits:
        nvidia.com/gpu: 1
    ports:
    - containerPort: 8000
"""


def only(text: str) -> Document:
    (document,) = read_documents(text.encode(), "pod.yaml")
    assert isinstance(document, Document), document
    return document


def read(text: str) -> KubeObject:
    return decode_object(only(text))


def refused(text: str) -> tuple[str, str]:
    with pytest.raises(BadManifest) as caught:
        read(text)
    return str(caught.value), caught.value.hint


def test_a_pod_is_decoded_into_its_struct() -> None:
    pod = read(POD)
    assert isinstance(pod, Pod)
    assert (pod.kind, pod.name, pod.namespace, pod.labels) == ("Pod", "a", "", {"app": "a"})
    (container,) = pod.spec.containers or ()
    assert container.resources is not None
    assert container.resources.limits == {"nvidia.com/gpu": 1}


@pytest.mark.parametrize(
    ("old", "new", "told", "hint"),
    [
        (
            "zone: a",
            "zone: true",
            "pod.yaml:9:5 spec.nodeSelector[zone]: expected text, found true (true or false)",
            'quote it: "true"',
        ),
        (
            "{app: a}",
            "{app: 1}",
            "pod.yaml:6:12 metadata.labels[app]: expected text, found the number 1",
            'quote it: "1"',
        ),
        (
            "nvidia.com/gpu: 1",
            "nvidia.com/gpu: [1]",
            "pod.yaml:14:9 spec.containers[0].resources.limits[nvidia.com/gpu]: "
            "expected a quantity, found a list of 1",
            "",
        ),
        (
            "containerPort: 8000",
            'containerPort: "8000"',
            "pod.yaml:16:7 spec.containers[0].ports[0].containerPort: "
            "expected a whole number, found the text '8000'",
            "take off the quotes: 8000",
        ),
        (
            "containerPort: 8000",
            "containerPort: ${PORT:-80}",
            "pod.yaml:16:7 spec.containers[0].ports[0].containerPort: "
            "expected a whole number, found the text '${PORT:-80}'",
            "render the template first (envsubst, helm template, kustomize build)",
        ),
        (
            "containerPort: 8000",
            "containerPort: 80.5",
            "pod.yaml:16:7 spec.containers[0].ports[0].containerPort: "
            "expected a whole number, found the number 80.5",
            "",
        ),
        (
            "  - name: c\n    resources",
            "    name: c\n    resources",
            "pod.yaml:10:3 spec.containers: expected a list, found a mapping with the key 'name'",
            "begin each element with '- '",
        ),
        (
            "metadata:\n  name: a\n  labels: {app: a}",
            "metadata: a",
            "pod.yaml:4:1 metadata: expected a mapping, found the text 'a'",
            "",
        ),
    ],
)
def test_a_wrong_type_is_one_error_with_the_place_of_the_field(
    old: str, new: str, told: str, hint: str
) -> None:
    text = POD.replace(old, new)
    if new.startswith("    name: c"):
        text = text.split("    ports")[0]
    assert refused(text) == (f"{told} [wrong-type]", hint)


def test_the_pointer_of_a_part_is_put_before_the_field() -> None:
    document = only(POD.replace("zone: a", "zone: 5"))
    with pytest.raises(BadManifest) as caught:
        convert(document.data["spec"], PodSpec, document=document, pointer="/spec")
    assert caught.value.where == "pod.yaml:9:5 spec.nodeSelector[zone]"
    with pytest.raises(BadManifest) as caught:
        convert({"nodeSelector": {"zone": 5}}, PodSpec)
    assert caught.value.where == "nodeSelector[zone]"


def test_null_leaves_what_the_api_server_leaves() -> None:
    text = POD.replace("zone: a", "zone:").replace("{app: a}", "").replace("[0]", "")
    text = text.replace("nvidia.com/gpu: 1", "nvidia.com/gpu:").replace("- name: c", "- name:")
    pod = read(text + "    args: [~, a]\n  tolerations: [~]\n  volumes:\nstatus:\n")
    assert isinstance(pod, Pod)
    (container,) = pod.spec.containers or ()
    assert (container.name, pod.labels, pod.spec.volumes) == ("", {}, None)
    assert pod.spec.nodeSelector == {"zone": ""}
    assert container.resources is not None
    assert container.resources.limits == {"nvidia.com/gpu": 0}


def test_a_whole_number_may_be_written_with_a_fraction_of_zero() -> None:
    pod = read(POD.replace("8000", "8e3"))
    assert isinstance(pod, Pod)
    (container,) = pod.spec.containers or ()
    assert container.ports is not None
    assert container.ports[0].containerPort == 8000


# -- which struct ----------


def test_every_known_kind_has_a_group() -> None:
    assert set(GROUPS) == set(KNOWN_KINDS)


@pytest.mark.parametrize(
    ("version", "kind", "struct", "name"),
    [
        ("v1", "Node", Node, "Node"),
        ("longhorn.io/v1beta2", "Node", Generic, "Node.longhorn.io"),
        ("events.k8s.io/v1", "Event", Generic, "Event.events.k8s.io"),
        ("policy/v1beta1", "PodDisruptionBudget", PodDisruptionBudget, "PodDisruptionBudget"),
        ("v1", "PodDisruptionBudget", Generic, "PodDisruptionBudget.core"),
        ("batch/v1", "Job", Generic, "Job"),
        ("batch.volcano.sh/v1alpha1", "Job", Generic, "Job"),
        ("serving.knative.dev/v1", "Service", Generic, "Service"),
        ("v1", "ConfigMap", ConfigMap, "ConfigMap"),
        ("gpu-admit.io/v1alpha1", "GpuTopology", GpuTopology, "GpuTopology"),
        ("gpu-admit.io/v2", "GpuTopology", Generic, "GpuTopology"),
        ("example.org/v1alpha1", "GpuTopology", Generic, "GpuTopology.example.org"),
    ],
)  # fmt: skip
def test_a_struct_is_used_for_its_own_api_group_alone(
    version: str, kind: str, struct: type[KubeObject], name: str
) -> None:
    head = f"apiVersion: {version}\nkind: {kind}\n"
    text = head + "metadata: {name: a, managedFields: [1]}\nspec: {}\n"
    found = read(text)
    assert type(found) is struct
    assert (found.kind, found.apiVersion, found.name) == (name, version, "a")
    if isinstance(found, Generic):
        assert found.document["metadata"] == {"name": "a"}


@pytest.mark.parametrize(
    ("text", "told", "hint"),
    [
        (
            "a: 1\n",
            "pod.yaml:1:1 kind: kind is missing, so this is no Kubernetes object",
            "add kind",
        ),
        (
            "x: 1\nkind: 5\n",
            "pod.yaml:2:1 kind: kind is not text, so this is no Kubernetes object",
            "add kind: at the top",
        ),
        (
            "Kind: Pod\n",
            "pod.yaml:1:1 kind: kind is missing, so this is no Kubernetes object",
            "write kind instead of Kind",
        ),
        (
            "kind: Pod\napiVersion: 1\n",
            "pod.yaml:2:1 apiVersion: apiVersion is not text, so this is no Kubernetes object",
            "add apiVersion: at the top",
        ),
    ],
)
def test_what_names_no_kind_is_no_object(text: str, told: str, hint: str) -> None:
    message, said = refused(text)
    assert message == f"{told} [no-kind]"
    assert said.startswith(hint)


# -- whole files ----------


def pod(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, **more}


DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
LONGHORN = {"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"name": "n"}}


def listed(*items: Any, kind: str = "List", version: str = "v1", **more: Any) -> dict[str, Any]:
    return {"apiVersion": version, "items": list(items), "kind": kind, **more}


def bare(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in ("apiVersion", "kind")}


BULK: list[tuple[str, dict[str, Any], list[tuple[str, str, str]], set[str]]] = [
    (
        "a List of known kinds",
        listed(pod("a"), QUOTA),
        [("Pod", "v1", "a"), ("ResourceQuota", "v1", "q")],
        {"Pod", "ResourceQuota"},
    ),
    (
        "a List with other kinds",
        listed(pod("a"), DEPLOYMENT, LONGHORN),
        [
            ("Pod", "v1", "a"),
            ("Deployment", "apps/v1", "d"),
            ("Node.longhorn.io", "longhorn.io/v1beta2", "n"),
        ],
        {"Pod", "Deployment", "Node.longhorn.io"},
    ),
    (
        "a typed list",
        listed(bare(pod("a")), bare(pod("b")), kind="PodList"),
        [("Pod", "v1", "a"), ("Pod", "v1", "b")],
        {"Pod"},
    ),
    ("an empty typed list", listed(kind="PodList"), [], {"Pod"}),
    ("an empty List", listed(), [], set()),
    ("a list without items", {"apiVersion": "v1", "kind": "NodeList", "items": None}, [], {"Node"}),
    (
        "a typed list of another group",
        listed(bare(LONGHORN), kind="NodeList", version="longhorn.io/v1beta2"),
        [("Node.longhorn.io", "longhorn.io/v1beta2", "n")],
        {"Node.longhorn.io"},
    ),
    (
        "a typed list of a kind without a struct",
        listed(bare(DEPLOYMENT), kind="DeploymentList", version="apps/v1"),
        [("Deployment", "apps/v1", "d")],
        {"Deployment"},
    ),
    ("one object", pod("a"), [("Pod", "v1", "a")], {"Pod"}),
    (
        "a Snapshot",
        listed(pod("a"), QUOTA, kind="Snapshot", version="x/v1", asOf="2026"),
        [("Snapshot", "x/v1", ""), ("Pod", "v1", "a"), ("ResourceQuota", "v1", "q")],
        {"Pod", "ResourceQuota", "Snapshot"},
    ),
    (
        "what only Kubernetes tolerates",
        listed(pod("a", spec={"nodeSelector": {"z": None}, "priority": 1.0})),
        [("Pod", "v1", "a")],
        {"Pod"},
    ),
]


@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "indented"])
@pytest.mark.parametrize(
    ("data", "found", "known"), [pytest.param(*row[1:], id=row[0]) for row in BULK]
)
def test_a_file_of_json_is_decoded_at_once(
    data: dict[str, Any], found: list[tuple[str, str, str]], known: set[str], indent: int | None
) -> None:
    objects, kinds = decode_bulk(json.dumps(data, indent=indent).encode(), "s.json")
    assert [(obj.kind, obj.apiVersion, obj.name) for obj in objects] == found
    assert kinds == known


@pytest.mark.parametrize(
    ("data", "found", "known"), [pytest.param(*row[1:], id=row[0]) for row in BULK]
)
def test_the_same_in_yaml_gives_the_same(
    data: dict[str, Any], found: list[tuple[str, str, str]], known: set[str]
) -> None:
    text = json.dumps(data, indent=1)
    objects, kinds = decode_bulk(f"# yaml\n---\n{text}\n".encode(), "s.yaml")
    assert [(obj.kind, obj.apiVersion, obj.name) for obj in objects] == found
    assert kinds == known


def test_a_snapshot_keeps_its_own_fields_and_not_its_items() -> None:
    data = listed(pod("a"), DEPLOYMENT, kind="Snapshot", version="x/v1", asOf="2026")
    (head, *rest), _ = decode_bulk(json.dumps(data).encode(), "s.json")
    assert isinstance(head, Generic)
    assert head.document == {"apiVersion": "x/v1", "kind": "Snapshot", "asOf": "2026"}
    assert [obj.kind for obj in rest] == ["Pod", "Deployment"]


def test_a_wrong_item_of_a_bulk_file_is_named_with_its_place() -> None:
    data = listed(pod("a"), pod("b", spec={"nodeName": 5}), kind="Snapshot")
    with pytest.raises(BadManifest) as caught:
        decode_bulk(json.dumps(data, indent=1).encode(), "s.json")
    assert str(caught.value) == (
        "s.json:18:5 spec.nodeName: expected text, found the number 5 [wrong-type]"
    )


def test_a_cut_bulk_file_is_one_error() -> None:
    raw = json.dumps(listed(pod("a"), pod("b"))).encode()
    with pytest.raises(BadManifest) as caught:
        decode_bulk(raw[:90], "s.json")
    assert caught.value.ref == "bad-json"


def test_several_documents_of_one_file_are_all_decoded() -> None:
    raw = "\n".join(json.dumps(x) for x in (listed(pod("a"), kind="List"), QUOTA)).encode()
    objects, known = decode_bulk(raw, "s.json")
    assert [obj.name for obj in objects] == ["a", "q"]
    assert isinstance(objects[1], ResourceQuota)
    assert known == {"Pod", "ResourceQuota"}
