"""Options and fixtures that all tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

from tests.controlplane import binaries
from tests.controlplane.bed import PROGRAMS, ControlPlane
from tests.fakes.apiserver import ApiServer

# In CI a property is tried on the same examples each time: what failed there fails here too.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("default", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# A run in the background (``nohup … &``) ignores SIGINT, and so would each process that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REQUIRE = "GPU_ADMIT_REQUIRE_CONTROLPLANE"
"""Set to 1: a test that needs Kubernetes' programs fails where they are missing."""

RUNNING = pytest.StashKey[ControlPlane]()
WITHOUT = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what the renderers say now into tests/golden, for review with git diff",
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A stand-in for an API server, at its wire."""
    with ApiServer() as running:
        yield running


@pytest.fixture(scope="session")
def running_control_plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """One control plane for the whole run; built before, where need be, in view of the person."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            for program in PROGRAMS:
                binaries.find(program)
    except binaries.Missing as problem:
        pytest.skip(str(problem))
    with ControlPlane() as bed:
        pytestconfig.stash[RUNNING] = bed
        yield bed
        del pytestconfig.stash[RUNNING]


@pytest.fixture
def control_plane(running_control_plane: ControlPlane) -> ControlPlane:
    """The running control plane, emptied of what the test before left in it."""
    running_control_plane.clear()
    return running_control_plane


NEEDS = frozenset({"control_plane", "running_control_plane", "referee"})
"""Fixtures that need programs built from tests/controlplane/go.mod."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skip for want of programs is counted, or a failure where none is allowed."""
    report = yield
    if not NEEDS & set(getattr(item, "fixturenames", ())):
        return report
    if report.skipped and call.when == "setup":
        if os.environ.get(REQUIRE) == "1":
            report.outcome = "failed"
            report.longrepr = f"{REQUIRE}=1 and {call.excinfo.value if call.excinfo else ''}"
        else:
            item.config.stash.setdefault(WITHOUT, []).append(item.nodeid)
    bed = item.config.stash.get(RUNNING, None)
    if report.failed and bed is not None:
        report.sections.append(("control plane", bed.logs()))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    without = terminalreporter.config.stash.get(WITHOUT, [])
    if without:
        terminalreporter.write_line(
            f"{len(without)} tests against Kubernetes' own programs were skipped:"
            " these are not built (tests/controlplane/README.md)",
            yellow=True,
        )
