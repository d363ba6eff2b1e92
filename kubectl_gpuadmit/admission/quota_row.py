"""One ResourceQuota and what is used of it: room, excess, charge. Immutable.

Source: k8s.io/apiserver v0.37.2 pkg/quota/v1/resources.go.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kubectl_gpuadmit.admission.quota_usage import Charge
from kubectl_gpuadmit.admission.resource_lists import ZERO, ResourceList, plus, times
from kubectl_gpuadmit.kube.objects import ResourceQuota
from kubectl_gpuadmit.kube.quantity import Quantity


class Row(Struct, frozen=True):
    """One quota and what is used of it now."""

    quota: ResourceQuota
    hard: ResourceList
    used: ResourceList
    source: str
    """Where ``used`` comes from."""
    run: ResourceList = {}
    """The part of ``used`` that objects of this run were charged."""
    uncounted: tuple[str, ...] = ()
    """Kinds that should have been counted into ``used`` and are not in the snapshot."""

    def charged(self, delta: ResourceList, count: int) -> Row:
        used, run = dict(self.used), dict(self.run)
        for key, amount in delta.items():
            used[key] = plus(used.get(key, ZERO), times(amount, count))
            run[key] = plus(run.get(key, ZERO), times(amount, count))
        return replace(self, used=used, run=run)

    def released(self, usage: ResourceList) -> Row:
        """Never below zero, as the controller counts what is left."""
        used = {
            key: Quantity(max(0, have.nano - usage[key].nano), have.format)
            if key in usage
            else have
            for key, have in self.used.items()
        }
        return replace(self, used=used)

    def delta(self, charge: Charge) -> ResourceList:
        """What the object adds to the keys of this quota."""
        return {k: q for k, q in charge.usage.items() if q.nano and k in self.hard}

    def room(self, delta: ResourceList, most: int) -> int:
        """How many such objects still fit, at most ``most``."""
        for key, amount in delta.items():
            if amount.nano > 0:
                left = self.hard[key].nano - self.used.get(key, ZERO).nano
                most = min(most, max(0, left // amount.nano))
        return most

    def exceeded(self, delta: ResourceList) -> list[str]:
        """Keys that one more such object would take over the limit."""
        return sorted(
            key
            for key, amount in delta.items()
            if self.used.get(key, ZERO).nano + amount.nano > self.hard[key].nano
        )
