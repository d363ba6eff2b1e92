"""Typed access to one manifest, and the findings and unknowns that its reader collects.

Rules of this module
1. What the API server could not decode is a ``BadManifest`` with file, line, column and field.
2. A value that a template engine should have replaced is a finding, never a number: the pods are
   then judged without it, and what depends on it is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NoReturn, Protocol

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.objects import Generic, KubeObject
from kubectl_gpuadmit.kube.pointers import dotted, resolve, steps
from kubectl_gpuadmit.kube.workloads.model import DRAWN
from kubectl_gpuadmit.kube.workloads.placeholders import shell_default, unresolved
from kubectl_gpuadmit.verdict import Evidence, Finding, Level, Unknown

REASONS: dict[str, str] = {
    "spec/unresolved-template": (
        "A value is still a placeholder such as $NUM_NODES or {{ .Values.gpus }}, so the API "
        "server "
        "would refuse it or the number is not known; render the manifest before it is checked"
    ),
    "spec/suspended": (
        "The workload is suspended: no pod is made until somebody resumes it, and it is judged "
        "as if "
        "it were resumed; set suspend to false, or leave that to the queue that manages it"
    ),
    "spec/autoscaled": (
        "An autoscaler may change the number of pods: the verdict is for the number it starts "
        "with; "
        "check the maximum too where it must fit"
    ),
    "spec/misplaced-gpu": (
        "A GPU is asked for in a field that the kind's schema does not have there, so the API "
        "server "
        "may drop it; write it where the detail says"
    ),
}

INT32 = 2**31 - 1

Stage = Literal["admission", "placement"]
STAGES: tuple[Stage, ...] = ("admission", "placement")


class ObjectSource(Protocol):
    """What is needed of ``cluster.Cluster``: other objects of the cluster and of the run."""

    def get(self, kind: str, namespace: str, name: str) -> KubeObject | None: ...


class ManifestDocument(Protocol):
    """What is needed of ``kube.manifests.Document``."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def data(self) -> dict[str, Any]: ...
    @property
    def location(self) -> str: ...
    def position(self, pointer: str) -> tuple[int, int]: ...


class Access:
    """One document being read. ``at`` methods take an RFC 6901 pointer from the manifest's root."""

    def __init__(
        self, document: ManifestDocument, *, namespace: str, cluster: ObjectSource | None = None
    ) -> None:
        self.document = document
        self.data = document.data
        self._cluster = cluster
        self.findings: list[Finding] = []
        self.unknowns: list[Unknown] = []
        self.creates: dict[str, int] = {}
        self.gang = False
        self.queue = ""
        metadata = self.mapping("/metadata")
        self.namespace = self.text("/metadata/namespace") or namespace
        self.name = self.text("/metadata/name")
        generate = self.text("/metadata/generateName")
        self.base = self.name or (f"{generate}{DRAWN}" if generate else "")
        """What names of pods begin with, made up where the object's own is not known."""
        for key in ("name", "generateName", "namespace"):
            mark = unresolved(metadata.get(key))
            if mark:
                self.note_unresolved(f"/metadata/{key}", metadata[key], mark, what=f"the {key}")
                if key == "namespace":
                    self.namespace = namespace
                else:
                    self.base = "unresolved"
        self.mapping("/spec")

    # -- typed access ----------------------------------------------------------------------------

    def at(self, pointer: str) -> Any:
        return resolve(self.data, pointer)

    def mapping(self, pointer: str) -> dict[str, Any]:
        value = self.at(pointer)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.fail(pointer, f"expected an object, found {kind_of(value)}")
        return value

    def sequence(self, pointer: str) -> list[Any]:
        value = self.at(pointer)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fail(pointer, f"expected a list, found {kind_of(value)}")
        return value

    def text(self, pointer: str) -> str:
        value = self.at(pointer)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.fail(pointer, f"expected text, found {kind_of(value)}", hint="put it in quotes")
        return value

    def flag(self, pointer: str, *, default: bool = False) -> bool:
        value = self.at(pointer)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fail(pointer, f"expected true or false, found {kind_of(value)}")
        return value

    def count(self, pointer: str, default: int, *, what: str = "", minimum: int = 0) -> int:
        """A number of pods or the like. A placeholder gives 1 and makes the number unknown."""
        value = self.at(pointer)
        if value is None:
            return default
        mark = unresolved(value)
        if mark:
            self.note_unresolved(pointer, value, mark, what=what or steps(pointer)[-1])
            return 1
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            hint = "remove the quotes" if isinstance(value, str) and value.isdecimal() else ""
            self.fail(pointer, f"expected a whole number, found {kind_of(value)}", hint=hint)
        if not minimum <= value <= INT32:
            self.fail(pointer, f"{value} is not between {minimum} and {INT32}", ref="bad-number")
        return value

    def fail(
        self, pointer: str, message: str, *, ref: str = "wrong-type", hint: str = ""
    ) -> NoReturn:
        line, column = self.document.position(pointer)
        raise BadManifest(
            ref,
            message,
            file=self.document.file,
            line=line,
            column=column,
            field=dotted(pointer),
            hint=hint,
        )

    def other(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """Another object that this one names, as plain data, if the run or the cluster has it."""
        found = self._cluster.get(kind, namespace, name) if self._cluster and name else None
        return found.document if isinstance(found, Generic) else None

    # -- what was found --------------------------------------------------------------------------

    def note(
        self,
        reason: str,
        detail: str,
        pointer: str,
        *,
        level: Level = "warn",
        evidence: tuple[Evidence, ...] = (),
        permanent: bool = True,
    ) -> None:
        self.findings.append(
            Finding(
                reason=reason,
                detail=detail,
                evidence=evidence,
                permanent=permanent,
                field=pointer,
                rule=reason,  # a policy may set the level of a reason by its name
                level=level,
                fidelity="modelled",
            )
        )

    def unknown(
        self,
        missing: str,
        *,
        hint: str = "",
        stages: Sequence[Stage] = STAGES,
        level: Level = "warn",
    ) -> None:
        """What the number or the shape of the pods depends on and nobody gave.

        ``level="deny"`` where no verdict can be given without it: how many GPUs it takes at all.
        """
        self.unknowns.extend(
            Unknown(rule="spec/pods", missing=missing, level=level, hint=hint, stage=stage)
            for stage in stages
        )

    def note_unresolved(self, pointer: str, value: str, mark: str, *, what: str) -> None:
        default = shell_default(value)
        ending = f" (a shell would fall back to {default})" if default else ""
        self.note(
            "spec/unresolved-template",
            f"{what} is still the placeholder {mark}{ending}",
            pointer,
            level="deny",
            evidence=(Evidence(pointer, what, value, "a value", "manifest"),),
        )
        self.unknown(
            f"{what} at {pointer}: it is still the placeholder {mark}",
            hint="render the manifest first, e.g. with envsubst or helm template",
            stages=("placement",),  # the finding above already refuses it
        )

    def charge(self, key: str, number: int = 1) -> None:
        """Counts objects that the controllers create on the way, by quota key (``jobs.batch``)."""
        if number > 0:
            self.creates[key] = self.creates.get(key, 0) + number

    def suspended(self, pointer: str) -> None:
        if self.flag(pointer):
            self.note(
                "spec/suspended",
                "it is suspended and makes no pod until it is resumed; judged as if resumed",
                pointer,
                level="audit",
                permanent=False,
            )

    def autoscaled(self, pointer: str, *, start: int, maximum: int | None, role: str = "") -> None:
        """``start`` pods that something may make more (or fewer) later."""
        bound = "without a maximum" if maximum is None else f"up to {maximum}"
        pods = f"{role} pod{'' if start == 1 else 's'}".strip()
        self.note(
            "spec/autoscaled",
            f"starts with {start} {pods} and may be scaled {bound}; judged for {start}",
            pointer,
            level="audit",
            evidence=(Evidence(pointer, "pods at most", start, maximum, "manifest"),),
        )


def kind_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {value[:40]!r}"
        case list():
            return "a list"
        case dict():
            return "an object"
    return type(value).__name__
