"""Random clusters with DRA devices, and a pod whose claims ask for them.

Every case starts from pools that can serve the pod on most nodes; *twists* then change pools,
devices, claims or who holds what around one feature each, so that every feature meets every other.
A case is ``{"objects": [...], "pod": {...}}``, the referee's own input.

Left out, because Kubernetes has no single answer there: slices of one generation that state
different slice counts, and generations of one pool that are complete on different nodes at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from tests.differential.vocabulary import Json, chance, some

GPU = "gpu.example.com"
NIC = "nic.example.com"
FABRIC = "fabric.example.com"
RESOURCE = "example.com/gpu"

MODELS = ("a100", "h100")
SELECTORS = (
    f'device.attributes["{GPU}"].model == "a100"',
    f'device.attributes["{GPU}"].model == "h100"',
    f'device.attributes["{GPU}"].model != "none"',
    f'device.attributes["{GPU}"].index < 2',
    f'device.attributes["{GPU}"].index >= 1',
    f'device.attributes["{GPU}"]["index"] != 0',
    f'device.attributes["{GPU}"].healthy',
    f'!device.attributes["{GPU}"].healthy || device.attributes["{GPU}"].index == 0',
    f'device.attributes["{GPU}"].driverVersion.isGreaterThan(semver("550.0.0"))',
    f'device.attributes["{GPU}"].driverVersion.compareTo(semver("550.0.0")) == 0',
    f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0',
    f'device.capacity["{GPU}"].memory.isGreaterThan(quantity("40Gi"))',
    f'device.capacity["{GPU}"].memory == quantity("80Gi")',
    f'device.driver == "{GPU}"',
    f'"{GPU}" in device.attributes',
    f'device.attributes["{GPU}"].?missing.orValue("x") == "x"',
    f'has(device.attributes["{GPU}"].extra) && device.attributes["{GPU}"].extra == "y"',
    f'device.attributes["{GPU}"].uuid.startsWith("GPU-n0")',
    f'device.attributes["{GPU}"].model in ["a100", "l4"]',
    f'cel.bind(a, device.attributes["{GPU}"], a.model == "a100" || a.index > 2)',
    "device.allowMultipleAllocations",
    "true",
)
FRAGILE = (
    f'device.attributes["{GPU}"].extra == "y"',
    'device.attributes["other.example.com"].x == 1',
    f'device.capacity["{GPU}"].bandwidth.compareTo(quantity("1")) > 0',
    f'device.attributes["{GPU}"].model',
    f'device.attributes["{GPU}"].index / 0 == 1',
    "nonsense(",
)
"""They fail on some devices, or do not compile: the attempt is aborted."""

ATTRIBUTES = (
    *(f"{GPU}/model", f"{GPU}/numa", f"{GPU}/model", f"{GPU}/numa"),
    *(f"{GPU}/index", f"{GPU}/healthy", f"{GPU}/driverVersion", f"{GPU}/none"),
)
TAINTS = ("gpu.example.com/xid", "gpu.example.com/lost")
EFFECTS = ("NoSchedule", "NoExecute", "None", "NoSchedule")
LONG_AGO, IN_FUTURE = "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"


class Case:
    """A case under construction: parts that twists change."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.nodes: list[Json] = []
        self.slices: list[Json] = []
        self.classes: list[Json] = []
        self.claims: list[Json] = []
        self.others: list[Json] = []
        self.rules: list[Json] = []
        self.pod: Json = {}

    def document(self) -> Json:
        objects = [*self.nodes, *self.classes, *self.slices, *self.rules]
        return {"objects": [*objects, *self.claims, *self.others], "pod": self.pod}

    def devices(self) -> list[tuple[Json, Json]]:
        return [(s, d) for s in self.slices for d in s["spec"].get("devices", [])]

    def a_device(self) -> Json | None:
        found = self.devices()
        return self.rng.choice(found)[1] if found else None

    def requests(self) -> list[Json]:
        """Every request and alternative of the pod's claims."""
        found = []
        for claim in self.claims:
            for request in claim["spec"]["devices"]["requests"]:
                found += request.get("firstAvailable", []) or [request["exactly"]]
        return found


def case(rng: Random) -> Json:
    made = Case(rng)
    for index in range(rng.choice((1, 2, 2, 3, 4))):
        made.nodes.append(node(rng, f"n{index}"))
    made.classes = classes()
    style = rng.choice(STYLES)
    for one in made.nodes:
        style(made, one["metadata"]["name"])
    if chance(rng, 0.3):
        twins(made)
    if chance(rng, 0.3):
        fabric(made)
    the_pod(made)
    if chance(rng, 0.6):
        occupy(made)
    for twist in rng.sample(TWISTS, rng.choice((0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3))):
        twist(made)
    return made.document()


# -- what there is ---------------------------------------------------------------------------------


def node(rng: Random, name: str) -> Json:
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "rack": rng.choice(("r1", "r2"))},
        },
        "spec": {},
        "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}},
    }


def device_class(name: str, *selectors: str, **more: Any) -> Json:
    return {
        "kind": "DeviceClass",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"selectors": [{"cel": {"expression": one}} for one in selectors], **more},
    }


def classes() -> list[Json]:
    return [
        device_class("gpu", f'device.driver == "{GPU}"', extendedResourceName=RESOURCE),
        device_class(
            "big",
            f'device.driver == "{GPU}" && device.capacity["{GPU}"].memory.compareTo('
            'quantity("60Gi")) >= 0',
        ),
        device_class("nic", f'device.driver == "{NIC}"'),
        device_class("fabric", f'device.driver == "{FABRIC}"'),
        device_class("any"),
    ]


def resource_slice(
    name: str, driver: str, pool: str, devices: list[Json], *, count: int = 1, **spec: Any
) -> Json:
    body: Json = {
        "driver": driver,
        "pool": {"name": pool, "generation": 1, "resourceSliceCount": count},
        **spec,
    }
    if devices:
        body["devices"] = devices
    return {
        "kind": "ResourceSlice",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": name},
        "spec": body,
    }


def gpu(rng: Random, home: str, index: int) -> Json:
    attributes: Json = {
        "model": {"string": rng.choice(MODELS)},
        "index": {"int": index},
        "numa": {"int": index // 2},
        "healthy": {"bool": chance(rng, 0.8)},
        "uuid": {"string": f"GPU-{home}-{index}"},
        "driverVersion": {"version": rng.choice(("550.0.0", "565.57.1", "535.1.0"))},
    }
    if chance(rng, 0.2):
        attributes["extra"] = {"string": rng.choice(("y", "z"))}
    if chance(rng, 0.1):
        attributes[f"{GPU}/model"] = attributes.pop("model")
    return {
        "name": f"gpu-{index}",
        "attributes": attributes,
        "capacity": {"memory": {"value": rng.choice(("40Gi", "80Gi", "85899345920", "24Gi"))}},
    }


def plain(made: Case, home: str) -> None:
    rng = made.rng
    devices = [gpu(rng, home, index) for index in range(rng.randint(2, 7))]
    cut = rng.randint(0, len(devices)) if chance(rng, 0.3) else len(devices)
    parts = [part for part in (devices[:cut], devices[cut:]) if part]
    for number, part in enumerate(parts):
        name = f"{home}-{rng.choice('abcd')}{number}"
        made.slices.append(resource_slice(name, GPU, home, part, count=len(parts), nodeName=home))
    if chance(rng, 0.4):
        nics = [
            {"name": f"nic-{i}", "attributes": {f"{GPU}/numa": {"int": i}, "index": {"int": i}}}
            for i in range(rng.randint(1, 3))
        ]
        made.slices.append(resource_slice(f"{home}-nic", NIC, home, nics, nodeName=home))


def partitioned(made: Case, home: str) -> None:
    """GPUs that can be had as a whole or in parts, as with MIG."""
    rng = made.rng
    devices: list[Json] = []
    sets: list[Json] = []
    for index in range(rng.randint(1, 3)):
        counters = {f"slice-{i}": {"value": "1"} for i in range(4)}
        counters["memory"] = {"value": "40Gi"}
        sets.append({"name": f"gpu-{index}-set", "counters": counters})
        whole = gpu(rng, home, index)
        whole["consumesCounters"] = [{"counterSet": f"gpu-{index}-set", "counters": counters}]
        devices.append(whole)
        for start, size in rng.sample(((0, 1), (1, 1), (2, 1), (3, 1), (0, 2), (2, 2)), 4):
            part = gpu(rng, home, index)
            part["name"] = f"gpu-{index}-part-{size}-{start}"
            part["capacity"] = {"memory": {"value": f"{10 * size}Gi"}}
            consumed = {f"slice-{i}": {"value": "1"} for i in range(start, start + size)}
            consumed["memory"] = {"value": f"{rng.choice((10, 10, 12)) * size}Gi"}
            part["consumesCounters"] = [{"counterSet": f"gpu-{index}-set", "counters": consumed}]
            devices.append(part)
    rng.shuffle(devices)
    made.slices.append(resource_slice(f"{home}-a", GPU, home, devices, count=2, nodeName=home))
    made.slices.append(
        resource_slice(f"{home}-b", GPU, home, [], count=2, nodeName=home, sharedCounters=sets)
    )


def capacity(rng: Random) -> Json:
    found: Json = {"value": rng.choice(("10Gi", "40Gi", "8"))}
    roll = rng.random()
    if roll < 0.3:
        found["requestPolicy"] = {
            "default": "2",
            "validRange": {"min": "1", "max": rng.choice(("8", "4Gi")), "step": "1"},
        }
    elif roll < 0.45:
        found["requestPolicy"] = {
            "default": "1Gi",
            "validRange": {"min": "1Gi", "step": rng.choice(("1Gi", "512Mi"))},
        }
    elif roll < 0.65:
        found["requestPolicy"] = {"default": "1Gi", "validValues": ["1Gi", "2Gi", "4Gi"]}
    elif roll < 0.75:
        found["requestPolicy"] = {
            "default": "500m",
            "validRange": {"min": "250m", "max": "4", "step": "250m"},
        }
    return found


def shareable(made: Case, home: str) -> None:
    rng = made.rng
    devices = []
    for index in range(rng.randint(2, 4)):
        one = gpu(rng, home, index)
        one["capacity"]["memory"] = capacity(rng)
        if chance(rng, 0.3):
            one["capacity"]["bandwidth"] = capacity(rng)
        if chance(rng, 0.85):
            one["allowMultipleAllocations"] = True
        if chance(rng, 0.15):
            one["consumesCounters"] = [{"counterSet": "s", "counters": {"c": {"value": "1"}}}]
        devices.append(one)
    counted = any("consumesCounters" in one for one in devices)
    made.slices.append(
        resource_slice(f"{home}-a", GPU, home, devices, count=1 + counted, nodeName=home)
    )
    if counted:
        sets = [{"name": "s", "counters": {"c": {"value": rng.choice(("1", "2"))}}}]
        made.slices.append(
            resource_slice(f"{home}-b", GPU, home, [], count=2, nodeName=home, sharedCounters=sets)
        )


def of_racks(made: Case, home: str) -> None:
    """One pool for several nodes: devices that name their nodes, or slices that select them."""
    rng = made.rng
    if made.slices:
        return
    names = [one["metadata"]["name"] for one in made.nodes]
    if chance(rng, 0.5):
        devices = []
        for index in range(rng.randint(2, 6)):
            one = gpu(rng, "pool", index)
            roll = rng.random()
            if roll < 0.5:
                one["nodeName"] = rng.choice(names)
            elif roll < 0.8:
                one["nodeSelector"] = rack(rng)
            else:
                one["allNodes"] = True
            devices.append(one)
        made.slices.append(
            resource_slice("pool-a", GPU, "pool", devices, perDeviceNodeSelection=True)
        )
        return
    for number in range(rng.randint(1, 3)):
        devices = [gpu(rng, f"pool{number}", 10 * number + i) for i in range(rng.randint(1, 3))]
        where: Json = {"nodeSelector": rack(rng)} if chance(rng, 0.7) else {"allNodes": True}
        made.slices.append(
            resource_slice(f"pool{number}-a", GPU, f"pool{number}", devices, **where)
        )
    if chance(rng, 0.5):
        plain(made, names[0])


def rack(rng: Random) -> Json:
    term: Json = {
        "matchExpressions": [
            {"key": "rack", "operator": "In", "values": some(rng, ("r1", "r2"), 1, 2)}
        ]
    }
    if chance(rng, 0.2):
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}
    return {"nodeSelectorTerms": [term]}


STYLES: tuple[Callable[[Case, str], None], ...] = (
    plain,
    plain,
    plain,
    partitioned,
    partitioned,
    shareable,
    shareable,
    of_racks,
)


def twins(made: Case) -> None:
    """All nodes publish what the first one does, but for the names of things."""
    first = made.nodes[0]["metadata"]["name"]
    own = json.dumps([one for one in made.slices if one["spec"].get("nodeName") == first])
    others = [one for one in made.slices if "nodeName" not in one["spec"]]
    made.slices = others + [
        one
        for node in made.nodes
        for one in json.loads(own.replace(first, node["metadata"]["name"]))
    ]


def fabric(made: Case) -> None:
    rng = made.rng
    where: Json = {"allNodes": True} if chance(rng, 0.5) else {"nodeSelector": rack(rng)}
    devices = [{"name": f"channel-{i}", "attributes": {"id": {"int": i}}} for i in range(2)]
    if chance(rng, 0.3):
        devices[0]["bindsToNode"] = True
    made.slices.append(resource_slice("fabric-a", FABRIC, "fabric", devices, **where))


# -- what is asked for -----------------------------------------------------------------------------


def the_pod(made: Case) -> None:
    rng = made.rng
    made.pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "asking", "namespace": "default", "uid": "uid-asking"},
        "spec": {"containers": [{"name": "main", "image": "i"}]},
    }
    if chance(rng, 0.1):
        by_resource(made)
        if chance(rng, 0.6):
            return
    for number in range(rng.choice((1, 1, 1, 1, 2, 2, 3))):
        add_claim(made, number)


def by_resource(made: Case) -> None:
    """Extended resources that a DeviceClass backs."""
    rng = made.rng
    names = (RESOURCE, "deviceclass.resource.kubernetes.io/big", "example.com/nobody")
    for container in (
        made.pod["spec"]["containers"][0],
        *({"name": f"init{i}", "image": "i"} for i in range(rng.choice((0, 0, 1, 2)))),
    ):
        wanted = {
            n: str(rng.randint(0, 2)) for n in some(rng, names[: rng.choice((1, 2, 2, 3))], 1)
        }
        container["resources"] = {"limits": dict(wanted), "requests": dict(wanted)}
        if container["name"] != "main":
            if chance(rng, 0.3):
                container["restartPolicy"] = "Always"
            made.pod["spec"].setdefault("initContainers", []).append(container)
    for one in made.nodes:
        if chance(rng, 0.3):
            one["status"]["allocatable"][RESOURCE] = rng.choice(("0", "1", "4"))


def add_claim(made: Case, number: int) -> None:
    rng = made.rng
    name = f"claim{number}"
    requests = rng.choice((1, 1, 1, 2, 2, 3))
    claim: Json = {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": [request(made, i) for i in range(requests)]}},
    }
    if chance(rng, 0.25):
        claim["spec"]["devices"]["constraints"] = [
            constraint(made, claim) for _ in range(rng.choice((1, 1, 2)))
        ]
    entry: Json = {"name": f"c{number}"}
    if chance(rng, 0.3):
        entry["resourceClaimTemplateName"] = "template"
        claim["metadata"]["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": "asking",
                "uid": "uid-asking",
                "controller": True,
            }
        ]
        made.pod.setdefault("status", {}).setdefault("resourceClaimStatuses", []).append(
            {"name": entry["name"], "resourceClaimName": name}
        )
    else:
        entry["resourceClaimName"] = name
    made.pod["spec"].setdefault("resourceClaims", []).append(entry)
    made.claims.append(claim)


def wanted(made: Case) -> Json:
    rng = made.rng
    shared = any(d.get("allowMultipleAllocations") for _, d in made.devices())
    drivers = {s["spec"]["driver"] for s in made.slices}
    names = ["gpu"] * 6 + ["big", "any"]
    names += ["nic"] * (2 * (NIC in drivers)) + ["fabric"] * (2 * (FABRIC in drivers))
    found: Json = {"deviceClassName": rng.choice(names)}
    if found["deviceClassName"] in ("gpu", "big") and chance(rng, 0.35):
        expressions = some(rng, SELECTORS, 1, rng.choice((1, 1, 2)))
        found["selectors"] = [{"cel": {"expression": one}} for one in expressions]
    roll = rng.random()
    if roll < 0.07:
        found["allocationMode"] = "All"
    else:
        found["allocationMode"] = "ExactCount"
        found["count"] = rng.choice((1, 1, 1, 1, 1, 1, 2, 2, 3))
    if shared and chance(rng, 0.6):
        amounts = {"memory": rng.choice(("1", "3", "1Gi", "1500Mi", "3Gi", "8Gi", "300m"))}
        if chance(rng, 0.15):
            amounts["bandwidth"] = "1"
        found["capacity"] = {"requests": amounts}
    return found


def request(made: Case, number: int) -> Json:
    rng = made.rng
    name = f"r{number}"
    if chance(rng, 0.25):
        return {
            "name": name,
            "firstAvailable": [{"name": f"s{i}", **wanted(made)} for i in range(rng.randint(1, 3))],
        }
    found = wanted(made)
    if chance(rng, 0.08):
        found["adminAccess"] = True
    return {"name": name, "exactly": found}


def constraint(made: Case, claim: Json) -> Json:
    rng = made.rng
    kind = rng.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
    found: Json = {kind: rng.choice(ATTRIBUTES)}
    names = []
    for one in claim["spec"]["devices"]["requests"]:
        names.append(one["name"])
        names += [f"{one['name']}/{sub['name']}" for sub in one.get("firstAvailable", [])]
    if chance(rng, 0.5):
        found["requests"] = some(rng, names, 1, 3)
    return found


def occupy(made: Case) -> None:
    """Other claims hold some of the devices, or shares of them."""
    rng = made.rng
    results: list[Json] = []
    for where, device in made.devices():
        spec = where["spec"]
        if not chance(rng, 0.18) or (device.get("consumesCounters") and chance(rng, 0.5)):
            continue
        result: Json = {
            "request": "r",
            "driver": spec["driver"],
            "pool": spec["pool"]["name"],
            "device": device["name"],
        }
        if device.get("allowMultipleAllocations"):
            for number in range(rng.randint(1, 2)):
                amounts = {
                    name: rng.choice(("1", "1Gi", "2Gi", "4"))
                    for name in device.get("capacity", {})
                }
                share = {**result, "shareID": f"share-{device['name']}-{number}"}
                results.append({**share, "consumedCapacity": amounts} if amounts else share)
        else:
            if chance(rng, 0.1):
                result["adminAccess"] = True
            results.append(result)
    for number, result in enumerate(results):
        made.others.append(
            {
                "kind": "ResourceClaim",
                "apiVersion": "resource.k8s.io/v1",
                "metadata": {
                    "name": f"other{number}",
                    "namespace": rng.choice(("default", "team-a")),
                    "uid": f"uid-other{number}",
                },
                "spec": {"devices": {"requests": [exact("r")]}},
                "status": {
                    "allocation": {"devices": {"results": [result]}},
                    "reservedFor": [{"resource": "pods", "name": "x", "uid": f"uid-x{number}"}],
                },
            }
        )


def exact(name: str) -> Json:
    return {
        "name": name,
        "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
    }


# -- twists ----------------------------------------------------------------------------------------


def fragile_selector(made: Case) -> None:
    for one in made.rng.sample(made.requests(), min(1, len(made.requests()))):
        one["selectors"] = [{"cel": {"expression": made.rng.choice(FRAGILE)}}]


def fragile_class(made: Case) -> None:
    made.classes[0]["spec"]["selectors"].append({"cel": {"expression": made.rng.choice(FRAGILE)}})


def incomplete(made: Case) -> None:
    if made.slices:
        pool = made.rng.choice(made.slices)["spec"]["pool"]["name"]
        for one in made.slices:
            if one["spec"]["pool"]["name"] == pool:
                one["spec"]["pool"]["resourceSliceCount"] += 1


def newer_generation(made: Case) -> None:
    """A newer slice of a pool is there, the others of it are not yet, or the old are not gone."""
    rng = made.rng
    if not made.slices:
        return
    old = rng.choice(made.slices)
    spec = old["spec"]
    pool = {**spec["pool"], "generation": 2, "resourceSliceCount": rng.choice((1, 1, 2))}
    fresh = {**spec, "pool": pool}
    if spec.get("nodeName") and chance(rng, 0.2):
        fresh["nodeName"] = "elsewhere"
    made.slices.append(
        {**old, "metadata": {"name": old["metadata"]["name"] + "-new"}, "spec": fresh}
    )


def duplicate_device(made: Case) -> None:
    found = [s for s in made.slices if s["spec"].get("devices")]
    if found:
        one = made.rng.choice(found)
        one["spec"]["devices"].append(dict(one["spec"]["devices"][0]))


def missing_counter_set(made: Case) -> None:
    device = made.a_device()
    if device is not None:
        device["consumesCounters"] = [{"counterSet": "nowhere", "counters": {"c": {"value": "1"}}}]


def less_counters(made: Case) -> None:
    for one in made.slices:
        for counters in one["spec"].get("sharedCounters", []):
            if chance(made.rng, 0.5):
                name = made.rng.choice(sorted(counters["counters"]))
                counters["counters"][name] = {"value": made.rng.choice(("0", "1", "20Gi"))}


def taints(made: Case) -> None:
    rng = made.rng
    for _ in range(rng.randint(1, 3)):
        device = made.a_device()
        if device is not None:
            device.setdefault("taints", []).append(taint(rng))


def taint(rng: Random) -> Json:
    found: Json = {"key": rng.choice(TAINTS), "effect": rng.choice(EFFECTS)}
    if chance(rng, 0.6):
        found["value"] = rng.choice(("1", "48"))
    return found


def taint_rule(made: Case) -> None:
    rng = made.rng
    selector: Json | None = {}
    if chance(rng, 0.1):
        selector = None
    elif chance(rng, 0.8):
        for key, values in (
            ("driver", (GPU, GPU, NIC)),
            ("pool", ("n0", "n1", "pool")),
            ("device", ("gpu-0", "gpu-1")),
        ):
            if chance(rng, 0.5):
                selector[key] = rng.choice(values)
    spec: Json = {"taint": taint(rng)}
    if selector is not None:
        spec["deviceSelector"] = selector
    made.rules.append(
        {
            "kind": "DeviceTaintRule",
            "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": f"rule{len(made.rules)}"},
            "spec": spec,
        }
    )


def tolerations(made: Case) -> None:
    rng = made.rng
    (taints if chance(rng, 0.7) else taint_rule)(made)
    for one in made.requests():
        if chance(rng, 0.7):
            found: Json = {"operator": rng.choice(("Exists", "Exists", "Equal"))}
            if found["operator"] == "Equal" or chance(rng, 0.7):
                found["key"] = rng.choice(TAINTS)
            if found["operator"] == "Equal":
                found["value"] = rng.choice(("1", "48"))
            if chance(rng, 0.4):
                found["effect"] = rng.choice(("NoSchedule", "NoExecute"))
            one["tolerations"] = [found]


def binding_conditions(made: Case) -> None:
    for _ in range(made.rng.randint(1, 2)):
        device = made.a_device()
        if device is not None:
            device["bindingConditions"] = ["attached"]
            device["bindingFailureConditions"] = ["failed"]
            device["bindsToNode"] = chance(made.rng, 0.5)


def allocated(made: Case) -> None:
    """One of the pod's claims has its devices already, from an earlier attempt or another pod."""
    rng = made.rng
    if not made.claims:
        return
    claim = rng.choice(made.claims)
    found = made.devices()
    if not found:
        return
    where, device = rng.choice(found)
    result: Json = {
        "request": claim["spec"]["devices"]["requests"][0]["name"],
        "driver": where["spec"]["driver"],
        "pool": where["spec"]["pool"]["name"],
        "device": device["name"],
    }
    allocation: Json = {"devices": {"results": [result]}}
    home = where["spec"].get("nodeName")
    if home:
        allocation["nodeSelector"] = {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [home]}]}
            ]
        }
    elif chance(rng, 0.5):
        allocation["nodeSelector"] = rack(rng)
    status: Json = {"allocation": allocation}
    if chance(rng, 0.4):
        result["bindingConditions"] = ["attached"]
        result["bindingFailureConditions"] = ["failed"]
        allocation["allocationTimestamp"] = rng.choice((LONG_AGO, IN_FUTURE))
        if chance(rng, 0.7):
            conditions = [
                {"type": kind, "status": rng.choice(("True", "False", "Unknown"))}
                for kind in some(rng, ("attached", "failed"), 1)
            ]
            status["devices"] = [
                {**{k: result[k] for k in ("driver", "pool", "device")}, "conditions": conditions}
            ]
    if chance(rng, 0.5):
        status["reservedFor"] = [{"resource": "pods", "name": "x", "uid": "uid-x"}]
    claim["status"] = status


def broken_reference(made: Case) -> None:
    """The claim or class is missing, going, someone else's, or not made yet."""
    rng = made.rng
    if not made.claims:
        return
    claim = rng.choice(made.claims)
    entry = made.pod["spec"]["resourceClaims"][made.claims.index(claim)]
    match rng.randint(0, 5):
        case 0:
            made.claims.remove(claim)
        case 1:
            claim["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z"
            claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        case 2:
            for owner in claim["metadata"].get("ownerReferences", []):
                owner["uid"] = "uid-of-another"
        case 3:
            if "resourceClaimTemplateName" in entry:
                made.pod["status"]["resourceClaimStatuses"] = []
        case 4:
            for one in made.requests():
                one["deviceClassName"] = "no-such-class"
        case 5:
            for status in made.pod.get("status", {}).get("resourceClaimStatuses", []):
                if status["name"] == entry["name"]:
                    del status["resourceClaimName"]


def many(made: Case) -> None:
    """Counts near the limit of 32 devices per claim."""
    rng = made.rng
    for one in rng.sample(made.requests(), min(2, len(made.requests()))):
        if one.get("allocationMode") != "All":
            one["count"] = rng.choice((8, 16, 17, 32, 33))


def closed_node(made: Case) -> None:
    made.rng.choice(made.nodes)["spec"]["unschedulable"] = True


def stale_extended(made: Case) -> None:
    made.others.append(
        {
            "kind": "ResourceClaim",
            "apiVersion": "resource.k8s.io/v1",
            "metadata": {
                "name": "asking-extended-resources-abcde",
                "namespace": "default",
                "uid": "uid-extended",
                "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": "asking",
                        "uid": "uid-asking",
                        "controller": True,
                    }
                ],
            },
            "spec": {"devices": {"requests": [exact("container-0-request-0")]}},
        }
    )


def rival_class(made: Case) -> None:
    """Another class backs the same extended resource, younger or older."""
    rng = made.rng
    rival = device_class("a-rival", f'device.driver == "{NIC}"', extendedResourceName=RESOURCE)
    rival["metadata"]["creationTimestamp"] = rng.choice(
        ("2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z")
    )
    made.classes.append(rival)


TWISTS: tuple[Callable[[Case], None], ...] = (
    fragile_selector,
    fragile_class,
    incomplete,
    newer_generation,
    duplicate_device,
    missing_counter_set,
    less_counters,
    taints,
    taint_rule,
    tolerations,
    tolerations,
    binding_conditions,
    allocated,
    allocated,
    broken_reference,
    many,
    closed_node,
    stale_extended,
    rival_class,
)
