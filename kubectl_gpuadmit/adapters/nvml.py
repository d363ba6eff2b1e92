"""Asks the driver about its GPUs through nvidia-ml-py; keeps no opinion of what it says.

Rules of this module
1. It alone imports ``pynvml``, inside functions.
2. A call that one board does not support leaves a None; a board that is lost leaves ``lost``; only
   a driver that answers nothing at all is an error.
3. After such an error the library is closed and the next look opens it anew: a driver may be
   reloaded under a running process.

Function names, structures and levels: nvml.h (NVIDIA/go-nvml, gen/nvml/nvml.h).
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from kubectl_gpuadmit.errors import Unanswerable
from kubectl_gpuadmit.topology.readings import (
    Board,
    Driver,
    FabricState,
    MigDevice,
    Port,
    Process,
)

T = TypeVar("T")
MIB = 1 << 20
MAX_PORTS = 36
"""NVML_NVLINK_MAX_LINKS."""
LEVELS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""nvmlGpuTopologyLevel_t -> the cell of ``nvidia-smi topo -m``; 0 is two GPUs on one board."""
REMOTES: dict[int, Literal["gpu", "switch", "other"]] = {0: "gpu", 1: "other", 2: "switch"}
FABRIC: dict[int, Literal["not-supported", "not-started", "in-progress", "completed"]] = {
    0: "not-supported",
    1: "not-started",
    2: "in-progress",
    3: "completed",
}
XID_EVENT = 0x8
MOST_EVENTS = 256
"""Read in one look: a GPU that reports without end must not hold us."""


class Nvml:
    """The driver of this machine; ``read`` may be called again and again, from one thread."""

    def __init__(self) -> None:
        self._open = False
        self._events: Any = None
        self._indices: dict[int, int] = {}
        """Address of a device handle -> index."""

    def read(self) -> Driver:
        """One look. Raises Unanswerable (``nvml-missing``, ``nvml-mismatch``, ``nvml-silent``)."""
        import pynvml as n

        try:
            self._ensure(n)
            version = _text(n.nvmlSystemGetDriverVersion())
            count = int(n.nvmlDeviceGetCount())
            handles = [self._handle(n, index) for index in range(count)]
            boards = tuple(
                Board(index=index, lost=True) if handle is None else _Look(n, handle, index).board()
                for index, handle in enumerate(handles)
            )
            return Driver(
                version=version,
                boards=boards,
                levels=tuple(_levels(n, handles)),
                xids=tuple(self._xids(n)),
                missing=tuple(_missing(boards)),
            )
        except n.NVMLError as problem:
            self.close()
            raise _told(n, problem) from None

    def close(self) -> None:
        """Lets the driver go; ``read`` opens it again."""
        import pynvml as n

        if self._open:
            self._open = False
            if self._events is not None:
                with contextlib.suppress(n.NVMLError):
                    n.nvmlEventSetFree(self._events)
            with contextlib.suppress(n.NVMLError):
                n.nvmlShutdown()
        self._events = None
        self._indices = {}

    def _ensure(self, n: Any) -> None:
        if self._open:
            return
        n.nvmlInit()
        self._open = True
        self._indices = {}
        with contextlib.suppress(n.NVMLError):
            self._events = n.nvmlEventSetCreate()

    def _handle(self, n: Any, index: int) -> Any:
        try:
            handle = n.nvmlDeviceGetHandleByIndex(index)
        except n.NVMLError_GpuIsLost:
            return None
        except n.NVMLError as problem:
            if _is_board_trouble(n, problem):
                return None
            raise
        address = _address(handle)
        if address not in self._indices:
            self._indices[address] = index
            if self._events is not None:
                with contextlib.suppress(n.NVMLError):  # MIG and old boards report none
                    n.nvmlDeviceRegisterEvents(handle, XID_EVENT, self._events)
        return handle

    def _xids(self, n: Any) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        while self._events is not None and len(found) < MOST_EVENTS:
            try:
                event = n.nvmlEventSetWait_v2(self._events, 0)
            except n.NVMLError:  # TIMEOUT: no more of them
                break
            index = self._indices.get(_address(event.device))
            if event.eventType == XID_EVENT and index is not None:
                found.append((index, int(event.eventData)))
        return found


class _Look:
    """One board through its handle: what it does not support is None."""

    def __init__(self, n: Any, handle: Any, index: int) -> None:
        self.n = n
        self.handle = handle
        self.index = index

    def ask(self, call: Callable[..., T], *more: Any) -> T | None:
        try:
            return call(self.handle, *more)
        except self.n.NVMLError as problem:
            if _is_board_trouble(self.n, problem):
                raise _Lost from None
            if problem.value in _DRIVER_GONE:
                raise
            return None

    def board(self) -> Board:
        known: dict[str, Any] = {}
        try:
            for name, question in _QUESTIONS.items():
                known[name] = question(self)
        except _Lost:
            kept = {k: known[k] for k in ("uuid", "pci", "name", "minor") if k in known}
            return Board(index=self.index, lost=True, **kept)
        memory, used = known.pop("memory")
        retired, pending, failed = known.pop("retired")
        return Board(
            index=self.index,
            memory_mib=memory,
            used_mib=used,
            retired_pages=retired,
            retirement_pending=pending,
            remap_failed=failed,
            **known,
        )

    # -- questions

    def pci(self) -> str:
        info = self.ask(self.n.nvmlDeviceGetPciInfo)
        return "" if info is None else _pci(_text(info.busId))

    def memory(self) -> tuple[int | None, int | None]:
        """Total and used; version 1 counts the driver's reserve as used, so it comes second."""
        whole = self.ask(self.n.nvmlDeviceGetMemoryInfo, self.n.nvmlMemory_v2)
        whole = whole or self.ask(self.n.nvmlDeviceGetMemoryInfo)
        return (None, None) if whole is None else (whole.total // MIB, whole.used // MIB)

    def numa(self) -> int | None:
        """The first node of the memory affinity, in the kernel's numbers."""
        sets = self.ask(self.n.nvmlDeviceGetMemoryAffinity, 16, 0)
        if sets is None:
            return None
        bits = sum(int(word) << (64 * place) for place, word in enumerate(sets))
        return (bits & -bits).bit_length() - 1 if bits else None

    def mig_enabled(self) -> bool | None:
        mode = self.ask(self.n.nvmlDeviceGetMigMode)
        return None if mode is None else bool(mode[0])

    def mig(self) -> tuple[MigDevice, ...]:
        if not self.mig_enabled():
            return ()
        found = []
        for place in range(self.ask(self.n.nvmlDeviceGetMaxMigDeviceCount) or 0):
            handle = self.ask(self.n.nvmlDeviceGetMigDeviceHandleByIndex, place)
            if handle is not None:
                found.append(_Look(self.n, handle, place).mig_device(self))
        return tuple(found)

    def mig_device(self, board: _Look) -> MigDevice:
        n = self.n
        instance = self.ask(n.nvmlDeviceGetGpuInstanceId)
        info = None
        if instance is not None:
            whole = board.ask(n.nvmlDeviceGetGpuInstanceById, instance)
            info = None if whole is None else _Look(n, whole, 0).ask(n.nvmlGpuInstanceGetInfo)
        shape = self.ask(n.nvmlDeviceGetAttributes)
        memory, used = self.memory()
        name = _text(self.ask(n.nvmlDeviceGetName) or "")
        return MigDevice(
            uuid=_text(self.ask(n.nvmlDeviceGetUUID) or ""),
            profile=name.rpartition(" MIG ")[2] if " MIG " in name else "",
            start=None if info is None else int(info.placement.start),
            slices=int(info.placement.size) if info is not None else None,
            memory_mib=memory if shape is None else int(shape.memorySizeMB),
            used_mib=used,
            gpu_instance=instance,
            compute_instance=self.ask(n.nvmlDeviceGetComputeInstanceId),
        )

    def ports(self) -> tuple[Port, ...]:
        found = []
        for number in range(MAX_PORTS):
            up = self.ask(self.n.nvmlDeviceGetNvLinkState, number)
            if up is not None:
                found.append(self._port(number, bool(up)))
        return tuple(found)

    def _port(self, number: int, up: bool) -> Port:
        if not up:
            return Port(number, up)
        n = self.n
        kind = self.ask(n.nvmlDeviceGetNvLinkRemoteDeviceType, number)
        remote = self.ask(n.nvmlDeviceGetNvLinkRemotePciInfo, number)
        return Port(
            number,
            up,
            version=self.ask(n.nvmlDeviceGetNvLinkVersion, number),
            kind="" if kind is None else REMOTES.get(int(kind), ""),
            remote="" if remote is None else _pci(_text(remote.busId)),
        )

    def fabric(self) -> FabricState | None:
        n = self.n
        for version, shape in ((3, n.c_nvmlGpuFabricInfo_v3_t), (2, n.c_nvmlGpuFabricInfo_v2_t)):
            info = shape()
            info.version = ctypes.sizeof(shape) | version << 24
            if self.ask(n.nvmlDeviceGetGpuFabricInfoV, ctypes.byref(info)) is not None:
                return _fabric(info)
        return None

    def processes(self) -> tuple[Process, ...] | None:
        n = self.n
        found: dict[int, Process] = {}
        listed = False
        kinds: tuple[tuple[Any, Literal["compute", "graphics", "mps"]], ...] = (
            (n.nvmlDeviceGetComputeRunningProcesses, "compute"),
            (n.nvmlDeviceGetMPSComputeRunningProcesses, "mps"),
            (n.nvmlDeviceGetGraphicsRunningProcesses, "graphics"),
        )
        for call, kind in kinds:
            answer = self.ask(call)
            listed = listed or answer is not None
            for one in answer or ():
                used = one.usedGpuMemory
                mib = None if used is None else int(used) // MIB
                found.setdefault(int(one.pid), Process(int(one.pid), mib, kind))
        return tuple(found[pid] for pid in sorted(found)) if listed else None

    def ecc(self) -> int | None:
        return self.ask(self.n.nvmlDeviceGetTotalEccErrors, 1, 0)

    def retired(self) -> tuple[int | None, bool | None, bool | None]:
        """(pages or rows, one pending, remapping failed): Ampere and later remap rows."""
        n = self.n
        rows = self.ask(n.nvmlDeviceGetRemappedRows)
        if rows is not None:
            return int(rows[1]), bool(rows[2]), bool(rows[3])
        lists = [self.ask(n.nvmlDeviceGetRetiredPages, cause) for cause in (0, 1)]
        if all(pages is None for pages in lists):
            return None, None, None
        pending = self.ask(n.nvmlDeviceGetRetiredPagesPendingStatus)
        total = sum(len(pages) for pages in lists if pages is not None)
        return total, None if pending is None else bool(pending), None


class _Lost(Exception):
    """The board has fallen off the bus, or wants a reset, while we asked."""


_QUESTIONS: dict[str, Callable[[_Look], Any]] = {
    "uuid": lambda look: _text(look.ask(look.n.nvmlDeviceGetUUID) or ""),
    "pci": _Look.pci,
    "name": lambda look: _text(look.ask(look.n.nvmlDeviceGetName) or ""),
    "minor": lambda look: look.ask(look.n.nvmlDeviceGetMinorNumber),
    "memory": _Look.memory,
    "numa": _Look.numa,
    "mig_enabled": _Look.mig_enabled,
    "mig": _Look.mig,
    "ports": _Look.ports,
    "fabric": _Look.fabric,
    "processes": _Look.processes,
    "ecc_uncorrected": _Look.ecc,
    "retired": _Look.retired,
}

_DRIVER_GONE = frozenset({1, 9, 18})
"""UNINITIALIZED, DRIVER_NOT_LOADED, LIB_RM_VERSION_MISMATCH: no board will answer."""


def _is_board_trouble(n: Any, problem: Any) -> bool:
    return problem.value in (n.NVML_ERROR_GPU_IS_LOST, n.NVML_ERROR_RESET_REQUIRED)


def _levels(n: Any, handles: list[Any]) -> list[tuple[int, int, str]]:
    found = []
    for a, first in enumerate(handles):
        for b in range(a + 1, len(handles)):
            if first is None or handles[b] is None:
                continue
            with contextlib.suppress(n.NVMLError):
                level = n.nvmlDeviceGetTopologyCommonAncestor(first, handles[b])
                if level in LEVELS:
                    found.append((a, b, LEVELS[level]))
    return found


def _fabric(info: Any) -> FabricState:
    """Version 3 sums the health up (1 healthy). Version 2 has bits 0-1, 2-3 and 4-5 of the mask for
    degraded bandwidth, route recovery and an unhealthy route: 1 true, 2 false, 0 not supported."""
    state = FABRIC.get(int(info.state), "not-supported")
    if state != "completed":
        return FabricState(state)
    raw = bytes(info.clusterUuid).hex()
    cluster = "-".join((raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:]))
    flags = [int(info.healthMask) >> shift & 3 for shift in (0, 2, 4)]
    healthy = False if 1 in flags else True if 2 in flags else None
    if summary := int(getattr(info, "healthSummary", 0)):
        healthy = summary == 1
    if info.status:
        healthy = False
    return FabricState(state, cluster, int(info.cliqueId), healthy)


def _missing(boards: tuple[Board, ...]) -> list[str]:
    nameless = [board.index for board in boards if not board.uuid and not board.lost]
    return [f"GPU {index} tells no UUID" for index in nameless]


def _told(n: Any, problem: Any) -> Unanswerable:
    said = str(problem).strip()
    match problem.value:
        case n.NVML_ERROR_LIBRARY_NOT_FOUND:
            return Unanswerable(
                "nvml-missing",
                "libnvidia-ml.so.1 is not there",
                hint="is this a GPU node? in a container: runtimeClassName: nvidia",
            )
        case n.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
            return Unanswerable(
                "nvml-mismatch",
                "the driver was replaced: this process has the old libnvidia-ml.so.1",
                hint="restart the agent's pod",
            )
    return Unanswerable(
        "nvml-silent", f"the driver does not answer: {said}", hint="nvidia-smi on the node"
    )


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _pci(bus_id: str) -> str:
    """``00000000:1B:00.0`` as the kernel writes it, ``0000:1b:00.0``; '' for what is no address."""
    domain, _, rest = bus_id.lower().partition(":")
    if not rest or domain == "ffffffff":
        return ""
    return f"{domain[-4:] if len(domain) > 4 and domain.startswith('0000') else domain}:{rest}"
