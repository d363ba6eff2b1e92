"""Which models the workloads of some documents serve, before anything is judged."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.decode import decode_object
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.kube.workloads import expand
from kubectl_gpuadmit.policy import Policy, serving
from kubectl_gpuadmit.sizing import fitting
from kubectl_gpuadmit.sizing.registry import look_up
from kubectl_gpuadmit.verdict import Skipped


def unknown_models(
    documents: Iterable[Document | BadManifest],
    cluster: Cluster,
    policy: Policy,
    *,
    namespace: str = "default",
) -> tuple[str, ...]:
    """Names that pods of these documents give their models and that nobody here knows: what a
    registry is to be asked. In order, each once."""
    listed = [d for d in documents if isinstance(d, Document)]
    known = cluster.fork()
    for document in listed:
        if document.data.get("kind") == "ConfigMap":
            try:
                known.apply(decode_object(document))
            except BadManifest:
                continue  # the engine reports it
    models = serving.models_of(policy)
    found: dict[str, None] = {}
    for document in listed:
        try:
            made = expand(
                document, declared=policy.declared_kinds, namespace=namespace, cluster=known
            )
        except BadManifest:
            continue
        if isinstance(made, Skipped):
            continue
        for group in made.groups:
            if not serving.may_serve(group.pod, policy):
                continue
            for one in fitting.of_group(made, group, known, models).found:
                if one.model and isinstance(look_up(models, one.model), str):
                    found.setdefault(one.model)
    return tuple(found)
