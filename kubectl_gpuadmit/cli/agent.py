"""``kubectl gpu-admit agent``: looks at this node's GPUs and keeps its GpuTopology object true."""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kubectl_gpuadmit.cli import output as streams
from kubectl_gpuadmit.cli.problems import say
from kubectl_gpuadmit.errors import EXIT_CLEAR, BadInput, GpuAdmitError, Unanswerable

if TYPE_CHECKING:
    from kubectl_gpuadmit.agent.loop import Settings, Store
    from kubectl_gpuadmit.agent.sources import Sources


class Output(enum.StrEnum):
    """What ``-o`` takes."""

    yaml = "yaml"
    json = "json"


class Place(enum.StrEnum):
    """What ``--store`` takes."""

    crd = "crd"
    configmap = "configmap"


Once = Annotated[bool, typer.Option("--once", help="Print what would be written, and stop.")]
Manifests = Annotated[
    bool, typer.Option("--manifests", help="Print what the agent needs in a cluster, and stop.")
]
Written = Annotated[Output, typer.Option("-o", "--output", help="Format of what is printed.")]
Node = Annotated[
    str, typer.Option("--node", metavar="NAME", help="This node's name [default: $NODE_NAME].")
]
Stored = Annotated[
    Place, typer.Option("--store", help="Where: GpuTopology objects, or ConfigMaps.")
]
Namespace = Annotated[
    str,
    typer.Option("-n", "--namespace", metavar="NAME", help="Of the ConfigMaps [default: its own]."),
]
Image = Annotated[
    str, typer.Option("--image", metavar="IMAGE", help="Of the DaemonSet in --manifests.")
]
Interval = Annotated[
    float, typer.Option("--interval", metavar="SECONDS", help="Between two looks.", min=1)
]
Heartbeat = Annotated[
    int,
    typer.Option("--heartbeat", metavar="SECONDS", help="Longest time without a write.", min=10),
]
Residue = Annotated[
    int,
    typer.Option(
        "--residue-mib", metavar="MIB", help="Least memory without an owner that counts.", min=1
    ),
]
Listen = Annotated[
    str,
    typer.Option("--listen", metavar="HOST:PORT", help="Metrics and probes; '' for none."),
]
Socket = Annotated[
    str, typer.Option("--socket", metavar="PATH", help="The kubelet's PodResources socket.")
]
Config = Annotated[
    str, typer.Option("--kubelet-config", metavar="PATH", help="The kubelet's configuration.")
]
Root = Annotated[
    str, typer.Option("--root", metavar="PATH", help="Where the node's sys and proc are.")
]
Context = Annotated[
    str, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig.")
]
Kubeconfig = Annotated[str, typer.Option("--kubeconfig", metavar="FILE", help="The kubeconfig.")]


def agent(
    once: Once = False,
    manifests: Manifests = False,
    form: Written = Output.yaml,
    node: Node = "",
    store: Stored = Place.crd,
    namespace: Namespace = "",
    image: Image = "",
    interval: Interval = 30.0,
    heartbeat: Heartbeat = 300,
    residue_mib: Residue = 512,
    listen: Listen = "127.0.0.1:9435",
    socket: Socket = "/var/lib/kubelet/pod-resources/kubelet.sock",
    kubelet_config: Config = "/var/lib/kubelet/config.yaml",
    root: Root = "/",
    context: Context = "",
    kubeconfig: Kubeconfig = "",
) -> int:
    """Look at this node's GPUs, links and holders, and keep its map in the cluster true.

    Runs until it is told to stop (SIGTERM). It writes when something changed, and a heartbeat; it
    outlives a driver, a kubelet and an API server that are away.
    """
    from kubectl_gpuadmit import __version__
    from kubectl_gpuadmit.agent.loop import Settings

    if manifests:
        return _print_manifests(store, namespace, image, form)
    name = node or os.environ.get("NODE_NAME", "")
    if not name and not once:
        raise BadInput("usage", "the node has no name", hint="--node NAME, or NODE_NAME")
    settings = Settings(
        node=name or os.uname().nodename.lower(),
        interval=interval,
        heartbeat=heartbeat,
        residue_mib=residue_mib,
        version=__version__,
    )
    sources = _sources(socket, kubelet_config, root)
    if once:
        return _print_once(sources, settings, form)
    place = _store(store, namespace, context=context, kubeconfig=kubeconfig)
    return _run(sources, place, settings, listen)


def _sources(socket: str, kubelet_config: str, root: str) -> Sources:
    from kubectl_gpuadmit.adapters import kubelet_config as configuration
    from kubectl_gpuadmit.adapters import nvidia_smi
    from kubectl_gpuadmit.adapters.kubelet import PodResources
    from kubectl_gpuadmit.adapters.nvml import Nvml
    from kubectl_gpuadmit.adapters.sysfs import Sysfs
    from kubectl_gpuadmit.agent.sources import Sources

    return Sources(
        Nvml(),
        Sysfs(root),
        PodResources(socket),
        matrix=nvidia_smi.matrix,
        config=lambda: configuration.read(kubelet_config),
    )


def _print_once(sources: Sources, settings: Settings, form: Output) -> int:
    """One look, printed as the object that would be written. Nothing is asked of a cluster."""
    import datetime as dt

    from kubectl_gpuadmit.kube.gpu_topology_object import document
    from kubectl_gpuadmit.kube.times import stamp
    from kubectl_gpuadmit.topology.observe import observe
    from kubectl_gpuadmit.topology.readings import Silent

    look = sources.look()
    sources.close()
    spec, _ = observe(
        look,
        now=stamp(dt.datetime.now(dt.UTC)),
        heartbeat=settings.heartbeat,
        residue_mib=settings.residue_mib,
        version=settings.version,
    )
    if spec is None:
        why = f" ({look.driver.why})" if isinstance(look.driver, Silent) else ""
        raise Unanswerable(
            "no-gpu", f"there is no NVIDIA GPU on this machine{why}", hint="run it on a GPU node"
        )
    for problem in spec.problems:
        say(f"warning: {problem}")
    _print([document(settings.node, spec)], form)
    return EXIT_CLEAR


def _print_manifests(store: Place, namespace: str, image: str, form: Output) -> int:
    from kubectl_gpuadmit.agent import manifests

    chosen = {"namespace": namespace, "image": image}
    made = manifests.objects(store=store.value, **{k: v for k, v in chosen.items() if v})
    if form is Output.json:
        made = [{"apiVersion": "v1", "kind": "List", "items": made}]
    _print(made, form)
    return EXIT_CLEAR


def _print(objects: list[dict[str, Any]], form: Output) -> None:
    if form is Output.json:
        import msgspec

        (one,) = objects
        streams.write_data(msgspec.json.format(msgspec.json.encode(one), indent=2).decode() + "\n")
        return
    from kubectl_gpuadmit.agent.manifests import text

    streams.write_data(text(objects))


def _store(place: Place, namespace: str, *, context: str, kubeconfig: str) -> Store:
    """Connects when it is first used: an agent that starts before its credentials waits."""
    from kubectl_gpuadmit.adapters.kube.connection import Access
    from kubectl_gpuadmit.adapters.kube.kubeconfig import connect
    from kubectl_gpuadmit.adapters.kube.node_maps import ConfigMaps, CustomObjects, Later

    def made() -> CustomObjects | ConfigMaps:
        connection = connect(Access(kubeconfig=kubeconfig, context=context))
        if place is Place.crd:
            return CustomObjects(connection)
        return ConfigMaps(connection, namespace or connection.namespace)

    return Later(made)


def _run(sources: Sources, store: Store, settings: Settings, listen: str) -> int:
    import datetime as dt
    import signal
    import threading
    import time

    from kubectl_gpuadmit.agent.loop import Agent
    from kubectl_gpuadmit.agent.serving import Serving, address

    if listen:
        address(listen)
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    talk = _talk(lambda: dt.datetime.now(dt.UTC))
    worker = Agent(
        sources,
        store,
        settings,
        clock=lambda: dt.datetime.now(dt.UTC),
        steady=time.monotonic,
        say=talk,
    )
    serving = None
    if listen:
        try:
            serving = Serving(
                listen,
                worker.status,
                node=settings.node,
                heartbeat=settings.heartbeat,
                steady=time.monotonic,
            )
        except GpuAdmitError as problem:  # the map matters more than its metrics
            talk(f"{problem}; going on without metrics and probes")
    talk(f"agent {settings.version} for node {settings.node}: a look each {settings.interval:g} s")
    worker.run(ending.wait)
    if serving is not None:
        serving.close()
    talk("stopped: the object stays, and grows old")
    return EXIT_CLEAR


def _talk(clock: Callable[[], Any]) -> Callable[[str], None]:
    """Lines on stderr with the time; a stderr that cannot be written, on a full disk, is no reason
    to stop."""
    from kubectl_gpuadmit.kube.times import stamp

    def talk(text: str) -> None:
        try:
            say(f"{stamp(clock())} {text}")
            sys.stderr.flush()
        except (OSError, ValueError):
            return

    return talk
