"""``python -m benchmarks``: makes clusters once, runs each command, prints times, memory, ratios.

Every figure is the best of a few whole-process runs. Only ratios within one run mean anything on a
shared machine; the reference of each row is run in the same minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.clusters import deployments, write_cluster

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / ".data"
COMMAND = [str(Path(sys.executable).parent / "kubectl-gpu_admit")]
EXAMPLES = ROOT / "examples"
SIZES = {50: 500, 500: 5_000, 5_000: 50_000}


class Measured(NamedTuple):
    """Best wall time in seconds, peak resident memory in MiB, exit code of the last run."""

    seconds: float
    mebibytes: float
    code: int


def measure(argv: list[str], runs: int = 3) -> Measured:
    best, peak, code = float("inf"), 0.0, 0
    for _ in range(runs):
        start = time.perf_counter()
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        best = min(best, time.perf_counter() - start)
        peak = max(peak, usage.ru_maxrss / 1024)
        code = os.waitstatus_to_exitcode(status)
        process.returncode = code
    return Measured(best, peak, code)


def python(code: str, *args: str) -> list[str]:
    return [sys.executable, "-c", code, *args]


def prepare() -> None:
    for nodes, pods in SIZES.items():
        directory = DATA / f"{nodes}"
        if not (directory / "pods.json").exists():
            print(f"making a cluster of {nodes:,} nodes and {pods:,} pods", file=sys.stderr)
            write_cluster(directory, nodes, pods)
    (DATA / "one.yaml").write_text(deployments(1, replicas=8), "utf-8")
    (DATA / "thousand.yaml").write_text(deployments(1_000), "utf-8")


def main() -> int:
    DATA.mkdir(exist_ok=True)
    prepare()
    policy = ["--policy", str(EXAMPLES / "policy.yaml")]
    one, thousand = str(DATA / "one.yaml"), str(DATA / "thousand.yaml")
    rows: list[tuple[str, Measured, str, Measured | None]] = []

    def row(
        name: str, argv: list[str], against: str = "", reference: Measured | None = None
    ) -> Measured:
        got = measure(argv)
        rows.append((name, got, against, reference))
        return got

    bare = row("python -c pass", python("pass"))
    row("--help", [*COMMAND, "--help"], "bare Python", bare)
    row(
        "explain 1 Deployment, examples/cluster",
        [*COMMAND, "explain", "-f", one, "--snapshot", str(EXAMPLES / "cluster"), *policy],
        "bare Python",
        bare,
    )
    previous: Measured | None = None
    for nodes, pods in SIZES.items():
        directory = DATA / f"{nodes}"
        files = [str(file) for file in sorted(directory.glob("*.json"))]
        loads = "import json, sys\nfor f in sys.argv[1:]:\n    json.load(open(f, 'rb'))"
        size = sum(Path(f).stat().st_size for f in files) / 1e6
        reference = row(
            f"json.load, {nodes:,} nodes, {pods:,} pods, {size:.0f} MB", python(loads, *files)
        )
        got = row(
            f"explain 8 pods, {nodes:,} nodes, {pods:,} pods",
            [*COMMAND, "explain", "-f", one, "--snapshot", str(directory), *policy],
            "json.load",
            reference,
        )
        if previous is not None:
            print(
                f"  ten times the cluster: {got.seconds / previous.seconds:.1f} times the time",
                file=sys.stderr,
            )
        previous = got
    loads = (
        "import yaml, sys\nlist(yaml.load_all(open(sys.argv[1], 'rb'), Loader=yaml.CSafeLoader))"
    )
    reference = row("PyYAML C loader, 1,000 Deployments", python(loads, thousand))
    row(
        "check 1,000 Deployments, 500 nodes",
        [*COMMAND, "check", thousand, "--snapshot", str(DATA / "500"), *policy, "--no-remedies"],
        "PyYAML C loader",
        reference,
    )
    row(
        "check 1,000 Deployments, 500 nodes, with remedies",
        [*COMMAND, "check", thousand, "--snapshot", str(DATA / "500"), *policy],
        "PyYAML C loader",
        reference,
    )
    print(f"{'what':<54} {'s':>7} {'MiB':>6}  exit  ratio")
    for name, got, against, reference_ in rows:
        ratio = f"{got.seconds / reference_.seconds:.2f} × {against}" if reference_ else ""
        print(f"{name:<54} {got.seconds:7.3f} {got.mebibytes:6.0f}  {got.code:>4}  {ratio}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
