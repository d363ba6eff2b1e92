"""Generated machines, kubelets and pods that come to them one after another.

A third at least of the pods is let in: sizes are drawn around what one NUMA node holds.
"""

from __future__ import annotations

from random import Random

from tests.differential.vocabulary import GPU, Json, chance

NIC = "example.com/nic"
MANY = 5
GI = 1 << 30
HUGE = "hugepages-2Mi"

POLICIES = ("single-numa-node",) * 8 + ("restricted",) * 6 + ("best-effort",) * 4 + ("none",)


def case(rng: Random) -> Json:
    if chance(rng, 0.003):
        return rng.choice((sidecars_take_all, memory_of_two_nodes))(rng)
    machine, per_zone = _machine(rng)
    kubelet = _kubelet(rng, machine)
    devices = _devices(rng, len(machine["numa"]))
    if len(machine["numa"]) > MANY:
        # the kubelet walks through all combinations of one hint of each resource, of up to 2**n - 1
        # hints each: minutes for three resources on nine NUMA nodes
        devices.pop(NIC, None)
        kubelet["memoryManagerPolicy"], kubelet["reservedMemory"] = "None", []
    hugepages = any(zone["hugepages"] for zone in machine["numa"])
    steps: list[Json] = []
    names: list[str] = []
    for number in range(rng.choice((1, 2, 3, 4, 5, 7))):
        if names and chance(rng, 0.25):
            gone = rng.choice(names)
            names.remove(gone)
            steps.append({"remove": gone})
        name = f"p{number}"
        names.append(name)
        level = chance(rng, 0.5 if kubelet["featureGates"].get(LEVEL) else 0.04)
        made = _pod(rng, name, machine, per_zone, devices, level=level, hugepages=hugepages)
        steps.append({"admit": made})
    return {
        "objects": [],
        "numa": {
            "machine": machine,
            "kubelet": kubelet,
            "devices": devices,
            "prefers": "lowest" if chance(rng, 0.97) else "",
            "steps": steps,
        },
    }


# -- machines --------------------------------------------------------------------------------------


def _machine(rng: Random) -> tuple[Json, int]:
    """The machine, and how many CPUs a NUMA node has."""
    zones = rng.choice((1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 4, 4, 4, 4))
    if chance(rng, 0.03):
        zones = rng.choice((5, 6, 6, 8))
    if chance(rng, 0.015):
        zones = 9
    sockets = rng.choice([n for n in (1, 2, 4) if zones % n == 0 or n == 2 * zones])
    cores = rng.choice((2, 2, 3, 4, 4, 6, 8)) if zones < 6 else rng.choice((1, 2, 3))
    if sockets > zones:
        cores = max(2, cores // 2 * 2)
    threads = rng.choice((1, 2, 2))
    total = zones * cores
    order = list(range(total))
    if chance(rng, 0.3):  # CPU IDs go round the NUMA nodes
        order = [zone + zones * core for zone in range(zones) for core in range(cores)]
    adjacent = chance(rng, 0.3)
    caches = rng.choice((None, None, 1, 2))
    empty = {zones - 1} if zones > 2 and chance(rng, 0.06) else set()
    made = []
    for zone in range(zones):
        own = []
        for core in range(cores if zone not in empty else 0):
            number = order[zone * cores + core]
            ids = [number * threads + t if adjacent else number + total * t for t in range(threads)]
            entry: Json = {
                "core_id": number,
                "thread_ids": ids,
                "socket_id": zone * sockets // zones
                if sockets <= zones
                else 2 * zone + core * 2 // cores,
            }
            if caches is not None:
                entry["uncore_caches"] = [{"id": zone * caches + core * caches // cores}]
            own.append(entry)
        made.append(
            {
                "node_id": zone,
                "memory": rng.choice((4, 8, 8, 16)) * GI,
                "hugepages": [],
                "distances": [],
                "cores": own,
            }
        )
    _distances(rng, made)
    if chance(rng, 0.12):
        for zone_ in made:
            pages = [{"page_size": 2048, "num_pages": rng.choice((0, 256, 512))}]
            zone_["hugepages"] = pages
    return {"numa": made, "sockets": sockets}, cores * threads


def _distances(rng: Random, zones: list[Json]) -> None:
    table = [[10] * len(zones) for _ in zones]
    for a in range(len(zones)):
        for b in range(a):
            table[a][b] = table[b][a] = rng.choice((11, 12, 20, 21, 32))
    for zone, own in zip(zones, table, strict=True):
        zone["distances"] = own


def _devices(rng: Random, zones: int) -> Json:
    made: Json = {}
    for resource, often in ((GPU, 0.97), (NIC, 0.4)):
        if not chance(rng, often):
            continue
        total = rng.choice((2, 4, 4, 8, 8, 8)) if resource == GPU else rng.choice((1, 2, 4))
        style = rng.random()
        found = []
        for number in range(total):
            if style < 0.75:
                numa = [number * zones // total]
            elif style < 0.85:
                numa = [rng.randrange(zones)]
            elif style < 0.92:
                numa = sorted(rng.sample(range(zones), min(zones, rng.choice((1, 1, 2)))))
            else:
                numa = [] if style > 0.96 or chance(rng, 0.3) else [rng.randrange(zones)]
            if chance(rng, 0.005):
                numa = [zones + 3]
            entry: Json = {"id": f"{resource[-3:]}{number}", "numa": numa, "healthy": True}
            entry["healthy"] = not chance(rng, 0.04)
            found.append(entry)
        if chance(rng, 0.01):
            for entry in found:
                entry["healthy"] = False
        made[resource] = found
    return made


# -- kubelets --------------------------------------------------------------------------------------

LEVEL = "PodLevelResourceManagers"
ALPHA = "CPUManagerPolicyAlphaOptions"
CPU_OPTIONS = (
    *("full-pcpus-only",) * 4,
    *("distribute-cpus-across-numa",) * 3,
    *("strict-cpu-reservation", "prefer-align-cpus-by-uncorecache") * 2,
    "distribute-cpus-across-cores",
    "align-by-socket",
)


def _kubelet(rng: Random, machine: Json) -> Json:
    level = chance(rng, 0.15)
    made: Json = {
        "topologyManagerPolicy": rng.choice((*POLICIES, *("best-effort",) * (8 if level else 0))),
        "topologyManagerScope": "pod" if chance(rng, 0.7 if level else 0.4) else "container",
        "topologyManagerPolicyOptions": {},
        "cpuManagerPolicy": "none",
        "cpuManagerPolicyOptions": {},
        "reservedSystemCPUs": "",
        "reservedCPU": "",
        "memoryManagerPolicy": "None",
        "reservedMemory": [],
        "featureGates": {},
    }
    options = made["topologyManagerPolicyOptions"]
    if chance(rng, 0.25):
        options["prefer-closest-numa-nodes"] = rng.choice(("true", "true", "false", "1"))
    if len(machine["numa"]) > 8 and chance(rng, 0.3):
        options["max-allowable-numa-nodes"] = "10"
    if chance(rng, 0.01):
        options.update(
            rng.choice(
                (
                    {"max-allowable-numa-nodes": "4"},
                    {"max-allowable-numa-nodes": "many"},
                    {"prefer-closest-numa-nodes": "yes"},
                    {"prefer-furthest-numa-nodes": "true"},
                )
            )
        )
    if chance(rng, 0.005):
        made["topologyManagerPolicy"] = "single-numa"
    if level:
        made["featureGates"][LEVEL] = True
    if chance(rng, 0.7):
        _static_cpus(rng, made, machine)
    if chance(rng, 0.35):
        _static_memory(rng, made, machine)
    return made


def _static_cpus(rng: Random, made: Json, machine: Json) -> None:
    made["cpuManagerPolicy"] = "static"
    everything = sorted(
        cpu for zone in machine["numa"] for core in zone["cores"] for cpu in core["thread_ids"]
    )
    if chance(rng, 0.3):
        chosen = rng.sample(everything, min(len(everything), rng.choice((1, 2, 2))))
        made["reservedSystemCPUs"] = ",".join(map(str, sorted(chosen)))
        made["reservedCPU"] = str(len(chosen))
    else:
        made["reservedCPU"] = rng.choice(("1", "1", "500m", "2", "2", "1500m"))
    if chance(rng, 0.004):
        made["reservedCPU"] = "4000"
        made["reservedSystemCPUs"] = ""
    for name in rng.sample(CPU_OPTIONS, rng.choice((0, 0, 0, 1, 1, 2))):
        made["cpuManagerPolicyOptions"][name] = rng.choice(("true",) * 9 + ("false",))
        if name in ("distribute-cpus-across-cores", "align-by-socket"):
            made["featureGates"][ALPHA] = not chance(rng, 0.05)
    if chance(rng, 0.004):
        made["cpuManagerPolicyOptions"]["full-pcpus"] = "true"
    if chance(rng, 0.004):
        made["cpuManagerPolicyOptions"]["full-pcpus-only"] = "on"


def _static_memory(rng: Random, made: Json, machine: Json) -> None:
    made["memoryManagerPolicy"] = "Static"
    for zone in range(len(machine["numa"])):
        if zone == 0 or chance(rng, 0.3):
            limits = {"memory": rng.choice(("100Mi", "1Gi", "512Mi"))}
            pages = machine["numa"][zone]["hugepages"]
            if pages and pages[0]["num_pages"] and chance(rng, 0.2):
                limits[HUGE] = "4Mi"
            made["reservedMemory"].append({"numaNode": zone, "limits": limits})
    if chance(rng, 0.01):
        made["reservedMemory"] = []


# -- rare coincidences: a message each that chance alone would hardly bring about ------------------


def sidecars_take_all(rng: Random) -> Json:
    """A sidecar has all CPUs of the pod's own amount, and an init step after it shares what is
    left."""
    made = _quiet_case(rng, "best-effort", memories=(8, 8))
    kubelet = made["numa"]["kubelet"]
    kubelet.update(featureGates={LEVEL: True}, cpuManagerPolicy="static", reservedCPU="1")
    pod = _plain_pod("p", (("1", "1Gi"),))
    sidecar = _plain_pod("s", (("2", "1Gi"),))["spec"]["containers"][0]
    pod["spec"]["initContainers"] = [
        {**sidecar, "name": "s", "restartPolicy": "Always"},
        {"name": "i", "resources": {}},
    ]
    pod["spec"]["containers"][0]["resources"] = {}
    amounts = {"cpu": "2", "memory": "2Gi"}
    pod["spec"]["resources"] = {"limits": amounts, "requests": dict(amounts)}
    made["numa"]["steps"] = [{"admit": pod}]
    return made


def memory_of_two_nodes(rng: Random) -> Json:
    """One NUMA node could hold a container and is taken, two smaller ones together still can."""
    made = _quiet_case(rng, "single-numa-node", memories=(16, 8, 8))
    kubelet = made["numa"]["kubelet"]
    kubelet["memoryManagerPolicy"] = "Static"
    kubelet["reservedMemory"] = [{"numaNode": 0, "limits": {"memory": "1Gi"}}]
    made["numa"]["steps"] = [
        {"admit": _plain_pod("large", (("1", "12Gi"),))},
        {"admit": _plain_pod("two", (("1", "10Gi"), ("1", "10Gi")))},
    ]
    return made


def _quiet_case(rng: Random, policy: str, *, memories: tuple[int, ...]) -> Json:
    """A machine of these NUMA nodes (GiB), no devices, nothing static, scope pod."""
    zones = [
        {
            "node_id": number,
            "memory": size * GI,
            "hugepages": [],
            "distances": [],
            "cores": [
                {"core_id": 4 * number + n, "thread_ids": [4 * number + n], "socket_id": 0}
                for n in range(4)
            ],
        }
        for number, size in enumerate(memories)
    ]
    _distances(rng, zones)
    machine = {"numa": zones, "sockets": 1}
    kubelet = _kubelet(rng, machine)
    kubelet.update(
        topologyManagerPolicy=policy,
        topologyManagerScope="pod",
        topologyManagerPolicyOptions={},
        cpuManagerPolicy="none",
        cpuManagerPolicyOptions={},
        reservedSystemCPUs="",
        reservedCPU="",
        memoryManagerPolicy="None",
        reservedMemory=[],
        featureGates={},
    )
    numa = {"machine": machine, "kubelet": kubelet, "devices": {}, "prefers": "lowest", "steps": []}
    return {"objects": [], "numa": numa}


def _plain_pod(name: str, sizes: tuple[tuple[str, str], ...]) -> Json:
    containers = []
    for number, (cpu, memory) in enumerate(sizes):
        amounts = {"cpu": cpu, "memory": memory}
        resources = {"limits": amounts, "requests": dict(amounts)}
        containers.append({"name": f"c{number}", "resources": resources})
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"metadata": metadata, "spec": {"containers": containers}}


# -- pods ------------------------------------------------------------------------------------------


def _pod(
    rng: Random,
    name: str,
    machine: Json,
    per_zone: int,
    devices: Json,
    *,
    level: bool,
    hugepages: bool,
) -> Json:
    guaranteed = chance(rng, 0.8)
    apps = rng.choice((1, 1, 1, 2, 2, 3))

    def container(kind: str, *, plain: bool = False) -> Json:
        limits = {
            "cpu": rng.choice(_cpus(rng, per_zone, apps)),
            "memory": _memory(rng, machine),
        }
        for resource, found in devices.items():
            if not plain and chance(rng, 0.75 if resource == GPU else 0.25):
                limits[resource] = str(_count(rng, len(found), apps))
        if hugepages and chance(rng, 0.3):
            limits[HUGE] = rng.choice(("2Mi", "64Mi", "512Mi"))
        resources: Json = {"limits": limits, "requests": dict(limits)}
        if not guaranteed:
            rng.choice((_smaller_request, _no_cpu))(resources)
        return {"name": kind, "resources": resources}

    spec: Json = {"containers": [container(f"c{i}") for i in range(apps)]}
    if chance(rng, 0.3):
        steps = []
        for i in range(rng.choice((1, 1, 2))):
            step = container(f"i{i}")
            if chance(rng, 0.4):
                step["restartPolicy"] = "Always"
            steps.append(step)
        spec["initContainers"] = steps
    if level:
        _pod_level(rng, spec)
    return {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}


def _pod_level(rng: Random, spec: Json) -> None:
    """The pod's own amounts, not below what its containers ask for together."""
    cpu = memory = 0
    for one in (*spec["containers"], *spec.get("initContainers", ())):
        roll = rng.random()
        own = one["resources"]
        if roll < 0.35:
            for side in own.values():
                side.pop("cpu", None)
                side.pop("memory", None)
        elif roll < 0.45:
            own["requests"]["cpu"] = "500m"
        cpu += _millis(own["requests"].get("cpu", "0"))
        memory += _bytes(own["requests"].get("memory", "0"))
    whole = -(-cpu // 1000) + rng.choice((0, 0, 0, 1, 2))
    amounts = {
        "cpu": f"{max(1, whole)}" if chance(rng, 0.95) else f"{max(1, whole)}500m",
        "memory": str(max(1 << 20, memory + rng.choice((0, 0, 0, 1 << 20, GI)))),
    }
    spec["resources"] = {"limits": amounts, "requests": dict(amounts)}
    if chance(rng, 0.1):
        spec["resources"]["requests"]["cpu"] = "1m"


def _millis(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def _bytes(text: str) -> int:
    for suffix, factor in (("Gi", GI), ("Mi", 1 << 20), ("m", 0)):
        if text.endswith(suffix):
            return int(text[: -len(suffix)]) * factor
    return int(text)


def _smaller_request(resources: Json) -> None:
    resources["requests"]["cpu"] = "100m"


def _no_cpu(resources: Json) -> None:
    del resources["limits"]["cpu"]
    del resources["requests"]["cpu"]


def _cpus(rng: Random, per_zone: int, apps: int) -> tuple[str, ...]:
    some = max(1, per_zone // (2 * apps))
    return (
        *(str(rng.randint(1, some)),) * 4,
        *(str(2 * rng.randint(1, max(1, some // 2))),) * 3,
        str(rng.randint(1, max(1, per_zone // apps))),
        str(rng.randint(1, per_zone + 2)),
        rng.choice(("500m", "1500m")),
    )


def _memory(rng: Random, machine: Json) -> str:
    zone = rng.choice(machine["numa"])["memory"] // GI
    if chance(rng, 0.01):
        return "1500m"
    return rng.choice(
        (
            *("64Mi", "512Mi", "1Gi", "1Gi"),
            *(f"{max(1, zone // 2)}Gi", f"{max(1, zone - 2)}Gi", f"{max(1, zone - 1)}Gi", "10Gi"),
        )
    )


def _count(rng: Random, total: int, apps: int) -> int:
    if chance(rng, 0.04):
        return 0
    if chance(rng, 0.05):
        return rng.randint(1, total + 1)
    return rng.randint(1, max(1, total // (2 * apps)))
