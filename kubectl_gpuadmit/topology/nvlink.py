"""Which NVLinks join which GPUs, and which that should be up are down; from the driver's ports.

nvidia-smi writes ``NV#`` for the links that join a pair: direct ones, or, through NVSwitch, as many
as both have to the same switches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from kubectl_gpuadmit.kube.gpu_topology import ReportedNvlinks
from kubectl_gpuadmit.topology.readings import Board


class Lanes(Struct, frozen=True, gc=False):
    """Active NVLinks between two GPUs; None where a port does not tell what it leads to."""

    count: int | None


def between(a: Board, b: Board, boards: Sequence[Board]) -> Lanes:
    """How many NVLinks join ``a`` and ``b``. ``boards`` are all of the node. A direct link has two
    ends, and counts where both are up."""
    addresses = {board.pci for board in boards if board.pci}
    direct = min(_ends(a, b), _ends(b, a))
    theirs, ours = _switches(b, addresses), _switches(a, addresses)
    through = sum(min(count, theirs[key]) for key, count in ours.items())
    if direct or through:
        return Lanes(direct + through)
    if any(port.up and not port.kind and not port.remote for port in (*a.ports, *b.ports)):
        return Lanes(None)
    return Lanes(0)


def _ends(a: Board, b: Board) -> int:
    return sum(port.up and port.remote == b.pci != "" for port in a.ports)


def _switches(board: Board, gpus: set[str]) -> Counter[str]:
    """Switch -> active links to it. Switches in other trays have no address: they count as one."""
    return Counter(
        port.remote
        for port in board.ports
        if port.up
        and (port.kind == "switch" or (not port.kind and port.remote and port.remote not in gpus))
    )


def counted(
    board: Board,
    siblings: Iterable[Board],
    *,
    earlier: Board | None,
    before: ReportedNvlinks | None,
    now: str,
) -> ReportedNvlinks:
    """The board's own links. A link that is not up is *down* only where something shows that it
    belongs to the module: it was up in the ``earlier`` look, it was reported ``before``, or it is
    up on most boards of the same product. Others are sockets without a bridge. A board that is cut
    into MIG devices joins nothing, so nothing of it is down (MIG user guide, "Limitations").
    """
    up = {port.number for port in board.ports if port.up}
    there = {port.number for port in board.ports}
    expected = set(up)
    if board.mig_enabled:
        earlier, before, siblings = None, None, ()
    if earlier is not None:
        expected |= {port.number for port in earlier.ports if port.up}
    if before is not None:
        expected |= set(before.down)
        if before.total is not None and before.total == len(there):
            expected |= there
    expected |= _usual(board, siblings)
    down = tuple(sorted(expected - up))
    versions = [port.version for port in board.ports if port.up and port.version]
    since = before.downSince if before is not None and before.down and before.downSince else now
    return ReportedNvlinks(
        active=len(up),
        total=len(expected),
        generation=max(versions) if versions else before.generation if before else None,
        down=down,
        downSince=since if down else None,
    )


def _usual(board: Board, siblings: Iterable[Board]) -> set[int]:
    alike = [
        one for one in siblings if one.name == board.name and not one.lost and not one.mig_enabled
    ]
    votes = Counter(port.number for one in alike for port in one.ports if port.up)
    return {number for number, count in votes.items() if 2 * count > len(alike)}
