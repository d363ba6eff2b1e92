"""``python -m benchmarks``: makes clusters once, runs each command, prints times, memory, ratios.

Every figure is the best of a few whole-process runs. Only ratios within one run mean anything on a
shared machine; the reference of each row is run in the same minute.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import devices
from benchmarks.clusters import admitted, deployments

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / ".data"
PROGRAM = str(Path(sys.executable).parent / "kubectl-gpu_admit")
EXAMPLES = ROOT / "examples"
SIZES = {50: 500, 500: 5_000, 5_000: 50_000}
"""Nodes -> pods of the clusters."""
WITH_DEVICES = 5_000
"""Nodes of the clusters with DRA."""
MANY = 1_000
"""Deployments in the large file."""


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


class Row(NamedTuple):
    """One line of the table; ``against`` names the row that it is a multiple of."""

    name: str
    got: Measured
    against: str = ""
    reference: Measured | None = None

    def __str__(self) -> str:
        ratio = ""
        if self.reference is not None:
            ratio = f"{self.got.seconds / self.reference.seconds:.2f} × {self.against}"
        name, got = self.name, self.got
        return f"{name:<54} {got.seconds:7.3f} {got.mebibytes:6.0f}  {got.code:>4}  {ratio}"


def python(code: str, *args: str) -> list[str]:
    return [sys.executable, "-c", code, *args]


READ_JSON = "import json, sys\nfor f in sys.argv[1:]:\n    json.load(open(f, 'rb'))"
READ_YAML = (
    "import yaml, sys\nlist(yaml.load_all(open(sys.argv[1], 'rb'), Loader=yaml.CSafeLoader))"
)


def prepare(data: Path, sizes: Mapping[int, int], many: int, with_devices: int) -> None:
    """Makes what is not there yet: a folder for each cluster, ``one.yaml``, ``many.yaml``, and
    clusters of ``with_devices`` nodes with DRA."""
    data.mkdir(exist_ok=True)
    for nodes, pods in sizes.items():
        directory = data / f"{nodes}"
        if not (directory / "pods.json").exists():
            print(f"making a cluster of {nodes:,} nodes and {pods:,} pods", file=sys.stderr)
            # in a process of its own: what this one holds would count as the commands' memory
            made = "import sys, pathlib\nfrom benchmarks.clusters import write_cluster\n"
            made += "write_cluster(pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))"
            argv = python(made, str(directory), str(nodes), str(pods))
            subprocess.run(argv, cwd=ROOT, check=True)
    if not all(devices.snapshot(data, with_devices, each).exists() for each in devices.KINDS):
        print(f"making clusters of {with_devices:,} nodes with DRA", file=sys.stderr)
        made = "import sys, pathlib\nfrom benchmarks.devices import write_clusters\n"
        made += "write_clusters(pathlib.Path(sys.argv[1]), int(sys.argv[2]))"
        subprocess.run(python(made, str(data), str(with_devices)), cwd=ROOT, check=True)
    (data / "one.yaml").write_text(admitted(replicas=8), "utf-8")
    (data / "many.yaml").write_text(deployments(many), "utf-8")


def rows(
    command: Sequence[str],
    data: Path,
    sizes: Mapping[int, int],
    many: int,
    with_devices: int,
    *,
    runs: int = 3,
) -> Iterator[Row]:
    """Measures ``command`` on what ``prepare`` made, each row beside its reference."""

    def ours(*args: str, snapshot: Path) -> Measured:
        policy = str(EXAMPLES / "policy.yaml")
        return measure([*command, *args, "--snapshot", str(snapshot), "--policy", policy], runs)

    bare = measure(python("pass"), runs)
    yield Row("python -c pass", bare)
    yield Row("--help", measure([*command, "--help"], runs), "bare Python", bare)
    one, thousand = str(data / "one.yaml"), str(data / "many.yaml")
    got = ours(
        "explain", "-f", str(EXAMPLES / "workloads" / "fits.yaml"), snapshot=EXAMPLES / "cluster"
    )
    yield Row("explain 1 Deployment, examples/cluster", got, "bare Python", bare)
    for nodes, pods in sizes.items():
        files = sorted((data / f"{nodes}").glob("*.json"))
        size = sum(file.stat().st_size for file in files) / 1e6
        reference = measure(python(READ_JSON, *map(str, files)), runs)
        yield Row(f"json.load, {nodes:,} nodes, {pods:,} pods, {size:.0f} MB", reference)
        got = ours("explain", "-f", one, snapshot=data / f"{nodes}")
        yield Row(f"explain 8 pods, {nodes:,} nodes, {pods:,} pods", got, "json.load", reference)
    middle = sorted(sizes)[len(sizes) // 2]
    where = f"{many:,} Deployments, {middle:,} nodes"
    reference = measure(python(READ_YAML, thousand), runs)
    yield Row(f"PyYAML C loader, {many:,} Deployments", reference)
    got = ours("check", thousand, "--no-remedies", snapshot=data / f"{middle}")
    yield Row(f"check {where}", got, "PyYAML C loader", reference)
    got = ours("check", thousand, snapshot=data / f"{middle}")
    yield Row(f"check {where}, with remedies", got, "PyYAML C loader", reference)
    for each, (_, what) in devices.KINDS.items():
        path = devices.snapshot(data, with_devices, each)
        size = path.stat().st_size / 1e6
        reference = measure(python(READ_JSON, str(path)), runs)
        yield Row(f"json.load, {with_devices:,} nodes x {each} {what}, {size:.0f} MB", reference)
        for name in devices.ASKS:
            got = ours("explain", "-f", str(data / f"claim-{name}.json"), snapshot=path)
            which = "fits" if name == "fits" else "never fits"
            row = f"explain a claim that {which}, {with_devices:,} nodes x {each}"
            yield Row(row, got, "json.load", reference)


def main() -> int:
    prepare(DATA, SIZES, MANY, WITH_DEVICES)
    measured = list(rows([PROGRAM], DATA, SIZES, MANY, WITH_DEVICES))
    print(f"{'what':<54} {'s':>7} {'MiB':>6}  exit  ratio")
    for row in measured:
        print(row)
    explained = [row for row in measured if row.name.startswith("explain 8 pods")]
    for smaller, larger in itertools.pairwise(explained):
        times = larger.got.seconds / smaller.got.seconds
        print(f"  {larger.name}: {times:.1f} times the time of {smaller.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
