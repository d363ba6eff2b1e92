"""Random ResourceClaims, templates and DeviceClasses as users write them, right and wrong."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

from tests.differential.vocabulary import Json, chance

VERSIONS = ("v1", "v1", "v1", "v1beta2", "v1beta1")
NAMES = ("gpu", "nic", "a", "b-2", "big")
BAD_NAMES = ("", "GPU", "a.b", "x" * 64, "-a", "a/b")
CLASSES = ("gpu.nvidia.com", "mig.nvidia.com", "nic")
BAD_CLASSES = ("", "GPU", "a_b", "x" * 254, "-a", "gpu..com")
ATTRIBUTES = ("gpu.nvidia.com/uuid", "resource.kubernetes.io/pcieRoot", "a.b/c_D")
BAD_ATTRIBUTES = (
    *("uuid", "a/", "/b", "a/b-c", "a/b/c", "", "A.b/c", "a_/c", "x/" + "y" * 33),
    "d" * 64 + "/x",
)
EXPRESSIONS = (
    "true",
    'device.driver == "gpu.nvidia.com"',
    'device.attributes["gpu.nvidia.com"].type == "mig"',
    'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0',
    '"a" in device.attributes',
)
_ALL = "device.attributes.all"
BAD_EXPRESSIONS = (
    'device.driver.matches("(")',
    f"{_ALL}(a, {_ALL}(b, {_ALL}(c, {_ALL}(d, a + b + c + d != a))))",
    *("", "1", "device.", "devices.driver", 'device.driver == 1 && "', "device.driver", "f(1)"),
    *("x" * 10241, '"' + "é" * 5120 + '" == ""', "device.nothing == 1", "quantity(1) == 2"),
    "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, a + b != c)))",
    "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c,"
    " device.attributes.all(d, a != b || c != d))))",
    "lists.range(999987).size() > 0",
    "lists.range(999988).size() > 0",
    "device.driver.split('.').join('-') == 'a'",
)
LABELS = ("example.com/team", "team", "dedicated")
BAD_LABELS = ("-a", "a b", "/x", "x/y/z", "X." + "y" * 64, "é")
DRIVERS = ("gpu.nvidia.com", "GPU.nvidia.com", "a")
BAD_DRIVERS = ("", "a_b", "x" * 64, "-", "a..b", "x" * 300)
PARAMETERS: tuple[Any, ...] = (
    {"apiVersion": "gpu.nvidia.com/v1beta1", "kind": "GpuConfig"},
    {},
    {"a": [1, None, 2.5]},
)
BAD_PARAMETERS: tuple[Any, ...] = (None, [], 3, "text", {"a": "x" * 10240}, {"é": "ü" * 5116})
EXTENDED = ("nvidia.com/gpu", "example.com/a.b_C")
BAD_EXTENDED = (
    *("gpu", "kubernetes.io/gpu", "requests.nvidia.com/gpu", "a/b/c", "", "nvidia.com/"),
    *("x.com/" + "y" * 64, "my.kubernetes.io/x", "A_.com/x"),
)


def some_of(rng: Random, good: tuple[Any, ...], bad: tuple[Any, ...], wrong: float) -> Any:
    return rng.choice(bad if chance(rng, wrong) else good)


def case(rng: Random) -> Json:
    wrong = rng.choice((0.0, 0.0, 0.03, 0.08))
    version = rng.choice(VERSIONS)
    kind = rng.choice(("ResourceClaim", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"))
    metadata: Json = {"name": some_of(rng, ("asked", "a.b"), ("A", "x" * 254, "a/b"), wrong)}
    if kind != "DeviceClass":
        metadata["namespace"] = "team-a"
    labelled(rng, metadata, wrong)
    made: Json = {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, "metadata": metadata}
    if kind == "DeviceClass":
        made["spec"] = device_class(rng, wrong)
    elif kind == "ResourceClaim":
        made["spec"] = {"devices": claim(rng, wrong, version)}
    else:
        made["spec"] = {"spec": {"devices": claim(rng, wrong, version)}}
        if chance(rng, 0.3):
            made["spec"]["metadata"] = {}
            labelled(rng, made["spec"]["metadata"], wrong)
            if chance(rng, wrong * 3):
                made["spec"]["metadata"][rng.choice(("name", "namespace", "generateName"))] = "x"
            if chance(rng, wrong):
                made["spec"]["metadata"]["finalizers"] = ["example.com/f"]
    return {"objects": [], "pod": made}


def labelled(rng: Random, metadata: Json, wrong: float) -> None:
    if chance(rng, 0.2):
        key = some_of(rng, LABELS, BAD_LABELS, wrong * 2)
        metadata["labels"] = {key: some_of(rng, ("", "blue"), ("a b", "x" * 64, "-"), wrong * 2)}
    if chance(rng, 0.15):
        metadata["annotations"] = {some_of(rng, (*LABELS, "Team"), BAD_LABELS, wrong * 2): "any é"}


def device_class(rng: Random, wrong: float) -> Json:
    spec: Json = {}
    if chance(rng, 0.8):
        spec["selectors"] = selectors(rng, wrong)
    if chance(rng, 0.3):
        spec["config"] = [configuration(rng, wrong) for _ in range(rng.choice((1, 2)))]
        crowd(rng, spec, "config", wrong, 33)
    if chance(rng, 0.3):
        spec["extendedResourceName"] = some_of(rng, EXTENDED, BAD_EXTENDED, wrong * 3)
    return spec


def selectors(rng: Random, wrong: float) -> list[Json]:
    made: list[Json] = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        expression = some_of(rng, EXPRESSIONS, BAD_EXPRESSIONS, wrong)
        made.append({} if chance(rng, wrong / 2) else {"cel": {"expression": expression}})
    if made and chance(rng, wrong / 3):
        made = [made[0]] * 33
    return made


def crowd(rng: Random, holder: Json, field: str, wrong: float, size: int) -> None:
    if holder.get(field) and chance(rng, wrong / 3):
        holder[field] = [deepcopy(holder[field][0]) for _ in range(size)]


def wanted(rng: Random, wrong: float) -> Json:
    made: Json = {"deviceClassName": some_of(rng, CLASSES, BAD_CLASSES, wrong)}
    if chance(rng, wrong / 2):
        del made["deviceClassName"]
    if chance(rng, 0.5):
        made["selectors"] = selectors(rng, wrong)
    if chance(rng, 0.5):
        made["allocationMode"] = some_of(rng, ("All", "ExactCount"), ("Every", "all"), wrong)
    if made.get("allocationMode") != "All" and chance(rng, 0.5):
        made["count"] = some_of(rng, (1, 2, 8), (0, -1, 33), wrong)
    elif chance(rng, wrong):
        made["count"] = 1
    if chance(rng, 0.2):
        made["tolerations"] = [toleration(rng, wrong) for _ in range(rng.choice((1, 2)))]
    if chance(rng, 0.15):
        made["capacity"] = {"requests": {"memory": rng.choice(("1Gi", "500m", "0"))}}
    return made


def toleration(rng: Random, wrong: float) -> Json:
    made: Json = {}
    if chance(rng, 0.8):
        made["key"] = some_of(rng, LABELS, BAD_LABELS, wrong * 2)
    if chance(rng, 0.8):
        made["operator"] = some_of(rng, ("Equal", "Exists"), ("Gt", "exists", ""), wrong * 2)
    if made.get("operator") != "Exists" or chance(rng, wrong * 3):
        made["value"] = some_of(rng, ("", "blue"), ("a b", "x" * 64), wrong * 2)
    if chance(rng, 0.6):
        effects = ("NoSchedule", "NoExecute", "None", "")
        made["effect"] = some_of(rng, effects, ("PreferNoSchedule", "x"), wrong * 2)
    if chance(rng, 0.2):
        made["tolerationSeconds"] = rng.choice((0, 30, -1))
    return made


def request(rng: Random, wrong: float, version: str) -> Json:
    made: Json = {"name": some_of(rng, NAMES, BAD_NAMES, wrong / 2)}
    shape = rng.random()
    if shape < wrong / 2:
        return made
    if shape > 0.7 or shape < wrong:
        made["firstAvailable"] = [
            {"name": some_of(rng, NAMES[i : i + 2], (*BAD_NAMES, "a"), wrong), **wanted(rng, wrong)}
            for i in range(rng.choice((1, 2, 3)))
        ]
        crowd(rng, made, "firstAvailable", wrong, 9)
        if shape > wrong:
            return made
    exactly = wanted(rng, wrong)
    return made | (exactly if version == "v1beta1" else {"exactly": exactly})


def claim(rng: Random, wrong: float, version: str) -> Json:
    names = list(NAMES)
    rng.shuffle(names)
    requests: list[Json] = []
    for number in range(rng.choice((0, 1, 1, 1, 2, 3))):
        made = request(rng, wrong, version)
        if not chance(rng, wrong):
            made["name"] = names[number] if made["name"] in NAMES else made["name"]
        requests.append(made)
    found: Json = {"requests": requests}
    crowd(rng, found, "requests", wrong, 33)
    if chance(rng, 0.35):
        found["constraints"] = [constraint(rng, wrong, requests) for _ in range(rng.choice((1, 2)))]
        crowd(rng, found, "constraints", wrong, 33)
    if chance(rng, 0.3):
        found["config"] = []
        for _ in range(rng.choice((1, 2))):
            one = configuration(rng, wrong)
            if chance(rng, 0.6):
                one["requests"] = references(rng, wrong, requests)
            found["config"].append(one)
        crowd(rng, found, "config", wrong, 33)
    return found


def references(rng: Random, wrong: float, requests: list[Json]) -> list[str]:
    names = [one["name"] for one in requests]
    names += [
        f"{one['name']}/{sub['name']}" for one in requests for sub in one.get("firstAvailable", ())
    ]
    rng.shuffle(names)
    found = names[: rng.choice((0, 1, 2))]
    if chance(rng, wrong * 2):
        found.append(rng.choice(("nowhere", "gpu/nothing", "a/b/c", "", "GPU", "gpu/", *names)))
    if found and chance(rng, wrong / 3):
        found = found * 33
    return found


def constraint(rng: Random, wrong: float, requests: list[Json]) -> Json:
    made: Json = {}
    if chance(rng, 0.6):
        made["requests"] = references(rng, wrong, requests)
    which = rng.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
    if not chance(rng, wrong):
        made[which] = some_of(rng, ATTRIBUTES, BAD_ATTRIBUTES, wrong * 2)
    if chance(rng, wrong / 2):
        made["matchAttribute"] = made["distinctAttribute"] = ATTRIBUTES[0]
    return made


def configuration(rng: Random, wrong: float) -> Json:
    if chance(rng, wrong):
        return {}
    made: Json = {"driver": some_of(rng, DRIVERS, BAD_DRIVERS, wrong * 2)}
    if not chance(rng, wrong):
        made["parameters"] = some_of(rng, PARAMETERS, BAD_PARAMETERS, wrong * 2)
    return {"opaque": made}
