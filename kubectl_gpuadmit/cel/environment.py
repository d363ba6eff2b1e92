"""Compiles expressions: text → checked nodes → a function, with what the API server says of faults.

Nothing is evaluated by a library: CEL as Kubernetes runs it is small, its values (quantities,
versions, maps with default values, parts that are not known here) are Kubernetes' own, and an
answer must carry cel-go's words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any

from kubectl_gpuadmit.cel import check, library, parser, program
from kubectl_gpuadmit.cel.folds import BUDGET
from kubectl_gpuadmit.cel.functions import Overload, Table
from kubectl_gpuadmit.cel.lexer import SyntaxFault
from kubectl_gpuadmit.cel.meter import Meter
from kubectl_gpuadmit.cel.steps import Arrange
from kubectl_gpuadmit.cel.syntax import Call, Node, every
from kubectl_gpuadmit.cel.types import Type
from kubectl_gpuadmit.cel.values import Crash, Fail, Unsure

MOST_VISITS = 100_000
"""Node visits inside of comprehensions after which a run is given up whose cost cannot be told: a
tenth of the API server's limit of cost units, for a visit costs it a few units at most."""


class CompileError(Exception):
    """The expression is refused; ``str()`` in the API server's words."""


class Program:
    """One compiled expression."""

    def __init__(
        self,
        text: str,
        node: Node,
        checked: check.Checked,
        run: program.Run,
        meter: Callable[[], Meter],
    ) -> None:
        self.text, self.node, self.checked = text, node, checked
        self.type: Type = checked.of(node)
        self._run = run
        self._meter = cache(meter)

    def evaluate(self, variables: dict[str, Any], *, visits: int | None = None) -> Any:
        """The value. Raises Fail (the expression failed) or Unsure (it cannot be told).

        With ``visits`` the run is given up (Unsure) after so many steps inside of comprehensions.
        """
        try:
            return self._run({BUDGET: [visits], **variables} if visits else variables)
        except Crash as fault:
            raise Fail(f"internal error: {fault}") from None
        except RecursionError:
            raise Unsure("the expression nests too deeply") from None

    def cost(self, variables: dict[str, Any], limit: int, arrange: Arrange | None = None) -> int:
        """What a run costs; above the limit it is cancelled. Raises Unsure where it cannot be told.
        See ``Meter.cost``."""
        try:
            return self._meter().cost(variables, limit, arrange)
        except RecursionError:
            raise Unsure("the expression nests too deeply") from None

    @cached_property
    def grows(self) -> bool:
        """Whether texts may become longer than what is written and what is given, together."""
        return any(isinstance(one, Call) and one.function in _GROW for one in every(self.node))

    @cached_property
    def steps(self) -> int:
        """How many nodes there are."""
        return sum(1 for _ in every(self.node))


_GROW = {"join", "replace", "format", "strings.quote"}


class Environment:
    """Which variables, functions and struct types an expression may use.

    ``version`` is the minor version of Kubernetes whose libraries are there.
    """

    def __init__(
        self,
        variables: Mapping[str, Type],
        *,
        structs: check.Structs | None = None,
        version: int = 37,
        functions: tuple[Overload, ...] = (),
    ) -> None:
        self._variables = dict(variables)
        self._structs = structs or check.NoStructs()
        self._version = version
        self._table = (
            library.table() if not functions else Table((*library.everything(), *functions))
        )

    def compile(self, text: str, accept: Callable[[Type], str] | None = None) -> Program:
        """Raises CompileError, also with what ``accept`` says against the type of the result."""
        try:
            node = parser.parse(text)
        except SyntaxFault as fault:
            raise _refused(check.place(text, fault.at, fault.message)) from None
        except RecursionError:
            raise _refused(
                check.place(text, 0, "expression recursion limit exceeded: 250")
            ) from None
        checked = check.check(
            node, self._variables, self._table, self._structs, version=self._version
        )
        if checked.errors:
            found = sorted(checked.errors)
            raise _refused("\n".join(check.place(text, at, said) for at, said in found))
        refused = accept(checked.of(node)) if accept else ""
        if refused:
            raise CompileError(refused)
        try:
            run = program.plan(node, self._table, self._version)
        except program.PlanError as fault:
            raise CompileError(f"program instantiation failed: {fault}") from None
        return Program(
            text, node, checked, run, lambda: Meter(node, checked, self._table, self._version)
        )


def _refused(issues: str) -> CompileError:
    return CompileError(f"compilation failed: {issues}")


__all__ = ["CompileError", "Environment", "Fail", "Program", "Unsure"]
