"""Admission that is configured in the cluster is named and not guessed at."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_gpuadmit.admission import policies
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
    found = policies.configured(pod(**spec), "team-a", cluster(*objects))
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
        ({"rules": [{**PODS, "resources": ["pods/exec", "pods/*"]}]}, {}, False),
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
    found = policies.configured(pod(), "elsewhere", cluster(hook))
    assert [unknown.missing for unknown in found] == TOLD


def test_mutating_webhooks_may_also_change_the_pod_and_come_in_order_of_their_names() -> None:
    def mutating(name: str) -> KubeObject:
        hook = {"name": f"{name}.example.com", "rules": [PODS], "failurePolicy": "Ignore"}
        return obj("MutatingWebhookConfiguration", name, webhooks=[hook])

    assert missing(mutating("b"), mutating("a")) == [
        f"what admission webhook {name}.example.com would say: MutatingWebhookConfiguration {name}"
        " may change or refuse the pod (failurePolicy Ignore)"
        for name in "ab"
    ]


def policy(**constraints: Any) -> KubeObject:
    matched = {"resourceRules": [PODS], **constraints}
    return obj("ValidatingAdmissionPolicy", "no-latest", spec={"matchConstraints": matched})


def binding(policy_name: str = "no-latest", **spec: Any) -> KubeObject:
    actions = spec.pop("validationActions", ["Deny"])
    return obj(
        "ValidatingAdmissionPolicyBinding",
        "everywhere",
        spec={"policyName": policy_name, "validationActions": actions, **spec},
    )


def test_a_policy_is_named_with_its_binding_only_if_there_is_one() -> None:
    assert missing(policy()) == []
    assert missing(policy(), binding("other")) == []
    assert missing(policy(), binding(validationActions=["Warn", "Audit"])) == [
        "what ValidatingAdmissionPolicy no-latest would say: bound by everywhere (Warn, Audit,"
        " failurePolicy Fail)"
    ]
    assert missing(policy(resourceRules=[{**PODS, "resources": ["services"]}]), binding()) == []
    assert missing(policy(excludeResourceRules=[PODS]), binding()) == []
    narrowed = {"namespaceSelector": {"matchLabels": {"team": "b"}}}
    assert missing(policy(), binding(matchResources=narrowed)) == []


@pytest.mark.parametrize(
    ("level", "told"),
    [("restricted", True), ("baseline", True), ("privileged", False), ("", False)],
)
def test_enforced_pod_security_levels_are_unknown(level: str, told: bool) -> None:
    home = obj(
        "Namespace", "team-b", metadata={"labels": {policies.POD_SECURITY: level} if level else {}}
    )
    found = policies.pod_security("team-b", cluster(home))
    wanted = [
        f"whether the pod meets Pod Security level {level}: namespace team-b has"
        f" pod-security.kubernetes.io/enforce={level}"
    ]
    assert [unknown.missing for unknown in found] == (wanted if told else [])
