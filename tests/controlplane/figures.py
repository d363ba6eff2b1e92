"""``python -m tests.controlplane.figures``: how long the bed takes, and how much it holds."""

from __future__ import annotations

import argparse
import json
import time

from tests.controlplane.bed import ControlPlane
from tests.controlplane.crowd import fill


def megabytes(bed: ControlPlane) -> dict[str, int]:
    each = {name: round(size / 1e6) for name, size in bed.memory.items()}
    return {**each, "all": sum(each.values())}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=0, help="fill it with so many nodes")
    options.add_argument("--pods", type=int, default=0, help="and so many pods")
    chosen = options.parse_args()
    with ControlPlane() as bed:
        print(json.dumps({"ready after s": round(bed.started_in, 1), "MB": megabytes(bed)}))
        if chosen.nodes:
            begun = time.monotonic()
            fill(bed, node_count=chosen.nodes, pod_count=chosen.pods)
            spent = round(time.monotonic() - begun, 1)
            counted = {"nodes": chosen.nodes, "pods": chosen.pods, "loaded in s": spent}
            print(json.dumps({**counted, "MB": megabytes(bed)}))


if __name__ == "__main__":
    main()
