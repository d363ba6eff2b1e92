"""From a question to what is printed and the exit code: reads, asks the engine, renders."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from kubectl_gpuadmit.cli import output
from kubectl_gpuadmit.cli.exit import code
from kubectl_gpuadmit.cli.problems import say, tell_unreadable
from kubectl_gpuadmit.cli.progress import Progress
from kubectl_gpuadmit.cli.question import Question
from kubectl_gpuadmit.errors import BadInput, NothingChecked
from kubectl_gpuadmit.render.wording import plural
from kubectl_gpuadmit.verdict import Report, Source, Verdict

if TYPE_CHECKING:
    from rich.text import Text

    from kubectl_gpuadmit.adapters.snapshot import Snapshot
    from kubectl_gpuadmit.kube.manifests import Document
    from kubectl_gpuadmit.policy import Policy

Layout = Callable[..., "Text"]
"""``render.text.explain`` or ``render.table.check``."""


class Answer(Struct, frozen=True):
    """A report, how long it took, and where a field of a workload stands in its file."""

    report: Report
    seconds: float
    position: Callable[[Verdict, str], tuple[int, int] | None]
    keep: Callable[[], None] | None = None
    """Writes the capsule that was asked for; once the answer is on the screen, it may fail."""


def answer(question: Question) -> int:
    """Answers on stdout, talks on stderr, returns the exit code."""
    if question.rule:
        return _rule(question.rule)
    if question.from_capsule:
        return _from_capsule(question)
    live = question.live
    if not question.paths and not (live and live.names):
        where = "-f FILE" if question.command == "explain" else "PATH"
        raise NothingChecked(
            "nothing-named",
            "nothing to check was named",
            hint=f"kubectl gpu-admit {question.command} {where}",
        )
    if question.capsule:
        from kubectl_gpuadmit.adapters.writing import free

        free(Path(question.capsule))
    if live is not None:
        from kubectl_gpuadmit.cli.live import answer_live

        return answer_live(question, live)
    found = evaluated(question)
    show(found, question)
    code = conclude(found.report, question)
    if found.keep is not None:
        found.keep()
    return code


def _from_capsule(question: Question) -> int:
    from kubectl_gpuadmit.cli import capsule

    begun = time.monotonic()
    with Progress() as progress:
        progress.step(f"replaying {question.from_capsule}")
        replayed = capsule.replay(question.from_capsule)
    show(Answer(replayed.report, time.monotonic() - begun, lambda verdict, pointer: None), question)
    say(replayed.comparison)
    return conclude(replayed.report, question)


def evaluated(question: Question) -> Answer:
    """Reads every input and asks the engine."""
    from kubectl_gpuadmit.adapters.files import read_inputs
    from kubectl_gpuadmit.adapters.snapshot import load_snapshot
    from kubectl_gpuadmit.cli.ending import hold
    from kubectl_gpuadmit.cli.models import knows_more, load_of, with_load, with_registry
    from kubectl_gpuadmit.engine import evaluate
    from kubectl_gpuadmit.errors import BadManifest
    from kubectl_gpuadmit.kube.manifests import read_documents

    begun = time.monotonic()
    with Progress() as progress:
        rules = policy_file(question.policy) if question.policy else None
        policy = with_load(load_policy(rules), question)
        progress.step("reading the manifests")
        documents = [
            document
            for raw, name in read_inputs(question.paths)
            for document in read_documents(raw, name)
        ]
        progress.step(f"reading the snapshot {question.snapshot}")
        snapshot = hold(load_snapshot(question.snapshot))
        policy = with_registry(policy, documents, snapshot.cluster, namespace=question.namespace)
        progress.step(f"judging {plural(len(documents), 'document')}")
        version: dict[str, Any] = {"kubernetes": question.kubernetes} if question.kubernetes else {}
        now = question.now or snapshot.as_of or dt.datetime.now(dt.UTC)
        report = evaluate(
            documents,
            snapshot.cluster,
            policy,
            now=now,
            source=_source(snapshot, question.now),
            namespace=question.namespace,
            with_remedies=question.remedies,
            requester=question.requester,
            **version,
        )
        report = structs.replace(report, policy=question.policy)
        keep = None
        if question.capsule:
            from kubectl_gpuadmit.cli.capsule import Asked, keeper

            keep = keeper(
                question.capsule,
                Asked(
                    documents=documents,
                    cluster=snapshot.cluster,
                    policy=policy,
                    policy_file=rules,
                    now=now,
                    source=report.source,
                    namespace=question.namespace,
                    remedies=question.remedies,
                    load=load_of(question),
                    more_models=knows_more(policy, question),
                    requester=question.requester,
                    **version,
                ),
                report,
            )
    readable = [d for d in documents if not isinstance(d, BadManifest)]
    return Answer(report, time.monotonic() - begun, positions(readable), keep)


def _source(snapshot: Snapshot, now: dt.datetime | None) -> Source:
    """Age is that of the facts: by the snapshot's own time if it says one, else by its files'."""
    taken = snapshot.as_of or snapshot.modified
    seconds = int(((now or dt.datetime.now(dt.UTC)) - taken).total_seconds())
    return Source("snapshot", snapshot.name, seconds if seconds >= 0 else None)


def load_policy(file: tuple[bytes, str] | None) -> Policy:
    """The policy in a file's content, the built-in one for None. Raises BadPolicy."""
    from kubectl_gpuadmit.policy import Policy

    if file is None:
        return Policy.default()
    from kubectl_gpuadmit.cli.catalogue import found_by_judging
    from kubectl_gpuadmit.policy import load

    return load.load_policy(*file, catalogue=found_by_judging)


def policy_file(path: str) -> tuple[bytes, str]:
    """The one file that a policy is. Raises BadInput for a folder that holds several."""
    from kubectl_gpuadmit.adapters.files import read_inputs

    files = list(read_inputs([path]))
    if len(files) != 1:
        names = ", ".join(name for _, name in files[:3])
        raise BadInput(
            "policy-several",
            f"holds {len(files)} files, a policy is one",
            file=path,
            hint=f"name one: {names}",
        )
    return files[0]


def positions(
    documents: Iterable[Document],
) -> Callable[[Verdict, str], tuple[int, int] | None]:
    """Where a field of a verdict's workload stands among these documents."""
    by_place: dict[tuple[str, str, str], Document] = {}
    for document in documents:
        if isinstance(document.data, dict):
            metadata = document.data.get("metadata")
            meta = metadata if isinstance(metadata, dict) else {}
            name = str(meta.get("name") or meta.get("generateName") or "")
            key = (document.location, str(document.data.get("kind")), name)
            by_place.setdefault(key, document)

    def position(verdict: Verdict, pointer: str) -> tuple[int, int] | None:
        document = by_place.get((verdict.location, verdict.ref.kind, verdict.ref.name))
        line, column = document.position(pointer) if document else (0, 0)
        return (line, max(column, 1)) if line else None

    return position


def show(found: Answer, question: Question) -> None:
    """Writes the report to stdout in the form that was asked for."""
    report = found.report
    match question.output:
        case "table":
            _show_text(found, question)
        case "json":
            from kubectl_gpuadmit.render.data import to_json

            output.write_data(to_json(report))
        case "yaml":
            from kubectl_gpuadmit.render.data import to_yaml

            output.write_data(to_yaml(report))
        case "sarif":
            from kubectl_gpuadmit import __version__
            from kubectl_gpuadmit.cli.catalogue import catalogue
            from kubectl_gpuadmit.render.sarif import to_sarif

            output.write_data(
                to_sarif(
                    report, version=__version__, catalogue=catalogue(), position=found.position
                )
            )
        case "junit":
            from kubectl_gpuadmit.render.junit import to_junit

            output.write_data(to_junit(report))
        case "markdown":
            from kubectl_gpuadmit.render.markdown import to_markdown

            output.write_data(to_markdown(report))


def _show_text(found: Answer, question: Question) -> None:
    if question.command == "explain":
        from kubectl_gpuadmit.render.text import explain

        text = explain(
            found.report,
            width=output.width(),
            details=question.details,
            ascii=output.in_ascii(),
            position=found.position,
        )
    else:
        from kubectl_gpuadmit.render.table import check

        text = check(
            found.report,
            width=output.width(),
            details=question.details,
            ascii=output.in_ascii(),
            seconds=found.seconds,
        )
    output.write_text(text)


def conclude(report: Report, question: Question) -> int:
    """Says on stderr what the report cannot, and gives the exit code."""
    for skipped in report.skipped:
        if skipped.treated == "unreadable":
            tell_unreadable(skipped)
        elif skipped.treated == "unknown-kind" and question.output != "table":
            say(
                f"warning: {skipped.location}: {skipped.ref.kind} {skipped.ref.name} was not judged"
            )
    if question.policy and report.asked == () and report.workloads:
        say(f"warning: policy {question.policy}: none of its rules was asked of any workload")
    if not report.workloads and not any(
        s.treated in ("unreadable", "unknown-kind") for s in report.skipped
    ):
        names = question.live.names if question.live else ()
        where = ", ".join((*question.paths, *names)[:3])
        count = len(report.skipped)
        held = f"{count:,} objects, none of which makes pods," if count else "nothing"
        held = "1 object, which makes no pods," if count == 1 else held
        raise NothingChecked(
            "no-workload",
            f"nothing was checked: there is {held} in {where}",
            hint="name a workload",
        )
    return code(report, warn_exit_code=question.warn_exit_code)


def _rule(name: str) -> int:
    from kubectl_gpuadmit import rules
    from kubectl_gpuadmit.cli.catalogue import catalogue
    from kubectl_gpuadmit.render.rulepage import rule_page
    from kubectl_gpuadmit.rule import REGISTRY

    assert rules.__doc__, "importing the package registers every rule"
    page = rule_page(
        name,
        rules=REGISTRY,
        catalogue=catalogue(),
        width=min(output.width(), 100),
        ascii=output.in_ascii(),
    )
    output.write_text(page)
    return 0
