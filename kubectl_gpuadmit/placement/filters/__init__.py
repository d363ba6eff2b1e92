"""The default scheduler's filters, one file each, equal to kube-scheduler 1.37.2.

Each file names the plugin's source, keeps its texts, and catalogues its codes in ``REASONS``. Three
kinds, by what their answer depends on:

- *static*: the pod and the Node object (``node_name``, ``node_unschedulable``,
  ``taint_toleration``, ``node_affinity``): ``judge(pod, node)``;
- *local*: also the pods on the node (``node_ports``, ``resources_fit``): ``judge(asked, info)``;
- *wide*: also other objects or other nodes' pods (``volume_*``, ``pod_topology_spread``,
  ``inter_pod_affinity``): an object made once per pod, see ``Wide``.

A filter reports everything that it has against a node, so it may give a reason text more than once
(each untolerated taint); the scheduler prints it once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.verdict import Shortfall

ORDER = (
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
)
"""Order in which the default profile asks them (apis/config/v1/default_plugins.go, 1.37.2): the
first that refuses a node is the one that the scheduler's message names for it."""

RANK = {name: position for position, name in enumerate(ORDER)}


@lru_cache(maxsize=1 << 16)
def shortfall(
    filter: str,
    reason: str,
    code: str,
    requested: int | None = None,
    used: int | None = None,
    capacity: int | None = None,
    *,
    permanent: bool = False,
    until: str = "",
    subject: str = "",
) -> Shortfall:
    """A shared Shortfall: thousands of nodes refuse for the same reason."""
    return Shortfall(filter, reason, code, requested, used, capacity, permanent, until, subject)


class Wide(Protocol):
    """A filter that looks beyond the node; made once per pod and kept up to date."""

    def judge(self, info: NodeInfo) -> tuple[Shortfall, ...]:
        """What it has against this node, given the pods as moved so far."""

    def moved(self, pod: Pod, info: NodeInfo, by: int) -> None:
        """A pod has come to (``by`` 1) or left (-1) the node."""

    def fork(self) -> Wide:
        """An independent copy for a what-if."""
