"""From a question about a live cluster to its answer: connects, reads, asks the engine, adds what
happened and what the API server says; judges nothing itself."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from kubectl_gpuadmit.cli.answer import Answer, conclude, load_policy, policy_file, positions, show
from kubectl_gpuadmit.cli.problems import say
from kubectl_gpuadmit.cli.progress import Progress
from kubectl_gpuadmit.cli.question import SUPPORTED, Live, Question
from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.render.wording import plural
from kubectl_gpuadmit.verdict import Report, Source, Verdict

if TYPE_CHECKING:
    from kubectl_gpuadmit.adapters.kube.connection import Connection
    from kubectl_gpuadmit.adapters.kube.resources import Catalogue
    from kubectl_gpuadmit.cluster import Cluster
    from kubectl_gpuadmit.happened.history import History
    from kubectl_gpuadmit.kube.manifests import Document
    from kubectl_gpuadmit.kube.requester import Requester
    from kubectl_gpuadmit.kube.workloads import Workload
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


class _Session(Struct):
    """What stays the same from round to round."""

    question: Question
    live: Live
    connection: Connection
    catalogue: Catalogue
    policy: Policy
    policy_file: tuple[bytes, str] | None
    namespace: str
    version: str


def answer_live(question: Question, live: Live) -> int:
    """Answers on stdout, talks on stderr, returns the exit code; once, or until it is placed."""
    with Progress() as progress:
        session = _begin(question, live, progress)
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


def _carry_out(session: _Session, found: Round) -> None:
    """Changes the live objects as the report says, and says what was done."""
    from kubectl_gpuadmit.adapters.kube.changing import apply
    from kubectl_gpuadmit.render.wording import changes

    stored = {
        _key(str(o["kind"]), str(o["metadata"].get("namespace", "")), str(o["metadata"]["name"])): o
        for o in found.objects
    }
    done = 0
    for verdict in found.answer.report.workloads:
        key = _key(verdict.ref.kind, verdict.ref.namespace, verdict.ref.name)
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


def _begin(question: Question, live: Live, progress: Progress) -> _Session:
    from kubectl_gpuadmit.adapters.kube.connection import Access
    from kubectl_gpuadmit.adapters.kube.kubeconfig import connect
    from kubectl_gpuadmit.adapters.kube.reading import server_version
    from kubectl_gpuadmit.adapters.kube.resources import Catalogue
    from kubectl_gpuadmit.cli.models import with_load

    rules = policy_file(question.policy) if question.policy else None
    policy = with_load(load_policy(rules), question)
    access = Access(
        kubeconfig=live.kubeconfig,
        context=live.context,
        cluster=live.cluster,
        user=live.user,
        as_user=live.as_user,
        as_groups=live.as_groups,
        request_timeout=live.request_timeout,
    )
    progress.step("logging in")
    connection = connect(access)
    progress.step(f"asking {connection.host}")
    version = question.kubernetes or _known_version(server_version(connection))
    return _Session(
        question=question,
        live=live,
        connection=connection,
        catalogue=Catalogue(connection),
        policy=policy,
        policy_file=rules,
        namespace=live.namespace or connection.namespace,
        version=version,
    )


def _known_version(text: str) -> str:
    """The API server's version, or the nearest whose rules are known, which is said."""
    found = re.fullmatch(r"1\.(\d+)", text)
    if found is None:
        return f"1.{SUPPORTED[-1]}"
    nearest = min(max(int(found[1]), SUPPORTED[0]), SUPPORTED[-1])
    if nearest != int(found[1]):
        say(f"warning: the rules of Kubernetes {text} are not known; those of 1.{nearest} are used")
    return f"1.{nearest}"


def _round(session: _Session, progress: Progress) -> Round:
    from kubectl_gpuadmit import rules
    from kubectl_gpuadmit.adapters.kube.reading import isolated_namespaces, read_cluster
    from kubectl_gpuadmit.claim_alone import KINDS
    from kubectl_gpuadmit.cli.models import with_registry
    from kubectl_gpuadmit.engine import evaluate
    from kubectl_gpuadmit.kube.decode import decode_object
    from kubectl_gpuadmit.narrowed import narrowed
    from kubectl_gpuadmit.needs import needs
    from kubectl_gpuadmit.rule import REGISTRY

    assert rules.__all__, "importing the package registers every rule"
    begun = time.monotonic()
    question, live = session.question, session.live
    objects: list[dict[str, Any]] = []
    documents: list[Document | BadManifest]
    if live.names:
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
        documents = [document(obj) for obj in objects]
    else:
        progress.step("reading the manifests")
        documents = list(_manifests(question.paths))
    readable = [d for d in documents if not isinstance(d, BadManifest)]
    workloads = _workloads(readable, session)
    progress.step(f"reading the cluster {session.connection.name}")
    homes = {one.ref.namespace for one in workloads} | {session.namespace}
    claiming = homes & isolated_namespaces(session.connection)
    for one in (d.data for d in readable if d.data.get("kind") in KINDS):
        meta = one.get("metadata")
        home = meta.get("namespace") if isinstance(meta, dict) else None
        claiming |= {str(home or session.namespace)}
    facts = read_cluster(
        session.connection,
        needs(workloads, session.policy, REGISTRY, claims_in=claiming),
        homes=homes,
        own=[] if objects else [one.ref for one in workloads],
        stored=[decode_object(document) for document in readable] if objects else (),
        catalogue=session.catalogue,
    )
    now = question.now or dt.datetime.now(dt.UTC)
    policy = with_registry(session.policy, documents, facts.cluster, namespace=session.namespace)
    requester = _requester(session, facts.cluster)
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
        keep = _keeper(session, documents, facts.cluster, report, now, requester)
    report = narrowed(structs.replace(report, policy=question.policy), facts.absences)
    histories: dict[tuple[str, str, str], History] = {}
    if objects:
        progress.step("reading what happened")
        histories = _histories(session.connection, objects)
    if live.server:
        progress.step("asking the API server")
        report = _asked_of_server(session, report, facts.cluster, readable, now, requester)
    report = _with_histories(report, histories, now)
    answer = Answer(report, time.monotonic() - begun, positions(readable), keep)
    return Round(answer, tuple(objects), _is_placed(report, histories))


def _requester(session: _Session, cluster: Cluster) -> Requester | None:
    """Who asks, where an admission policy may want to know."""
    from kubectl_gpuadmit.adapters.kube.whoami import whoami
    from kubectl_gpuadmit.admission import native

    if not native.present(cluster):
        return None
    return whoami(session.connection) or session.question.requester


def _keeper(
    session: _Session,
    documents: list[Document | BadManifest],
    cluster: Cluster,
    report: Report,
    now: dt.datetime,
    requester: Requester | None,
) -> Callable[[], None]:
    """Writes the capsule: the engine's answer alone, for what happened cannot be replayed."""
    from kubectl_gpuadmit.cli.capsule import Asked, keeper

    asked = Asked(
        documents=documents,
        cluster=cluster,
        policy=session.policy,
        policy_file=session.policy_file,
        now=now,
        source=report.source,
        namespace=session.namespace,
        remedies=session.question.remedies,
        kubernetes=session.version,
        requester=requester,
    )
    return keeper(
        session.question.capsule, asked, structs.replace(report, policy=session.question.policy)
    )


def _manifests(paths: Sequence[str]) -> list[Document | BadManifest]:
    from kubectl_gpuadmit.adapters.files import read_inputs
    from kubectl_gpuadmit.kube.manifests import read_documents

    return [doc for raw, name in read_inputs(paths) for doc in read_documents(raw, name)]


def _workloads(
    documents: Sequence[Document], session: _Session, cluster: Cluster | None = None
) -> list[Workload]:
    from kubectl_gpuadmit.kube.workloads import expand
    from kubectl_gpuadmit.verdict import Skipped

    found: list[Workload] = []
    for document in documents:
        try:
            made = expand(
                document,
                declared=session.policy.declared_kinds,
                namespace=session.namespace,
                cluster=cluster,
            )
        except BadManifest:
            continue  # the engine reports it
        if not isinstance(made, Skipped):
            found.append(made)
    return found


# -- what happened ---------------------------------------------------------------------------------


def _key(kind: str, namespace: str, name: str) -> tuple[str, str, str]:
    return kind, namespace, name


def _histories(
    connection: Connection, objects: Sequence[dict[str, Any]]
) -> dict[tuple[str, str, str], History]:
    from kubectl_gpuadmit.adapters.kube.history import history_of
    from kubectl_gpuadmit.adapters.kube.listing import in_parallel

    found = in_parallel(lambda obj: history_of(connection, obj), objects)
    return {
        _key(str(o["kind"]), str(o["metadata"].get("namespace", "")), str(o["metadata"]["name"])): h
        for o, h in zip(objects, found, strict=True)
    }


def _history(verdict: Verdict, histories: dict[tuple[str, str, str], History]) -> History | None:
    return histories.get(_key(verdict.ref.kind, verdict.ref.namespace, verdict.ref.name))


def _with_histories(
    report: Report, histories: dict[tuple[str, str, str], History], now: dt.datetime
) -> Report:
    if not histories:
        return report
    from kubectl_gpuadmit.happened import with_history

    told = [
        with_history(verdict, history, now=now)
        if (history := _history(verdict, histories)) is not None
        else verdict
        for verdict in report.workloads
    ]
    return structs.replace(report, workloads=tuple(told))


def _is_placed(report: Report, histories: dict[tuple[str, str, str], History]) -> bool:
    from kubectl_gpuadmit.happened.history import placed

    for verdict in report.workloads:
        history = _history(verdict, histories)
        if history is not None:
            if not placed(verdict, history):
                return False
        elif verdict.admission not in ("admitted", "mutated") or verdict.placement != "fits":
            return False
    return bool(report.workloads)


# -- the API server's own word ---------------------------------------------------------------------


def _asked_of_server(
    session: _Session,
    report: Report,
    cluster: Cluster,
    documents: Sequence[Document],
    now: dt.datetime,
    requester: Requester | None,
) -> Report:
    """Each workload with a dry run of one pod a role beside our verdict on that pod."""
    from kubectl_gpuadmit.adapters.kube.dry_run import ask
    from kubectl_gpuadmit.agreement import compared, expanded_pod
    from kubectl_gpuadmit.engine import evaluate
    from kubectl_gpuadmit.kube.manifests import Document as ManifestDocument
    from kubectl_gpuadmit.policy import Policy

    verdicts = {_key(v.ref.kind, v.ref.namespace, v.ref.name): v for v in report.workloads}
    for workload in _workloads(documents, session, cluster):
        ref = workload.ref
        key = _key(ref.kind, ref.namespace, ref.name)
        if key not in verdicts:
            continue
        stored = cluster.get(ref.kind, ref.namespace, ref.name)
        uid = (stored.metadata.uid or "") if stored else ""
        for group in workload.groups:
            pod = expanded_pod(workload, group, uid=uid)
            one = ManifestDocument(file=f"a pod of {ref}", index=0, line=0, data=pod)
            ours = evaluate(
                [one],
                cluster,
                Policy.default(),
                now=now,
                source=report.source,
                namespace=ref.namespace,
                with_remedies=False,
                kubernetes=session.version,
                requester=requester,
            )
            if not ours.workloads:
                continue
            answer = ask(session.connection, pod, role=group.role)
            verdicts[key] = compared(verdicts[key], ours.workloads[0], answer)
    kept = [verdicts[_key(v.ref.kind, v.ref.namespace, v.ref.name)] for v in report.workloads]
    return structs.replace(report, workloads=tuple(kept))


# -- again and again -------------------------------------------------------------------------------


def _watch(session: _Session, found: Round) -> int:
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
