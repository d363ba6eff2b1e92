"""NodePorts: the host ports that the pod wants must be free on the node.

Sources: pkg/scheduler/framework/plugins/nodeports/node_ports.go; HostPortInfo in kube-scheduler
v0.37.2 framework/types.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.kube.pods import HostPort
from kubectl_gpuadmit.placement.filters import shortfall
from kubectl_gpuadmit.verdict import Shortfall

FILTER = "NodePorts"
REASON = "node(s) didn't have free ports for the requested pod ports"
REASONS = {
    "placement/host-port": "A pod on the node holds the host port. Use another hostPort, or a "
    "Service instead of one; each node can serve such a pod once.",
}
ANY = "0.0.0.0"


def judge(wanted: tuple[HostPort, ...], info: NodeInfo) -> tuple[Shortfall, ...]:
    """One shortfall for each port that is taken."""
    if not wanted:
        return ()
    return tuple(
        shortfall(FILTER, REASON, "placement/host-port", subject=f"{ip}:{port}/{protocol}")
        for ip, protocol, port in wanted
        if _taken(ip, protocol, port, info.ports)
    )


def _taken(ip: str, protocol: str, port: int, held: frozenset[HostPort]) -> bool:
    if ip == ANY:
        return any(p == port and proto == protocol for _, proto, p in held)
    return (ip, protocol, port) in held or (ANY, protocol, port) in held
