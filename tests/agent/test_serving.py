"""Metrics and probes over HTTP."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from kubectl_gpuadmit.agent.serving import Serving, address
from kubectl_gpuadmit.agent.status import MISMATCH_SECONDS, STUCK_SECONDS, Status
from kubectl_gpuadmit.errors import BadInput, Unanswerable
from kubectl_gpuadmit.kube.gpu_topology import (
    GpuTopologySpec,
    ReportedGpu,
    ReportedNvlinks,
    ReportedXid,
)
from kubectl_gpuadmit.topology.readings import Silent

GPUS = (
    ReportedGpu(0, uuid='GPU-"0"', residueMiB=3174, nvlinks=ReportedNvlinks(17, 18, 4, (3,), "x")),
    ReportedGpu(1, uuid="GPU-1", residueMiB=0, xids=(ReportedXid(63, "x", 2),)),
    ReportedGpu(2, uuid="GPU-2", lost=True),
)
LINE = re.compile(
    r'[a-z_]+(\{[a-z_]+="(?:[^"\\]|\\.)*"(,[a-z_]+="(?:[^"\\]|\\.)*")*\})? -?[0-9.e+-]+'
)


class Now:
    """A clock that a test sets."""

    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def status(now: Now) -> Status:
    made = Status()
    made.passes, made.passed_at, made.written_at = 7, now(), now()
    made.report = GpuTopologySpec(schema=2, gpus=GPUS)
    made.source("driver", None, now())
    made.source("kubelet", Silent("gone", "kubelet-silent"), now())
    made.wrote("report", 5041)
    return made


@pytest.fixture
def serving(status: Status, now: Now) -> Iterator[Serving]:
    made = Serving("127.0.0.1:0", status, node="n-0", heartbeat=300, steady=now)
    yield made
    made.close()


def got(serving: Serving, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{serving.port}{path}", timeout=5) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read().decode()


def test_metrics_are_what_prometheus_reads(serving: Serving) -> None:
    code, text = got(serving, "/metrics")
    assert code == 200
    values = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in values if not LINE.fullmatch(line)] == []
    assert "gpu_admit_agent_passes_total 7" in values
    assert 'gpu_admit_agent_writes_total{kind="report"} 1' in values
    assert 'gpu_admit_agent_written_bytes_total{kind="report"} 5041' in values
    assert 'gpu_admit_agent_source_up{source="driver"} 1' in values
    assert 'gpu_admit_agent_source_up{source="kubelet"} 0' in values
    assert 'gpu_admit_agent_gpus{node="n-0"} 3' in values
    assert 'gpu_admit_agent_gpu_lost{gpu="2",uuid="GPU-2"} 1' in values
    assert 'gpu_admit_agent_gpu_residue_bytes{gpu="0",uuid="GPU-\\"0\\""} 3328180224' in values
    assert 'gpu_admit_agent_gpu_nvlinks_down{gpu="0",uuid="GPU-\\"0\\""} 1' in values
    assert 'gpu_admit_agent_gpu_xids{gpu="1",uuid="GPU-1",xid="63"} 2' in values
    resident = next(line for line in values if line.startswith("gpu_admit_agent_resident_bytes"))
    assert float(resident.split()[1]) > 1e6


def test_every_metric_is_described_once_before_its_values(serving: Serving) -> None:
    _, text = got(serving, "/metrics")
    helped = re.findall(r"^# HELP (\S+) ", text, re.M)
    typed = re.findall(r"^# TYPE (\S+) (?:counter|gauge)$", text, re.M)
    assert helped == typed
    assert len(set(helped)) == len(helped)
    named = {line.split("{")[0].split()[0] for line in text.splitlines() if line[0] != "#"}
    assert named <= set(helped)


def test_a_kubelet_that_is_silent_for_long_makes_it_unready(serving: Serving, now: Now) -> None:
    assert got(serving, "/readyz") == (200, "ok\n")
    now.seconds += 130
    assert got(serving, "/readyz") == (503, "kubelet silent for 130 s: gone\n")


def test_before_the_first_pass_it_is_alive_and_not_ready(serving: Serving, status: Status) -> None:
    status.passed_at = None
    assert got(serving, "/readyz") == (503, "no pass yet\n")
    assert got(serving, "/healthz") == (200, "ok\n")


def test_a_report_that_cannot_be_written_makes_it_unready_after_two_heartbeats(
    serving: Serving, status: Status, now: Now
) -> None:
    status.source("kubelet", None, now())
    status.write_problem = "no route [unreachable]"
    assert got(serving, "/readyz") == (200, "ok\n")
    now.seconds += 601
    assert got(serving, "/readyz") == (503, "not written: no route [unreachable]\n")


def test_a_pass_that_hangs_and_a_replaced_driver_want_a_restart(
    serving: Serving, status: Status, now: Now
) -> None:
    now.seconds += STUCK_SECONDS + 1
    assert got(serving, "/healthz") == (503, "no pass for 301 s: a call into the driver hangs\n")
    status.passed_at = now()
    status.source("driver", Silent("replaced", "nvml-mismatch"), now())
    assert got(serving, "/healthz") == (200, "ok\n")
    now.seconds += MISMATCH_SECONDS + 1
    status.passed_at = now()
    assert got(serving, "/healthz") == (503, "replaced\n")


def test_other_paths_are_not_there(serving: Serving) -> None:
    assert got(serving, "/") == (404, "try /metrics, /healthz, /readyz\n")


def test_an_address_that_is_taken_is_an_error_of_one_line(status: Status, now: Now) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unanswerable) as told:
            Serving(where, status, node="n", heartbeat=1, steady=now)
    assert told.value.ref == "cannot-listen"


def test_addresses() -> None:
    assert address(":9435") == ("0.0.0.0", 9435)
    assert address("127.0.0.1:1") == ("127.0.0.1", 1)
    for wrong in ("9435", "host:", "host:x", "host:99999"):
        with pytest.raises(BadInput):
            address(wrong)
