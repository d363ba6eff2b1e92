"""``python -m benchmarks.live``: live ``explain`` beside ``kubectl get nodes,pods -A -o json``.

Fills a control plane of its own (tests/controlplane) and measures both in turn, in one run: best
wall time and peak resident memory of the whole process. Only ratios mean anything on a shared
machine.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.__main__ import Measured, measure
from benchmarks.clusters import deployments
from tests.controlplane.bed import ControlPlane
from tests.controlplane.crowd import fill


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    options.add_argument("--nodes", type=int, default=1_000)
    options.add_argument("--pods", type=int, default=10_000)
    options.add_argument("--runs", type=int, default=3)
    chosen = options.parse_args()
    kubectl = shutil.which("kubectl")
    with ControlPlane() as bed, tempfile.TemporaryDirectory() as folder:
        fill(bed, node_count=chosen.nodes, pod_count=chosen.pods)
        manifest = Path(folder) / "one.yaml"
        manifest.write_text(deployments(1, replicas=8), "utf-8")
        config = ["--kubeconfig", str(bed.kubeconfig)]
        plugin = [sys.executable, "-m", "kubectl_gpuadmit.cli.main"]
        explain = [*plugin, "explain", "-f", str(manifest), *config]
        calls = {
            "explain": explain,
            "explain --no-remedies": [*explain, "--no-remedies"],
        }
        if kubectl:
            calls["kubectl get nodes,pods -A -o json"] = [
                *(kubectl, "get", "nodes,pods", "-A", "-o", "json"),
                *config,
            ]
        found: dict[str, Measured] = {}
        for name, call in calls.items():
            found[name] = measure(call, runs=chosen.runs)
    for name, one in found.items():
        figures = {"s": round(one.seconds, 2), "MiB": round(one.mebibytes), "exit": one.code}
        print(json.dumps({"call": name, "nodes": chosen.nodes, "pods": chosen.pods, **figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
