"""The stand-in for NVML, compiled once a run; where no C compiler is, its tests skip and say so."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_gpuadmit.adapters.nvml import Nvml
from tests.agent.node import Node, node_of
from tests.fakes import machines
from tests.fakes.nvml import Driver, NoCompiler, build


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return build(tmp_path_factory.mktemp("nvml"))
    except NoCompiler as problem:
        pytest.skip(str(problem))


@pytest.fixture
def driver(nvml_library: Path, tmp_path: Path) -> Driver:
    """A driver that this process's pynvml finds; show it a machine."""
    made = Driver(nvml_library, tmp_path / "nvml.table")
    made.load()
    return made


@pytest.fixture
def nvml(driver: Driver) -> Iterator[Nvml]:
    """The real adapter above the driver."""
    adapter = Nvml()
    yield adapter
    adapter.close()


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short path, for sockets."""
    with tempfile.TemporaryDirectory(prefix="ga-") as folder:
        yield Path(folder)


@pytest.fixture
def h100(driver: Driver, short: Path) -> Iterator[Node]:
    with node_of(machines.hgx_h100(), driver, short) as node:
        yield node
