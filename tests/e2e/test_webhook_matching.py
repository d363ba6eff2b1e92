"""Which webhooks a new pod meets: ours beside a running API server that calls them.

None of them answers and each fails open, so that the API server counts by name whom it called
(metric ``apiserver_admission_webhook_fail_open_count``).
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

from kubectl_gpuadmit.admission import webhooks
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Namespace, Pod
from tests.admission.objects import obj
from tests.controlplane.bed import ControlPlane
from tests.differential.ours import decode

Json = dict[str, Any]

HOOKS = 120
PODS = 40
COUNTER = re.compile(
    r'^apiserver_admission_webhook_fail_open_count\{name="([^"]+)",type="validating"\} (\d+)', re.M
)
LABELS = ({}, {"gpu": "yes"}, {"gpu": "no", "team": "a"}, {"team": "a"}, {"tier": ""})
NAMESPACES = {"team-a": {"team": "a"}, "team-b": {"team": "b", "gpu": "yes"}}


def selector(rng: Random, keys: tuple[str, ...]) -> Json:
    if rng.random() < 0.4:
        return {"matchLabels": {rng.choice(keys): rng.choice(("yes", "a", "", "no"))}}
    one: Json = {"key": rng.choice(keys), "operator": rng.choice(("Exists", "DoesNotExist"))}
    if rng.random() < 0.6:
        values = rng.sample(("yes", "no", "a", "b", "team-a"), rng.randint(1, 2))
        one.update(operator=rng.choice(("In", "NotIn")), values=values)
    return {"matchExpressions": [one]}


def rule(rng: Random) -> Json:
    resources = rng.choice(
        (["pods"], ["pods"], ["pods/*"], ["*"], ["*/*"], ["pods/exec"], ["*/exec"], ["services"])
    )
    made: Json = {
        "apiGroups": rng.choice(([""], [""], ["*"], ["apps"], ["apps", ""])),
        "apiVersions": rng.choice((["v1"], ["v1"], ["*"], ["v1beta1"])),
        "operations": rng.choice((["CREATE"], ["CREATE"], ["*"], ["UPDATE"], ["UPDATE", "CREATE"])),
        "resources": resources,
    }
    if rng.random() < 0.3:
        made["scope"] = rng.choice(("*", "Namespaced", "Cluster"))
    return made


def hook(rng: Random, number: int) -> Json:
    made: Json = {
        "name": f"h{number}.corp.example",
        "failurePolicy": "Ignore",
        "timeoutSeconds": 1,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "rules": [rule(rng) for _ in range(rng.choice((1, 1, 2)))],
    }
    if rng.random() < 0.5:
        keys = ("team", "gpu", "kubernetes.io/metadata.name")
        made["namespaceSelector"] = selector(rng, keys)
    if rng.random() < 0.5:
        made["objectSelector"] = selector(rng, ("gpu", "team", "tier"))
    if rng.random() < 0.2:
        made["matchPolicy"] = rng.choice(("Exact", "Equivalent"))
    return made


def asking(rng: Random, number: int) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"p{number}",
            "namespace": rng.choice(sorted(NAMESPACES)),
            "labels": rng.choice(LABELS),
        },
        "spec": {"containers": [{"name": "c", "image": "x:1"}]},
    }


def test_the_api_server_calls_the_webhooks_that_we_name(control_plane: ControlPlane) -> None:
    bed, rng = control_plane, Random("webhooks")
    for name, labels in NAMESPACES.items():
        bed.namespace(name, labels=labels)
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "matching"},
        "webhooks": [hook(rng, number) for number in range(HOOKS)],
    }
    probe = {**hook(rng, 0), "name": "probe.corp.example", "rules": [rule_for_pods()]}
    probe = {k: v for k, v in probe.items() if not k.endswith("Selector")}
    configuration["webhooks"].append(probe)
    bed.client.create(configuration)
    try:
        bed.wait(
            lambda: "probe.corp.example" in called(bed, asking(rng, 9999)),
            what="the webhooks in the API server's view",
            timeout=60,
        )
        cluster = Cluster.of(
            [
                obj(
                    "ValidatingWebhookConfiguration", "matching", webhooks=configuration["webhooks"]
                ),
                *(decode(bed.client.get(f"/api/v1/namespaces/{name}")) for name in NAMESPACES),
            ]
        )
        assert all(isinstance(cluster.namespace(name), Namespace) for name in NAMESPACES)
        names = [one["name"] for one in configuration["webhooks"]]
        met = 0
        for number in range(PODS):
            document = asking(rng, number)
            pod = decode(document)
            assert isinstance(pod, Pod)
            told = " ".join(
                unknown.missing for unknown in webhooks.configured(pod, pod.namespace, cluster)
            )
            ours = {name for name in names if f" {name} " in told}
            assert ours == called(bed, document), document
            met += len(ours)
        assert 0.1 * HOOKS * PODS < met < 0.9 * HOOKS * PODS, "the cases do not tell much"
    finally:
        bed.client.delete(configuration)


def rule_for_pods() -> Json:
    return {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }


def counts(bed: ControlPlane) -> dict[str, int]:
    text = bed.client.text("/metrics")
    return {name: int(number) for name, number in COUNTER.findall(text)}


def called(bed: ControlPlane, document: Json) -> set[str]:
    """Names of the webhooks that the API server calls for one dry-run creation.

    The control plane's own writes (leases, events) count too: who is called each of three times.
    """
    found: list[set[str]] = []
    for _ in range(3):
        before = counts(bed)
        bed.client.create(document, dry_run="All")
        found.append({name for name, number in counts(bed).items() if number > before.get(name, 0)})
    return set.intersection(*found)
