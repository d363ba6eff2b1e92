"""What a call asks, as one value made from its options; opens nothing and answers nothing."""

from __future__ import annotations

import datetime as dt
import enum
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, NoReturn

import typer
from msgspec import Struct

from kubectl_gpuadmit.errors import BadInput, Unanswerable


class Output(enum.StrEnum):
    """What ``-o`` takes."""

    table = "table"
    json = "json"
    yaml = "yaml"
    sarif = "sarif"
    junit = "junit"
    markdown = "markdown"


class Question(Struct, frozen=True, kw_only=True):
    """One call of ``explain`` or ``check``, checked as far as its options go."""

    paths: tuple[str, ...]
    snapshot: str
    policy: str
    output: Output
    details: bool
    namespace: str
    now: dt.datetime | None
    remedies: bool
    rule: str
    warn_exit_code: int
    kubernetes: str


Files = Annotated[
    list[str] | None,
    typer.Option(
        "-f", "--filename", metavar="FILE", help="Manifest: a file, a directory or - (stdin)."
    ),
]
Snapshot = Annotated[
    str,
    typer.Option("--snapshot", metavar="PATH", help="File or directory of a cluster's objects."),
]
Policy = Annotated[str, typer.Option("--policy", metavar="PATH", help="The policy file.")]
Format = Annotated[Output, typer.Option("-o", "--output", help="What is written to stdout.")]
Details = Annotated[
    bool,
    typer.Option("--nodes", "-v", help="Unfold: every node, place, source and clear workload."),
]
Namespace = Annotated[
    str,
    typer.Option("-n", "--namespace", metavar="NAME", help="Namespace of objects that name none."),
]
Now = Annotated[
    str,
    typer.Option(
        "--now", metavar="TIME", help="Judge as of this RFC 3339 time [default: the snapshot's]."
    ),
]
NoRemedies = Annotated[
    bool, typer.Option("--no-remedies", help="Look for no change that would help.")
]
RuleName = Annotated[
    str,
    typer.Option(
        "--rule", metavar="NAME", help="Print the page of a rule or reason code, and stop."
    ),
]
WarnExitCode = Annotated[
    int,
    typer.Option(
        "--warn-exit-code", metavar="N", min=0, max=125, help="Exit code of warnings and waits."
    ),
]
Kubernetes = Annotated[
    str,
    typer.Option("--kubernetes-version", metavar="1.N", help="Judge by the rules of this version."),
]
Debug = Annotated[
    bool, typer.Option("--debug", help="Show the traceback of a fault of this program.")
]
Context = Annotated[
    str,
    typer.Option(
        "--context", metavar="NAME", help="Live cluster; not possible yet: use --snapshot."
    ),
]
Kubeconfig = Annotated[
    str,
    typer.Option(
        "--kubeconfig", metavar="FILE", help="Live cluster; not possible yet: use --snapshot."
    ),
]
Selector = Annotated[str, typer.Option("-l", "--selector", metavar="QUERY", hidden=True)]
AsUser = Annotated[str, typer.Option("--as", metavar="USER", hidden=True)]
AllNamespaces = Annotated[bool, typer.Option("-A", "--all-namespaces", hidden=True)]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TYPE/NAME", help="Live objects; not possible yet: use -f.", show_default=False
    ),
]
Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH", help="Files, directories or - (stdin).", show_default=False),
]

SUPPORTED = range(30, 38)
"""Minor versions of Kubernetes whose rules are known."""


EXPORT = (
    "use --snapshot PATH, made by: kubectl get nodes,pods,namespaces,resourcequotas,limitranges,"
    "priorityclasses,persistentvolumes,persistentvolumeclaims,poddisruptionbudgets "
    "-A -o json > cluster.json"
)


def shared(
    *,
    snapshot: Snapshot = "",
    policy: Policy = "",
    output: Format = Output.table,
    details: Details = False,
    namespace: Namespace = "",
    now: Now = "",
    no_remedies: NoRemedies = False,
    rule: RuleName = "",
    warn_exit_code: WarnExitCode = 0,
    kubernetes_version: Kubernetes = "",
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    selector: Selector = "",
    as_user: AsUser = "",
    all_namespaces: AllNamespaces = False,
    debug: Debug = False,
) -> Callable[..., Question]:
    """Every option that ``explain`` and ``check`` share, as a maker of questions.

    The maker takes ``paths`` and ``live`` (what else named a live object -> its value). It raises
    BadInput for a value that means nothing and Unanswerable for what needs a live cluster.
    """
    asks_live = {
        "--context": context,
        "--kubeconfig": kubeconfig,
        "--selector": selector,
        "--as": as_user,
        "--all-namespaces": all_namespaces,
    }

    def make(*, paths: Iterable[str], live: Mapping[str, object]) -> Question:
        given = tuple(paths)
        for flag, value in {**live, **asks_live}.items():
            if value:
                _needs_live(f"{flag} is about a live cluster")
        if given and not rule and not snapshot:
            _needs_live("without --snapshot the facts would be those of a live cluster")
        return Question(
            paths=given,
            snapshot=snapshot,
            policy=policy,
            output=output,
            details=details,
            namespace=namespace or "default",
            now=_instant(now) if now else None,
            remedies=not no_remedies,
            rule=rule,
            warn_exit_code=warn_exit_code,
            kubernetes=_version(kubernetes_version) if kubernetes_version else "",
        )

    return make


def asks(command: Callable[..., int]) -> Callable[..., int]:
    """The command with every shared option added; its first argument makes questions."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    more = list(inspect.signature(shared, eval_str=True).parameters.values())

    @functools.wraps(command)
    def run(**given: Any) -> int:
        ask = shared(**{p.name: given.pop(p.name) for p in more})
        return command(ask, **given)

    del run.__wrapped__  # typer is to see the signature below, not the command's
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in [*own, *more]]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _needs_live(what: str) -> NoReturn:
    raise Unanswerable(
        "needs-live-cluster", f"{what}, which this version cannot read", hint=f"for now {EXPORT}"
    )


def _instant(text: str) -> dt.datetime:
    try:
        at = dt.datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise BadInput(
            "bad-time",
            f"{text!r} is no RFC 3339 time with a zone",
            field="--now",
            hint="for example 2026-11-29T14:00:00Z",
        )
    return at


def _version(text: str) -> str:
    match = re.fullmatch(r"v?1\.(\d{1,3})(?:[.+-].*)?", text)
    if match is None or int(match[1]) not in SUPPORTED:
        raise BadInput(
            "unknown-kubernetes-version",
            f"{text!r} is no version whose rules are known",
            field="--kubernetes-version",
            hint=f"1.{SUPPORTED[0]} to 1.{SUPPORTED[-1]}",
        )
    return f"1.{match[1]}"
