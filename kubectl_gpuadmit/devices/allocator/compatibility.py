"""Which devices of one counter set may be given out beside each other (compatibilityGroups).

Source: k8s.io/dynamic-resource-allocation v0.37.2 structured/internal/experimental
(compatibility_groups.go; gate DRADeviceCompatibilityGroups).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kubectl_gpuadmit.devices.model import Device

Groups = frozenset[str]


class Company(Struct, frozen=True):
    """The devices that are given out of a counter set; () for none yet."""

    present: bool = False
    groups: Groups = frozenset()
    """What the groups of all have in common; empty where none of them names any."""
    ungrouped: bool = False
    """None of them names a group: only such devices may join."""

    def admits(self, groups: Groups) -> bool:
        if not self.present:
            return True
        if not groups or self.ungrouped:
            return not groups and self.ungrouped
        return bool(self.groups & groups)

    def joined(self, groups: Groups) -> Company:
        """With one more device, which need not fit: what is allocated already is not asked."""
        if not self.present:
            return Company(True, groups, not groups)
        if self.ungrouped or not groups:
            return self
        return Company(True, self.groups & groups)


def groups_of(device: Device) -> Iterator[tuple[str, Groups]]:
    """(counter set, the device's groups there) for each that it consumes."""
    for one in device.consumes:
        yield one.counterSet, frozenset(one.compatibilityGroups or ())
