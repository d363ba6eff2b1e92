"""What a call asks, as one value made from its options; opens nothing and answers nothing."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kubectl_gpuadmit.cli.options import LIVE, OPTIONS, WHO
from kubectl_gpuadmit.errors import BadInput, Unanswerable

if TYPE_CHECKING:
    from kubectl_gpuadmit.kube.requester import Requester

SUPPORTED = range(30, 38)
"""Minor versions of Kubernetes whose rules are known."""

WATCH_SECONDS = 300.0


class Live(Struct, frozen=True, kw_only=True):
    """What a call says of the live cluster that it asks; '' means what the kubeconfig says."""

    names: tuple[str, ...] = ()
    namespace: str = ""
    selector: str = ""
    all_namespaces: bool = False
    server: bool = False
    apply_mutations: bool = False
    """Carry out what rules change in the objects themselves."""
    watch: bool = False
    timeout: float = WATCH_SECONDS
    """Seconds until --watch ends."""
    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    as_user: str = ""
    as_groups: tuple[str, ...] = ()
    request_timeout: float | None = None


class Question(Struct, frozen=True, kw_only=True):
    """One call of ``explain`` or ``check``, checked as far as its options go."""

    command: str
    paths: tuple[str, ...]
    snapshot: str
    policy: str
    output: str
    details: bool
    namespace: str
    now: dt.datetime | None
    remedies: bool
    rule: str
    capsule: str = ""
    """File that is to hold what the answer read, '' for none."""
    from_capsule: str = ""
    """File that holds the whole question, '' where the other fields do."""
    warn_exit_code: int
    kubernetes: str
    """``1.N``, '' for the newest that is known, or the live API server's own."""
    models: tuple[str, ...] = ()
    """Files and folders of models, beside the policy's own."""
    concurrency: int = 0
    """Requests at once that a model has to bear; 0: what the policy says."""
    context_tokens: int = 0
    """Tokens of each of them; 0: what the policy says."""
    requester: Requester | None = None
    """Who applies the manifests, as ``--as`` says."""
    live: Live | None = None
    """None where a snapshot stands in for the cluster."""


def asked(command: str, values: Mapping[str, Any]) -> Question:
    """Makes the question of a command from its options' values.

    Raises BadInput for a value that means nothing and for options that exclude each other,
    Unanswerable for live objects of a snapshot.
    """
    values = _with_tokens(values)
    names = tuple(values.get("names", ()))
    paths = (*values.get("paths", ()), *values["files"])
    if values["from_capsule"]:
        _alone(values, (*names, *paths))
    _exclude(command, values, names, paths)
    without = values["snapshot"] or values["rule"] or values["from_capsule"]
    kubernetes = values["kubernetes_version"]
    return Question(
        command=command,
        paths=paths,
        snapshot=values["snapshot"],
        policy=values["policy"],
        output=values["output"],
        details=values["details"],
        namespace=values["namespace"] or "default",
        now=instant(values["now"]) if values["now"] else None,
        remedies=not values["no_remedies"],
        rule=values["rule"],
        capsule=values["capsule"],
        from_capsule=values["from_capsule"],
        warn_exit_code=values["warn_exit_code"],
        kubernetes=version(kubernetes) if kubernetes else "",
        models=values["models"],
        concurrency=whole(values["concurrency"], "--concurrency"),
        context_tokens=whole(values["context_length"], "--context-length"),
        requester=_requester(values),
        live=None if without else _live(values, names),
    )


def _requester(values: Mapping[str, Any]) -> Requester | None:
    if values["as_groups"] and not values["as_user"]:
        raise BadInput("usage", "--as-group is of the user that --as names", hint="add --as USER")
    if not values["as_user"]:
        return None
    from kubectl_gpuadmit.kube.requester import impersonated

    return impersonated(values["as_user"], values["as_groups"])


def _with_tokens(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """``--context 8192`` is a length: a kubeconfig's context has a name that is no number."""
    context = values["context"]
    if not (context.isascii() and context.isdecimal()):
        return values
    if values["context_length"] not in ("", context):
        raise BadInput(
            "usage", "two lengths of context", field="--context", hint="give --context-length only"
        )
    return {**values, "context": "", "context_length": context}


def whole(text: str, flag: str) -> int:
    """A number of requests or tokens, 0 for none given. Raises BadInput."""
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text)):
        raise BadInput(
            "bad-count", f"{text!r} is no whole number above 0", field=flag, hint="for example 32"
        )
    return int(text)


def _exclude(
    command: str, values: Mapping[str, Any], names: tuple[str, ...], paths: tuple[str, ...]
) -> None:
    """Refuses options that do not go together."""
    if values["snapshot"]:
        if names:
            raise Unanswerable(
                "needs-live-cluster",
                f"explain {' '.join(names)} is about a live cluster, and a snapshot "
                "stands in for it",
                hint="leave out --snapshot, or name the manifest with -f",
            )
        for option in OPTIONS:
            if option.name in LIVE and option.name not in WHO and values[option.name]:
                raise BadInput(
                    "live-and-snapshot",
                    f"{option.flags[-1]} is about a live cluster, and --snapshot stands in for it",
                    hint="leave one of the two out",
                )
    if names and paths:
        raise BadInput(
            "usage",
            "live objects and -f are two questions",
            hint=f"kubectl gpu-admit {command} {' '.join(names)}",
        )
    for name, flag in (("selector", "-l"), ("all_namespaces", "-A")):
        if values[name] and (not names or any("/" in word for word in names)):
            raise BadInput(
                "usage",
                f"{flag} chooses among live objects of a type",
                hint=f"for example kubectl gpu-admit explain deploy {flag}"
                + (" app=web" if flag == "-l" else ""),
            )
    if values["all_namespaces"] and len(names) > 1:
        raise BadInput("usage", "-A and names exclude each other", hint="use -n with names")
    if values["apply_mutations"] and (not names or values["watch"]):
        raise BadInput(
            "usage",
            "--apply-mutations changes live objects, once",
            hint="for example kubectl gpu-admit explain inferencedeployment/chat --apply-mutations",
        )
    if values["timeout"] and not values["watch"]:
        raise BadInput("usage", "--timeout ends --watch", hint="add --watch")


def _live(values: Mapping[str, Any], names: tuple[str, ...]) -> Live:
    given = {name: values[name] for name in LIVE if name not in ("timeout", "request_timeout")}
    pause = values["request_timeout"]
    return Live(
        names=names,
        namespace=values["namespace"],
        timeout=seconds(values["timeout"], "--timeout") if values["timeout"] else WATCH_SECONDS,
        request_timeout=seconds(pause, "--request-timeout") if pause else None,
        **given,
    )


_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?")


def seconds(text: str, flag: str) -> float:
    """``90``, ``90s``, ``1m30s``, ``2h``: as kubectl takes them, a bare number counts seconds."""
    found = _DURATION.fullmatch(text)
    if found is None or not text:
        raise BadInput(
            "bad-duration", f"{text!r} is no length of time", field=flag, hint="for example 90s"
        )
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds


def _alone(values: Mapping[str, Any], paths: tuple[str, ...]) -> None:
    """A capsule holds all of the question: nothing else may be asked besides."""
    besides = (
        "snapshot",
        "policy",
        "namespace",
        "now",
        "no_remedies",
        "kubernetes_version",
        "rule",
        "models",
        "concurrency",
        "context_length",
    )
    flags = {option.name: option.flags[-1] for option in OPTIONS}
    given = [flags[name] for name in (*besides, "capsule", *LIVE) if values[name]]
    given += [f"the file {paths[0]}"] if paths else []
    if given:
        raise BadInput(
            "capsule-alone",
            f"a capsule holds the whole question; {given[0]} would make it another",
            field="--from-capsule",
            hint="leave it out; to ask another question, use -f FILE --snapshot PATH",
        )


def instant(text: str) -> dt.datetime:
    """The value of ``--now``. Raises BadInput."""
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


def version(text: str) -> str:
    """``v1.34.2`` -> ``1.34``. Raises BadInput."""
    match = re.fullmatch(r"v?1\.(\d{1,3})(?:[.+-].*)?", text)
    if match is None or int(match[1]) not in SUPPORTED:
        raise BadInput(
            "unknown-kubernetes-version",
            f"{text!r} is no version whose rules are known",
            field="--kubernetes-version",
            hint=f"1.{SUPPORTED[0]} to 1.{SUPPORTED[-1]}",
        )
    return f"1.{match[1]}"
