"""What speaks against a GPU: memory without an owner, errors that the driver reported."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.kube.gpu_topology import ReportedGpu, ReportedXid
from kubectl_gpuadmit.topology import held
from kubectl_gpuadmit.topology.readings import Board, Driver, Silent

if TYPE_CHECKING:
    from kubectl_gpuadmit.topology.observe import Look

XID_KEPT = dt.timedelta(hours=24)
"""An error is told this long after it was last reported."""
MOST_CODES = 8


def unowned(look: Look, driver: Driver) -> dict[str, int]:
    """UUID -> MiB in use that belong to no pod; boards of which this cannot be said are absent.

    On a GPU that no container was given everything counts but the memory of processes that are of
    a pod (they take the GPU past the kubelet, such as monitoring). On one that was given to a
    container only processes that are of no pod at all do: the rest is that container's.
    """
    if isinstance(look.grants, Silent) or not look.sees_processes:
        return {}
    given = held.given(look.grants, driver)
    found: dict[str, int] = {}
    for board in driver.boards:
        if board.lost or not board.uuid or board.used_mib is None or board.processes is None:
            continue
        owners = [(one.mib or 0, look.owners.get(one.pid)) for one in board.processes]
        strangers = sum(mib for mib, owner in owners if owner == "")
        if board.uuid in given and not board.mig:
            found[board.uuid] = strangers
            continue
        of_pods = sum(mib for mib, owner in owners if owner)
        found[board.uuid] = max(_idle_use(board, given) - of_pods, strangers, 0)
    return found


def _idle_use(board: Board, given: frozenset[str]) -> int:
    """MiB in use on the board, or on those of its MIG devices that nobody was given."""
    if not board.mig:
        return board.used_mib or 0
    return sum(part.used_mib or 0 for part in board.mig if part.uuid not in given)


def residue(
    uuid: str,
    now_unowned: Mapping[str, int],
    last_unowned: Mapping[str, int] | None,
    was: ReportedGpu | None,
    *,
    now: str,
    least: int,
) -> tuple[int | None, str | None]:
    """(MiB, since when). Memory of a pod that has just ended takes seconds to go, so it counts when
    the look before saw it, too; ``last_unowned`` None: there was none."""
    if uuid not in now_unowned:
        return None, None
    mib = now_unowned[uuid]
    known = was is not None and bool(was.residueMiB)
    fresh = last_unowned is not None and last_unowned.get(uuid, 0) < least and not known
    if mib < least or fresh:
        return 0, None
    return mib, was.residueSince if was is not None and known and was.residueSince else now


def xids(
    driver: Driver, index: int, before: tuple[ReportedXid, ...], *, now: str
) -> tuple[ReportedXid, ...]:
    """One entry a code, by code; what was not reported again for ``XID_KEPT`` is left out."""
    oldest = times.parse_instant(now) - XID_KEPT
    found = {one.code: one for one in before if not one.at or times.parse_instant(one.at) > oldest}
    for gpu, code in driver.xids:
        if gpu == index:
            count = found[code].count if code in found else 0
            found[code] = ReportedXid(code, now, count + 1)
    latest = sorted(found.values(), key=lambda one: (one.at, one.code))[-MOST_CODES:]
    return tuple(sorted(latest, key=lambda one: one.code))
