"""One verdict with everything that it read, so that anybody can have it again; opens no file.

The form, ``gpu-admit.io/capsule/v1``: the documents, the cluster's objects that were asked for, the
policy, what the call or a registry said of models, the moment and the answer, under a hash of all
of them. A capsule is only made if what it holds gives the same answer as the whole cluster did.

What a capsule leaves out of documents and objects is what ``secrets`` says: values of env
variables, arguments and annotations that no rule reads. The answer in it is that of the documents
as they are in it; a remedy may so show ``(dropped)`` where the user's file has an argument.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct, structs

from kubectl_gpuadmit import rules
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.errors import BadManifest, BadSnapshot, Unanswerable
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.kube.requester import Requester
from kubectl_gpuadmit.policy import Policy, serving
from kubectl_gpuadmit.sizing.registry import Entry
from kubectl_gpuadmit.snapshots import trim
from kubectl_gpuadmit.snapshots.recording import Recorder, read
from kubectl_gpuadmit.verdict import Report, Source

SCHEMA_VERSION = "gpu-admit.io/capsule/v1"
_FAMILY = "gpu-admit.io/capsule/"

Documents = Sequence["Document | BadManifest"]
LoadPolicy = Callable[[bytes, str], Policy]
Decode = Callable[[list[dict[str, Any]]], list[KubeObject]]


class Asked(Struct, frozen=True, kw_only=True):
    """One question to the engine, with everything that the answer depends on."""

    documents: Documents
    cluster: Cluster
    policy: Policy
    policy_file: tuple[bytes, str] | None
    """Bytes and name; None for the built-in policy."""
    now: dt.datetime
    source: Source
    namespace: str
    remedies: bool
    kubernetes: str = "1.37"
    load: dict[str, int] = {}
    """Settings of ``model/memory-fit`` that the call gave: they are in ``policy`` already."""
    more_models: bool = False
    """``policy`` knows models of which ``policy_file`` says nothing: by the call, or a registry."""
    requester: Requester | None = None
    """Who applies the documents, None where nobody says."""

    def answer(self, cluster: Cluster | None = None) -> Report:
        report = evaluate(
            self.documents,
            self.cluster if cluster is None else cluster,
            self.policy,
            now=self.now,
            source=self.source,
            namespace=self.namespace,
            with_remedies=self.remedies,
            kubernetes=self.kubernetes,
            requester=self.requester,
        )
        return structs.replace(report, policy=self.policy_file[1] if self.policy_file else "")


class HeldModels(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was known of models beside the policy file and the catalogue, as far as it was used."""

    entries: tuple[Entry, ...] = ()
    """Before those of the policy file."""
    asked: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


class Held(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A capsule's content. Field names are those of the file; what has a default is left out where
    it is that, and older capsules do not have it."""

    schemaVersion: str
    program: str
    """Version of the program that gave the verdict."""
    kubernetes: str
    now: str
    namespace: str
    remedies: bool
    source: Source
    policy: dict[str, str] | None
    """``name`` and ``text``, or ``base64`` where it is no UTF-8."""
    documents: list[dict[str, Any]]
    kinds: list[str]
    objects: list[dict[str, Any]]
    load: dict[str, int] = {}
    models: HeldModels | None = None
    requester: Requester | None = None
    """Who applies the documents."""
    verdict: Any
    """The report as ``explain -o json`` writes it."""


Plain = Callable[[Report], dict[str, Any]]
"""``render.data.document``."""


def made(asked: Asked, *, program: str, plain: Plain) -> bytes:
    """The capsule of a question, as a file's content.

    ``prove`` says whether it gives the same answer. Raises Unanswerable (``capsule-insufficient``).
    """
    more = trim.annotations_of(asked.policy)
    documents = [_held_document(document, more) for document in asked.documents]
    bare = structs.replace(asked, documents=[_document(held) for held in documents])
    recorder = Recorder.over(asked.cluster)
    answer = bare.answer(recorder)
    models = _held_models(bare, answer)
    # Of the cluster itself: a run also asks for what it has brought along or placed.
    kept = trim.parameters_of(asked.cluster)
    objects = [
        trim.trimmed(obj, more, kept.get((obj.kind, obj.namespace, obj.name)))
        for obj in read(asked.cluster, recorder.reads)
        if obj.kind not in trim.NEVER
    ]
    held = Held(
        schemaVersion=SCHEMA_VERSION,
        program=program,
        kubernetes=asked.kubernetes,
        now=asked.now.astimezone(dt.UTC).isoformat(),
        namespace=asked.namespace,
        remedies=asked.remedies,
        requester=asked.requester,
        source=asked.source,
        policy=_held_policy(asked.policy_file),
        documents=documents,
        kinds=trim.known_kinds(asked.cluster),
        objects=objects,
        load=asked.load,
        models=models,
        verdict=plain(answer),
    )
    return _sealed(held)


def prove(raw: bytes, whole: Report, *, load: LoadPolicy, decode: Decode, plain: Plain) -> None:
    """Replays a capsule just made and compares its answer with that of the whole question.

    Raises Unanswerable (``capsule-insufficient``).
    """
    held = opened(raw, "")
    again = plain(restored(held, load=load, decode=decode).answer())
    if again != held.verdict or outcome(plain(whole)) != outcome(again):
        raise _insufficient("without what it must not hold, the verdict would be another")


def _insufficient(why: str) -> Unanswerable:
    return Unanswerable(
        "capsule-insufficient",
        f"no capsule was written: {why}",
        hint="snapshot -o FILE keeps all that the engine may read; send it with the manifest",
    )


def outcome(verdict: dict[str, Any]) -> Any:
    """What two answers to one question must have in common: all but the values that a patch
    shows."""
    return [
        {
            **{key: value for key, value in one.items() if key not in ("patch", "mutations")},
            "remedies": [
                {**remedy, "patch": [op.get("path") for op in remedy.get("patch", [])]}
                for remedy in one["remedies"]
            ],
        }
        for one in verdict["workloads"]
    ]


def restored(held: Held, *, load: LoadPolicy, decode: Decode) -> Asked:
    """The question that a capsule holds. ``decode`` turns plain objects into structs."""
    policy_file = None
    if held.policy is not None:
        text = held.policy.get("text")
        raw = text.encode() if text is not None else base64.b64decode(held.policy.get("base64", ""))
        policy_file = (raw, held.policy.get("name", ""))
    policy = load(*policy_file) if policy_file else Policy.default()
    if held.load:
        assert rules.__all__, "importing the package registers every rule"
        policy = policy.with_settings(serving.RULE, held.load)
    if held.models is not None:
        known = serving.models_of(policy).with_entries(held.models.entries)
        models = structs.replace(known, asked=held.models.asked, silent=held.models.silent)
        policy = structs.replace(policy, models=models)
    return Asked(
        documents=[_document(document) for document in held.documents],
        cluster=Cluster.restored(decode(held.objects), held.kinds),
        policy=policy,
        policy_file=policy_file,
        now=dt.datetime.fromisoformat(held.now),
        source=held.source,
        namespace=held.namespace,
        remedies=held.remedies,
        kubernetes=held.kubernetes,
        load=held.load,
        more_models=held.models is not None,
        requester=held.requester,
    )


def _held_models(asked: Asked, answer: Report) -> HeldModels | None:
    """Only entries that the answer rests on, if it is the same with them alone."""
    models = asked.policy.models
    if models is None or not asked.more_models:
        return None
    names = {served.model for verdict in answer.workloads for served in verdict.models}
    fewer = models.of_names(sorted(names))
    policy = structs.replace(asked.policy, models=fewer)
    if structs.replace(asked, policy=policy).answer() != answer:
        fewer = models
    return HeldModels(entries=fewer.entries, asked=models.asked, silent=models.silent)


# -- the file --------------------------------------------------------------------------------------


def _sealed(held: Held) -> bytes:
    content = msgspec.to_builtins(held)
    try:
        sealed = {"schemaVersion": held.schemaVersion, "sha256": seal(content), **content}
        return msgspec.json.format(msgspec.json.encode(sealed), indent=1) + b"\n"
    except (UnicodeEncodeError, OverflowError):
        raise _insufficient("JSON has no way to write a text or number of a document") from None


def seal(content: dict[str, Any]) -> str:
    """SHA-256 of the content in one spelling, whatever the file's own blanks and order of keys."""
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def opened(raw: bytes, file: str) -> Held:
    """The content of a capsule's file.

    Raises BadSnapshot: ``capsule-unreadable``, ``capsule-version``, ``capsule-changed``.
    """
    try:
        content = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BadSnapshot(
            "capsule-unreadable", f"is no JSON: {problem}", file=file, hint="was it cut?"
        ) from None
    version = content.get("schemaVersion") if isinstance(content, dict) else None
    if not isinstance(version, str) or not version.startswith(_FAMILY):
        raise BadSnapshot(
            "capsule-unreadable",
            "is no capsule",
            file=file,
            field="schemaVersion",
            hint="explain --capsule FILE writes one",
        )
    if version != SCHEMA_VERSION:
        raise BadSnapshot(
            "capsule-version",
            f"is of version {version!r}; this program reads {SCHEMA_VERSION}",
            file=file,
            field="schemaVersion",
            hint="upgrade kubectl gpu-admit",
        )
    given = content.pop("sha256", None)
    if given != seal(content):
        raise BadSnapshot(
            "capsule-changed",
            "its content is not what its sha256 says: it was changed or cut after it was written",
            file=file,
            field="sha256",
            hint="ask for the file again",
        )
    try:
        return msgspec.convert(content, Held)
    except msgspec.ValidationError as problem:
        raise BadSnapshot("capsule-unreadable", str(problem), file=file) from None


def _held_document(document: Document | BadManifest, more: tuple[str, ...]) -> dict[str, Any]:
    if isinstance(document, BadManifest):
        problem = {
            "ref": document.ref,
            "message": document.message,
            "file": document.file,
            "line": document.line,
            "column": document.column,
            "field": document.field,
            "hint": document.hint,
        }
        return {"unreadable": problem}
    return {
        "file": document.file,
        "index": document.index,
        "line": document.line,
        "pointer": document.pointer,
        "warnings": msgspec.to_builtins(document.warnings),
        "data": trim.manifest(document.data, more),
    }


def _document(held: dict[str, Any]) -> Document | BadManifest:
    if "unreadable" in held:
        return BadManifest(**held["unreadable"])
    return msgspec.convert(held, Document)


def _held_policy(file: tuple[bytes, str] | None) -> dict[str, str] | None:
    if file is None:
        return None
    raw, name = file
    try:
        return {"name": name, "text": raw.decode()}
    except UnicodeDecodeError:
        return {"name": name, "base64": base64.b64encode(raw).decode()}
