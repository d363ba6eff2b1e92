"""NUMA hints: which sets of NUMA nodes could give a request, and which of them are preferred.

Source: pkg/kubelet/cm/topologymanager/topology_manager.go (TopologyHint) and bitmask/bitmask.go
(IterateBitMasks).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

from kubectl_gpuadmit.placement.kubelet.machine import members

Hint = tuple[int, bool]
"""(set of NUMA nodes, whether it is preferred)."""

Hints = list[Hint] | None
"""What one resource says: None is no preference, an empty list that no set of NUMA nodes does."""

Affinity = tuple[int | None, bool]
"""What came of merging: the set of NUMA nodes, None for any, and whether it is preferred."""

LARGEST = 12
"""Most NUMA nodes whose subsets are looked at; a kubelet would enumerate 2**n of them as well."""


class TooMany(Exception):
    """The machine has more NUMA nodes than subsets can be enumerated for."""


@lru_cache(maxsize=256)
def subsets(nodes: tuple[int, ...]) -> tuple[int, ...]:
    """All subsets but the empty one, the smallest first, in the kubelet's order.

    Raises TooMany beyond ``LARGEST`` nodes.
    """
    if len(nodes) > LARGEST:
        raise TooMany(f"{len(nodes)} NUMA nodes have 2**{len(nodes)} combinations")
    return tuple(
        members(chosen) for size in range(1, len(nodes) + 1) for chosen in combinations(nodes, size)
    )
