"""Which colour and letter stand for a workload class; the same in a page, a drawing and a legend.

Colours are those of Okabe and Ito (2008), which people with any common colour vision tell apart;
the letter says the same without colour.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kubectl_gpuadmit.overview.model import NodeView

_FIXED = {"inference": 0, "training": 1}
_PALETTE = (
    ("#0072B2", "#ffffff"),
    ("#E69F00", "#1c1c1c"),
    ("#009E73", "#ffffff"),
    ("#CC79A7", "#1c1c1c"),
    ("#56B4E9", "#1c1c1c"),
    ("#D55E00", "#ffffff"),
    ("#F0E442", "#1c1c1c"),
)
_NONE = ("#8a8f98", "#ffffff")


class Ink(Struct, frozen=True):
    name: str
    """The class; ``no class`` where a pod is of none."""
    letter: str
    fill: str
    text: str


def inks(nodes: Iterable[NodeView]) -> dict[str, Ink]:
    """Class -> ink, for all classes that hold something: inference and training always look the
    same, others take what is left in the order of their names. With many classes colours repeat;
    letters are then numbered, so that two classes never look alike."""
    classes = {
        held.workload_class
        for node in nodes
        for held in (*(h for gpu in node.gpus for h in gpu.holders), *node.loose)
    }
    known = sorted(classes & _FIXED.keys(), key=_FIXED.__getitem__)
    others = sorted(classes - _FIXED.keys() - {""})
    left = [i for i in range(len(_PALETTE)) if i not in _FIXED.values()]
    found: dict[str, Ink] = {}
    letters: set[str] = set()
    for name in (*known, *others):
        place = _FIXED[name] if name in _FIXED else left[others.index(name) % len(left)]
        found[name] = Ink(name, _letter(name, letters), *_PALETTE[place])
    if "" in classes:
        found[""] = Ink("no class", _letter("-", letters), *_NONE)
    return found


def _letter(name: str, taken: set[str]) -> str:
    first = name[:1].upper() or "-"
    letter, number = first, 2
    while letter in taken:
        letter, number = f"{first}{number}", number + 1
    taken.add(letter)
    return letter
