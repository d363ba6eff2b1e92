"""``kubectl gpu-admit topo``: which GPUs belong together, which are free, who holds what."""

from __future__ import annotations

import datetime as dt
import enum
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kubectl_gpuadmit.cli import output as streams
from kubectl_gpuadmit.errors import EXIT_CLEAR, BadInput, NothingChecked, Unanswerable

if TYPE_CHECKING:
    from kubectl_gpuadmit.overview.model import Overview
    from kubectl_gpuadmit.policy import Policy


class Output(enum.StrEnum):
    """What is written to stdout."""

    table = "table"
    json = "json"
    svg = "svg"
    html = "html"


Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[POOL|NODE|pod/NAME]",
        help="Pools or nodes to show [default: all]; pod/NAME: its way down to the devices.",
        show_default=False,
    ),
]
Snapshot = Annotated[
    str, typer.Option("--snapshot", metavar="PATH", help="Objects in files, not a live cluster.")
]
PolicyFile = Annotated[str, typer.Option("--policy", metavar="PATH", help="The policy file.")]
Form = Annotated[Output, typer.Option("-o", "--output", help="What is written to stdout.")]
FromSmi = Annotated[
    str,
    typer.Option(
        "--from-smi", metavar="FILE", help="Read a pasted nvidia-smi topo -m (- for stdin)."
    ),
]
Diff = Annotated[
    str, typer.Option("--diff", metavar="PATH", help="What changed since this other snapshot.")
]
Claims = Annotated[
    bool, typer.Option("--claims", help="Who keeps each DRA claim and its devices, what leaked.")
]
Details = Annotated[
    bool, typer.Option("-v", "--nodes", help="Unfold: every alert and every node's matrix.")
]
Namespace = Annotated[
    str,
    typer.Option("-n", "--namespace", metavar="NAME", help="Namespace of pod/NAME, of --claims."),
]
Watch = Annotated[bool, typer.Option("--watch", help="Show it anew every --interval seconds.")]
Interval = Annotated[int, typer.Option("--interval", metavar="SECONDS", min=1, max=3600)]
Now = Annotated[str, typer.Option("--now", metavar="TIME", help="As of this RFC 3339 time.")]
Context = Annotated[str, typer.Option("--context", metavar="NAME", help="Of the kubeconfig.")]
Kubeconfig = Annotated[str, typer.Option("--kubeconfig", metavar="FILE", help="The kubeconfig.")]


def topo(
    targets: Targets = None,
    snapshot: Snapshot = "",
    policy: PolicyFile = "",
    form: Form = Output.table,
    from_smi: FromSmi = "",
    diff: Diff = "",
    claims: Claims = False,
    details: Details = False,
    namespace: Namespace = "",
    watch: Watch = False,
    interval: Interval = 5,
    now: Now = "",
    context: Context = "",
    kubeconfig: Kubeconfig = "",
) -> int:
    """Show the GPUs of the cluster: islands, holders, clean placements left, alerts first.

    Sources, best first and always named: the agent's map, ResourceSlices, labels of GPU Feature
    Discovery with known machine shapes, counts. What a source cannot know is said to be unknown.
    """
    from kubectl_gpuadmit.cli.answer import load_policy, policy_file

    if from_smi:
        return _pasted(from_smi, form)
    rules = load_policy(policy_file(policy) if policy else None)
    names = targets or []
    pods = [name.split("/", 1)[1] for name in names if name.startswith(("pod/", "pods/", "po/"))]
    where = {"now": now, "context": context, "kubeconfig": kubeconfig}
    if claims:
        return _claims(names, namespace, snapshot, form, where)
    if pods:
        return _lineage(pods, namespace, snapshot, rules, form, where)
    while True:
        found = _overview(snapshot, rules, names, where)
        _known(names, found)
        if diff:
            _difference(_overview(diff, rules, names, where), found, form)
        else:
            _show(found, form, details=details, single=bool(names))
        if not watch:
            return EXIT_CLEAR
        time.sleep(interval)


def _pasted(file: str, form: Output) -> int:
    from kubectl_gpuadmit.adapters.files import read_inputs
    from kubectl_gpuadmit.overview.pasted import of_maps
    from kubectl_gpuadmit.topology.smi import read_smi

    ((raw, name),) = read_inputs([file])
    reading = read_smi(raw.decode("utf-8", "replace"), file=name)
    found = of_maps(
        reading.maps,
        source=f"nvidia-smi topo -m in {name}",
        now=dt.datetime.now(dt.UTC).replace(microsecond=0),
        missing=(*reading.missing, *reading.problems),
    )
    _show(found, form, details=True, single=True)
    return EXIT_CLEAR


def _overview(path: str, policy: Policy, names: list[str], where: dict[str, str]) -> Overview:
    from kubectl_gpuadmit.cli.sources import cluster_of
    from kubectl_gpuadmit.overview.build import overview

    taken = cluster_of(path, **where)
    return overview(
        taken.cluster,
        policy,
        now=taken.as_of,
        source=f"snapshot {taken.name}" if path else f"live cluster {taken.name}",
        kind="snapshot" if path else "live",
        only=frozenset(names),
        assumed=taken.assumed,
    )


def _claims(
    names: list[str], namespace: str, path: str, form: Output, where: dict[str, str]
) -> int:
    """``names``: claims; empty for all of the namespace, or of all namespaces."""
    from kubectl_gpuadmit.cli.sources import cluster_of
    from kubectl_gpuadmit.devices.ownership import of_cluster
    from kubectl_gpuadmit.render import ownership

    taken = cluster_of(path, **where)
    if not taken.cluster.knows("ResourceClaim"):
        raise Unanswerable(
            "not-in-source",
            "ResourceClaim objects are not in the source",
            hint="kubectl get resourceclaims,resourceslices -A -o json",
        )
    owned = tuple(
        one
        for one in of_cluster(taken.cluster)
        if namespace in ("", one.claim.split("/")[0])
        and (not names or one.claim.split("/")[1] in names or one.claim in names)
    )
    if form is Output.json:
        streams.write_data(ownership.to_json(owned))
    else:
        width, ascii = streams.width(), streams.in_ascii()
        streams.write_text(ownership.text(owned, width=width, ascii=ascii))
    return EXIT_CLEAR


def _known(names: list[str], found: Overview) -> None:
    there = {node.name for node in found.nodes} | {node.pool for node in found.nodes}
    for name in names:
        if name not in there:
            raise NothingChecked(
                "no-such-node",
                f"no node and no pool with GPUs is called {name}",
                hint="kubectl gpu-admit topo lists them; pools are those of --policy",
            )


def _show(found: Overview, form: Output, *, details: bool, single: bool) -> None:
    from kubectl_gpuadmit.render.encoding import as_json
    from kubectl_gpuadmit.render.topology import data, drawing, html, text
    from kubectl_gpuadmit.render.topology.colours import inks

    match form:
        case Output.json:
            streams.write_data(as_json(data.to_json(found)))
        case Output.html:
            streams.write_data(html.page(found))
        case Output.svg:
            drawn = [node for node in found.nodes if node.gpus]
            if len(drawn) != 1:
                raise BadInput(
                    "one-node",
                    f"an SVG shows one node, and {len(drawn)} are meant",
                    hint="kubectl gpu-admit topo NODE -o svg, or -o html for all",
                )
            streams.write_data(drawing.document(drawn[0], inks(drawn)) + "\n")
        case Output.table:
            width, ascii = streams.width(), streams.in_ascii()
            only_nodes = single and len(found.nodes) <= 4
            shown = (
                text.node(found, width=width, ascii=ascii)
                if only_nodes
                else text.summary(found, width=width, ascii=ascii, details=details)
            )
            streams.write_text(shown)


def _difference(before: Overview, after: Overview, form: Output) -> None:
    from kubectl_gpuadmit.overview.difference import difference
    from kubectl_gpuadmit.render.encoding import as_json
    from kubectl_gpuadmit.render.topology import difference as rendered

    found = difference(before, after)
    if form is Output.json:
        streams.write_data(as_json(rendered.to_json(found)))
    else:
        streams.write_text(rendered.text(found, width=streams.width(), ascii=streams.in_ascii()))


def _lineage(
    pods: list[str],
    namespace: str,
    path: str,
    policy: Policy,
    form: Output,
    where: dict[str, str],
) -> int:
    from kubectl_gpuadmit.cli.sources import cluster_of
    from kubectl_gpuadmit.overview.lineage import lineage
    from kubectl_gpuadmit.render.encoding import as_json
    from kubectl_gpuadmit.render.topology import lineage as rendered
    from kubectl_gpuadmit.render.topology.data import SCHEMA_VERSION

    taken = cluster_of(path, **where)
    found = []
    for name in pods:
        chosen = [
            pod
            for pod in taken.cluster.pods()
            if pod.name == name and namespace in ("", pod.namespace)
        ]
        if len(chosen) != 1:
            several = ", ".join(pod.namespace for pod in chosen)
            raise NothingChecked(
                "no-such-pod",
                f"no pod is called {name}" if not chosen else f"pod {name} is in {several}",
                hint="name its namespace: -n NAME",
            )
        found.append(lineage(taken.cluster, chosen[0], policy, taken.as_of))
    if form is Output.json:
        lines: list[Any] = [rendered.to_json(one) for one in found]
        streams.write_data(as_json({"schemaVersion": SCHEMA_VERSION, "lineage": lines}))
    else:
        for one in found:
            streams.write_text(rendered.text(one, width=streams.width(), ascii=streams.in_ascii()))
    return EXIT_CLEAR
