"""The names of a group's pods, made when they are asked for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import overload

from msgspec import structs

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.workloads import PodGroup


class PodNames(Sequence[str]):
    """The names of a group's first ``count`` pods, made when asked for: counts reach 2**31 - 1."""

    def __init__(self, group: PodGroup, count: int) -> None:
        self._group = group
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._group.name(number) for number in range(self._count)[index]]
        return self._group.name(range(self._count)[index])

    def first(self, count: int) -> PodNames:
        """The names of the first ``count`` pods, of no more than there are."""
        return PodNames(self._group, min(count, self._count))


def pod_names(group: PodGroup, count: int, cluster: Cluster, kind: str) -> PodNames:
    """Names that no other pod has: what is placed is kept by its name.

    Of drawn names only the beginning is known, and a Job may begin as a Deployment does.
    """
    pod = group.pod
    generate = pod.metadata.generateName or ""
    if group.names or pod.name or cluster.get("Pod", pod.namespace, f"{generate}0") is None:
        return PodNames(group, count)
    for number in itertools.count(2):
        prefix = f"{generate}{kind.lower()}-{number}-"
        if cluster.get("Pod", pod.namespace, f"{prefix}0") is None:
            break
    metadata = structs.replace(pod.metadata, generateName=prefix)
    renamed = structs.replace(group, pod=structs.replace(pod, metadata=metadata))
    return PodNames(renamed, count)
