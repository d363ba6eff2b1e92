"""Fields that nobody knows and values of a wrong type: refused, explained, mended."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from msgspec import structs

from kubectl_gpuadmit.admission import decoding
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.kube.fields import decoded
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.policy.load import load_policy
from kubectl_gpuadmit.verdict import Finding, Outcome, Remedy
from tests.placement.build import node
from tests.runs import NOW, SOURCE, only, report, world

POLICY = "apiVersion: gpu-admit.io/v1\nkind: AdmissionPolicy\n"

GPU_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p1}
spec:
  nodeselector: {a: b}
  containers: [{name: c, image: x, resources: {limit: {nvidia.com/gpu: 1}}}]
"""


def found(text: str, kubernetes: str = "1.37") -> list[Finding]:
    return list(decoding.of_object(yaml.safe_load(text), kubernetes=kubernetes))


def pod(spec: str) -> str:
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {spec}\n"


def told(text: str, kubernetes: str = "1.37") -> list[str]:
    return [one.detail for one in found(text, kubernetes)]


def message(text: str) -> str:
    return decoded(yaml.safe_load(text)).message.partition(" as a Pod: ")[2]


def mended(text: str) -> Any:
    import jsonpatch

    data = yaml.safe_load(text)
    made = decoding.corrected(data, kubernetes="1.37")
    return None if made is None else jsonpatch.apply_patch(data, made[2])


def test_misspelt_fields_are_told_in_the_decoders_words_with_place_and_what_was_meant() -> None:
    verdict = only(report(GPU_POD, world()))
    limit, selector = verdict.findings[:2]
    assert (verdict.admission, limit.reason, limit.level, limit.fidelity) == (
        "denied",
        "invalid/unknown-field",
        "deny",
        "exact",
    )
    assert limit.detail == (
        "spec.containers[0].resources.limit: ResourceRequirements has no such field;"
        " did you mean limits?"
    )
    assert selector.detail == (
        "spec.nodeselector: PodSpec has no such field; did you mean nodeSelector?"
    )
    assert limit.evidence[-1].observed == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error:'
        ' unknown field "spec.containers[0].resources.limit", unknown field "spec.nodeselector"'
    )
    (document,) = read_documents(GPU_POD.encode(), "m.yaml")
    assert isinstance(document, Document)
    assert [document.position(one.field) for one in (limit, selector)] == [(6, 48), (5, 3)]


def test_a_wrong_type_is_told_before_unknown_fields_and_each_is_shown() -> None:
    text = pod("{containers: [{name: c, image: x, stdin: 'true', tty: 1}], replica: 3}")
    assert [(one.reason, one.field) for one in found(text)] == [
        ("invalid/field-type", "/spec/containers/0/stdin"),
        ("invalid/field-type", "/spec/containers/0/tty"),
        ("invalid/unknown-field", "/spec/replica"),
    ]
    assert message(text) == (
        "json: cannot unmarshal string into Go struct field Container.spec.containers.stdin"
        " of type bool"
    )
    assert told(text)[0] == (
        "spec.containers[0].stdin must be true or false, and is the text 'true';"
        " take off the quotes: true"
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{hostNetwork: 1}", "number into Go struct field PodSpec.spec.hostNetwork of type bool"),
        (
            "{activeDeadlineSeconds: 1.5}",
            "number 1.5 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
        ),
        (
            "{priority: 3000000000}",
            "number 3000000000 into Go struct field PodSpec.spec.priority of type int32",
        ),
        ("{containers: {}}", "object into Go struct field PodSpec.spec.containers of type"
         " []v1.Container"),
        (
            "{volumes: [{hostPath: x}]}",
            "string into Go struct field Volume.spec.volumes.VolumeSource.hostPath of type"
            " v1.HostPathVolumeSource",
        ),
        (
            "{containers: [{livenessProbe: {tcpSocket: {port: true}}}]}",
            "bool into Go struct field TCPSocketAction.spec.containers.livenessProbe.ProbeHandler"
            ".tcpSocket.port of type int32",
        ),
    ],
)  # fmt: skip
def test_the_decoders_words_for_a_wrong_type(value: str, words: str) -> None:
    assert message(pod(value)).removeprefix("json: cannot unmarshal ") == words


def test_nulls_whole_floats_and_any_json_where_it_is_allowed_are_no_fault() -> None:
    assert found(pod("{containers: null, priority: 2.0, nodeSelector: {a: null}}")) == []
    claim = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nspec: {devices: {config: [{opaque: {driver: d, parameters: {a: [1]}}}]}}\n"  # noqa: E501
    assert found(claim) == []


def test_upper_and_lower_case_are_not_the_same() -> None:
    assert told(pod("{Containers: []}")) == [
        "spec.Containers: PodSpec has no such field; did you mean containers?"
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("toleration: {key: a}", {"tolerations": [{"key": "a"}]}),
        ("nodeSelectors: {a: b}", {"nodeSelector": {"a": "b"}}),
        (
            "resourceClaims: [{name: g, source: {resourceClaimName: x}}]",
            {"resourceClaims": [{"name": "g", "resourceClaimName": "x"}]},
        ),
        ("unheardOf: 1", {}),
        ("hostNetwork: 'true'", {"hostNetwork": True}),
        ("containers: [{nodeSelector: {a: b}}]", {"containers": [{}], "nodeSelector": {"a": "b"}}),
    ],
)
def test_what_was_meant_in_a_pod(written: str, meant: dict[str, Any]) -> None:
    assert mended(pod(f"{{{written}}}"))["spec"] == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("limits: {cpu: 1}", {"resources": {"limits": {"cpu": 1}}}),
        ("resources: {nvidia.com/gpu: 1}", {"resources": {"limits": {"nvidia.com/gpu": 1}}}),
        ("image_pull_policy: Never", {"imagePullPolicy": "Never"}),
        ("args: x", {"args": ["x"]}),
        ("command: [1, true]", {"command": ["1", "true"]}),
    ],
)
def test_what_was_meant_in_a_container(written: str, meant: dict[str, Any]) -> None:
    assert mended(pod(f"{{containers: [{{{written}}}]}}"))["spec"] == {"containers": [meant]}


def test_a_pods_field_in_a_deployments_spec_belongs_to_its_template() -> None:
    text = """\
apiVersion: apps/v1
kind: Deployment
spec:
  nodeSelector: {a: b}
  template: {spec: {containers: []}}
"""
    assert told(text) == [
        "spec.nodeSelector: DeploymentSpec has no such field; write it under spec"
    ]
    assert mended(text)["spec"] == {
        "template": {"spec": {"containers": [], "nodeSelector": {"a": "b"}}}
    }


def test_nothing_is_guessed_for_a_value_that_no_change_of_writing_mends() -> None:
    assert mended(pod("{hostNetwork: perhaps}")) is None
    assert told(pod("{hostNetwork: perhaps}")) == [
        "spec.hostNetwork must be true or false, and is the text 'perhaps'"
    ]


CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c1, namespace: default}
spec:
  devices:
    requests: [{name: gpu, deviceClassName: gpu.nvidia.com, count: 2}]
"""


def test_a_request_in_the_shape_of_v1beta1_is_moved_under_exactly() -> None:
    verdict = only(report(CLAIM, world()))
    assert (verdict.admission, verdict.blockers) == ("denied", ("invalid/unknown-field",))
    assert verdict.findings[1].detail == (
        "spec.devices.requests[0].deviceClassName: DeviceRequest has no such field;"
        " it is a field of v1beta1; write it under exactly"
    )
    at = "/spec/devices/requests/0"
    assert verdict.remedies == (
        Remedy(
            "count under exactly; deviceClassName under exactly",
            (
                {"op": "add", "path": f"{at}/exactly", "value": {}},
                {"op": "move", "from": f"{at}/count", "path": f"{at}/exactly/count"},
                {
                    "op": "move",
                    "from": f"{at}/deviceClassName",
                    "path": f"{at}/exactly/deviceClassName",
                },
            ),
            cost=0,
            verified=True,
            result=Outcome("admitted", "unknown"),
        ),
    )
    assert found(CLAIM.replace("/v1", "/v1beta1", 1)) == []


def test_a_correction_is_followed_by_what_the_corrected_object_still_needs() -> None:
    text = GPU_POD.replace("nodeselector: {a: b}", "priorityClas: x")
    verdict = only(report(text, world(), remedies=True))
    assert verdict.remedies == ()  # no node has a GPU, and x is no class: nothing is promised
    text = pod("{containers: [{name: c, image: x, resource: {requests: {cpu: 1}}}]}")
    made = only(report(text, world(node("n1", cpu="4")), remedies=True))
    assert [(one.summary, one.verified, one.result) for one in made.remedies] == [
        (
            "resources instead of spec.containers[0].resource",
            True,
            Outcome("admitted", "fits"),
        )
    ]


def test_a_policy_may_warn_instead_as_the_api_server_does_for_other_clients() -> None:
    text = f"{POLICY}rules: {{invalid/unknown-field: {{level: warn}}}}\n"
    rules = load_policy(text.encode(), "p.yaml", catalogue=lambda: decoding.REASONS)
    answer = report(GPU_POD, world(), rules)
    assert answer.asked == ("invalid/unknown-field",), "the policy did matter"
    verdict = only(answer)
    assert [(f.reason, f.level) for f in verdict.findings[:2]] == [
        ("invalid/unknown-field", "warn")
    ] * 2
    assert verdict.admission == "admitted"


def test_a_cluster_that_is_newer_than_the_table_may_know_more() -> None:
    (one,) = found(pod("{frobnicate: true}"), kubernetes="1.38")
    assert (one.level, one.fidelity) == ("warn", "unknown")
    assert one.detail == (
        "spec.frobnicate: PodSpec has no such field;"
        " Kubernetes 1.38 is newer than the 1.37 that is known here"
    )
    assert found(pod("{priority: x}"), kubernetes="1.38")[0].level == "deny"


def test_a_field_that_came_later_is_unknown_to_an_older_cluster() -> None:
    text = pod("{schedulingGroup: {}}")
    assert found(text) == []
    assert told(text, "1.34") == [
        "spec.schedulingGroup: PodSpec has no such field; it came with Kubernetes 1.36"
    ]
    gone = pod("{workloadRef: {}}")
    assert told(gone, "1.35") == []
    assert told(gone) == [
        "spec.workloadRef: PodSpec has no such field; it was removed in Kubernetes 1.36"
    ]


def test_what_a_cluster_holds_has_been_read_already() -> None:
    (document,) = read_documents(GPU_POD.encode(), "m.yaml")
    assert isinstance(document, Document)
    live = structs.replace(document, line=0, source=None, file="pod/p1")
    made = evaluate([live], world(), Policy.default(), now=NOW, source=SOURCE)
    assert [f.reason for f in made.workloads[0].findings if f.reason.startswith("invalid/")] == []


def test_placeholders_are_left_to_the_template_engine() -> None:
    assert found(pod("{hostNetwork: '${HOST}'}")) == []


def test_values_of_a_secret_are_never_shown() -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: hunter2!}\nstringData: {b: 4711}\n"  # noqa: E501
    made = found(text)
    assert [one.detail for one in made] == [
        "data.a must be base64 text, and is text that is none",
        "stringData.b must be text, and is a number",
    ]
    assert "hunter2" not in str(made)
    assert "4711" not in str(made)
    assert mended(text) is None


JOB_SET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: js}
spec:
  replicatedJobs:
  - name: w
    colour: blue
    template:
      spec:
        template:
          spec:
            toleration: []
            containers: [{name: c, image: x}]
"""


def test_in_custom_resources_only_pod_templates_are_looked_at_and_only_warned_of() -> None:
    verdict = only(report(JOB_SET, world()))
    made = [f for f in verdict.findings if f.reason == "invalid/unknown-field"]
    assert [(f.field, f.level, f.fidelity) for f in made] == [
        ("/spec/replicatedJobs/0/template/spec/template/spec/toleration", "warn", "modelled")
    ]


def test_a_pod_template_that_makes_no_pods_is_read_too() -> None:
    text = "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: t}\ntemplate: {spek: {}}\n"
    verdict = only(report(text, world()))
    assert [one.detail for one in verdict.findings] == [
        "template.spek: PodTemplateSpec has no such field; did you mean spec?"
    ]
    assert report(text.replace("spek", "spec"), world()).skipped[0].treated == "not-a-workload"


def test_objects_that_a_run_brings_along_are_read_too() -> None:
    text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: s, lables: {a: b}}\n"
    verdict = only(report(text, world()))
    assert (verdict.admission, verdict.blockers) == ("denied", ("invalid/unknown-field",))
    assert verdict.remedies[0].patch == (
        {"op": "move", "from": "/metadata/lables", "path": "/metadata/labels"},
    )
