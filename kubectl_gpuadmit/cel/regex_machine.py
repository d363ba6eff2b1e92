"""Runs a regular expression step by step on all paths at once, so that its time is bounded.

Source: Go regexp/exec.go (the same matches as a search that goes back, the leftmost first).
"""

from __future__ import annotations

from kubectl_gpuadmit.cel.regex_reader import Alt, Assert, Cat, Chars, Node, Ranges, Repeat
from kubectl_gpuadmit.cel.values import Unsure

_Step = tuple[str, object, int]
"""What to do, with what, and where to go on."""


class Machine:
    """Runs all threads side by side; the first in the list is the one that Go prefers."""

    def __init__(self, node: Node) -> None:
        self._code: list[list[object]] = []
        self._build(node)
        self._code.append(["match"])
        if len(self._code) > 20_000:
            raise Unsure("the regular expression is too large")

    def _build(self, node: Node) -> None:
        code = self._code
        if len(code) > 20_000:
            raise Unsure("the regular expression is too large")
        match node:
            case Chars():
                code.append(["chars", node.ranges])
            case Assert():
                code.append(["assert", node.kind])
            case Cat():
                for part in node.parts:
                    self._build(part)
            case Alt():
                jumps = []
                for part in node.parts[:-1]:
                    split: list[object] = ["split", len(code) + 1, 0]
                    code.append(split)
                    self._build(part)
                    jump: list[object] = ["jump", 0]
                    code.append(jump)
                    jumps.append(jump)
                    split[2] = len(code)
                self._build(node.parts[-1])
                for jump in jumps:
                    jump[1] = len(code)
            case Repeat():
                for _ in range(node.least):
                    self._build(node.part)
                if node.most < 0:
                    begin = len(code)
                    loop: list[object] = ["split", 0, 0]
                    code.append(loop)
                    self._build(node.part)
                    code.append(["jump", begin])
                    inside, outside = begin + 1, len(code)
                    loop[1:] = [inside, outside] if node.greedy else [outside, inside]
                else:
                    splits = []
                    for _ in range(node.most - node.least):
                        split = ["split", 0, 0]
                        splits.append((split, len(code) + 1))
                        code.append(split)
                        self._build(node.part)
                    for split, inside in splits:
                        ends = [inside, len(code)]
                        split[1:] = ends if node.greedy else ends[::-1]

    def find(self, text: str, begin: int) -> tuple[int, int] | None:
        threads: list[tuple[int, int]] = []
        found: tuple[int, int] | None = None
        for at in range(begin, len(text) + 1):
            if found is None:
                self._add(threads, {pc for pc, _ in threads}, 0, at, text, at)
            if not threads:
                if found is not None:
                    break
                continue
            letter = ord(text[at]) if at < len(text) else -1
            following: list[tuple[int, int]] = []
            seen: set[int] = set()
            for pc, start in threads:
                step = self._code[pc]
                if step[0] == "match":
                    found = (start, at)
                    break
                ranges: Ranges = step[1]  # type: ignore[assignment]
                if any(low <= letter <= high for low, high in ranges):
                    self._add(following, seen, pc + 1, start, text, at + 1)
            threads = following
        return found

    def _add(
        self,
        threads: list[tuple[int, int]],
        seen: set[int],
        pc: int,
        start: int,
        text: str,
        at: int,
    ) -> None:
        stack = [pc]
        while stack:
            pc = stack.pop()
            if pc in seen:
                continue
            seen.add(pc)
            step = self._code[pc]
            if step[0] == "jump":
                stack.append(step[1])  # type: ignore[arg-type]
            elif step[0] == "split":
                stack += [step[2], step[1]]  # type: ignore[list-item]
            elif step[0] == "assert":
                if _holds(str(step[1]), text, at):
                    stack.append(pc + 1)
            else:
                threads.append((pc, start))


def _holds(kind: str, text: str, at: int) -> bool:
    if kind == "A":
        return at == 0
    if kind == "z":
        return at == len(text)
    if kind == "^":
        return at == 0 or text[at - 1] == "\n"
    if kind == "$":
        return at == len(text) or text[at] == "\n"
    before = at > 0 and _is_word(text[at - 1])
    after = at < len(text) and _is_word(text[at])
    return (before != after) == (kind == "b")


def _is_word(letter: str) -> bool:
    return letter == "_" or (letter.isascii() and letter.isalnum())
