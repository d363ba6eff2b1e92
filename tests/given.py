"""Manifests for tests of the expansion: parsed YAML with the line of every field."""

from __future__ import annotations

from typing import Any

import yaml
from msgspec import Struct

from kubectl_gpuadmit.kube.gpus import pod_accelerators, pod_gpus
from kubectl_gpuadmit.kube.workloads import Workload


class Given(Struct):
    """What ``expand`` needs of a document, without the reader of files."""

    data: Any
    text: str = ""
    file: str = "given.yaml"
    line: int = 1

    @property
    def location(self) -> str:
        return f"{self.file}:{self.line}"

    def position(self, pointer: str) -> tuple[int, int]:
        """Where the value at ``pointer`` stands, else the nearest object around it."""
        node = yaml.compose(self.text) if self.text else None
        if node is None:
            return self.line, 1
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, yaml.MappingNode):
                below = [value for key, value in node.value if key.value == name]
            elif isinstance(node, yaml.SequenceNode) and name.isdecimal():
                below = node.value[int(name) : int(name) + 1]
            else:
                below = []
            if not below:
                break
            node = below[0]
        return node.start_mark.line + 1, node.start_mark.column + 1


def given(text: str) -> Given:
    return Given(yaml.safe_load(text), text)


def devices(workload: Workload) -> dict[str, int]:
    """GPUs and other accelerators over all pods, sorted."""
    total: dict[str, int] = {}
    for group in workload.groups:
        for name, amount in {**pod_gpus(group.pod), **pod_accelerators(group.pod)}.items():
            total[name] = total.get(name, 0) + amount * group.count
    return dict(sorted(total.items()))
