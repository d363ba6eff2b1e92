"""``kubectl gpu-admit diff``: which verdicts differ between two snapshots, and because of what."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated

import typer

from kubectl_gpuadmit.cli import output as streams
from kubectl_gpuadmit.cli.progress import Progress
from kubectl_gpuadmit.errors import EXIT_BAD_INPUT, EXIT_CLEAR, EXIT_DENIED, EXIT_UNANSWERED

if TYPE_CHECKING:
    from kubectl_gpuadmit.policy import Policy
    from kubectl_gpuadmit.snapshots.difference import Difference, Side


class Output(enum.StrEnum):
    """What is written to stdout."""

    table = "table"
    json = "json"


Before = Annotated[str, typer.Argument(metavar="A", help="Snapshot of before: a file or folder.")]
After = Annotated[str, typer.Argument(metavar="B", help="Snapshot of after.")]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--filename",
        metavar="FILE",
        help="Judge these workloads [default: those that run].",
        show_default=False,
    ),
]
PolicyFile = Annotated[str, typer.Option("--policy", metavar="PATH", help="The policy file.")]
PolicyAfter = Annotated[
    str, typer.Option("--policy-b", metavar="PATH", help="Another policy that holds for B.")
]
Namespace = Annotated[
    str,
    typer.Option("-n", "--namespace", metavar="NAME", help="Namespace of objects that name none."),
]
Version = Annotated[
    str,
    typer.Option("--kubernetes-version", metavar="1.N", help="Judge by the rules of this version."),
]
Form = Annotated[Output, typer.Option("-o", "--output", help="What is written to stdout.")]


def diff(
    before: Before,
    after: After,
    files: Files = None,
    policy: PolicyFile = "",
    policy_b: PolicyAfter = "",
    form: Form = Output.table,
    namespace: Namespace = "default",
    kubernetes_version: Version = "",
) -> int:
    """Compare two snapshots by verdict.

    Which workloads are judged otherwise in B than in A, by which finding, and the smallest set of
    changes that does it, found by trying. Without -f: the GPU workloads that run, each judged as if
    it were applied now.

    Exit code: 0 none is worse, 1 one that was admitted and placed no longer is, 2 unreadable, 3 not
    judged.
    """
    from kubectl_gpuadmit.adapters.files import read_inputs
    from kubectl_gpuadmit.cli.answer import load_policy, policy_file
    from kubectl_gpuadmit.cli.problems import tell_unreadable
    from kubectl_gpuadmit.cli.question import version
    from kubectl_gpuadmit.errors import NothingChecked
    from kubectl_gpuadmit.kube.manifests import read_documents
    from kubectl_gpuadmit.snapshots.difference import of_manifests, of_running

    kubernetes = version(kubernetes_version) if kubernetes_version else "1.37"
    with Progress() as progress:
        first = load_policy(policy_file(policy) if policy else None)
        second = load_policy(policy_file(policy_b)) if policy_b else first
        documents = [d for raw, name in read_inputs(files or ()) for d in read_documents(raw, name)]
        sides = []
        for path, rules in ((before, first), (after, second)):
            progress.step(f"reading {path}")
            sides.append(_side(path, rules))
        progress.step("judging the workloads of both")
        if files:
            found = of_manifests(documents, *sides, namespace=namespace, kubernetes=kubernetes)
        else:
            found = of_running(*sides, kubernetes=kubernetes)
    unreadable = [skipped for skipped in found.skipped if skipped.treated == "unreadable"]
    unknown = [skipped for skipped in found.skipped if skipped.treated == "unknown-kind"]
    if files and not (found.compared or unreadable or unknown):
        raise NothingChecked(
            "no-workload", "nothing was compared", file=files[0], hint="name a workload"
        )
    _show(found, form)
    for skipped in unreadable:
        tell_unreadable(skipped)
    if unreadable:
        return EXIT_BAD_INPUT
    if unknown:
        return EXIT_UNANSWERED
    return EXIT_DENIED if any(flip.worse for flip in found.flips) else EXIT_CLEAR


def _side(path: str, policy: Policy) -> Side:
    from kubectl_gpuadmit.cli.sources import cluster_of
    from kubectl_gpuadmit.snapshots.difference import Side
    from kubectl_gpuadmit.verdict import Source

    taken = cluster_of(path, now="")
    return Side(taken.cluster, taken.as_of, policy, Source("snapshot", path))


def _show(found: Difference, form: Output) -> None:
    from kubectl_gpuadmit.render import difference

    if form is Output.json:
        streams.write_data(difference.to_json(found))
    else:
        streams.write_text(difference.text(found, width=streams.width(), ascii=streams.in_ascii()))
