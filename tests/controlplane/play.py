"""``make controlplane``: the tests' control plane with examples/ in it, for a person to try."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from tests.controlplane import binaries
from tests.controlplane.bed import ControlPlane
from tests.controlplane.kubelet import Kubelet
from tests.controlplane.loading import define, load, read

EXAMPLES = Path(__file__).parents[2] / "examples"
DEPLOY = EXAMPLES.parent / "deploy"
DEFINITIONS = (
    DEPLOY / "agent" / "crd.yaml",
    DEPLOY / "crds" / "inferencedeployments.svr.sivaro.io.yaml",
)
"""Kinds of our own that the examples have objects of."""

TEXT = """
A cluster of {nodes} nodes and {pods} pods; what is bound runs, what is deleted goes at once.

  export KUBECONFIG={kubeconfig} PATH={plugins}:$PATH
  kubectl get nodes
  kubectl apply -f {workloads}/quota-third-replica.yaml
  kubectl get events -A --field-selector type=Warning
  kubectl gpu-admit explain deploy/llama-8b -n team-a

As somebody who may see the namespace team-a alone:

  export KUBECONFIG={developer}

The programs' logs: {folder}/*.log. Ctrl-C ends and removes everything.
"""


def main() -> int:
    """Runs until Ctrl-C or SIGTERM."""
    options = argparse.ArgumentParser(prog="python -m tests.controlplane.play", description=__doc__)
    options.add_argument(
        "--cluster",
        type=Path,
        default=EXAMPLES / "cluster",
        help="folder of objects to load (default: examples/cluster)",
    )
    chosen = options.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        bed = ControlPlane()
    except binaries.Missing as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 3
    with bed, Kubelet(bed.server):
        for definition in DEFINITIONS:
            define(bed, definition)
        load(bed, read(chosen.cluster))
        print(
            TEXT.format(
                nodes=len(bed.client.list("v1", "Node")),
                pods=len(bed.client.list("v1", "Pod")),
                kubeconfig=bed.kubeconfig,
                developer=bed.allow(bed.namespace("team-a")),
                workloads=EXAMPLES / "workloads",
                plugins=EXAMPLES.parent / "plugins",
                folder=bed.folder,
            ),
            flush=True,
        )
        ended.wait()
        print("ending", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
