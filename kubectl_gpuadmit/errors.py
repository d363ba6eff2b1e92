"""Every error that a person may meet, each one line with where, why and the next thing to type.

    GpuAdmitError            exit code 3 unless the class says otherwise
    ├── BadInput             2  a file, stream or flag that cannot be read as what it claims to be
    │   ├── BadManifest         a manifest document
    │   ├── BadPolicy           the policy file
    │   ├── BadSnapshot         the snapshot
    │   ├── BadMatrix           a pasted ``nvidia-smi topo -m``
    │   ├── UnreadableMap       the agent's map of one node
    │   └── BadModelFile        a model's configuration or the header of its weights
    ├── NothingChecked       2  the call named nothing that could be judged
    └── Unanswerable         3  the facts could not be had

``ref`` is kebab-case, printed, and documented in docs/errors.md. Nothing below ``cli`` prints or
exits.
"""

from __future__ import annotations

EXIT_CLEAR = 0
EXIT_DENIED = 1
EXIT_BAD_INPUT = 2
EXIT_UNANSWERED = 3
EXIT_STOPPED = 4


class GpuAdmitError(Exception):
    """Base: ``message`` is one sentence without a full stop; ``hint`` is what to type or change."""

    exit_code = EXIT_UNANSWERED

    def __init__(
        self,
        ref: str,
        message: str,
        *,
        file: str = "",
        line: int = 0,
        column: int = 0,
        field: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.ref = ref
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.field = field
        self.hint = hint

    @property
    def where(self) -> str:
        """``file:line:column field``, as much of it as is known."""
        place = self.file
        if self.line:
            place += f":{self.line}"
            if self.column:
                place += f":{self.column}"
        return f"{place} {self.field}".strip()

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} [{self.ref}]"


class BadInput(GpuAdmitError):
    """The input cannot be read as what it claims to be."""

    exit_code = EXIT_BAD_INPUT


class BadManifest(BadInput):
    """A manifest document cannot be read."""


class BadPolicy(BadInput):
    """The policy file cannot be read or names something that does not exist."""


class BadSnapshot(BadInput):
    """The snapshot cannot be read."""


class BadModelFile(BadInput):
    """A model's configuration or the header of its weights cannot be read."""


class BadMatrix(BadInput):
    """A text without a matrix of ``nvidia-smi topo -m`` that can be read."""


class UnreadableMap(BadInput):
    """The GpuTopology object of one node cannot be used: a problem of that node, not of a run."""


class NothingChecked(BadInput):
    """Nothing that could be judged was named: never a silent success."""


class Unanswerable(GpuAdmitError):
    """The question is sound, but the facts could not be had."""
