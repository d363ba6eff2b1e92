"""The table of feature gates says what the API server's own help says."""

from __future__ import annotations

import re
import subprocess

import pytest

from kubectl_gpuadmit.devices import gates, maturity
from kubectl_gpuadmit.devices.gates import GATES, KUBERNETES, NEWEST
from tests.controlplane import binaries

LINE = re.compile(
    r"kube:(DRA[A-Za-z]+|DynamicResourceAllocation|GenericWorkload|ResourceHealthStatus)=true\|false"
    r" \((ALPHA|BETA|GA) - default=(true|false)\)"
)


def test_stage_and_default_of_the_newest_version_are_those_of_the_api_server() -> None:
    """The help leaves out what is GA, and nothing else."""
    try:
        program = binaries.find("kube-apiserver", build=False)
    except binaries.Missing as missing:
        pytest.skip(str(missing))
    done = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
    helped = {name: (stage.lower(), on == "true") for name, stage, on in LINE.findall(done.stdout)}
    ours, stable = {}, set()
    for gate in GATES:
        if gate.component != KUBERNETES:
            continue
        there = maturity.step(gate, NEWEST[KUBERNETES])
        assert there is not None, gate.name
        if there.stage == "ga":
            assert there.on
            stable.add(gate.name)
        else:
            ours[gate.name] = (there.stage, there.on)
    assert ours == helped
    assert len(stable) == 8


def test_stages_only_ever_rise_and_alpha_is_off() -> None:
    order = ["alpha", "beta", "ga"]
    for gate in GATES:
        at = [order.index(one.stage) for one in gate.steps]
        assert at == sorted(at), gate.name
        since = [one.since for one in gate.steps]
        assert since == sorted(set(since)), gate.name
        assert not any(one.on for one in gate.steps if one.stage == "alpha"), gate.name


def test_what_excludes_a_gate_is_excluded_by_it_and_what_it_needs_is_known() -> None:
    for gate in GATES:
        for other in gate.excludes:
            assert gate.name in maturity.BY_NAME[(gate.component, other)].excludes
        for other in gate.beside:
            assert (gate.component, other) in maturity.BY_NAME
        for other in gate.needs:
            assert (KUBERNETES, other) in maturity.BY_NAME


def test_every_operator_carries_a_driver_that_the_table_knows() -> None:
    for driver in gates.OPERATOR_DRIVER.values():
        assert driver is None or driver <= NEWEST[gates.NVIDIA]
