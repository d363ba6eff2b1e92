"""How the agent fares, for metrics and probes; it measures nothing itself.

Metrics are in Prometheus' text format (prometheus.io/docs/instrumenting/exposition_formats).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubectl_gpuadmit.kube.gpu_topology import GpuTopologySpec
from kubectl_gpuadmit.topology.readings import Silent

STUCK_SECONDS = 300.0
"""A pass that takes longer hangs: a wedged driver may hold a call for ever."""
MISMATCH_SECONDS = 600.0
"""A driver that was replaced needs a new container: after this long the probe asks for one."""
SILENT_SECONDS = 120.0


class Status:
    """Filled by the loop, read by the server's threads: each field is one assignment."""

    def __init__(self) -> None:
        self.passes = 0
        self.faults = 0
        self.pass_seconds = 0.0
        self.passed_at: float | None = None
        self.written_at: float | None = None
        self.writes = {"report": 0, "heartbeat": 0}
        self.bytes = {"report": 0, "heartbeat": 0}
        self.write_failures = 0
        self.write_problem = ""
        self.silent: dict[str, tuple[float, Silent] | None] = {}
        """Source -> since when it is silent, and why."""
        self.report: GpuTopologySpec | None = None

    def source(self, name: str, silent: Silent | None, now: float) -> None:
        before = self.silent.get(name)
        self.silent[name] = None if silent is None else (before[0] if before else now, silent)

    def wrote(self, kind: str, size: int) -> None:
        self.writes[kind] += 1
        self.bytes[kind] += size

    def unhealthy(self, now: float) -> str:
        """Why a restart would help; '' where it would not."""
        if self.passed_at is not None and now - self.passed_at > STUCK_SECONDS:
            return f"no pass for {now - self.passed_at:.0f} s: a call into the driver hangs"
        driver = self.silent.get("driver")
        if driver and driver[1].ref == "nvml-mismatch" and now - driver[0] > MISMATCH_SECONDS:
            return driver[1].why
        return ""

    def unready(self, now: float, *, heartbeat: float) -> str:
        """Why its report cannot be trusted to be there and fresh; '' where it can."""
        if self.passed_at is None:
            return "no pass yet"
        for name, since in self.silent.items():
            if since and now - since[0] > SILENT_SECONDS and self.report is not None:
                return f"{name} silent for {now - since[0]:.0f} s: {since[1].why}"
        if self.report is None:
            return ""  # a node without a GPU needs no report
        if self.write_problem and (
            self.written_at is None or now - self.written_at > 2 * heartbeat
        ):
            return f"not written: {self.write_problem}"
        return "" if self.written_at is not None else "not written yet"

    def metrics(self, *, node: str, resident: int) -> str:
        """The text of ``/metrics``."""
        return "".join(self._lines(node, resident))

    def _lines(self, node: str, resident: int) -> Iterator[str]:
        yield from _one("passes_total", "counter", "Looks at the node.", self.passes)
        yield from _one("faults_total", "counter", "Passes that ended in a fault.", self.faults)
        yield from _one("pass_seconds", "gauge", "How long the last look took.", self.pass_seconds)
        kinds = [({"kind": kind}, count) for kind, count in self.writes.items()]
        yield from _many("writes_total", "counter", "Writes to the API server.", kinds)
        sizes = [({"kind": kind}, count) for kind, count in self.bytes.items()]
        yield from _many("written_bytes_total", "counter", "Bytes of these writes.", sizes)
        yield from _one(
            "write_failures_total", "counter", "Writes that failed.", self.write_failures
        )
        up = [({"source": name}, int(held is None)) for name, held in self.silent.items()]
        yield from _many("source_up", "gauge", "Whether a source answered.", up)
        yield from _one("resident_bytes", "gauge", "Memory of this process.", resident)
        gpus = self.report.gpus if self.report is not None else ()
        yield from _many("gpus", "gauge", "GPUs of the node.", [({"node": node}, len(gpus))])
        ids = [({"gpu": str(gpu.index), "uuid": gpu.uuid}, gpu) for gpu in gpus]
        yield from _many(
            "gpu_lost", "gauge", "1 for a GPU that is gone.", [(i, int(g.lost)) for i, g in ids]
        )
        yield from _many(
            "gpu_residue_bytes",
            "gauge",
            "Memory in use without an owner.",
            [(i, g.residueMiB << 20) for i, g in ids if g.residueMiB is not None],
        )
        yield from _many(
            "gpu_nvlinks_down",
            "gauge",
            "NVLinks that should be up and are not.",
            [(i, len(g.nvlinks.down)) for i, g in ids if g.nvlinks is not None],
        )
        yield from _many(
            "gpu_xids",
            "gauge",
            "Errors (Xid) of the last 24 hours.",
            [({**i, "xid": str(x.code)}, x.count) for i, g in ids for x in g.xids],
        )


def _one(name: str, kind: str, help_: str, value: float) -> Iterator[str]:
    yield from _many(name, kind, help_, [({}, value)])


def _many(
    name: str, kind: str, help_: str, values: Sequence[tuple[Mapping[str, str], float]]
) -> Iterator[str]:
    full = f"gpu_admit_agent_{name}"
    yield f"# HELP {full} {help_}\n# TYPE {full} {kind}\n"
    for labels, value in values:
        yield (
            f"{full}{_labels(labels)} {value:g}\n"
            if value < 1e6
            else (f"{full}{_labels(labels)} {value:.0f}\n")
        )


def _labels(labels: Mapping[str, str]) -> str:
    def quoted(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    inside = ",".join(f'{name}="{quoted(value)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""
