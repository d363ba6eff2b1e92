"""Random namespaces with quotas, limit ranges and classes, and one pod that is to be created there.

Every case starts from a pod that would be admitted; twists then add what limits it or spoil one
field. About half of the cases are admitted, and every message of the built-in plugins occurs.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.differential import podsecurity_cases
from tests.differential.vocabulary import (
    GPU,
    ZONE,
    Json,
    app_labels,
    chance,
    cpu,
    gpus,
    label_selector,
    memory,
    some,
)

HOME = "team-a"
RESOURCES = (
    "cpu",
    "memory",
    "ephemeral-storage",
    GPU,
    "nvidia.com/mig-1g.10gb",
    "hugepages-2Mi",
    "example.com/fpga",
)


class Case:
    """A case under construction."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.objects: list[Json] = []
        self.pod: Json = {}

    @property
    def spec(self) -> Json:
        spec: Json = self.pod["spec"]
        return spec

    def every_container(self) -> list[Json]:
        return [*self.spec["containers"], *self.spec.get("initContainers", [])]

    def a_container(self) -> Json:
        return self.rng.choice(self.every_container() or [{}])


def case(rng: Random) -> Json:
    made = Case(rng)
    made.objects = [
        {
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": {"name": HOME},
            "status": {"phase": "Active"},
        },
        {
            "kind": "ServiceAccount",
            "apiVersion": "v1",
            "metadata": {"name": "default", "namespace": HOME},
            "automountServiceAccountToken": False,
        },
    ]
    made.pod = pod(rng)
    for twist in rng.sample(TWISTS, rng.choice((0, 1, 1, 2, 2, 3))):
        twist(made)
    case: Json = {
        "objects": made.objects,
        "pod": made.pod,
        "count": rng.choice((1, 2, 3, 10, 200)),
    }
    if chance(rng, 0.15):
        case["plugins"] = ["ExtendedResourceToleration"]
    return case


def pod(rng: Random) -> Json:
    spec: Json = {"containers": [container(rng, f"c{i}") for i in range(rng.choice((1, 1, 2, 3)))]}
    if chance(rng, 0.3):
        spec["initContainers"] = []
        for i in range(rng.choice((1, 1, 2))):
            init = container(rng, f"i{i}")
            if chance(rng, 0.5):
                init["restartPolicy"] = "Always"
            spec["initContainers"].append(init)
    if chance(rng, 0.15):
        spec["activeDeadlineSeconds"] = rng.choice((1, 3600, 2**31 - 1))
    if chance(rng, 0.3):
        spec["restartPolicy"] = rng.choice(("Always", "OnFailure", "Never"))
    metadata: Json = {"name": "asking", "namespace": HOME, "labels": app_labels(rng)}
    if chance(rng, 0.2):
        metadata["generateName"] = "asking-"
        if chance(rng, 0.5):
            del metadata["name"]
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}


def container(rng: Random, name: str) -> Json:
    requests: Json = {}
    limits: Json = {}
    roll = rng.random()
    if roll < 0.35:
        limits = {"cpu": cpu(rng), "memory": memory(rng)}
    elif roll < 0.7:
        requests = {
            "cpu": rng.choice(("100m", "250m", "0.5")),
            "memory": rng.choice(("64Mi", "128Mi", "100M")),
        }
        if chance(rng, 0.5):
            limits = {
                "cpu": rng.choice(("500m", "1", "2")),
                "memory": rng.choice(("1Gi", "128Mi", "1G")),
            }
    elif roll < 0.8:
        requests = {"cpu": cpu(rng)}
    if chance(rng, 0.5):
        limits[GPU] = gpus(rng)
        if chance(rng, 0.4):
            requests[GPU] = limits[GPU]
    if chance(rng, 0.08):
        limits["ephemeral-storage"] = "1Gi"
    if chance(rng, 0.05):
        limits["hugepages-2Mi"] = "4Mi"
        limits.setdefault("memory", "1Gi")
    made: Json = {"name": name, "image": "registry/x:1"}
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    if resources:
        made["resources"] = resources
    return made


def amount(rng: Random, resource: str, *, large: bool = False) -> str:
    if resource == "cpu":
        return rng.choice(("4", "8", "2500m", "64")) if large else cpu(rng)
    if resource in ("memory", "ephemeral-storage"):
        return rng.choice(("4Gi", "8Gi", "10G", "1Ti")) if large else memory(rng)
    if resource.startswith("hugepages"):
        return rng.choice(("8Mi", "1Gi", "4Mi"))
    return rng.choice(("4", "8", "16")) if large else rng.choice(("0", "1", "2", "4"))


# -- what surrounds the pod ------------------------------------------------------------------------


def limit_range(made: Case) -> None:
    rng = made.rng
    items = []
    for kind in some(rng, ("Container", "Container ", "Pod"), 1, 2):
        item: Json = {"type": kind.strip()}
        for resource in some(rng, RESOURCES[:4] if chance(rng, 0.85) else RESOURCES, 1, 2):
            least = amount(rng, resource)
            most = amount(rng, resource, large=chance(rng, 0.7))
            if chance(rng, 0.35):
                item.setdefault("min", {})[resource] = least if chance(rng, 0.5) else "0"
            if chance(rng, 0.4):
                item.setdefault("max", {})[resource] = most
            if chance(rng, 0.15):
                item.setdefault("maxLimitRequestRatio", {})[resource] = rng.choice(
                    ("1", "2", "4", "1500m")
                )
            if kind.strip() == "Container":
                if chance(rng, 0.35):
                    item.setdefault("default", {})[resource] = amount(rng, resource)
                if chance(rng, 0.35):
                    item.setdefault("defaultRequest", {})[resource] = (
                        item.get("default", {}).get(resource, least) if resource == GPU else least
                    )
        items.append(item)
    number = sum(1 for one in made.objects if one["kind"] == "LimitRange")
    made.objects.append(
        {
            "kind": "LimitRange",
            "apiVersion": "v1",
            "metadata": {"name": f"limits{number}", "namespace": HOME},
            "spec": {"limits": items},
        }
    )


QUOTA_KEYS = (
    "requests.nvidia.com/gpu",
    "requests.nvidia.com/gpu",
    "requests.nvidia.com/gpu",
    "nvidia.com/gpu",
    "limits.nvidia.com/gpu",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.cpu",
    "limits.memory",
    "cpu",
    "memory",
    "pods",
    "count/pods",
    "requests.ephemeral-storage",
    "ephemeral-storage",
    "limits.ephemeral-storage",
    "hugepages-2Mi",
    "requests.hugepages-2Mi",
    "requests.nvidia.com/mig-1g.10gb",
    "count/deployments.apps",
    "persistentvolumeclaims",
    "requests.storage",
    "requests.example.com/fpga",
    "services",
    "count/configmaps",
)


def quota_amount(rng: Random, key: str) -> tuple[str, str]:
    """(hard, used), often with little left."""
    resource = key.removeprefix("requests.").removeprefix("limits.")
    if resource == "cpu":
        return rng.choice(
            (("4", "3500m"), ("10", "1"), ("2", "1900m"), ("1", "0"), ("3", "3"), ("100", "0.5"))
        )
    if resource in ("memory", "ephemeral-storage", "storage"):
        return rng.choice(
            (("4Gi", "3Gi"), ("100Gi", "0"), ("1G", "900M"), ("1Ti", "1Gi"), ("128Mi", "0"))
        )
    if "hugepages" in resource:
        return rng.choice((("8Mi", "0"), ("4Mi", "2Mi")))
    return rng.choice(
        (
            ("8", "7"),
            ("8", "0"),
            ("1", "0"),
            ("4", "4"),
            ("100", "12"),
            ("0", "0"),
            ("2", "3"),
            ("1k", "8"),
        )
    )


def quota(made: Case) -> None:
    rng = made.rng
    hard: Json = {}
    used: Json = {}
    first = some(rng, tuple(dict.fromkeys(QUOTA_KEYS)), 0, 1)
    for key in [*first, rng.choice(QUOTA_KEYS), *some(rng, QUOTA_KEYS, 0, 2)]:
        hard[key], used[key] = quota_amount(rng, key)
    if chance(rng, 0.04) and used:
        del used[rng.choice(sorted(used))]
    spec: Json = {"hard": hard}
    if chance(rng, 0.4):
        scoped(made, spec)
    number = sum(1 for one in made.objects if one["kind"] == "ResourceQuota")
    status_hard = dict(hard)
    if chance(rng, 0.05) and status_hard:
        status_hard.pop(rng.choice(sorted(status_hard)))
    made.objects.append(
        {
            "kind": "ResourceQuota",
            "apiVersion": "v1",
            "metadata": {"name": f"quota{number}", "namespace": HOME},
            "spec": spec,
            "status": {"hard": status_hard, "used": used},
        }
    )


def scoped(made: Case, spec: Json) -> None:
    rng = made.rng
    if chance(rng, 0.5):
        spec["scopes"] = some(
            rng,
            (
                "Terminating",
                "NotTerminating",
                "BestEffort",
                "NotBestEffort",
                "PriorityClass",
                "CrossNamespacePodAffinity",
            ),
            1,
            2,
        )
        return
    scope = rng.choice(
        ("PriorityClass",) * 4 + ("Terminating", "NotBestEffort", "CrossNamespacePodAffinity")
    )
    requirement: Json = {"scopeName": scope, "operator": "Exists"}
    if scope == "PriorityClass":
        requirement["operator"] = rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        if requirement["operator"] in ("In", "NotIn"):
            requirement["values"] = some(rng, ("high", "low", "usual"), 1, 2)
    spec["scopeSelector"] = {"matchExpressions": [requirement]}


def priority_classes(made: Case) -> None:
    rng = made.rng
    if any(one["kind"] == "PriorityClass" for one in made.objects):
        return
    for name, value in (("high", 1000), ("low", -10), ("usual", 5)):
        one: Json = {
            "kind": "PriorityClass",
            "apiVersion": "scheduling.k8s.io/v1",
            "metadata": {"name": name},
            "value": value,
        }
        if chance(rng, 0.3):
            one["preemptionPolicy"] = rng.choice(("Never", "PreemptLowerPriority"))
        if name == "usual" and chance(rng, 0.4):
            one["globalDefault"] = True
        made.objects.append(one)
    if chance(rng, 0.1):
        made.objects[-2]["globalDefault"] = True
    if chance(rng, 0.75):
        made.spec["priorityClassName"] = rng.choice(
            (
                "high",
                "high",
                "low",
                "usual",
                "missing",
                "system-node-critical",
                "system-cluster-critical",
            )
        )
    if chance(rng, 0.15):
        made.spec["priority"] = rng.choice((1000, -10, 0, 5))
    if chance(rng, 0.15):
        made.spec["preemptionPolicy"] = rng.choice(("Never", "PreemptLowerPriority", "Sometimes"))


def runtime_class(made: Case) -> None:
    rng = made.rng
    one: Json = {
        "kind": "RuntimeClass",
        "apiVersion": "node.k8s.io/v1",
        "metadata": {"name": "nvidia"},
        "handler": "nvidia",
    }
    if chance(rng, 0.6):
        one["overhead"] = {"podFixed": {"cpu": "250m", "memory": "120Mi"}}
    if chance(rng, 0.5):
        one["scheduling"] = {"nodeSelector": {"runtime": "nvidia"}}
        if chance(rng, 0.6):
            one["scheduling"]["tolerations"] = [toleration(rng) for _ in range(2)]
    made.objects.append(one)
    made.spec["runtimeClassName"] = rng.choice(("nvidia",) * 6 + ("missing", ""))
    if chance(rng, 0.3):
        made.spec["overhead"] = rng.choice(
            ({"cpu": "250m", "memory": "120Mi"}, {"cpu": "1"}, {"cpu": "0.25", "memory": "120Mi"})
        )
    if chance(rng, 0.25):
        made.spec["nodeSelector"] = {"runtime": rng.choice(("nvidia", "runc"))}


def accounts(made: Case) -> None:
    made.spec["serviceAccountName"] = made.rng.choice(("default", "robot", "robot"))
    if chance(made.rng, 0.6):
        made.objects.append(
            {
                "kind": "ServiceAccount",
                "apiVersion": "v1",
                "metadata": {"name": "robot", "namespace": HOME},
                "automountServiceAccountToken": False,
            }
        )


def namespace_state(made: Case) -> None:
    if chance(made.rng, 0.85):
        made.objects[0]["status"]["phase"] = "Terminating"
    else:
        made.objects.pop(0)


def security(made: Case) -> None:
    """A level of Pod Security that the namespace enforces, and settings that it looks at."""
    level = made.rng.choice(("baseline", "restricted"))
    made.objects[0]["metadata"]["labels"] = {podsecurity_cases.PREFIX + "enforce": level}
    podsecurity_cases.valid(made.rng, made.pod)


# -- what is written in the pod --------------------------------------------------------------------


def pod_level(made: Case) -> None:
    rng = made.rng
    level: Json = {}
    for side in ("requests", "limits"):
        if chance(rng, 0.75):
            level[side] = {}
            for resource in some(
                rng,
                ("cpu", "memory", "cpu", "memory", "hugepages-2Mi", GPU, "ephemeral-storage")
                if chance(rng, 0.2)
                else ("cpu", "memory"),
                1,
                2,
            ):
                level[side][resource] = amount(rng, resource, large=chance(rng, 0.7))
    if chance(rng, 0.04):
        level["claims"] = [{"name": "x"}]
    made.spec["resources"] = level


def toleration(rng: Random) -> Json:
    made: Json = {"key": rng.choice((GPU, "dedicated", "node.kubernetes.io/not-ready"))}
    operator = rng.choice(("Exists", "Equal", None))
    if operator:
        made["operator"] = operator
    if operator != "Exists" and chance(rng, 0.7):
        made["value"] = rng.choice(("a", "b"))
    if chance(rng, 0.7):
        made["effect"] = rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    if made.get("effect") == "NoExecute" and chance(rng, 0.5):
        made["tolerationSeconds"] = rng.choice((0, 30, 300))
    return made


def tolerations(made: Case) -> None:
    rng = made.rng
    made.spec["tolerations"] = [toleration(rng) for _ in range(rng.choice((1, 2, 3)))]
    if chance(rng, 0.3):
        made.spec["tolerations"].append(
            rng.choice(
                (
                    {"operator": "Exists"},
                    {},
                    {"key": "a", "operator": "Exists", "value": "x"},
                    {"operator": "Equal"},
                    {"key": "a", "operator": "Gt", "value": "5"},
                    {"key": "a", "operator": "Between"},
                    {"key": "bad key", "operator": "Exists"},
                    {"key": "a", "value": "not a label!"},
                    {"key": "a", "operator": "Exists", "effect": "NoWay"},
                    {
                        "key": "a",
                        "operator": "Exists",
                        "effect": "NoSchedule",
                        "tolerationSeconds": 5,
                    },
                    {"key": "node.kubernetes.io/unreachable", "operator": "Exists"},
                )
            )
        )


def bad_amounts(made: Case) -> None:
    """Requests and limits that contradict each other or the resource's rules."""
    rng = made.rng
    target = made.a_container().setdefault("resources", {})
    requests, limits = target.setdefault("requests", {}), target.setdefault("limits", {})
    rng.choice(
        (
            lambda: requests.update({GPU: "1"}) or limits.pop(GPU, None),
            lambda: (requests.update({GPU: "1"}), limits.update({GPU: "2"})),
            lambda: limits.update({GPU: rng.choice(("500m", "0.5", "1500m", "1k", "1e2", "2.0"))}),
            lambda: (requests.update({"cpu": "3"}), limits.update({"cpu": "2"})),
            lambda: (requests.update({"memory": "2Gi"}), limits.update({"memory": "2G"})),
            lambda: limits.update(
                {
                    rng.choice(
                        (
                            "gpu",
                            "nvidia.com/",
                            "requests.nvidia.com/gpu",
                            "pods",
                            "storage",
                            "kubernetes.io/x",
                            "a b/c",
                            "NVIDIA.com/GPU",
                            "x/y/z",
                            "cpus",
                        )
                    ): "1"
                }
            ),
            lambda: limits.update({"memory": rng.choice(("-1Gi", "100m", "1.5", "1e3", "12E"))}),
            lambda: limits.update({"cpu": rng.choice(("-1", "1n", "100u", "0.0001", "1e-3"))}),
            lambda: limits.update({"cpu": rng.choice(("1 ", "two", "1.2.3", "", "1KB", "1ki"))}),
            lambda: limits.update({"hugepages-2Mi": rng.choice(("3Mi", "4Mi", "0"))}),
            lambda: limits.update({"hugepages-3Mi": "3Mi", "memory": "1Gi"}),
            lambda: limits.update({"hugepages-x": "3Mi", "memory": "1Gi"}),
            lambda: requests.update({"ephemeral-storage": rng.choice(("1Gi", "500m"))}),
            lambda: limits.update({"example.com/fpga": "2"}),
        )
    )()
    if not requests:
        del target["requests"]
    if not limits:
        del target["limits"]


def bad_names(made: Case) -> None:
    rng = made.rng
    rng.choice(
        (
            lambda: made.a_container().update(
                {"name": rng.choice(("Upper", "a.b", "", "x" * 64, "-a"))}
            ),
            lambda: made.a_container().update({"name": "c0"}),
            lambda: made.pod["metadata"].update(
                {"name": rng.choice(("Upper", "a_b", "x" * 254, "ok.name"))}
            ),
            lambda: made.pod["metadata"].update({"labels": {"bad key!": "x"}}),
            lambda: made.pod["metadata"].update(
                {"labels": {"app": rng.choice(("-x", "a b", "x" * 64, ""))}}
            ),
            lambda: made.pod["metadata"].update(
                {"annotations": {rng.choice(("bad key", "ok/key", "a/b/c")): "x"}}
            ),
            lambda: made.a_container().update({"image": rng.choice(("", " x", "x "))}),
            lambda: made.spec.update(
                {
                    "nodeSelector": {
                        rng.choice(("a", "bad key", "x/y/z")): rng.choice(("b", "not ok!"))
                    }
                }
            ),
            lambda: made.spec.update({"restartPolicy": rng.choice(("Sometimes", "always"))}),
            lambda: made.spec.update({"activeDeadlineSeconds": rng.choice((0, -1, 2**31))}),
            lambda: made.spec.update({"priorityClassName": "Bad Name"}),
            lambda: made.spec.update({"terminationGracePeriodSeconds": rng.choice((-1, 0, 5))}),
            lambda: made.spec.update({"schedulerName": rng.choice(("volcano", "Bad Name"))}),
            lambda: made.a_container().update(
                {"restartPolicy": rng.choice(("Always", "Never", "OnFailure", "Often"))}
            ),
            lambda: made.spec.update({"nodeName": "n1"}),
            lambda: made.spec.update({"containers": []}),
        )
    )()


def ports(made: Case) -> None:
    rng = made.rng
    if chance(rng, 0.3):
        made.spec["hostNetwork"] = True
    for _ in range(rng.choice((1, 2))):
        port: Json = {"containerPort": rng.choice((80, 443, 8080, 0, 70000))}
        if chance(rng, 0.4):
            port["hostPort"] = rng.choice((80, 443, 8080, 0, -1, 70000))
        if chance(rng, 0.3):
            port["protocol"] = rng.choice(("TCP", "UDP", "SCTP", "ICMP", ""))
        if chance(rng, 0.3):
            port["name"] = rng.choice(("http", "HTTP", "a--b", "toolongtoolongto", "80"))
        made.a_container().setdefault("ports", []).append(port)


def requirement(rng: Random, *, node: bool) -> Json:
    operators = (
        ("In", "NotIn", "Exists", "DoesNotExist") + (("Gt", "Lt") if node else ()) + ("Around",)
    )
    operator = rng.choice(operators)
    made: Json = {
        "key": rng.choice((ZONE, "app", "slots", "bad key")) if chance(rng, 0.3) else "app",
        "operator": operator,
    }
    if operator in ("In", "NotIn"):
        if chance(rng, 0.85):
            made["values"] = some(rng, ("z1", "web", "not ok!"), 1, 2)
    elif operator in ("Gt", "Lt"):
        made["values"] = rng.choice((["1"], ["1", "2"], ["x"], []))
    elif chance(rng, 0.15):
        made["values"] = ["x"]
    return made


def node_affinity(made: Case) -> None:
    rng = made.rng
    terms: list[Json] = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        term: Json = {}
        if chance(rng, 0.85):
            term["matchExpressions"] = [
                requirement(rng, node=True) for _ in range(rng.choice((1, 2)))
            ]
        if chance(rng, 0.25):
            term["matchFields"] = [
                {
                    "key": rng.choice(("metadata.name", "metadata.name", "metadata.uid")),
                    "operator": rng.choice(("In", "NotIn", "Exists")),
                    "values": rng.choice((["n0"], ["n0", "n1"], ["Bad_Name"])),
                }
            ]
        terms.append(term)
    affinity = made.spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if chance(rng, 0.25):
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {
                "weight": rng.choice((1, 100, 0, 101)),
                "preference": {"matchExpressions": [requirement(rng, node=True)]},
            }
        ]


def selector(rng: Random) -> Json | None:
    if chance(rng, 0.7):
        return label_selector(rng)
    return {"matchExpressions": [requirement(rng, node=False)]}


def pod_affinity(made: Case) -> None:
    rng = made.rng
    side = rng.choice(("podAffinity", "podAntiAffinity"))
    terms = []
    for _ in range(rng.choice((1, 1, 2))):
        term: Json = {"topologyKey": rng.choice((ZONE, ZONE, "rack", "", "bad key"))}
        chosen = selector(rng)
        if chosen is not None:
            term["labelSelector"] = chosen
        if chance(rng, 0.25):
            term["namespaces"] = some(rng, ("team-b", HOME, "Bad_Name"), 1, 2)
        if chance(rng, 0.25):
            term["namespaceSelector"] = rng.choice(({}, {"matchLabels": {"team": "b"}}))
        if chance(rng, 0.3):
            term["matchLabelKeys"] = some(
                rng, ("pod-template-hash", "app", "absent", "bad key"), 1, 2
            )
        if chance(rng, 0.15):
            term["mismatchLabelKeys"] = some(rng, ("pod-template-hash", "tier"), 1, 2)
        terms.append(term)
    affinity = made.spec.setdefault("affinity", {}).setdefault(side, {})
    if chance(rng, 0.75):
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = terms
    else:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": rng.choice((1, 50, 0, 200)), "podAffinityTerm": term} for term in terms
        ]


def spread(made: Case) -> None:
    rng = made.rng
    made.spec["topologySpreadConstraints"] = []
    for _ in range(rng.choice((1, 1, 2))):
        one: Json = {
            "maxSkew": rng.choice((1, 1, 2, 0)),
            "topologyKey": rng.choice((ZONE, ZONE, "rack", "")),
            "whenUnsatisfiable": rng.choice(
                ("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway", "Never")
            ),
        }
        chosen = selector(rng)
        if chosen is not None:
            one["labelSelector"] = chosen
        if chance(rng, 0.3):
            one["minDomains"] = rng.choice((0, 1, 3))
        if chance(rng, 0.2):
            one["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore", "Maybe"))
        if chance(rng, 0.2):
            one["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore", "Maybe"))
        if chance(rng, 0.3):
            one["matchLabelKeys"] = some(rng, ("pod-template-hash", "app", "absent"), 1, 2)
        made.spec["topologySpreadConstraints"].append(one)


def gates(made: Case) -> None:
    rng = made.rng
    made.spec["schedulingGates"] = [
        {"name": rng.choice(("example.com/wait", "other/gate", "bad gate"))}
        for _ in range(rng.choice((1, 2)))
    ]
    if chance(rng, 0.3):
        made.spec["nodeName"] = "n1"


def claims(made: Case) -> None:
    rng = made.rng
    made.spec["resourceClaims"] = []
    for index in range(rng.choice((1, 1, 2))):
        one: Json = {"name": rng.choice((f"gpu{index}", "gpu0", "Bad", ""))}
        if chance(rng, 0.8):
            one["resourceClaimTemplateName"] = rng.choice(("template", "Bad_Name"))
        if chance(rng, 0.3):
            one["resourceClaimName"] = "claim"
        made.spec["resourceClaims"].append(one)
    reference: Json = {"name": rng.choice(("gpu0", "gpu0", "other", ""))}
    if chance(rng, 0.3):
        reference["request"] = rng.choice(("one", "Bad"))
    made.a_container().setdefault("resources", {})["claims"] = [reference] * rng.choice(
        (1, 1, 1, 2)
    )


def volumes(made: Case) -> None:
    rng = made.rng
    made.spec["volumes"] = []
    for _ in range(rng.choice((1, 2))):
        name = rng.choice(("data", "data", "cache", "Bad", ""))
        made.spec["volumes"].append(
            {
                "name": name,
                **rng.choice(
                    (
                        {"emptyDir": {}},
                        {"persistentVolumeClaim": {"claimName": "x"}},
                        {"hostPath": {"path": "/dev"}},
                    )
                ),
            }
        )
    made.a_container()["volumeMounts"] = [
        {
            "name": rng.choice(("data", "cache", "other")),
            "mountPath": rng.choice(("/data", "/data", "/x", "")),
        }
        for _ in range(rng.choice((1, 1, 2)))
    ]


def more_containers(made: Case) -> None:
    """The shapes where sums, maxima and sidecars matter."""
    rng = made.rng
    made.spec["initContainers"] = []
    for index in range(rng.choice((2, 3, 4))):
        init = container(rng, f"i{index}")
        if chance(rng, 0.5):
            init["restartPolicy"] = "Always"
        made.spec["initContainers"].append(init)


TWISTS: list[Callable[[Case], None]] = [
    limit_range,
    limit_range,
    limit_range,
    limit_range,
    quota,
    quota,
    quota,
    quota,
    quota,
    quota,
    priority_classes,
    priority_classes,
    runtime_class,
    runtime_class,
    accounts,
    namespace_state,
    security,
    security,
    pod_level,
    pod_level,
    tolerations,
    bad_amounts,
    bad_amounts,
    bad_names,
    ports,
    node_affinity,
    pod_affinity,
    spread,
    gates,
    claims,
    volumes,
    more_containers,
    more_containers,
]
