"""``python -m benchmarks``: makes clusters once, runs each command, prints times, memory, ratios.

Every figure is of a whole process: the least CPU seconds of a few runs (wall time says more of the
other work on a shared machine than of ours), the most memory. Only ratios within one run carry over
to another machine; the reference of each row is run in the same minute.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import devices
from benchmarks.clusters import STAMP, admitted, deployments

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / ".data"
PROGRAM = str(Path(sys.executable).parent / "kubectl-gpu_admit")
EXAMPLES = ROOT / "examples"
SIZES = {50: 500, 500: 5_000, 5_000: 50_000, 10_000: 100_000}
"""Nodes -> pods of the clusters."""
WITH_DEVICES = 5_000
"""Nodes of the clusters with DRA."""
MANY = 1_000
"""Deployments in the large file."""


class Measured(NamedTuple):
    """Least CPU seconds, peak resident memory in MiB, exit code of the last run."""

    seconds: float
    mebibytes: float
    code: int


def measure(argv: list[str], runs: int = 3) -> Measured:
    best, peak, code = float("inf"), 0.0, 0
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # as installed: with bytecode
    for _ in range(runs):
        process = subprocess.Popen(
            argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
        best = min(best, usage.ru_utime + usage.ru_stime)
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
    """Makes what is not there yet: a folder for each cluster, one with the agents' maps of the
    large one, ``one.yaml``, ``many.yaml``, and clusters of ``with_devices`` nodes with DRA."""
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
    large = large_of(sizes)
    maps = data / f"{large}-maps"
    if not maps.exists():
        made = "import sys, pathlib\nfrom benchmarks.clusters import write_maps\n"
        made += "write_maps(pathlib.Path(sys.argv[1]), int(sys.argv[2]))"
        subprocess.run(python(made, str(maps), str(large)), cwd=ROOT, check=True)
        for file in (data / f"{large}").glob("*.json"):
            (maps / file.name).symlink_to(file)
    (data / "one.yaml").write_text(admitted(replicas=8), "utf-8")
    (data / "many.yaml").write_text(deployments(many), "utf-8")


def large_of(sizes: Mapping[int, int]) -> int:
    """The third size: that of the goals."""
    return sorted(sizes)[min(2, len(sizes) - 1)]


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

    policy = ["--policy", str(EXAMPLES / "policy.yaml")]

    def ours(*args: str, snapshot: Path) -> Measured:
        return measure([*command, *args, "--snapshot", str(snapshot), *policy], runs)

    def loaded(*folders: Path) -> tuple[str, Measured]:
        files = [file for folder in folders for file in sorted(folder.glob("*.json"))]
        size = sum(file.stat().st_size for file in files) / 1e6
        return f"{size:.0f} MB", measure(python(READ_JSON, *map(str, files)), runs)

    bare = measure(python("pass"), runs)
    yield Row("python -c pass", bare)
    yield Row("--help", measure([*command, "--help"], runs), "bare Python", bare)
    one, thousand = str(data / "one.yaml"), str(data / "many.yaml")
    got = ours(
        "explain", "-f", str(EXAMPLES / "workloads" / "fits.yaml"), snapshot=EXAMPLES / "cluster"
    )
    yield Row("explain 1 Deployment, examples/cluster", got, "bare Python", bare)
    for nodes, pods in sizes.items():
        size, reference = loaded(data / f"{nodes}")
        yield Row(f"json.load, {nodes:,} nodes, {pods:,} pods, {size}", reference)
        got = ours("explain", "-f", one, snapshot=data / f"{nodes}")
        yield Row(f"explain 8 pods, {nodes:,} nodes, {pods:,} pods", got, "json.load", reference)
    large, middle = large_of(sizes), sorted(sizes)[1]
    maps = data / f"{large}-maps"
    size, reference = loaded(maps)
    yield Row(f"json.load, {large:,} nodes and their maps, {size}", reference)
    got = ours("topo", "--now", STAMP, snapshot=maps)
    yield Row(f"topo, {large:,} nodes and their maps", got, "json.load", reference)
    size, reference = loaded(data / f"{large}")
    kept = str(data / "kept.json")
    got = ours("snapshot", "--force", "-o", kept, snapshot=data / f"{large}")
    yield Row(f"snapshot -o, {large:,} nodes", got, "json.load", reference)
    folder = data / f"{middle}"
    size, reference = loaded(folder, folder)
    got = measure([*command, "diff", str(folder), str(folder), *policy], runs)
    yield Row(f"diff of two with {middle:,} nodes", got, "json.load of both", reference)
    where = f"{many:,} Deployments, {middle:,} nodes"
    reference = measure(python(READ_YAML, thousand), runs)
    yield Row(f"PyYAML C loader, {many:,} Deployments", reference)
    got = ours("check", thousand, "--no-remedies", snapshot=data / f"{middle}")
    yield Row(f"check {where}", got, "PyYAML C loader", reference)
    got = ours("check", thousand, snapshot=data / f"{middle}")
    yield Row(f"check {where}, with remedies", got, "PyYAML C loader", reference)
    got = ours("check", thousand, "--no-remedies", snapshot=data / f"{large}")
    yield Row(f"check {many:,} Deployments, {large:,} nodes", got, "PyYAML C loader", reference)
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
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    prepare(DATA, SIZES, MANY, WITH_DEVICES)
    print(f"{'what':<54} {'CPU s':>7} {'MiB':>6}  exit  ratio")
    measured = []
    for row in rows([PROGRAM], DATA, SIZES, MANY, WITH_DEVICES, runs=runs):
        print(row, flush=True)
        measured.append(row)
    explained = [row for row in measured if row.name.startswith("explain 8 pods")]
    for smaller, larger in itertools.pairwise(explained):
        times = larger.got.seconds / smaller.got.seconds
        print(f"  {larger.name}: {times:.1f} times the time of {smaller.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
