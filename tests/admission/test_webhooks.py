"""Admission that is configured in the cluster is named and not guessed at."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_gpuadmit.admission import webhooks
from kubectl_gpuadmit.kube.objects import KubeObject
from tests.admission.objects import cluster, obj, pod

PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
EVERYTHING = {
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "operations": ["*"],
    "resources": ["*/*"],
}


def webhook(**fields: Any) -> KubeObject:
    hook = {"name": "gpu.example.com", "rules": [PODS], **fields}
    return obj("ValidatingWebhookConfiguration", "gpu", webhooks=[hook])


def missing(*objects: KubeObject, **spec: Any) -> list[str]:
    found = webhooks.configured(pod(**spec), "team-a", cluster(*objects))
    return [unknown.missing for unknown in found]


TOLD = [
    "what admission webhook gpu.example.com would say: ValidatingWebhookConfiguration gpu may"
    " refuse the pod (failurePolicy Fail)"
]


@pytest.mark.parametrize(
    ("fields", "labels", "told"),
    [
        ({}, {}, True),
        ({"rules": [EVERYTHING]}, {}, True),
        ({"rules": [{**PODS, "operations": ["UPDATE"]}]}, {}, False),
        ({"rules": [{**PODS, "apiGroups": ["apps"]}]}, {}, False),
        ({"rules": [{**PODS, "resources": ["pods/exec", "pods/status"]}]}, {}, False),
        ({"rules": [{**PODS, "resources": ["pods/*"]}]}, {}, True),
        ({"rules": [{**PODS, "resources": ["*"]}]}, {}, True),
        ({"rules": [{**PODS, "resources": ["*/exec"]}]}, {}, False),
        ({"rules": [{**PODS, "apiVersions": ["v1beta1"]}], "matchPolicy": "Equivalent"}, {}, False),
        ({"rules": [PODS], "matchPolicy": "Exact"}, {}, True),
        ({"rules": [{**PODS, "scope": "Namespaced"}]}, {}, True),
        ({"rules": [{**PODS, "scope": "*"}]}, {}, True),
        ({"rules": []}, {}, False),
        ({"rules": [{**PODS, "scope": "Cluster"}]}, {}, False),
        ({"objectSelector": {"matchLabels": {"gpu": "yes"}}}, {"gpu": "yes"}, True),
        ({"objectSelector": {"matchLabels": {"gpu": "yes"}}}, {}, False),
        (
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "team-a"}}},
            {},
            True,
        ),
        (
            {
                "namespaceSelector": {
                    "matchExpressions": [
                        {
                            "key": "kubernetes.io/metadata.name",
                            "operator": "NotIn",
                            "values": ["team-a"],
                        }
                    ]
                }
            },
            {},
            False,
        ),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, {}, False),
    ],
)
def test_a_webhook_is_named_where_rules_and_selectors_match(
    fields: dict[str, Any], labels: dict[str, str], told: bool
) -> None:
    assert missing(webhook(**fields), labels=labels) == (TOLD if told else [])


def test_a_namespace_whose_labels_are_not_known_may_match() -> None:
    hook = webhook(namespaceSelector={"matchLabels": {"team": "a"}})
    found = webhooks.configured(pod(), "elsewhere", cluster(hook))
    assert [unknown.missing for unknown in found] == TOLD


@pytest.mark.parametrize(
    ("terms", "told"),
    [
        (
            [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["elsewhere"]}],
            [],
        ),
        ([{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["elsewhere"]}], TOLD),
        ([{"key": "gpu", "operator": "DoesNotExist"}], TOLD),
    ],
)
def test_of_a_namespace_that_is_not_known_its_name_is(terms: list[Any], told: list[str]) -> None:
    hook = webhook(namespaceSelector={"matchExpressions": terms})
    found = webhooks.configured(pod(), "elsewhere", cluster(hook))
    assert [unknown.missing for unknown in found] == told


def test_no_namespace_is_left_out_by_itself() -> None:
    found = webhooks.configured(pod(), "kube-system", cluster(webhook()))
    assert [unknown.missing for unknown in found] == TOLD


def test_match_conditions_are_named_since_they_may_leave_the_pod_out() -> None:
    conditions = [{"name": "gpus-only", "expression": "true"}]
    assert missing(webhook(matchConditions=conditions)) == [
        TOLD[0].replace("Fail)", "Fail, if match condition gpus-only hold)")
    ]
    two = [*conditions, {"name": "not-admins", "expression": "true"}]
    assert missing(webhook(matchConditions=two, failurePolicy="Ignore")) == [
        TOLD[0].replace("Fail)", "Ignore, if match conditions gpus-only, not-admins hold)")
    ]


def test_mutating_webhooks_may_also_change_the_pod_and_come_in_order_of_their_names() -> None:
    def mutating(name: str) -> KubeObject:
        hook = {"name": f"{name}.example.com", "rules": [PODS], "failurePolicy": "Ignore"}
        return obj("MutatingWebhookConfiguration", name, webhooks=[hook])

    assert missing(mutating("b"), mutating("a")) == [
        f"what admission webhook {name}.example.com would say: MutatingWebhookConfiguration {name}"
        " may change or refuse the pod (failurePolicy Ignore)"
        for name in "ab"
    ]
