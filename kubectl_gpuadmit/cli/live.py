"""From a question about a live cluster to its answer: connects, reads, asks the engine, adds what
happened and what the API server says; judges nothing itself."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from kubectl_gpuadmit.cli.answer import Answer, conclude, positions, show
from kubectl_gpuadmit.cli.problems import say
from kubectl_gpuadmit.cli.progress import Progress
from kubectl_gpuadmit.cli.question import Live, Question
from kubectl_gpuadmit.cli.session import Session, begin, requester_of, workloads_of
from kubectl_gpuadmit.cli.witnesses import (
    Key,
    all_placed,
    asked_of_server,
    histories_of,
    key_of,
    key_of_object,
    with_histories,
)
from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.render.wording import plural
from kubectl_gpuadmit.verdict import Report, Source

if TYPE_CHECKING:
    from kubectl_gpuadmit.adapters.kube.reading import Facts
    from kubectl_gpuadmit.cluster import Cluster
    from kubectl_gpuadmit.happened.history import History
    from kubectl_gpuadmit.kube.manifests import Document
    from kubectl_gpuadmit.kube.requester import Requester
    from kubectl_gpuadmit.policy import Policy

EVERY_SECONDS = 5.0
"""Between two rounds of --watch."""


class Round(Struct, frozen=True):
    """One reading of the cluster."""

    answer: Answer
    objects: tuple[dict[str, Any], ...]
    """As they are stored, of a question about live objects."""
    placed: bool
    """Every workload runs on nodes; of manifests: every one would."""


def answer_live(question: Question, live: Live) -> int:
    """Answers on stdout, talks on stderr, returns the exit code; once, or until it is placed."""
    with Progress() as progress:
        session = begin(question, live, progress)
        found = _round(session, progress)
    if not live.watch:
        show(found.answer, question)
        code = conclude(found.answer.report, question)
        if live.apply_mutations:
            _carry_out(session, found)
        if found.answer.keep is not None:
            found.answer.keep()
        return code
    return _watch(session, found)


def _carry_out(session: Session, found: Round) -> None:
    """Changes the live objects as the report says, and says what was done."""
    from kubectl_gpuadmit.adapters.kube.changing import apply
    from kubectl_gpuadmit.render.wording import changes

    stored = {key_of_object(one): one for one in found.objects}
    done = 0
    for verdict in found.answer.report.workloads:
        key = key_of(verdict.ref)
        if not verdict.object_patch or key not in stored:
            continue
        now = session.question.now or dt.datetime.now(dt.UTC)
        told = apply(session.connection, session.catalogue, verdict, stored[key], now=now)
        what = "; ".join(changes(verdict.object_patch))
        say(f"{verdict.ref}: {what}; {plural(told.events, 'Event')} sent")
        if told.event_problem:
            say(f"warning: {verdict.ref}: {told.event_problem}")
        done += 1
    if not done:
        say("nothing to carry out: no rule changes these objects themselves")


def _round(session: Session, progress: Progress) -> Round:
    from kubectl_gpuadmit import rules
    from kubectl_gpuadmit.cli.models import with_registry
    from kubectl_gpuadmit.engine import evaluate
    from kubectl_gpuadmit.narrowed import narrowed

    assert rules.__all__, "importing the package registers every rule"
    begun = time.monotonic()
    question, live = session.question, session.live
    objects, documents = _asked(session, progress)
    readable = [d for d in documents if not isinstance(d, BadManifest)]
    progress.step(f"reading the cluster {session.connection.name}")
    facts = _facts(session, readable, stored=bool(objects))
    now = question.now or dt.datetime.now(dt.UTC)
    policy = with_registry(session.policy, documents, facts.cluster, namespace=session.namespace)
    requester = requester_of(session, facts.cluster)
    progress.step(f"judging {plural(len(documents), 'document')}")
    report = evaluate(
        documents,
        facts.cluster,
        policy,
        now=now,
        source=Source("live", session.connection.name, 0),
        namespace=session.namespace,
        with_remedies=question.remedies,
        kubernetes=session.version,
        requester=requester,
    )
    keep = None
    if question.capsule:
        keep = _keeper(session, documents, facts.cluster, policy, report, now, requester)
    report = narrowed(structs.replace(report, policy=question.policy), facts.absences)
    histories: dict[Key, History] = {}
    if objects:
        progress.step("reading what happened")
        histories = histories_of(session.connection, objects)
    if live.server:
        progress.step("asking the API server")
        report = asked_of_server(session, report, facts.cluster, readable, now, requester)
    report = with_histories(report, histories, now)
    answer = Answer(report, time.monotonic() - begun, positions(readable), keep)
    return Round(answer, tuple(objects), all_placed(report, histories))


def _asked(
    session: Session, progress: Progress
) -> tuple[list[dict[str, Any]], list[Document | BadManifest]]:
    """What is asked about: live objects as they are stored and as documents, or manifests alone."""
    live = session.live
    if not live.names:
        progress.step("reading the manifests")
        return [], _manifests(session.question.paths)
    from kubectl_gpuadmit.adapters.kube.named import document, fetch

    progress.step(f"fetching {' '.join(live.names)}")
    objects = fetch(
        session.connection,
        session.catalogue,
        live.names,
        namespace=session.namespace,
        labels=live.selector,
        everywhere=live.all_namespaces,
    )
    return objects, [document(obj) for obj in objects]


def _facts(session: Session, documents: Sequence[Document], *, stored: bool) -> Facts:
    """What the cluster says about what these documents need; ``stored``: it holds them itself."""
    from kubectl_gpuadmit.adapters.kube.reading import isolated_namespaces, read_cluster
    from kubectl_gpuadmit.claim_alone import KINDS
    from kubectl_gpuadmit.kube.decode import decode_object
    from kubectl_gpuadmit.needs import needs
    from kubectl_gpuadmit.rule import REGISTRY

    workloads = workloads_of(documents, session)
    homes = {one.ref.namespace for one in workloads} | {session.namespace}
    claiming = homes & isolated_namespaces(session.connection)
    for one in (d.data for d in documents if d.data.get("kind") in KINDS):
        meta = one.get("metadata")
        home = meta.get("namespace") if isinstance(meta, dict) else None
        claiming |= {str(home or session.namespace)}
    return read_cluster(
        session.connection,
        needs(workloads, session.policy, REGISTRY, claims_in=claiming),
        homes=homes,
        own=[] if stored else [one.ref for one in workloads],
        stored=[decode_object(document) for document in documents] if stored else (),
        catalogue=session.catalogue,
    )


def _keeper(
    session: Session,
    documents: list[Document | BadManifest],
    cluster: Cluster,
    policy: Policy,
    report: Report,
    now: dt.datetime,
    requester: Requester | None,
) -> Callable[[], None]:
    """Writes the capsule: the engine's answer alone, for what happened cannot be replayed."""
    from kubectl_gpuadmit.cli.capsule import Asked, keeper
    from kubectl_gpuadmit.cli.models import knows_more, load_of

    asked = Asked(
        documents=documents,
        cluster=cluster,
        policy=policy,
        policy_file=session.policy_file,
        now=now,
        source=report.source,
        namespace=session.namespace,
        remedies=session.question.remedies,
        kubernetes=session.version,
        load=load_of(session.question),
        more_models=knows_more(policy, session.question),
        requester=requester,
    )
    return keeper(
        session.question.capsule, asked, structs.replace(report, policy=session.question.policy)
    )


def _manifests(paths: Sequence[str]) -> list[Document | BadManifest]:
    from kubectl_gpuadmit.adapters.files import read_inputs
    from kubectl_gpuadmit.kube.manifests import read_documents

    return [doc for raw, name in read_inputs(paths) for doc in read_documents(raw, name)]


# -- again and again -------------------------------------------------------------------------------


def _watch(session: Session, found: Round) -> int:
    """Shows what is new until everything is placed or the time is over; the last answer counts."""
    question, live = session.question, session.live
    ends = time.monotonic() + live.timeout
    shown: Report | None = None
    while True:
        if shown is None or _news(found.answer.report) != _news(shown):
            show(found.answer, question)
            shown = found.answer.report
        left = ends - time.monotonic()
        if found.placed or left <= 0:
            if not found.placed:
                say(f"warning: not placed within {live.timeout:.0f} s")
            return conclude(found.answer.report, question)
        time.sleep(min(EVERY_SECONDS, left))
        with Progress() as progress:
            found = _round(session, progress)


def _news(report: Report) -> object:
    """What of a report is worth showing again: not that events have grown older."""
    return [
        (v.ref, v.admission, v.placement, v.running, v.places, [f.reason for f in v.findings])
        for v in report.workloads
    ]
