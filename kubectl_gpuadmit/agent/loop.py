"""Looks at the node, and writes what it says when that changed or the heartbeat is due.

Rules of this module
1. A pass never ends the process: a silent source is a problem in the report, an API server that is
   away is a write that is tried again later, a fault of our own is counted and told once.
2. What waits to be written is always the newest report: an hour without an API server costs one
   write when it is back, and the memory of one report.
3. Time, waiting and chance are given from outside.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from kubectl_gpuadmit.agent.status import Status
from kubectl_gpuadmit.errors import GpuAdmitError
from kubectl_gpuadmit.kube.gpu_topology import GpuTopologySpec
from kubectl_gpuadmit.kube.times import stamp
from kubectl_gpuadmit.topology.news import changed, drifted
from kubectl_gpuadmit.topology.observe import HEARTBEAT, RESIDUE_MIB, Look, Seen, observe
from kubectl_gpuadmit.topology.readings import Silent

INTERVAL = 30.0
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0
"""Seconds between two tries to write: doubled each time, never longer than the second."""


class Store(Protocol):
    """Where reports go: adapters.kube.node_maps."""

    def load(self, node: str) -> GpuTopologySpec | None: ...
    def write(self, node: str, spec: GpuTopologySpec) -> tuple[GpuTopologySpec, int]: ...
    def renew(self, node: str, as_of: str) -> tuple[GpuTopologySpec | None, int]: ...


class Looking(Protocol):
    """agent.sources.Sources."""

    def look(self) -> Look: ...
    def close(self) -> None: ...


class Settings(Struct, frozen=True, kw_only=True):
    """Seconds, and MiB of memory without an owner that count."""

    node: str
    interval: float = INTERVAL
    heartbeat: int = HEARTBEAT
    residue_mib: int = RESIDUE_MIB
    version: str = ""


class Agent:
    """One node's agent.

    ``clock`` is the time of day, ``steady`` seconds that never jump; ``spread`` gives a number from
    0 to 1, so that a thousand agents do not write in the same second.
    """

    def __init__(
        self,
        sources: Looking,
        store: Store,
        settings: Settings,
        *,
        clock: Callable[[], dt.datetime],
        steady: Callable[[], float],
        say: Callable[[str], None],
        spread: Callable[[], float] = random.random,
    ) -> None:
        self.status = Status()
        self._sources = sources
        self._store = store
        self._settings = settings
        self._clock = clock
        self._steady = steady
        self._say = say
        self._spread = spread
        self._seen = Seen()
        self._written: GpuTopologySpec | None = None
        self._loaded = False
        self._renew_at = 0.0
        self._try_at = 0.0
        self._pause = 0.0
        self._told: dict[str, str] = {}

    def run(self, wait: Callable[[float], bool]) -> None:
        """Passes until ``wait`` (seconds) says True: somebody wants us to end."""
        while True:
            pause = self.step()
            if wait(pause):
                break
        self._sources.close()

    def step(self) -> float:
        """One pass; the seconds until the next is due."""
        started = self._steady()
        try:
            self._pass(started)
        except Exception as problem:  # ours: told, counted, and no reason to end
            self.status.faults += 1
            self._tell("fault", f"a fault of this program: {type(problem).__name__}: {problem}")
        else:
            self._tell("fault", "")
        ended = self._steady()
        self.status.passes += 1
        self.status.pass_seconds = ended - started
        self.status.passed_at = ended
        wanted = self._settings.interval - (ended - started)
        if self._pause:
            wanted = min(wanted, self._try_at - ended)
        return max(wanted, 1.0)

    # -- parts

    def _pass(self, started: float) -> None:
        if not self._loaded and started >= self._try_at:
            self._load(started)
        look = self._sources.look()
        spec, self._seen = observe(
            look,
            now=stamp(self._clock()),
            seen=self._seen,
            heartbeat=self._settings.heartbeat,
            residue_mib=self._settings.residue_mib,
            version=self._settings.version,
        )
        for name, reading in (("driver", look.driver), ("kubelet", look.grants)):
            silent = reading if isinstance(reading, Silent) else None
            self.status.source(name, silent, started)
            text = f"{name} silent: {silent.why}" if silent else ""
            self._tell(name, text, back=f"{name} is back")
        self.status.report = spec
        if spec is not None and self._loaded and started >= self._try_at:
            self._put(spec, look, started)

    def _load(self, started: float) -> None:
        """What the agent before us reported: since when a link is down outlives a restart."""
        try:
            found = self._store.load(self._settings.node)
        except GpuAdmitError as problem:
            self._failed(problem, started, hurry=0.0)
            return
        self._loaded = True
        self._seen = replace(self._seen, spec=self._seen.spec or found)
        self._written = found

    def _put(self, spec: GpuTopologySpec, look: Look, started: float) -> None:
        """Writes the report, renews it, or leaves it. The renewal's answer is what is stored: where
        somebody has changed or removed it, it is written anew."""
        node, settings = self._settings.node, self._settings
        news = changed(self._written, spec)
        if not news and started < self._renew_at:
            return
        if not news and self._written is not None:
            news = drifted(self._written, spec)
        if not news and isinstance(look.driver, Silent):
            return  # a report without a look is not renewed: it grows old, and that is the truth
        try:
            if not news:
                stored, size = self._store.renew(node, spec.asOf)
                self.status.wrote("heartbeat", size)
                news = stored is None or changed(stored, spec)
            if news:
                stored, size = self._store.write(node, spec)
                self.status.wrote("report", size)
                pruned = changed(stored, spec)
                self._tell(
                    "pruned",
                    "the stored report differs from ours: is the CRD older than the agent?"
                    if pruned
                    else "",
                )
        except GpuAdmitError as problem:
            self._failed(problem, started, hurry=self._spread())
            return
        self._written = spec
        self._pause = self._try_at = 0.0
        self._renew_at = started + settings.heartbeat * (0.6 + 0.3 * self._spread())
        self.status.written_at = started
        self.status.write_problem = ""
        self._tell("write", "", back="writing again")

    def _failed(self, problem: GpuAdmitError, started: float, *, hurry: float) -> None:
        self.status.write_failures += 1
        self.status.write_problem = f"{problem.message} [{problem.ref}]"
        self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        self._try_at = started + self._pause * (1 - hurry / 2)
        hint = f"; {problem.hint}" if problem.hint else ""
        self._tell("write", f"cannot write: {problem.message} [{problem.ref}]{hint}")

    def _tell(self, about: str, text: str, *, back: str = "") -> None:
        """Says what changed, once."""
        before = self._told.get(about, "")
        if text == before:
            return
        self._told[about] = text
        if text or back:
            self._say(text or back)
