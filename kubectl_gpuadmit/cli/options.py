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


NAMES = Argument("names", "TYPE/NAME", "Live objects; not possible yet: use -f.")
PATHS = Argument("paths", "PATH", "Files, directories or - (stdin).")

LATER = "Live cluster; not possible yet: use --snapshot."

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
        "File or directory of a cluster's objects.",
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
    Option("context", ("--context",), "text", LATER, metavar="NAME"),
    Option("kubeconfig", ("--kubeconfig",), "text", LATER, metavar="FILE"),
    Option("selector", ("-l", "--selector"), "text", LATER, metavar="QUERY", hidden=True),
    Option("as_user", ("--as",), "text", LATER, metavar="USER", hidden=True),
    Option("all_namespaces", ("-A", "--all-namespaces"), "flag", LATER, hidden=True),
)

LIVE = ("context", "kubeconfig", "selector", "as_user", "all_namespaces")
"""Options that name something of a live cluster."""
