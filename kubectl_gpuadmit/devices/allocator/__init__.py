"""What the scheduler would allocate to a pod's claims on a node: the same devices, or the same no.

One file per concern; ``search`` is the heart. Held to kube-scheduler's own code by the conformance
family ``dra``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.devices.allocator import orders
from kubectl_gpuadmit.devices.allocator.features import Features, of
from kubectl_gpuadmit.devices.allocator.given import OPTIONAL_OPERATIONS, Chosen
from kubectl_gpuadmit.devices.allocator.outcome import Fatal, NodeRefused, Unsure
from kubectl_gpuadmit.devices.allocator.pools import NodePool, Shelves
from kubectl_gpuadmit.devices.allocator.search import Search
from kubectl_gpuadmit.devices.allocator.shop import Shop, Stock
from kubectl_gpuadmit.devices.allocator.situations import Found, Place, Situations
from kubectl_gpuadmit.devices.allocator.state import State
from kubectl_gpuadmit.devices.inventory import Published
from kubectl_gpuadmit.devices.model import Claim
from kubectl_gpuadmit.devices.selection import Selectors
from kubectl_gpuadmit.kube.gates import DEFAULT, Gates
from kubectl_gpuadmit.kube.versions import LATEST

__all__ = [
    "OPTIONAL_OPERATIONS",
    "Allocator",
    "Fatal",
    "Features",
    "Found",
    "NodeRefused",
    "State",
    "Stock",
    "Unsure",
    "of",
    "stock",
]


def stock(published: Published, *, kubernetes: str = LATEST, gates: Gates = DEFAULT) -> Stock:
    """The slices and classes of a cluster, arranged for a Kubernetes version and its gates."""
    features = of(kubernetes, gates)
    slices = published.slices_with(rules=features.device_taint_rules)
    selectors = Selectors(kubernetes, shows_sharing=features.shows_sharing)
    return Stock(Shelves(slices, features), published.classes, selectors)


class Allocator:
    """For one pod and one state of the cluster; asked node by node."""

    def __init__(self, stock: Stock, state: State) -> None:
        self._shop = Shop(stock, state)
        self._of_claims: dict[tuple[int, ...], Situations] = {}
        self._answers: dict[object, tuple[tuple[Place, ...], ...] | NodeRefused | None] = {}

    def allocate(self, info: NodeInfo, claims: Sequence[Claim]) -> Found | None:
        """What the claims would get; None where the node cannot serve them all.

        Raises Fatal, NodeRefused or Unsure.
        """
        key = tuple(map(id, claims))
        situations = self._of_claims.get(key)
        if situations is None:
            situations = self._of_claims[key] = Situations(self._shop, claims)
        pools = self._shop.pools(info) if claims else ()
        situation = (key, situations.of(info, pools))
        if situation not in self._answers:
            self._answers[situation] = self._searched(info, claims, pools)
        answer = self._answers[situation]
        if isinstance(answer, NodeRefused):
            raise answer
        return None if answer is None else Found(answer, self._shop, pools, info.name)

    def _searched(
        self, info: NodeInfo, claims: Sequence[Claim], pools: tuple[NodePool, ...]
    ) -> tuple[tuple[Place, ...], ...] | NodeRefused | None:
        """Raises Fatal and Unsure, which are about this node."""
        try:
            found = self._found(info, claims)
        except RecursionError:
            raise Unsure(
                f"the search for devices on {info.name} goes too deep: it was not finished"
            ) from None
        except NodeRefused as refused:
            return refused
        if found is None:
            return None
        places = tuple(
            tuple(Place(chosen, pools, self._shop) for chosen in of_claim) for of_claim in found
        )
        _ = Found(places, self._shop, pools, info.name).allocations  # where these are wrong, say so
        return places

    def _found(self, info: NodeInfo, claims: Sequence[Claim]) -> list[list[Chosen]] | None:
        shop = self._shop
        if shop.features.orders_pools:
            return Search(shop, info, claims).run()
        return orders.settled(
            lambda order: Search(shop, info, claims, order).run(), orders.of(shop.pools(info))
        )

    def changed(self) -> None:
        """More has been allocated since: what is left is worked out anew."""
        self._shop.forget()

    def nodes_of(self, pools: Iterable[tuple[str, str]]) -> set[str] | None:
        """Names of the nodes that can take devices from one of these pools; None: any may."""
        return self._shop.nodes_of(pools)
