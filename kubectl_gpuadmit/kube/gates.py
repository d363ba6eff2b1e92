"""Feature gates that a cluster has switched by hand; which ones there are, ``devices.gates`` says.

Kubernetes tells them to nobody who reads objects alone, so they are said in the policy.
Source: k8s.io/component-base v0.37.2 featuregate/feature_gate.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

ALL_OF_STAGE = {"AllAlpha": "alpha", "AllBeta": "beta"}
"""Gates that switch all of a stage that are not switched by their own name."""


class Gates(Struct, frozen=True):
    """``--feature-gates`` of the API server, the controllers and the scheduler alike."""

    switched: tuple[tuple[str, bool], ...] = ()
    """(gate, on), sorted by name; all others have their default."""

    @classmethod
    def of(cls, written: Mapping[str, bool]) -> Gates:
        return cls(tuple(sorted(written.items())))

    def get(self, name: str) -> bool | None:
        """What was said of a gate by its own name; None for nothing."""
        return dict(self.switched).get(name)

    def of_stage(self, stage: str) -> bool | None:
        """What was said of all gates of a stage (``alpha``, ``beta``); None for nothing."""
        return next(
            (on for name, on in self.switched if ALL_OF_STAGE.get(name) == stage),
            None,
        )

    def __bool__(self) -> bool:
        return bool(self.switched)


DEFAULT = Gates()
