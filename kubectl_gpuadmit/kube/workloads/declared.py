"""Kinds that the policy declares by the path of their pod template, and a few that we declare
so."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.kube.workloads.paths import bind, matches, parse_path
from kubectl_gpuadmit.kube.workloads.reading import Reading

PathOrNumber = str | int


class DeclaredKind(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a custom kind keeps its pod template and how many pods it makes of it.

    Paths are ``.spec.template``, ``$.spec['a.b'].template`` or ``/spec/template``; ``[*]`` stands
    for every item of a list or value of a map. The same ``[*]`` in ``replicas``, ``multiply`` and
    ``role`` means the same item. Pods of one template = replicas x each of ``multiply``.

    >>> DeclaredKind(kind="HyperPodPyTorchJob", group="sagemaker.amazonaws.com",
    ...              podTemplate=".spec.replicaSpecs[*].template",
    ...              replicas=".spec.replicaSpecs[*].replicas")
    """

    kind: str
    podTemplate: str
    """Path to the pod template, or to a bare pod spec (an object with ``containers``)."""
    group: str = ""
    """API group; every version of it is meant. '' with ``apiVersion`` unset: any group."""
    apiVersion: str = ""
    """``group/version``, where only that version is meant."""
    replicas: PathOrNumber = 1
    """Path to the number, or the number. Where the path leads nowhere: 1."""
    multiply: tuple[PathOrNumber, ...] = ()
    role: str = ""
    """Path to the role's name; by default what ``[*]`` of a map stood for."""
    gang: bool = False

    def problem(self) -> str:
        """'' or the first thing that is wrong with the declaration, in words."""
        for path in (self.podTemplate, self.replicas, *self.multiply, self.role or 1):
            if isinstance(path, int):
                if path < 0:
                    return f"{path} is negative"
                continue
            try:
                parse_path(path)
            except ValueError as error:
                return str(error)
        return "" if self.kind else "kind is empty"

    def means(self, api_version: str, kind: str) -> bool:
        if kind != self.kind:
            return False
        if self.apiVersion:
            return api_version == self.apiVersion
        return not self.group or api_version.rpartition("/")[0] == self.group


def read_declared(reading: Reading, declared: DeclaredKind) -> None:
    """Makes a group of every template that the declaration's path finds; none at all is an
    error."""
    reading.gang = declared.gang
    path = parse_path(declared.podTemplate)
    places = list(matches(reading.data, path))
    if not places:
        reading.fail(
            "",
            f"no pod template at {declared.podTemplate}, where the policy says {declared.kind} "
            "keeps it",
            ref="missing-field",
            hint="correct podTemplate of the declared kind in the policy",
        )
    for number, (pointer, bound) in enumerate(places):
        count = _number(reading, declared.replicas, bound)
        for factor in declared.multiply:
            count *= _number(reading, factor, bound)
        value = reading.mapping(pointer)
        role = reading.text(bind(parse_path(declared.role), bound)) if declared.role else ""
        if not role and bound and not bound[-1].isdecimal():
            role = bound[-1]
        # Names that no two groups share: what is placed is kept by name.
        name = f"{reading.base}-{role.lower() or number}-" if len(places) > 1 else ""
        if "containers" in value:
            template: dict[str, Any] = {"spec": value}
            paths = (("/spec", pointer),)
            reading.group(role, count, "-", template=template, paths=paths, generate=name)
        else:
            reading.group(role, count, pointer, generate=name)


def _number(reading: Reading, where: PathOrNumber, bound: tuple[str, ...]) -> int:
    if isinstance(where, int):
        return where
    return reading.count(bind(parse_path(where), bound), 1)


BUILT_IN: tuple[tuple[str, DeclaredKind], ...] = (
    (
        "rollouts",
        DeclaredKind("Rollout", ".spec.template", group="argoproj.io", replicas=".spec.replicas"),
    ),
    (
        "deploymentconfigs",
        DeclaredKind(
            "DeploymentConfig",
            ".spec.template",
            group="apps.openshift.io",
            replicas=".spec.replicas",
        ),
    ),
    (
        "clonesets",
        DeclaredKind(
            "CloneSet", ".spec.template", group="apps.kruise.io", replicas=".spec.replicas"
        ),
    ),
    ("notebooks", DeclaredKind("Notebook", ".spec.template", group="kubeflow.org")),
    (
        "runaijobs",
        DeclaredKind("RunaiJob", ".spec.template", group="run.ai", replicas=".spec.parallelism"),
    ),
    (
        "podcliquesets",
        DeclaredKind(
            "PodCliqueSet",
            ".spec.template.cliques[*].spec.podSpec",
            group="grove.io",
            replicas=".spec.template.cliques[*].spec.replicas",
            multiply=(".spec.replicas",),
            role=".spec.template.cliques[*].name",
            gang=True,
        ),
    ),
)
"""Plural and declaration of kinds whose pods are plainly described by their fields."""
