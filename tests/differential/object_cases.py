"""Random objects other than pods that a namespace's quotas and limit ranges have a say in."""

from __future__ import annotations

from random import Random

from tests.differential.vocabulary import Json, chance, some

HOME = "team-a"
CLASSES = ("fast", "slow")
DEVICES = ("gpu.nvidia.com", "mig.nvidia.com")
KEYS = (
    "persistentvolumeclaims",
    "count/persistentvolumeclaims",
    "requests.storage",
    "fast.storageclass.storage.k8s.io/requests.storage",
    "fast.storageclass.storage.k8s.io/persistentvolumeclaims",
    "slow.storageclass.storage.k8s.io/requests.storage",
    "services",
    "count/services",
    "services.loadbalancers",
    "services.loadbalancers",
    "services.loadbalancers",
    "services.nodeports",
    "services.nodeports",
    "count/resourceclaims.resource.k8s.io",
    "gpu.nvidia.com.deviceclass.resource.k8s.io/devices",
    "mig.nvidia.com.deviceclass.resource.k8s.io/devices",
    "requests.deviceclass.resource.kubernetes.io/gpu.nvidia.com",
    "requests.nvidia.com/gpu",
    "configmaps",
    "count/configmaps",
    "pods",
    "requests.cpu",
)


def case(rng: Random) -> Json:
    objects: list[Json] = [
        {
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": {"name": HOME},
            "status": {"phase": "Active"},
        }
    ]
    for name in DEVICES:
        # two classes of one extended resource are charged by the order of a Go map: no right answer
        extended = name == DEVICES[0] and chance(rng, 0.6)
        spec = {"extendedResourceName": "nvidia.com/gpu"} if extended else {}
        objects.append(
            {
                "kind": "DeviceClass",
                "apiVersion": "resource.k8s.io/v1",
                "metadata": {"name": name},
                "spec": spec,
            }
        )
    for number in range(rng.choice((0, 1, 1, 2))):
        objects.append(quota(rng, number))
    if chance(rng, 0.3):
        objects.append(limit_range(rng))
    made = rng.choice((volume_claim, volume_claim, service, device_claim, device_claim, config_map))
    return {"objects": objects, "pod": made(rng)}


def storage(rng: Random) -> str:
    return rng.choice(("1Gi", "10Gi", "5G", "100Gi", "0.5Gi", "1.5", "1500m"))


def quota(rng: Random, number: int) -> Json:
    hard: Json = {}
    used: Json = {}
    for key in some(rng, KEYS, 1, 4):
        hard[key], used[key] = rng.choice(
            (("8", "7"), ("1", "0"), ("4", "4"), ("100", "1"), ("64", "31"))
        )
        if "storage" in key and "claims" not in key:
            hard[key], used[key] = rng.choice((("10Gi", "5Gi"), ("100Gi", "0"), ("20G", "10G")))
    spec: Json = {"hard": hard}
    if chance(rng, 0.15):
        spec["scopes"] = [rng.choice(("Terminating", "NotBestEffort"))]
    elif chance(rng, 0.15):
        operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        scope: Json = {"scopeName": "VolumeAttributesClass", "operator": operator}
        if operator in ("In", "NotIn"):
            scope["values"] = [rng.choice(("gold", "silver"))]
        spec["scopeSelector"] = {"matchExpressions": [scope]}
    return {
        "kind": "ResourceQuota",
        "apiVersion": "v1",
        "metadata": {"name": f"quota{number}", "namespace": HOME},
        "spec": spec,
        "status": {"hard": hard, "used": used},
    }


def limit_range(rng: Random) -> Json:
    item: Json = {
        "type": rng.choice(("PersistentVolumeClaim", "PersistentVolumeClaim", "Container"))
    }
    for bound in some(rng, ("min", "max"), 1, 2):
        item[bound] = {rng.choice(("storage", "storage", "cpu")): storage(rng)}
    return {
        "kind": "LimitRange",
        "apiVersion": "v1",
        "metadata": {"name": "limits", "namespace": HOME},
        "spec": {"limits": [item]},
    }


def named(rng: Random, kind: str, version: str = "v1") -> Json:
    metadata: Json = {"name": "asking", "namespace": HOME}
    if chance(rng, 0.2):
        del metadata["name"]
        metadata["generateName"] = "asking-"
    return {"kind": kind, "apiVersion": version, "metadata": metadata}


def volume_claim(rng: Random) -> Json:
    claim = named(rng, "PersistentVolumeClaim")
    claim["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": {}}
    if chance(rng, 0.95):
        claim["spec"]["resources"]["requests"] = {"storage": storage(rng)}
    if chance(rng, 0.7):
        claim["spec"]["storageClassName"] = rng.choice(CLASSES)
    if chance(rng, 0.15):
        claim["metadata"]["annotations"] = {
            "volume.beta.kubernetes.io/storage-class": rng.choice(CLASSES)
        }
    if chance(rng, 0.2):
        claim["spec"]["volumeAttributesClassName"] = rng.choice(("gold", "silver"))
    return claim


def service(rng: Random) -> Json:
    made = named(rng, "Service")
    ports = [{"port": port} for port in range(80, 80 + rng.choice((1, 2, 3)))]
    made["spec"] = {"ports": ports}
    if chance(rng, 0.8):
        made["spec"]["type"] = rng.choice(("ClusterIP", "NodePort", "LoadBalancer", "LoadBalancer"))
    if made["spec"].get("type") == "LoadBalancer" and chance(rng, 0.5):
        made["spec"]["allocateLoadBalancerNodePorts"] = chance(rng, 0.3)
        if chance(rng, 0.5):
            ports[0]["nodePort"] = 30080
    return made


def wanted(rng: Random) -> Json:
    made: Json = {"deviceClassName": rng.choice(DEVICES)}
    mode = rng.choice(("ExactCount", "All", None))
    if mode:
        made["allocationMode"] = mode
    if mode != "All" and chance(rng, 0.6):
        made["count"] = rng.choice((1, 2, 8))
    return made


def device_claim(rng: Random) -> Json:
    claim = named(rng, "ResourceClaim", "resource.k8s.io/v1")
    requests: list[Json] = []
    for number in range(rng.choice((1, 1, 2, 3))):
        request: Json = {"name": f"r{number}"}
        if chance(rng, 0.7):
            request["exactly"] = wanted(rng)
            if chance(rng, 0.1):
                request["exactly"]["adminAccess"] = True
        else:
            request["firstAvailable"] = [
                {"name": f"s{i}", **wanted(rng)} for i in range(rng.choice((1, 2, 3)))
            ]
        requests.append(request)
    claim["spec"] = {"devices": {"requests": requests}}
    return claim


def config_map(rng: Random) -> Json:
    return {**named(rng, "ConfigMap"), "data": {"a": "b"}}
