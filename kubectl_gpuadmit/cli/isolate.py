"""``kubectl gpu-admit isolate``: gives a namespace devices of its own, prints or applies them."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated

import typer

from kubectl_gpuadmit.cli import output as streams
from kubectl_gpuadmit.cli.problems import say, tell
from kubectl_gpuadmit.errors import EXIT_CLEAR, EXIT_STOPPED, BadInput, GpuAdmitError

if TYPE_CHECKING:
    from kubectl_gpuadmit.adapters.kube.applying import Applier, Done
    from kubectl_gpuadmit.devices.isolation import Plan, Wish


class Output(enum.StrEnum):
    """What is written to stdout."""

    table = "table"
    yaml = "yaml"
    json = "json"


Sharing = enum.StrEnum(  # type: ignore[misc]
    "Sharing", {name: name for name in ("exclusive", "mig", "time-slicing", "mps", "hybrid")}
)

Namespace = Annotated[
    str, typer.Argument(metavar="[NAMESPACE]", help="The tenant's namespace.", show_default=False)
]
Mode = Annotated[
    Sharing | None,
    typer.Option("--sharing", help="How its pods come by devices.", show_default=False),
]
Profile = Annotated[
    str, typer.Option("--mig-profile", metavar="NAME", help="Of mig and hybrid: 1g.10gb.")
]
Most = Annotated[
    int, typer.Option("--max-devices", metavar="N", help="Devices at a time, by quota.")
]
Class = Annotated[
    str,
    typer.Option(
        "--device-class", metavar="NAME", help="Build on this class [default: one of its own]."
    ),
]
Quota = Annotated[
    str,
    typer.Option(
        "--quota", metavar="NAME", help="Put the keys into this ResourceQuota [default: a new one]."
    ),
]
File = Annotated[
    str,
    typer.Option(
        "-f",
        "--filename",
        metavar="FILE",
        help="What the annotation kubeplus.io/gpu-isolation of this instance asks for.",
    ),
]
Apply = Annotated[bool, typer.Option("--apply", help="Make the objects in the cluster.")]
Remove = Annotated[bool, typer.Option("--remove", help="Take away what --apply made.")]
Force = Annotated[
    bool, typer.Option("--force", help="Share without isolation, where tenants trust each other.")
]
Form = Annotated[Output, typer.Option("-o", "--output", help="What is written to stdout.")]
Context = Annotated[
    str, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig.")
]
Kubeconfig = Annotated[str, typer.Option("--kubeconfig", metavar="FILE", help="The kubeconfig.")]
As = Annotated[str, typer.Option("--as", metavar="USER", help="Act as this user.")]


def isolate(
    namespace: Namespace = "",
    sharing: Mode = None,
    mig_profile: Profile = "",
    max_devices: Most = 1,
    device_class: Class = "",
    quota: Quota = "",
    file: File = "",
    apply: Apply = False,
    remove: Remove = False,
    force: Force = False,
    form: Form = Output.table,
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    as_user: As = "",
) -> int:
    """Give a namespace GPUs of its own (DRA).

    Composes a DeviceClass, a claim template, ResourceQuota keys and the namespace's label and
    annotation, by which its pods get the claim. Without --apply nothing is changed.

    Exit code: 0 done, 2 a wish that contradicts itself or isolates nothing, 3 not done, 4 part of
    it done.
    """
    from kubectl_gpuadmit.devices import isolation

    if remove:
        if not namespace or sharing is not None or apply or file:
            raise BadInput(
                "usage", "--remove takes a namespace alone", hint="isolate NAMESPACE --remove"
            )
        return _remove(namespace, quota, _applier(context, kubeconfig, as_user))
    wish: Wish | None
    if file:
        wish = _of_instance(file, namespace, quota, force=force)
        if wish is None:
            say(f"{file}: no annotation {isolation.WANTED}: it gets no device, nothing to make")
            return EXIT_CLEAR
    elif not namespace or sharing is None:
        raise BadInput(
            "usage",
            "name the namespace and --sharing, or an instance with -f",
            hint="kubectl gpu-admit isolate team-a --sharing mig --mig-profile 1g.10gb",
        )
    else:
        wish = isolation.Wish(
            namespace=namespace,
            sharing=str(sharing),  # type: ignore[arg-type]
            mig_profile=mig_profile,
            max_devices=max_devices,
            device_class=device_class,
            quota=quota,
            forced=force,
        )
    if not apply:
        return _show(wish, isolation.compose(wish), form)
    return _apply(wish, form, _applier(context, kubeconfig, as_user))


def _of_instance(file: str, namespace: str, quota: str, *, force: bool) -> Wish | None:
    """The wish of the one annotated object among the file's documents, None without one."""
    from msgspec import structs

    from kubectl_gpuadmit.adapters.files import read_inputs
    from kubectl_gpuadmit.devices import isolation
    from kubectl_gpuadmit.errors import BadManifest
    from kubectl_gpuadmit.kube.manifests import read_documents

    found: list[Wish] = []
    for raw, name in read_inputs([file]):
        for document in read_documents(raw, name):
            if isinstance(document, BadManifest):
                raise document
            try:
                wish = isolation.asked_by(
                    document.data, namespace=namespace or "default", forced=force
                )
            except BadInput as problem:
                problem.file, problem.line = document.file, document.line
                raise
            found += [wish] if wish is not None else []
    if len(found) > 1:
        raise BadInput(
            "usage", "more than one instance asks for devices", file=file, hint="one at a time"
        )
    return structs.replace(found[0], quota=quota) if found else None


def _applier(context: str, kubeconfig: str, as_user: str) -> Applier:
    from kubectl_gpuadmit.adapters.kube.applying import Applier
    from kubectl_gpuadmit.adapters.kube.connection import Access
    from kubectl_gpuadmit.adapters.kube.kubeconfig import connect
    from kubectl_gpuadmit.devices.isolation import MANAGER

    access = Access(kubeconfig=kubeconfig, context=context, as_user=as_user)
    return Applier(connect(access), manager=MANAGER)


def _apply(wish: Wish, form: Output, applier: Applier) -> int:
    from kubectl_gpuadmit.adapters.kube.isolating import carry_out

    plan, carried = carry_out(wish, applier)
    if carried.problem is not None:
        return _stopped(carried.problem, carried.done)
    effects: dict[tuple[str, str], str] = {(one.kind, one.name): one.effect for one in carried.done}
    return _show(wish, plan, form, effects=effects, removed=carried.removed, applied=True)


def _remove(namespace: str, quota: str, applier: Applier) -> int:
    from kubectl_gpuadmit.adapters.kube.isolating import take_away
    from kubectl_gpuadmit.render import isolation as rendered

    carried = take_away(namespace, quota, applier)
    if carried.problem is not None:
        return _stopped(carried.problem, carried.done)
    gone = [(one.kind, one.name, one.effect) for one in carried.done]
    streams.write_text(
        rendered.removal(namespace, gone, width=streams.width(), ascii=streams.in_ascii())
    )
    return EXIT_CLEAR


def _stopped(problem: GpuAdmitError, done: list[Done]) -> int:
    code = tell(problem)
    if not done:
        return code
    say("done before: " + ", ".join(f"{one.kind}/{one.name} {one.effect}" for one in done))
    return EXIT_STOPPED


def _show(
    wish: Wish,
    plan: Plan,
    form: Output,
    *,
    effects: dict[tuple[str, str], str] | None = None,
    removed: list[tuple[str, str]] | None = None,
    applied: bool = False,
) -> int:
    from kubectl_gpuadmit.render import isolation as rendered
    from kubectl_gpuadmit.render.wording import plural

    match form:
        case Output.yaml:
            streams.write_data(rendered.to_yaml(plan))
        case Output.json:
            streams.write_data(rendered.to_json(plan))
        case Output.table:
            profile = f" {wish.mig_profile}" if wish.mig_profile else ""
            title = (
                f"{wish.namespace} · {wish.sharing}{profile}"
                f" · at most {plural(wish.max_devices, 'device')}"
            )
            streams.write_text(
                rendered.text(
                    plan,
                    title,
                    effects or {},
                    removed=removed or (),
                    applied=applied,
                    width=streams.width(),
                    ascii=streams.in_ascii(),
                )
            )
    if form is not Output.table:
        for note in plan.notes:
            say(f"warning: {note}")
    return EXIT_CLEAR
