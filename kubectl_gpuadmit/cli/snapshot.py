"""``kubectl gpu-admit snapshot``: writes what the engine reads of a cluster into one file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from kubectl_gpuadmit.cli import output as streams
from kubectl_gpuadmit.cli.problems import say
from kubectl_gpuadmit.cli.progress import Progress
from kubectl_gpuadmit.errors import EXIT_CLEAR

File = Annotated[
    str,
    typer.Option("-o", "--output", metavar="FILE", help="NAME.json or NAME.json.zst; - is stdout."),
]
Source = Annotated[
    str,
    typer.Option("--snapshot", metavar="PATH", help="What kubectl get wrote: a file or folder."),
]
Everywhere = Annotated[
    bool, typer.Option("-A", "--all-namespaces", help="Every namespace; so it is without -n.")
]
Namespace = Annotated[
    str,
    typer.Option(
        "-n",
        "--namespace",
        metavar="NAME",
        help="What a question about this namespace needs, no more.",
    ),
]
Redact = Annotated[
    bool, typer.Option("--redact", help="Pseudonyms for names, to show it to strangers.")
]
PolicyFile = Annotated[
    str,
    typer.Option("--policy", metavar="PATH", help="Keep what this policy reads and names."),
]
Now = Annotated[
    str,
    typer.Option(
        "--now", metavar="TIME", help="When it was taken [default: what the source says]."
    ),
]
Context = Annotated[
    str, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig.")
]
Kubeconfig = Annotated[str, typer.Option("--kubeconfig", metavar="FILE", help="The kubeconfig.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite FILE.")]


def snapshot(
    file: File,
    source: Source = "",
    everywhere: Everywhere = False,
    namespace: Namespace = "",
    redact: Redact = False,
    policy: PolicyFile = "",
    now: Now = "",
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    force: Force = False,
) -> int:
    """Write what the engine reads of a cluster into one file.

    No Secrets, no values of env variables or annotations that no rule reads, no last-applied
    configurations. The same input gives the same bytes.
    """
    from kubectl_gpuadmit.adapters.snapshot import encoded
    from kubectl_gpuadmit.adapters.writing import free, write_whole
    from kubectl_gpuadmit.cli.sources import cluster_of
    from kubectl_gpuadmit.errors import BadInput
    from kubectl_gpuadmit.render.wording import plural
    from kubectl_gpuadmit.snapshots import trim

    if namespace and everywhere:
        raise BadInput("usage", "-n and -A contradict each other", hint="name one of the two")
    path = Path(file)
    if file != "-":
        free(path, replace=force)
    with Progress() as progress:
        progress.step(f"reading {source or 'the cluster'}")
        taken = cluster_of(source, now=now, context=context, kubeconfig=kubeconfig)
        data, annotations = _policy(policy)
        progress.step("trimming")
        kinds = trim.known_kinds(taken.cluster)
        count: Counter[str] = Counter()

        def each() -> Iterator[dict[str, Any]]:
            return trim.each(
                taken.cluster, namespace=namespace, annotations=annotations, parameters=not redact
            )

        def counted(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
            for item in items:
                count[item["kind"]] += 1
                yield item

        items: Iterable[dict[str, Any]] = each()
        if redact:
            from kubectl_gpuadmit.snapshots.redact import Keep, Redactor

            items = map(Redactor.of(items, Keep.named_in(data)).object, each())
        raw = encoded(counted(items), as_of=taken.as_of, kinds=kinds)
        progress.step(f"writing {file}")
        if file == "-":
            streams.write_data(raw.decode("utf-8"))
            return EXIT_CLEAR
        write_whole(path, raw, replace=force)
    if taken.assumed:
        say(f"warning: {taken.assumed}")
    if redact and (policies := _policies(count)):
        say(
            f"note: --redact leaves expressions and parameters out: what"
            f" {plural(policies, 'admission policy', 'admission policies')} say"
            f"{'s' if policies == 1 else ''} is unknown in it"
        )
    objects, size = (
        plural(count.total(), "object"),
        path.stat().st_size if path.is_file() else len(raw),
    )
    say(f"{file}: {objects} of {plural(len(kinds), 'kind')}, {size:,} bytes")
    return EXIT_CLEAR


def _policies(count: Counter[str]) -> int:
    from kubectl_gpuadmit.admission.native import KINDS

    return sum(count[kind] for kind in KINDS)


def _policy(path: str) -> tuple[Any, tuple[str, ...]]:
    """A policy as plain data, and the annotations that it reads."""
    if not path:
        return None, ()
    from kubectl_gpuadmit.cli.answer import load_policy, policy_file
    from kubectl_gpuadmit.kube.manifests import Document, read_documents
    from kubectl_gpuadmit.snapshots.trim import annotations_of

    raw, name = policy_file(path)
    read = load_policy((raw, name))
    data = [d.data for d in read_documents(raw, name) if isinstance(d, Document)]
    return data, annotations_of(read)
