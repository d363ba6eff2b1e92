"""Policy text -> ``Policy``, with every problem at its line; knows the older forms, opens no file.

Read are: an ``AdmissionPolicy`` document; a ConfigMap that holds one; the older forms, alone or in
a ConfigMap: ``policies`` (match, mutate, deny) and ``favorites`` (matchExpressions, nodeSelector,
requiredTaints). The older forms have no levels: they deny.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.policy import schema
from kubectl_gpuadmit.policy.build import Builder
from kubectl_gpuadmit.policy.model import Policy
from kubectl_gpuadmit.policy.shape import UNSOUND, Problem, Severity, dotted, sound
from kubectl_gpuadmit.rule import REGISTRY

Spot = tuple[int, int]
"""(line, column), 0 where unknown."""
Place = Callable[[str], Spot]
Shift = Callable[[int, int], Spot]

Catalogue = Callable[[], Mapping[str, str]]
"""Gives the reason codes that are not a rule's own, with their meanings."""


def no_reasons() -> Mapping[str, str]:
    return {}


DERIVED = frozenset({"policy-does-nothing", "policy-never-matches", "policy-pools-overlap"})
START = "kubectl gpu-admit policy init writes one to start from"


def load_policy(raw: bytes, file: str, *, catalogue: Catalogue = no_reasons) -> Policy:
    """Reads one policy. ``catalogue`` is called only where a name is no rule's: it may be slow.

    The rules must have been imported (``kubectl_gpuadmit.rules``). Raises BadPolicy for the first
    error; its hint says how many more there are.
    """
    policy, problems = read_policy(raw, file, catalogue=catalogue)
    errors = [problem for problem in problems if problem.severity == "error"]
    if policy is None or errors:
        error = errors[0].as_error()
        if len(errors) > 1:
            more = f"{len(errors) - 1} more: kubectl gpu-admit policy lint {file}"
            error.hint = f"{error.hint}; {more}" if error.hint else more
        raise error
    return policy


def read_policy(
    raw: bytes, file: str, *, catalogue: Catalogue = no_reasons
) -> tuple[Policy | None, list[Problem]]:
    """The policy as far as it is sound, and every problem in the order of lines.

    None only with an error. With errors the policy lacks the unsound parts: good for further
    checks, not for judging.
    """
    reading = Reading(file, catalogue)
    policy = reading.policy(raw)
    return policy, reading.ordered()


class _Found(NamedTuple):
    """One mapping that should be a policy, and how to find a pointer of it in the file."""

    data: dict[str, Any]
    place: Place
    prefix: str


class Reading:
    """One run over one file: collects problems, never raises for what the file says."""

    def __init__(self, file: str, catalogue: Catalogue) -> None:
        self.file = file
        self.catalogue = catalogue
        self.problems: list[Problem] = []
        self.place: Place = lambda _: (0, 0)
        self.prefix = ""
        self.unsound: list[str] = []
        """Pointers of the errors so far."""
        self.list_name = "static"
        """Key of the list that ``policy.static`` was read from."""

    @property
    def failed(self) -> bool:
        return any(problem.severity == "error" for problem in self.problems)

    def ordered(self) -> list[Problem]:
        return sorted(
            dict.fromkeys(self.problems), key=lambda p: (p.line, p.column, p.field, p.ref)
        )

    def report(
        self,
        pointer: str,
        ref: str,
        message: str,
        hint: str = "",
        severity: Severity = "error",
    ) -> None:
        """Notes one problem at a pointer into the policy's own data.

        What an entry as a whole lacks is not said of one that has errors inside: it may be there.
        """
        if ref in DERIVED and any(_within(unsound, pointer) for unsound in self.unsound):
            return
        if severity == "error":
            self.unsound.append(pointer)
        line, column = self.place(pointer)
        field = self.prefix + dotted(pointer)
        self.problems.append(Problem(severity, ref, message, self.file, line, column, field, hint))

    def policy(self, raw: bytes) -> Policy | None:
        documents = self.documents(raw, lambda line, column: (line, column))
        if self.failed:
            return None
        found: list[_Found] = []
        for document in documents:
            if document.data.get("kind") == "ConfigMap":
                found.extend(self.inside(document, raw))
            else:
                found.append(_Found(document.data, document.position, ""))
        if self.failed:
            return None
        if not found:
            self.report("", "policy-empty", "holds no policy", START)
            return None
        self.place, self.prefix = found[-1].place, found[-1].prefix
        if len(found) > 1:
            self.report("", "policy-several", f"policy {len(found)} of one file", "keep one a file")
            return None
        return self.read(found[0].data)

    def documents(self, raw: bytes, shift: Shift) -> list[Document]:
        """The documents of a text; what cannot be read, or is written twice, is a problem."""
        documents: list[Document] = []
        for document in read_documents(raw, self.file):
            if isinstance(document, BadManifest):
                self.problems.append(
                    Problem(
                        "error",
                        "policy-unreadable",
                        document.message,
                        self.file,
                        *shift(document.line, document.column),
                        document.field,
                        document.hint,
                    )
                )
                continue
            documents.append(document)
            for note in document.warnings:
                twice = note.reason.endswith("/duplicate-key")
                self.problems.append(
                    Problem(
                        "error" if twice else "warning",
                        "policy-duplicate-key" if twice else "policy-doubtful-yaml",
                        note.detail,
                        self.file,
                        *shift(*document.position(note.field)),
                        dotted(note.field),
                    )
                )
        return documents

    def inside(self, document: Document, raw: bytes) -> list[_Found]:
        """The policies in a ConfigMap's data; a value that is none is left alone."""
        found: list[_Found] = []
        data = document.data.get("data")
        for key, text in (data if isinstance(data, dict) else {}).items():
            if not isinstance(text, str) or not any(
                word in text for word in ("policies:", "favorites:", schema.KIND)
            ):
                continue
            shift = _shift(raw, text, document.position(f"/data/{token(key)}")[0])
            for inner in self.documents(text.encode(), shift):
                found.append(_Found(inner.data, _shifted(inner, shift), f"data.{key}: "))
        if not found and not self.failed:
            self.place = document.position
            self.report("/data", "policy-empty", "this ConfigMap holds no policy", START)
        return found

    def read(self, data: dict[str, Any]) -> Policy | None:
        """One policy document of any form."""
        builder = Builder(self.report, REGISTRY, self.catalogue)
        if "policies" in data and "apiVersion" not in data:
            clean = sound(data, schema.SEED_POLICIES, "", self.report)
            self.list_name = "policies"
            listed = builder.statics(None if clean is UNSOUND else clean["policies"], "/policies")
            return Policy(name="policies", source=self.file, static=listed)
        if "favorites" in data:
            clean = sound(data, schema.SEED_FAVORITES, "", self.report)
            self.list_name = "favorites"
            listed = builder.favorites([] if clean is UNSOUND else clean["favorites"])
            return Policy(name="favorites", source=self.file, static=listed)
        version, kind = data.get("apiVersion"), data.get("kind")
        if kind != schema.KIND and not (kind is None and version == schema.API_VERSION):
            what = f"a {kind}" if isinstance(kind, str) else "without a kind"
            message = f"this document is {what}, not an {schema.KIND}"
            self.report("/kind" if kind else "", "policy-not-a-policy", message, START)
            return None
        if version != schema.API_VERSION and isinstance(version, str):
            message = f"version {version} is not known to this program"
            hint = f"it reads {schema.API_VERSION}"
            self.report("/apiVersion", "policy-version", message, hint)
            return None
        named = data.get("rules")
        foreign = isinstance(named, dict) and not named.keys() <= REGISTRY.keys()
        codes = self.catalogue() if foreign else {}
        clean = sound(data, schema.policy_schema(REGISTRY, codes), "", self.report)
        return None if clean is UNSOUND else builder.policy(clean, self.file)


def _within(pointer: str, entry: str) -> bool:
    return pointer == entry or pointer.startswith(entry + "/")


def _shift(raw: bytes, text: str, line: int) -> Shift:
    """Maps places in a block scalar's text to the file. ``line`` is where its value begins (``|``).

    The block's indentation was taken off by YAML: it is found again by looking for the text's first
    line. A flow scalar (quoted, with ``\\n``) keeps the place of its beginning.
    """
    lines = raw.decode("utf-8", "replace").splitlines()
    first = next((i for i, inner in enumerate(text.splitlines()) if inner.strip()), 0)
    wanted = text.splitlines()[first].rstrip() if text.splitlines() else ""
    for start in (line, line + 1):  # the position may be the key's line or the content's
        outer = lines[start + first] if start + first < len(lines) else ""
        if (
            outer.rstrip().endswith(wanted)
            and not outer[: len(outer.rstrip()) - len(wanted)].strip()
        ):
            indent = len(outer.rstrip()) - len(wanted)
            return lambda at, column: (start + at, column + indent if column else 0)
    return lambda at, column: (line, 0)


def _shifted(document: Document, shift: Shift) -> Place:
    return lambda pointer: shift(*document.position(pointer))
