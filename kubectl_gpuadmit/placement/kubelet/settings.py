"""What a kubelet is told about alignment, checked as the kubelet checks it before it starts.

Source: pkg/kubelet/cm/topologymanager (topology_manager.go, policy_options.go) and
pkg/kubelet/cm/cpumanager (cpu_manager.go, policy_options.go) of Kubernetes 1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Policy = Literal["none", "best-effort", "restricted", "single-numa-node"]
Scope = Literal["container", "pod"]

MAX_NUMA_NODES = 8
"""More make a kubelet with a topology policy refuse to start, unless an option says otherwise."""

CLOSEST = "prefer-closest-numa-nodes"
MAX_ALLOWABLE = "max-allowable-numa-nodes"
FULL_CORES = "full-pcpus-only"
ACROSS_NUMA = "distribute-cpus-across-numa"
BY_SOCKET = "align-by-socket"
ACROSS_CORES = "distribute-cpus-across-cores"
STRICT_RESERVATION = "strict-cpu-reservation"
BY_CACHE = "prefer-align-cpus-by-uncorecache"
_ALPHA = (BY_SOCKET, ACROSS_CORES)
_CPU_OPTIONS = (FULL_CORES, ACROSS_NUMA, *_ALPHA, STRICT_RESERVATION, BY_CACHE)
_CONFLICTS = (
    (FULL_CORES, ACROSS_CORES),
    (ACROSS_NUMA, ACROSS_CORES),
    (BY_CACHE, ACROSS_CORES),
    (BY_CACHE, ACROSS_NUMA),
)

_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")


class Refused(Exception):
    """No kubelet starts with such settings. The text is the kubelet's own where it has one."""


class Settings(Struct, frozen=True):
    """A kubelet's alignment settings as values; see ``read``."""

    policy: Policy = "none"
    scope: Scope = "container"
    prefer_closest: bool = False
    max_numa_nodes: int = MAX_NUMA_NODES
    static_cpus: bool = False
    """CPU manager policy ``static``: whole CPUs of Guaranteed pods are exclusive."""
    cpu_options: frozenset[str] = frozenset()
    reserved_cpus: int | None = None
    """Set of CPUs reserved by name; None where only a number is, see ``reserved_count``."""
    reserved_count: int = 0
    static_memory: bool = False
    """Memory manager policy ``Static``."""
    reserved_memory: Mapping[int, Mapping[str, int]] = {}
    """NUMA node -> resource -> bytes kept for the system."""
    pod_level: bool = False
    """Feature gate PodLevelResourceManagers (beta and off by default in 1.37)."""


def topology(
    policy: str, scope: str, options: Mapping[str, str], *, numa_nodes: int
) -> tuple[Policy, Scope, bool, int]:
    """Policy, scope, whether close NUMA nodes are preferred, and how many are allowed.

    Raises Refused in the kubelet's words.
    """
    if policy == "none":
        return "none", "container", False, MAX_NUMA_NODES
    closest, most = False, MAX_NUMA_NODES
    for name, value in sorted(options.items()):
        if name == CLOSEST:
            closest = _boolean(name, value)
        elif name == MAX_ALLOWABLE:
            try:
                most = int(value)
            except ValueError:
                raise Refused(
                    f"unable to convert policy option to integer {_quoted(name)}:"
                    f" strconv.Atoi: parsing {_quoted(value)}: invalid syntax"
                ) from None
            if most < MAX_NUMA_NODES:
                raise Refused(
                    f"the minimum value of {_quoted(name)} should not be less than {MAX_NUMA_NODES}"
                )
        else:
            raise Refused(f"unknown Topology Manager Policy option: {_quoted(name)}")
    if numa_nodes > most:
        raise Refused(f"unsupported on machines with more than {most} NUMA Nodes")
    if policy not in ("best-effort", "restricted", "single-numa-node"):
        raise Refused(f"unknown policy: {_quoted(policy)}")
    if scope not in ("container", "pod"):
        raise Refused(f"unknown scope: {_quoted(scope)}")
    return policy, scope, closest, most  # type: ignore[return-value]


def cpu_options(
    options: Mapping[str, str], *, policy: str, sockets: int, numa_nodes: int, alpha: bool
) -> frozenset[str]:
    """The options of the static CPU manager policy that are on. Raises Refused."""
    chosen = set()
    for name, value in sorted(options.items()):
        if name not in _CPU_OPTIONS:
            raise Refused(f"unknown CPU Manager Policy option: {_quoted(name)}")
        if name in _ALPHA and not alpha:
            raise Refused(
                "CPU Manager Policy Alpha-level Options not enabled,"
                f" but option {_quoted(name)} provided"
            )
        if _boolean(name, value):
            chosen.add(name)
    for one, other in _CONFLICTS:
        if one in chosen and other in chosen:
            raise Refused(
                f"static policy options {one} and {other} can not be used at the same time"
            )
    if BY_SOCKET in chosen and policy == "single-numa-node":
        raise Refused(
            f"Topolgy manager {policy} policy is incompatible with"
            f" CPUManager {BY_SOCKET} policy option"
        )
    if BY_SOCKET in chosen and sockets > numa_nodes:
        raise Refused(
            "Align by socket is not compatible with hardware where"
            " number of sockets are more than number of NUMA"
        )
    return frozenset(chosen)


def _boolean(name: str, value: str) -> bool:
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise Refused(
        f"bad value for option {_quoted(name)}:"
        f" strconv.ParseBool: parsing {_quoted(value)}: invalid syntax"
    )


def _quoted(text: str) -> str:
    return f'"{text}"'
