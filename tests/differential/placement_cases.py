"""Random clusters with one asking pod, for the filters and for preemption.

Every case starts from nodes that would take the pod; a few *twists* then change nodes, other pods
or the pod itself around one filter each. So about half of the cases have a feasible node and every
filter's message occurs. A case is ``{"objects": [...], "pod": {...}}``, the referee's own input.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.differential.vocabulary import (
    APPS,
    GPU,
    HOST,
    NAMESPACES,
    REGION,
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

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TAINTS = (GPU, "dedicated", "node.kubernetes.io/not-ready", "node.kubernetes.io/unschedulable")


class Case:
    """A case under construction: parts that twists change."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.nodes: list[Json] = []
        self.pods: list[Json] = []
        self.other: list[Json] = []
        self.pod: Json = {}

    def document(self) -> Json:
        return {"objects": [*self.nodes, *self.pods, *self.other], "pod": self.pod}

    def a_node(self) -> Json:
        return self.rng.choice(self.nodes)


def case(rng: Random, *, preemption: bool = False) -> Json:
    made = Case(rng)
    for index in range(rng.choice((1, 2, 2, 3, 3, 4, 5))):
        made.nodes.append(node(rng, f"n{index}"))
    for name in NAMESPACES:
        made.other.append(
            {
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": {
                    "name": name,
                    "labels": {"kubernetes.io/metadata.name": name, "team": rng.choice(("a", "b"))},
                },
            }
        )
    made.pod = pod(rng, "asking", small=not preemption)
    made.pod["metadata"]["namespace"] = "default"
    for index in range(rng.choice((1, 2, 3, 5, 8) if preemption else (0, 0, 1, 2, 4))):
        other = pod(rng, f"p{index}", small=True)
        if chance(rng, 0.93):
            other["spec"]["nodeName"] = made.a_node()["metadata"]["name"]
        other["status"] = {
            "phase": rng.choice(("Running",) * 8 + ("Pending", "Succeeded", "Failed"))
        }
        if other["spec"].get("nodeName") and chance(rng, 0.5):
            other["status"]["startTime"] = f"2026-11-01T10:{index:02d}:00Z"
        if chance(rng, 0.05):
            other["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z"
            other["metadata"]["deletionGracePeriodSeconds"] = 30
        made.pods.append(other)
    if preemption:
        prepare_preemption(made)
    if preemption:
        twists = rng.sample(PREEMPTION_TWISTS, rng.choice((0, 0, 1, 1, 2)))
    else:
        twists = rng.sample(TWISTS, rng.choice((0, 1, 1, 1, 2, 2, 3)))
    for twist in twists:
        twist(made)
    one_holder_of_a_port(made)
    return made.document()


def one_holder_of_a_port(made: Case) -> None:
    """No two pods of a node hold the same host port: no kubelet lets that be, and the scheduler,
    which keeps a set of them, forgets the port when the first of the two leaves."""
    held: dict[tuple[str, int], str] = {}
    for target in made.pods:
        spec = target["spec"]
        for holder in [*spec["containers"], *spec.get("initContainers", [])]:
            for port in holder.get("ports", []):
                key = (spec.get("nodeName", ""), port.get("hostPort", 0))
                name = target["metadata"]["name"]
                if all(key) and held.setdefault(key, name) != name:
                    del port["hostPort"]


def node(rng: Random, name: str) -> Json:
    labels = {
        HOST: name,
        ZONE: rng.choice(("z1", "z2", "z3")),
        REGION: "r1",
        "nvidia.com/gpu.product": rng.choice(("H100", "L40S")),
        "slots": rng.choice(("1", "5", "9", "-3", "abc")),
    }
    allocatable = {
        "cpu": rng.choice(("4", "8", "3999m", "16")),
        "memory": rng.choice(("8Gi", "16Gi", "9G")),
        "ephemeral-storage": "100Gi",
        "pods": rng.choice(("110", "110", "5")),
        GPU: rng.choice(("4", "8", "8", "2")),
    }
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"allocatable": allocatable, "capacity": dict(allocatable)},
    }


def container(rng: Random, name: str, *, small: bool) -> Json:
    requests: Json = {}
    limits: Json = {}
    if chance(rng, 0.6):
        requests["cpu"] = cpu(rng) if not small else rng.choice(("100m", "250m", "0", "1"))
    if chance(rng, 0.6):
        requests["memory"] = memory(rng) if not small else rng.choice(("64Mi", "128Mi", "1G", "0"))
    if chance(rng, 0.4):
        limits[GPU] = gpus(rng, 2 if small else 6)
        if chance(rng, 0.5):
            requests[GPU] = limits[GPU]
    if chance(rng, 0.1):
        limits["cpu"] = cpu(rng)
    if chance(rng, 0.08):
        requests["ephemeral-storage"] = rng.choice(("1Gi", "100Gi", "101Gi"))
    if chance(rng, 0.04):
        limits["hugepages-2Mi"] = rng.choice(("2Mi", "4Mi"))
    made: Json = {"name": name, "image": "registry/x:1"}
    if requests or limits:
        made["resources"] = {
            key: value for key, value in (("requests", requests), ("limits", limits)) if value
        }
    return made


def pod(rng: Random, name: str, *, small: bool) -> Json:
    spec: Json = {
        "containers": [
            container(rng, f"c{i}", small=small) for i in range(rng.choice((1, 1, 1, 2, 3)))
        ]
    }
    if chance(rng, 0.25):
        spec["initContainers"] = []
        for i in range(rng.choice((1, 2, 3))):
            init = container(rng, f"i{i}", small=small)
            if chance(rng, 0.45):
                init["restartPolicy"] = "Always"
            spec["initContainers"].append(init)
    if chance(rng, 0.08):
        spec["overhead"] = {"cpu": "250m", "memory": "120Mi"}
    if chance(rng, 0.06):
        spec["resources"] = {"requests": {"cpu": cpu(rng), "memory": memory(rng)}}
        if chance(rng, 0.4):
            spec["resources"] = {"limits": {"cpu": "4"}}
    if chance(rng, 0.3):
        spec["priority"] = rng.choice((-10, 0, 5, 1000))
    namespace = rng.choice(NAMESPACES)
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": app_labels(rng),
        },
        "spec": spec,
    }


# -- twists: one per filter, some of them per way of failing ---------------------------------------


def less_capacity(made: Case) -> None:
    rng = made.rng
    for target in made.nodes:
        if chance(rng, 0.6):
            resource = rng.choice((GPU, "cpu", "memory", "pods", "ephemeral-storage"))
            table = target["status"].setdefault("allocatable", {})
            value = rng.choice(("0", "1", "2", "100m" if resource == "cpu" else "64Mi", None))
            if resource in ("pods", GPU):
                value = rng.choice(("0", "1", "2", "3", None))
            if value is None:
                table.pop(resource, None)
            else:
                table[resource] = value
    if chance(rng, 0.15):
        made.a_node()["status"].pop("allocatable", None)
    if chance(rng, 0.3):
        resource = rng.choice(
            ("example.com/fpga", "nvidia.com/mig-1g.10gb", "hugepages-1Gi", "attachable-volumes-x")
        )
        amount = rng.choice(("0", "1", "2", "1Gi"))
        made.pod["spec"]["containers"][0].setdefault("resources", {}).setdefault("limits", {})[
            resource
        ] = amount
        if chance(rng, 0.7):
            made.a_node()["status"].setdefault("allocatable", {})[resource] = rng.choice(
                ("0", "1", "2", "1Gi")
            )


def pod_level_resources(made: Case) -> None:
    rng = made.rng
    for target in [made.pod, *made.pods]:
        if chance(rng, 0.5):
            level: Json = {}
            for side in ("requests", "limits"):
                if chance(rng, 0.7):
                    level[side] = {
                        key: make(rng)
                        for key, make in (("cpu", cpu), ("memory", memory))
                        if chance(rng, 0.7)
                    }
            target["spec"]["resources"] = level


def resized(made: Case) -> None:
    """Pods on nodes whose status says other resources than their spec (resize in place)."""
    rng = made.rng
    for target in made.pods:
        if not target["spec"].get("nodeName"):
            continue
        statuses = []
        for one in target["spec"]["containers"]:
            entry: Json = {"name": one["name"]}
            if chance(rng, 0.7):
                entry["allocatedResources"] = {"cpu": cpu(rng), "memory": memory(rng)}
            if chance(rng, 0.7):
                entry["resources"] = {"requests": {"cpu": cpu(rng), "memory": memory(rng)}}
            statuses.append(entry)
        target["status"]["containerStatuses"] = statuses
        if chance(rng, 0.3):
            target["status"]["conditions"] = [
                {
                    "type": "PodResizePending",
                    "status": "True",
                    "reason": rng.choice(("Infeasible", "Deferred")),
                }
            ]


def taints(made: Case) -> None:
    rng = made.rng
    for target in made.nodes:
        if chance(rng, 0.6):
            target["spec"]["taints"] = [
                {
                    "key": key,
                    "effect": rng.choice(EFFECTS),
                    **({"value": "present"} if chance(rng, 0.5) else {}),
                }
                for key in some(rng, TAINTS, 1, 3)
            ]
    if chance(rng, 0.75):
        made.pod["spec"]["tolerations"] = [toleration(rng) for _ in range(rng.choice((1, 1, 2, 3)))]


def toleration(rng: Random) -> Json:
    made: Json = {}
    if chance(rng, 0.9):
        made["key"] = rng.choice(TAINTS)
        made["operator"] = rng.choice(("Exists", "Equal", "Equal", ""))
        if made["operator"] == "":
            del made["operator"]
    else:
        made["operator"] = "Exists"
    if made.get("operator") != "Exists" and chance(rng, 0.7):
        made["value"] = rng.choice(("present", "other", ""))
    if chance(rng, 0.6):
        made["effect"] = rng.choice(EFFECTS)
    if made.get("effect") == "NoExecute" and chance(rng, 0.3):
        made["tolerationSeconds"] = 300
    return made


def numeric_toleration(made: Case) -> None:
    rng = made.rng
    for target in made.nodes:
        target["spec"]["taints"] = [
            {"key": "load", "value": rng.choice(("1", "50", "x")), "effect": "NoSchedule"}
        ]
    made.pod["spec"]["tolerations"] = [
        {"key": "load", "operator": rng.choice(("Gt", "Lt")), "value": "10", "effect": "NoSchedule"}
    ]


def cordon(made: Case) -> None:
    rng = made.rng
    for target in made.nodes:
        if chance(rng, 0.5):
            target["spec"]["unschedulable"] = True
            if chance(rng, 0.7):
                target["spec"]["taints"] = [
                    {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
                ]
    if chance(rng, 0.3):
        made.pod["spec"]["tolerations"] = [
            {
                "key": "node.kubernetes.io/unschedulable",
                "operator": rng.choice(("Exists", "Equal")),
                **({"effect": "NoSchedule"} if chance(rng, 0.5) else {}),
            }
        ]


def node_requirement(rng: Random) -> Json:
    operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Gt", "Lt"):
        return {
            "key": rng.choice(("slots", "slots", "absent")),
            "operator": operator,
            "values": [rng.choice(("1", "4", "5", "-3", "9", "+5", "x"))],
        }
    key = rng.choice((ZONE, HOST, "nvidia.com/gpu.product", "absent", "slots"))
    made: Json = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        made["values"] = some(rng, ("z1", "z2", "n0", "n1", "H100", "L40S", "5", ""), 1, 4)
    return made


def node_term(rng: Random) -> Json:
    term: Json = {}
    if chance(rng, 0.85):
        term["matchExpressions"] = [node_requirement(rng) for _ in range(rng.choice((1, 1, 2)))]
    if chance(rng, 0.25):
        term["matchFields"] = [
            {
                "key": "metadata.name",
                "operator": rng.choice(("In", "In", "NotIn")),
                "values": [rng.choice(("n0", "n1", "n2", "gone"))],
            }
        ]
    return term


def node_affinity(made: Case) -> None:
    rng = made.rng
    spec = made.pod["spec"]
    if chance(rng, 0.5):
        spec["nodeSelector"] = {
            key: rng.choice(values)
            for key, values in rng.sample(
                [
                    (ZONE, ("z1", "z2", "z9")),
                    ("nvidia.com/gpu.product", ("H100", "L40S")),
                    (HOST, ("n0", "n1")),
                ],
                rng.choice((1, 1, 2)),
            )
        }
    if chance(rng, 0.8):
        affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [node_term(rng) for _ in range(rng.choice((1, 1, 2, 3)))]
        }
        if chance(rng, 0.2):
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": 5, "preference": node_term(rng)}
            ]


def ports(made: Case) -> None:
    rng = made.rng
    taken: set[tuple[str, int]] = set()
    for target in [made.pod, made.pod, *made.pods]:
        holders = [*target["spec"]["containers"], *target["spec"].get("initContainers", [])]
        holder = rng.choice(holders)
        port: Json = {"containerPort": 80}
        if chance(rng, 0.9):
            port["hostPort"] = rng.choice((80, 80, 443))
            here = (target["spec"].get("nodeName", ""), port["hostPort"])
            if here[0] and here in taken:
                continue  # no two pods of a node hold the same port
            taken.add(here)
        if chance(rng, 0.5):
            port["hostIP"] = rng.choice(("0.0.0.0", "127.0.0.1", "10.0.0.1", ""))
        if chance(rng, 0.4):
            port["protocol"] = rng.choice(("TCP", "UDP", "SCTP"))
        holder.setdefault("ports", []).append(port)


def spread(made: Case) -> None:
    rng = made.rng
    for target in made.nodes:
        if chance(rng, 0.15):
            target["metadata"]["labels"].pop(rng.choice((ZONE, HOST)), None)
    constraints = []
    for key in some(rng, (ZONE, HOST, "slots", "rack"), 1, 2):
        selector = label_selector(rng)
        made_one: Json = {
            "maxSkew": rng.choice((1, 1, 2, 3)),
            "topologyKey": key,
            "whenUnsatisfiable": rng.choice(("DoNotSchedule",) * 4 + ("ScheduleAnyway",)),
        }
        if selector is not None:
            made_one["labelSelector"] = selector
        if made_one["whenUnsatisfiable"] == "DoNotSchedule" and chance(rng, 0.25):
            made_one["minDomains"] = rng.choice((1, 2, 3, 5))
        if chance(rng, 0.25):
            made_one["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
        if chance(rng, 0.25):
            made_one["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
        if chance(rng, 0.15):
            made_one["matchLabelKeys"] = ["pod-template-hash"]
        constraints.append(made_one)
    made.pod["spec"]["topologySpreadConstraints"] = constraints
    if chance(rng, 0.4):
        add_peers(made)


def add_peers(made: Case) -> None:
    """More pods with labels and a node, so that counts differ between the domains."""
    rng = made.rng
    first = len(made.pods)
    for index in range(first, first + rng.choice((1, 2, 3, 4))):
        peer = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "name": f"peer{index}",
                "namespace": rng.choice(("default", "default", "team-a")),
                "uid": f"uid-peer{index}",
                "labels": app_labels(rng),
            },
            "spec": {
                "nodeName": made.a_node()["metadata"]["name"],
                "containers": [{"name": "c", "image": "registry/x:1"}],
            },
            "status": {"phase": "Running", "startTime": f"2026-11-02T10:{index:02d}:00Z"},
        }
        if chance(rng, 0.1):
            peer["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z"
            peer["metadata"]["deletionGracePeriodSeconds"] = 30
        made.pods.append(peer)


def pod_term(rng: Random) -> Json:
    term: Json = {"topologyKey": rng.choice((ZONE, ZONE, HOST, "rack", REGION))}
    selector = label_selector(rng)
    if selector is not None:
        term["labelSelector"] = selector
    if chance(rng, 0.25):
        term["namespaces"] = some(rng, NAMESPACES, 1, 2)
    if chance(rng, 0.2):
        term["namespaceSelector"] = rng.choice(
            ({}, {"matchLabels": {"team": "a"}}, {"matchLabels": {"team": "c"}})
        )
    if chance(rng, 0.1):
        term[rng.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["pod-template-hash"]
    return term


def pod_affinity(made: Case) -> None:
    rng = made.rng
    if chance(rng, 0.6):
        add_peers(made)
    targets = [made.pod] if chance(rng, 0.7) else []
    targets += [other for other in made.pods if chance(rng, 0.3)]
    for target in targets:
        for side in some(rng, ("podAffinity", "podAntiAffinity"), 1, 2):
            affinity = target["spec"].setdefault("affinity", {}).setdefault(side, {})
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = [
                pod_term(rng) for _ in range(rng.choice((1, 1, 2)))
            ]
            if chance(rng, 0.1):
                affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": 1, "podAffinityTerm": pod_term(rng)}
                ]
    for target in made.nodes:
        if chance(rng, 0.1):
            target["metadata"]["labels"].pop(rng.choice((ZONE, HOST)), None)


def zone_affinity(rng: Random) -> Json:
    return {
        "required": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {
                            "key": ZONE,
                            "operator": "In",
                            "values": some(rng, ("z1", "z2", "z3"), 1, 2),
                        }
                    ]
                }
                for _ in range(rng.choice((1, 1, 2)))
            ]
        }
    }


def volumes(made: Case) -> None:
    rng = made.rng
    spec = made.pod["spec"]
    spec["volumes"] = []
    made.other += [
        {
            "kind": "StorageClass",
            "apiVersion": "storage.k8s.io/v1",
            "metadata": {"name": "now"},
            "provisioner": "disk.example.com",
            "volumeBindingMode": "Immediate",
        },
        {
            "kind": "StorageClass",
            "apiVersion": "storage.k8s.io/v1",
            "metadata": {"name": "late"},
            "provisioner": "disk.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
            **(
                {
                    "allowedTopologies": [
                        {
                            "matchLabelExpressions": [
                                {"key": ZONE, "values": some(rng, ("z1", "z2", "z9"), 1, 2)}
                            ]
                        }
                    ]
                }
                if chance(rng, 0.5)
                else {}
            ),
        },
        {
            "kind": "StorageClass",
            "apiVersion": "storage.k8s.io/v1",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    ]
    for index in range(rng.choice((1, 1, 1, 2))):
        name = f"data{index}"
        spec["volumes"].append({"name": f"v{index}", "persistentVolumeClaim": {"claimName": name}})
        rng.choice((bound_claim, bound_claim, bound_claim, waiting_claim, local_claim, odd_claim))(
            made, name
        )


def claim(name: str, class_name: str | None, **spec: Any) -> Json:
    body: Json = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}},
        **spec,
    }
    if class_name is not None:
        body["storageClassName"] = class_name
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": body,
        "status": {"phase": "Pending"},
    }


def bound_claim(made: Case, name: str) -> None:
    rng = made.rng
    one = claim(name, rng.choice(("now", "late")), volumeName=f"pv-{name}")
    one["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    one["status"]["phase"] = "Bound"
    if chance(rng, 0.25):
        one["spec"]["accessModes"] = ["ReadWriteOncePod"]
        if made.pods and chance(rng, 0.6):
            other = rng.choice(made.pods)
            other["metadata"]["namespace"] = "default"
            other["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
    made.other.append(one)
    if chance(rng, 0.1):
        return  # a claim that names a volume that is gone
    volume: Json = {
        "kind": "PersistentVolume",
        "apiVersion": "v1",
        "metadata": {"name": f"pv-{name}", "labels": {}},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": one["spec"]["storageClassName"],
            "csi": {"driver": "disk.example.com", "volumeHandle": name},
            "claimRef": {"namespace": "default", "name": name, "uid": f"uid-{name}"},
        },
        "status": {"phase": "Bound"},
    }
    if chance(rng, 0.7):
        volume["spec"]["nodeAffinity"] = zone_affinity(rng)
    if chance(rng, 0.25):
        volume["metadata"]["labels"][
            rng.choice((ZONE, "failure-domain.beta.kubernetes.io/zone"))
        ] = rng.choice(("z1", "z2", "z1__z2"))
    made.other.append(volume)


def waiting_claim(made: Case, name: str) -> None:
    one = claim(name, "late")
    if chance(made.rng, 0.15):
        one["metadata"]["annotations"] = {
            "volume.kubernetes.io/selected-node": made.a_node()["metadata"]["name"]
        }
    made.other.append(one)


def local_claim(made: Case, name: str) -> None:
    rng = made.rng
    made.other.append(claim(name, "local"))
    for index in range(rng.choice((0, 1, 2))):
        made.other.append(
            {
                "kind": "PersistentVolume",
                "apiVersion": "v1",
                "metadata": {"name": f"local-{name}-{index}"},
                "spec": {
                    "capacity": {"storage": rng.choice(("5Gi", "10Gi", "20Gi"))},
                    "accessModes": [rng.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadOnlyMany"))],
                    "storageClassName": rng.choice(("local", "local", "other")),
                    "local": {"path": "/mnt"},
                    "nodeAffinity": {
                        "required": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {
                                            "key": HOST,
                                            "operator": "In",
                                            "values": [made.a_node()["metadata"]["name"]],
                                        }
                                    ]
                                }
                            ]
                        }
                    },
                },
                "status": {"phase": rng.choice(("Available", "Available", "Released"))},
            }
        )


def odd_claim(made: Case, name: str) -> None:
    rng = made.rng
    kind = rng.choice(("missing", "immediate", "deleted", "lost", "no class", "unknown class"))
    if kind == "missing":
        return
    one = claim(
        name, {"immediate": "now", "no class": None, "unknown class": "nope"}.get(kind, "late")
    )
    if kind == "deleted":
        one["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z"
        one["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
    if kind == "lost":
        one["status"]["phase"] = "Lost"
        one["spec"]["volumeName"] = "gone"
    made.other.append(one)


def volume_limits(made: Case) -> None:
    """CSINode attach limits with pods that hold volumes of the driver."""
    rng = made.rng
    made.other.append(
        {
            "kind": "StorageClass",
            "apiVersion": "storage.k8s.io/v1",
            "metadata": {"name": "now"},
            "provisioner": "disk.example.com",
            "volumeBindingMode": "Immediate",
        }
    )
    made.other.append(
        {
            "kind": "CSIDriver",
            "apiVersion": "storage.k8s.io/v1",
            "metadata": {"name": "disk.example.com"},
            "spec": {},
        }
    )
    for target in made.nodes:
        if chance(rng, 0.85):
            driver: Json = {"name": "disk.example.com", "nodeID": target["metadata"]["name"]}
            if chance(rng, 0.8):
                driver["allocatable"] = {"count": rng.choice((0, 1, 2))}
            made.other.append(
                {
                    "kind": "CSINode",
                    "apiVersion": "storage.k8s.io/v1",
                    "metadata": {"name": target["metadata"]["name"]},
                    "spec": {"drivers": [driver]},
                }
            )
    names = ["shared", "one", "two", "three"]
    for name in names:
        one = claim(name, "now", volumeName=f"pv-{name}")
        one["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        one["status"]["phase"] = "Bound"
        made.other.append(one)
        made.other.append(
            {
                "kind": "PersistentVolume",
                "apiVersion": "v1",
                "metadata": {"name": f"pv-{name}"},
                "spec": {
                    "capacity": {"storage": "10Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "now",
                    "csi": {
                        "driver": rng.choice(("disk.example.com",) * 4 + ("other.example.com",)),
                        "volumeHandle": name,
                    },
                    "claimRef": {"namespace": "default", "name": name, "uid": f"uid-{name}"},
                },
                "status": {"phase": "Bound"},
            }
        )
    for target in [made.pod, *made.pods]:
        if target is made.pod or chance(rng, 0.7):
            target["metadata"]["namespace"] = "default"
            target["spec"]["volumes"] = [
                {"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}}
                for i, name in enumerate(some(rng, names, 1, 2))
            ]


def disk_conflicts(made: Case) -> None:
    """Volumes written in the pod that may not be mounted twice."""
    rng = made.rng
    for target in [made.pod, *made.pods]:
        if target is made.pod or chance(rng, 0.6):
            target["spec"].setdefault("volumes", []).append(
                {
                    "name": "disk",
                    **rng.choice(
                        (
                            {
                                "gcePersistentDisk": {
                                    "pdName": rng.choice(("a", "b")),
                                    "readOnly": chance(rng, 0.4),
                                }
                            },
                            {"awsElasticBlockStore": {"volumeID": rng.choice(("a", "b"))}},
                            {
                                "iscsi": {
                                    "iqn": "iqn.x",
                                    "targetPortal": "10.0.0.1",
                                    "lun": 0,
                                    "readOnly": chance(rng, 0.4),
                                }
                            },
                            {
                                "rbd": {
                                    "monitors": some(rng, ("m1", "m2"), 1, 2),
                                    "image": "i",
                                    "pool": "rbd",
                                    "readOnly": chance(rng, 0.4),
                                }
                            },
                        )
                    ),
                }
            )


def nominated(made: Case) -> None:
    """Pods that preempted others and wait for their node."""
    rng = made.rng
    for index in range(rng.choice((1, 2))):
        other = pod(rng, f"waits{index}", small=True)
        other["spec"]["priority"] = rng.choice((-5, 0, 10))
        other["status"] = {
            "phase": "Pending",
            "nominatedNodeName": made.a_node()["metadata"]["name"],
        }
        other["spec"]["priority"] = max(
            other["spec"]["priority"], made.pod["spec"].get("priority", 0) - 1
        )
        made.pods.append(other)
        if chance(rng, 0.3):
            other["spec"]["affinity"] = {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [pod_term(rng)]
                }
            }


def no_nodes_of_name(made: Case) -> None:
    made.pod["spec"].setdefault("affinity", {})["nodeAffinity"] = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
                for name in some(made.rng, ("n0", "n1", "gone", "gone2"), 1, 2)
            ]
        }
    }


def storage_capacity(made: Case) -> None:
    """A driver that publishes how much it can still provision, per segment of the cluster."""
    rng = made.rng
    made.other += [
        {
            "kind": "StorageClass",
            "apiVersion": "storage.k8s.io/v1",
            "metadata": {"name": "late"},
            "provisioner": "disk.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "kind": "CSIDriver",
            "apiVersion": "storage.k8s.io/v1",
            "metadata": {"name": "disk.example.com"},
            "spec": {"storageCapacity": chance(rng, 0.85)},
        },
    ]
    for index in range(rng.choice((0, 1, 2, 3))):
        capacity: Json = {
            "kind": "CSIStorageCapacity",
            "apiVersion": "storage.k8s.io/v1",
            "metadata": {"name": f"capacity{index}", "namespace": "kube-system"},
            "storageClassName": rng.choice(("late", "late", "other")),
            "nodeTopology": rng.choice(
                (
                    {"matchLabels": {ZONE: rng.choice(("z1", "z2"))}},
                    {"matchLabels": {HOST: "n0"}},
                    {},
                )
            ),
        }
        if chance(rng, 0.8):
            capacity["capacity"] = rng.choice(("1Gi", "10Gi", "100Gi"))
        if chance(rng, 0.3):
            capacity["maximumVolumeSize"] = rng.choice(("5Gi", "10Gi"))
        made.other.append(capacity)
    made.other.append(claim("data", "late"))
    made.pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]


def ephemeral_volumes(made: Case) -> None:
    """Claims that the control plane makes for one pod: named after it, and owned by it."""
    rng = made.rng
    made.other.append(
        {
            "kind": "StorageClass",
            "apiVersion": "storage.k8s.io/v1",
            "metadata": {"name": "late"},
            "provisioner": "disk.example.com",
            "volumeBindingMode": rng.choice(("WaitForFirstConsumer", "Immediate")),
        }
    )
    template = {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "late",
            "resources": {"requests": {"storage": "1Gi"}},
        }
    }
    made.pod["spec"].setdefault("volumes", []).append(
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    )
    # without the claim the scheduler waits for its controller; we take it to come
    one = claim("asking-scratch", "late")
    if chance(rng, 0.8):
        one["metadata"]["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": "asking",
                "uid": rng.choice(("uid-asking", "uid-asking", "uid-other")),
                "controller": True,
            }
        ]
    made.other.append(one)


def by_annotation(made: Case) -> None:
    """The storage class of old claims and volumes stands in an annotation."""
    volumes(made)
    for one in made.other:
        if one["kind"] in ("PersistentVolumeClaim", "PersistentVolume") and chance(made.rng, 0.6):
            name = one["spec"].pop("storageClassName", None)
            if name:
                notes = one["metadata"].setdefault("annotations", {})
                notes["volume.beta.kubernetes.io/storage-class"] = name


def selected_volumes(made: Case) -> None:
    """Static volumes by label selector, size, mode; several claims compete for them."""
    rng = made.rng
    made.other.append(
        {
            "kind": "StorageClass",
            "apiVersion": "storage.k8s.io/v1",
            "metadata": {"name": "local"},
            "provisioner": rng.choice(("kubernetes.io/no-provisioner", "disk.example.com")),
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    made.pod["spec"]["volumes"] = []
    for index in range(rng.choice((1, 2, 2))):
        one = claim(f"data{index}", "local")
        one["spec"]["resources"]["requests"]["storage"] = rng.choice(("5Gi", "10Gi", "20Gi"))
        if chance(rng, 0.4):
            one["spec"]["selector"] = {"matchLabels": {"disk": rng.choice(("fast", "slow"))}}
        if chance(rng, 0.2):
            one["spec"]["volumeMode"] = rng.choice(("Block", "Filesystem"))
        made.other.append(one)
        made.pod["spec"]["volumes"].append(
            {"name": f"v{index}", "persistentVolumeClaim": {"claimName": f"data{index}"}}
        )
    for index in range(rng.choice((1, 2, 3))):
        volume: Json = {
            "kind": "PersistentVolume",
            "apiVersion": "v1",
            "metadata": {"name": f"local{index}", "labels": {"disk": rng.choice(("fast", "slow"))}},
            "spec": {
                "capacity": {"storage": rng.choice(("5Gi", "10Gi", "20Gi"))},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "local": {"path": "/mnt"},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {
                                        "key": HOST,
                                        "operator": "In",
                                        "values": [made.a_node()["metadata"]["name"]],
                                    }
                                ]
                            }
                        ]
                    }
                },
            },
            "status": {"phase": "Available"},
        }
        if chance(rng, 0.2):
            volume["spec"]["volumeMode"] = rng.choice(("Block", "Filesystem"))
        if chance(rng, 0.3):
            volume["spec"]["claimRef"] = {
                "namespace": "default",
                "name": rng.choice(("data0", "data1", "else")),
                **({"uid": "uid-data0"} if chance(rng, 0.5) else {}),
            }
        if chance(rng, 0.05):
            volume["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z"
            volume["metadata"]["finalizers"] = ["kubernetes.io/pv-protection"]
        made.other.append(volume)


def sidecar_statuses(made: Case) -> None:
    """Resized sidecars and pod-level resources in status."""
    rng = made.rng
    for target in made.pods:
        spec = target["spec"]
        if not spec.get("nodeName"):
            continue
        spec["initContainers"] = [{**container(rng, "side", small=True), "restartPolicy": "Always"}]
        target["status"]["initContainerStatuses"] = [
            {"name": "side", "allocatedResources": {"cpu": cpu(rng), "memory": memory(rng)}}
        ]
        if chance(rng, 0.4):
            spec["resources"] = {"requests": {"cpu": cpu(rng), "memory": memory(rng)}}
            target["status"]["allocatedResources"] = {"cpu": cpu(rng), "memory": memory(rng)}
            if chance(rng, 0.5):
                target["status"]["resources"] = {"requests": {"cpu": cpu(rng)}}


TWISTS: list[Callable[[Case], None]] = [
    less_capacity,
    less_capacity,
    pod_level_resources,
    resized,
    taints,
    taints,
    numeric_toleration,
    cordon,
    node_affinity,
    node_affinity,
    ports,
    spread,
    spread,
    pod_affinity,
    pod_affinity,
    volumes,
    volumes,
    volume_limits,
    disk_conflicts,
    nominated,
    no_nodes_of_name,
    storage_capacity,
    ephemeral_volumes,
    by_annotation,
    selected_volumes,
    selected_volumes,
    sidecar_statuses,
]


PREEMPTION_TWISTS: list[Callable[[Case], None]] = [
    pod_affinity,
    pod_affinity,
    spread,
    spread,
    ports,
    ports,
    volume_limits,
    disk_conflicts,
    nominated,
    resized,
    pod_level_resources,
    taints,
    cordon,
    less_capacity,
    volumes,
]


def prepare_preemption(made: Case) -> None:
    """Full nodes, lower and higher priorities, budgets, a policy of Never now and then."""
    rng = made.rng
    spec = made.pod["spec"]
    spec["priority"] = rng.choice((1000, 1000, 1000, 1000, 10, 0))
    if chance(rng, 0.06):
        spec["preemptionPolicy"] = rng.choice(("Never", "PreemptLowerPriority"))
    asked = rng.choice((1, 2, 4))
    spec["containers"] = [
        {"name": "c0", "image": "registry/x:1", "resources": {"limits": {GPU: str(asked)}}}
    ]
    if chance(rng, 0.8):
        spec.pop("initContainers", None)
        spec.pop("resources", None)
    used: dict[str, int] = {}
    for index, other in enumerate(made.pods):
        other["spec"]["priority"] = rng.choice((-10, 0, 0, 5, 10, 999, 1000, 2000))
        other["status"]["startTime"] = f"2026-11-01T{rng.randint(0, 3):02d}:{index:02d}:00Z"
        other["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        amount = rng.choice((1, 1, 2))
        other["spec"]["containers"] = [
            {"name": "c0", "image": "registry/x:1", "resources": {"limits": {GPU: str(amount)}}}
        ]
        if chance(rng, 0.8):
            other["spec"].pop("initContainers", None)
        if chance(rng, 0.85):
            other["status"]["phase"] = "Running"
        node_name = other["spec"].get("nodeName", "")
        used[node_name] = used.get(node_name, 0) + amount
    for target in made.nodes:
        full = used.get(target["metadata"]["name"], 0)
        target["status"]["allocatable"][GPU] = str(max(asked, full + rng.choice((0, 0, 0, 1, -1))))
    for index in range(rng.choice((0, 0, 1, 2))):
        made.other.append(
            {
                "kind": "PodDisruptionBudget",
                "apiVersion": "policy/v1",
                "metadata": {"name": f"budget{index}", "namespace": rng.choice(NAMESPACES)},
                "spec": {
                    "minAvailable": 1,
                    "selector": rng.choice(
                        ({"matchLabels": {"app": rng.choice(APPS)}}, {}, label_selector(rng) or {})
                    ),
                },
                "status": {
                    "disruptionsAllowed": rng.choice((0, 0, 1, 2)),
                    "currentHealthy": 1,
                    "desiredHealthy": 1,
                    "expectedPods": 1,
                },
            }
        )
        if chance(rng, 0.2) and made.pods:
            made.other[-1]["status"]["disruptedPods"] = {
                rng.choice(made.pods)["metadata"]["name"]: "2026-11-29T12:00:00Z"
            }
