"""Our gate on a case of the family ``numa``, and where it differs from the kubelet's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.kubelet import asks, settings
from kubectl_gpuadmit.placement.kubelet.gate import Gate, Outcome
from kubectl_gpuadmit.placement.kubelet.machine import Core, Device, Machine, Zone, ids, listed
from kubectl_gpuadmit.placement.kubelet.machine import parsed as parsed_set
from kubectl_gpuadmit.placement.kubelet.settings import Refused, Settings
from tests.differential.vocabulary import Json


def differences(case: Json, referee: Json) -> list[str]:
    """Step by step: let in or not, reason, message, and what the pod has got."""
    asked, theirs = case["numa"], referee["numa"]
    try:
        gate = gate_of(asked)
    except Refused as refused:
        if theirs.get("refused") and agrees(theirs["refused"], str(refused)):
            return []
        return [f"start: kubernetes {theirs.get('refused', 'starts')}, ours {refused}"]
    if theirs.get("refused"):
        return [f"start: kubernetes {theirs['refused']}, ours starts"]
    return next(_steps(asked, gate, theirs["steps"]), [])


def _steps(asked: Json, gate: Gate, theirs: list[Json]) -> Iterator[list[str]]:
    """Yields what is different in the first step that differs, or that we cannot foresee."""
    answers = iter(theirs)
    for step in asked["steps"]:
        if "remove" in step:
            gate.remove(step["remove"])
            continue
        if "admit" not in step:
            continue
        expected = next(answers)
        pod = msgspec.convert({"kind": "Pod", **step["admit"]}, Pod)
        outcome = gate.admit(asks.of(pod))
        if gate.unsure:
            yield ["unknown"]
        found = list(_compared(asked, gate, expected, outcome, exact=_exact(asked, pod)))
        if found:
            yield [*found, f"in step {pod.name}"]


def _exact(asked: Json, pod: Pod) -> bool:
    """Whether the very devices are known: not where init steps leave several to choose from."""
    return asked.get("prefers") == "lowest" and not pod.spec.initContainers


def _compared(
    asked: Json, gate: Gate, expected: Json, outcome: Outcome, *, exact: bool
) -> Iterator[str]:
    theirs = (expected["admit"], expected.get("reason", ""), expected.get("message", ""))
    own = (outcome.admitted, outcome.reason, outcome.message)
    if theirs != own and theirs[2] in outcome.others:
        own = (*own[:2], theirs[2])
    if theirs != own:
        yield f"kubernetes {theirs}, ours {own}"
        return
    if expected.get("start", "") != outcome.start:
        yield f"start: kubernetes {expected.get('start')!r}, ours {outcome.start!r}"
    if not outcome.admitted:
        return
    cpus = {name: listed(held) for name, held in outcome.cpus.items() if held}
    if expected.get("cpus", {}) != cpus:
        yield f"cpus: kubernetes {expected.get('cpus', {})}, ours {cpus}"
    memory = {
        name: {resource: list(ids(nodes)) for resource, nodes in held.items()}
        for name, held in outcome.memory.items()
        if held
    }
    if expected.get("memory", {}) != memory:
        yield f"memory: kubernetes {expected.get('memory', {})}, ours {memory}"
    mine = {name: {r: sorted(d) for r, d in held.items()} for name, held in outcome.devices.items()}
    given = expected.get("devices", {})
    if not exact:
        mine, given = _by_numa(gate, mine), _by_numa(gate, given)
    if mine != given:
        yield f"devices: kubernetes {given}, ours {mine}"


def _by_numa(gate: Gate, held: Json) -> Any:
    numa = {d.id: d.numa for devices in gate.machine.devices.values() for d in devices}
    return {
        name: {r: Counter(numa[one] for one in devices) for r, devices in resources.items()}
        for name, resources in held.items()
    }


def agrees(theirs: str, own: str) -> bool:
    """Managers wrap what their policies say, and of several wrong options name any one."""
    reserve = "[cpumanager] unable to reserve the required amount of CPUs"
    return (
        own in theirs
        or (own.startswith(reserve) and reserve in theirs)
        or (own.startswith(WRONG_OPTION) and any(words in theirs for words in WRONG_OPTION))
    )


WRONG_OPTION = (
    "CPU Manager Policy Alpha-level Options not enabled",
    "unknown CPU Manager Policy option",
    "bad value for option",
)


def gate_of(asked: Json) -> Gate:
    """Raises Refused where the kubelet does not start."""
    machine = machine_of(asked)
    return Gate(machine, settings_of(asked, machine), lowest=asked.get("prefers") == "lowest")


def machine_of(asked: Json) -> Machine:
    zones = []
    for zone in asked["machine"].get("numa", ()):
        memory = {"memory": zone.get("memory", 0)}
        for pages in zone.get("hugepages", ()):
            memory["hugepages-2Mi"] = pages["page_size"] * pages["num_pages"] * 1024
        zones.append(
            Zone(
                id=zone.get("node_id", 0),
                cores=tuple(
                    Core(
                        threads=tuple(core["thread_ids"]),
                        socket=core.get("socket_id", 0),
                        uncore=next((c["id"] for c in core.get("uncore_caches", ())), None),
                    )
                    for core in zone.get("cores", ())
                ),
                memory=memory,
                distances=tuple(zone.get("distances", ())),
            )
        )
    devices = {
        name: tuple(
            Device(one["id"], tuple(one.get("numa", ())), healthy=one.get("healthy", False))
            for one in found
        )
        for name, found in asked.get("devices", {}).items()
    }
    return Machine(tuple(zones), asked["machine"].get("sockets", 0), devices)


def settings_of(asked: Json, machine: Machine) -> Settings:
    """Raises Refused in the order in which the kubelet makes its managers."""
    kubelet = asked["kubelet"]
    gates = kubelet.get("featureGates", {})
    policy, scope, closest, most = settings.topology(
        kubelet.get("topologyManagerPolicy", ""),
        kubelet.get("topologyManagerScope", ""),
        kubelet.get("topologyManagerPolicyOptions", {}),
        numa_nodes=len(machine.zones),
    )
    static = kubelet.get("cpuManagerPolicy") == "static"
    options: frozenset[str] = frozenset()
    if static:
        options = settings.cpu_options(
            kubelet.get("cpuManagerPolicyOptions", {}),
            policy=policy,
            sockets=machine.sockets,
            numa_nodes=sum(1 for zone in machine.zones if zone.cores),
            alpha=gates.get("CPUManagerPolicyAlphaOptions", False),
        )
    named = kubelet.get("reservedSystemCPUs", "")
    return Settings(
        policy=policy,
        scope=scope,
        prefer_closest=closest,
        max_numa_nodes=most,
        static_cpus=static,
        cpu_options=options,
        reserved_cpus=parsed_set(named) if named else None,
        reserved_count=-(-quantity.parse(kubelet.get("reservedCPU") or "0").nano // quantity.NANO),
        static_memory=kubelet.get("memoryManagerPolicy") == "Static",
        reserved_memory={
            one["numaNode"]: {
                name: quantity.parse(text).nano // quantity.NANO
                for name, text in one["limits"].items()
            }
            for one in kubelet.get("reservedMemory", ())
        },
        pod_level=gates.get("PodLevelResourceManagers", False),
    )


def skipped(answer: Json) -> str:
    """Why the referee cannot play a kubelet here, '' where it can."""
    return str(answer["numa"].get("skipped", "")) if "numa" in answer else ""


def share_admitted(answer: Json) -> float:
    """Share of the case's pods that Kubernetes lets in."""
    steps = answer["numa"]["steps"]
    return sum(1.0 for step in steps if step["admit"]) / len(steps) if steps else 0.0
