"""Every option and argument of ``explain`` and ``check``, as a table; parses and answers nothing.

Both parsers read it: typer, which explains and completes, and ``quick``, which spares its import.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

OUTPUTS = ("table", "json", "yaml", "sarif", "junit", "markdown")

Kind = Literal["text", "texts", "flag", "number", "output"]


class Option(Struct, frozen=True):
    """One option. ``texts`` may be given several times; ``number`` is 0 to 125."""

    name: str
    flags: tuple[str, ...]
    kind: Kind
    help: str
    metavar: str = ""
    hidden: bool = False

    @property
    def default(self) -> object:
        return {"flag": False, "number": 0, "output": OUTPUTS[0], "texts": ()}.get(self.kind, "")


class Argument(Struct, frozen=True):
    """What stands without a flag, any number of times."""

    name: str
    metavar: str
    help: str


NAMES = Argument("names", "TYPE/NAME", "Live objects, such as deploy/web or job/a pod/b.")
PATHS = Argument("paths", "PATH", "Files, directories or - (stdin).")

OPTIONS: tuple[Option, ...] = (
    Option(
        "files",
        ("-f", "--filename"),
        "texts",
        "Manifest: a file, a directory or - (stdin).",
        metavar="FILE",
    ),
    Option(
        "snapshot",
        ("--snapshot",),
        "text",
        "Cluster objects in files, instead of a live cluster.",
        metavar="PATH",
    ),
    Option("policy", ("--policy",), "text", "The policy file.", metavar="PATH"),
    Option("output", ("-o", "--output"), "output", "What is written to stdout."),
    Option(
        "details",
        ("-v", "--nodes"),
        "flag",
        "Unfold: every node, place, source and clear workload.",
    ),
    Option(
        "namespace",
        ("-n", "--namespace"),
        "text",
        "Namespace of objects that name none.",
        metavar="NAME",
    ),
    Option(
        "now",
        ("--now",),
        "text",
        "Judge as of this RFC 3339 time [default: the snapshot's].",
        metavar="TIME",
    ),
    Option(
        "capsule",
        ("--capsule",),
        "text",
        "Also write what the answer read, to be replayed.",
        metavar="FILE",
    ),
    Option(
        "from_capsule",
        ("--from-capsule",),
        "text",
        "Answer from such a file, with no other input.",
        metavar="FILE",
    ),
    Option(
        "models",
        ("--models",),
        "texts",
        "Models of your own: a catalogue, a model's folder, a .gguf file.",
        metavar="PATH",
    ),
    Option(
        "concurrency",
        ("--concurrency",),
        "text",
        "Requests at once that a model has to bear.",
        metavar="N",
    ),
    Option(
        "context_length",
        ("--context-length",),
        "text",
        "Tokens of each of them; --context N says the same.",
        metavar="N",
    ),
    Option("no_remedies", ("--no-remedies",), "flag", "Look for no change that would help."),
    Option(
        "rule",
        ("--rule",),
        "text",
        "Print the page of a rule or reason code, and stop.",
        metavar="NAME",
    ),
    Option(
        "warn_exit_code",
        ("--warn-exit-code",),
        "number",
        "Exit code of warnings and waits.",
        metavar="N",
    ),
    Option(
        "kubernetes_version",
        ("--kubernetes-version",),
        "text",
        "Judge by the rules of this version.",
        metavar="1.N",
    ),
    Option("debug", ("--debug",), "flag", "Show the traceback of a fault of this program."),
    Option(
        "context",
        ("--context",),
        "text",
        "Context of the kubeconfig; a number is --context-length.",
        metavar="NAME",
    ),
    Option("kubeconfig", ("--kubeconfig",), "text", "The kubeconfig.", metavar="FILE"),
    Option(
        "selector",
        ("-l", "--selector"),
        "text",
        "Live objects with these labels: explain deploy -l app=web.",
        metavar="QUERY",
    ),
    Option(
        "all_namespaces",
        ("-A", "--all-namespaces"),
        "flag",
        "Live objects of all namespaces: explain deploy -A.",
    ),
    Option(
        "server",
        ("--server",),
        "flag",
        "Ask the API server too, by a dry run of the pod.",
    ),
    Option(
        "apply_mutations",
        ("--apply-mutations",),
        "flag",
        "Change live objects as rules say: scale to zero, with an Event.",
    ),
    Option("watch", ("--watch",), "flag", "Explain anew until it is placed."),
    Option(
        "timeout",
        ("--timeout",),
        "text",
        "End of --watch [default: 5m].",
        metavar="TIME",
    ),
    Option("as_user", ("--as",), "text", "Ask, and apply, as this user.", metavar="USER"),
    Option("as_groups", ("--as-group",), "texts", "A group of that user.", metavar="GROUP"),
    Option("cluster", ("--cluster",), "text", "Cluster of the kubeconfig.", metavar="NAME"),
    Option("user", ("--user",), "text", "User of the kubeconfig.", metavar="NAME"),
    Option(
        "request_timeout",
        ("--request-timeout",),
        "text",
        "Longest pause of the API server [default: 1m].",
        metavar="TIME",
    ),
)

LIVE = (
    "context",
    "kubeconfig",
    "selector",
    "all_namespaces",
    "server",
    "apply_mutations",
    "watch",
    "timeout",
    "as_user",
    "as_groups",
    "cluster",
    "user",
    "request_timeout",
)
"""Options that name something of a live cluster."""

WHO = ("as_user", "as_groups")
"""Of these, what counts for a snapshot too: who applies the manifests."""
