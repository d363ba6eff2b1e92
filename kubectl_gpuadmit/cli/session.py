"""A live cluster as one call knows it: the connection, who asks, the policy, whose rules hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from kubectl_gpuadmit.cli.answer import load_policy, policy_file
from kubectl_gpuadmit.cli.problems import say
from kubectl_gpuadmit.cli.progress import Progress
from kubectl_gpuadmit.cli.question import SUPPORTED, Live, Question
from kubectl_gpuadmit.errors import BadManifest

if TYPE_CHECKING:
    from kubectl_gpuadmit.adapters.kube.connection import Connection
    from kubectl_gpuadmit.adapters.kube.resources import Catalogue
    from kubectl_gpuadmit.cluster import Cluster
    from kubectl_gpuadmit.kube.manifests import Document
    from kubectl_gpuadmit.kube.requester import Requester
    from kubectl_gpuadmit.kube.workloads import Workload
    from kubectl_gpuadmit.policy import Policy


class Session(Struct):
    """What stays the same from round to round."""

    question: Question
    live: Live
    connection: Connection
    catalogue: Catalogue
    policy: Policy
    policy_file: tuple[bytes, str] | None
    namespace: str
    version: str


def begin(question: Question, live: Live, progress: Progress) -> Session:
    from kubectl_gpuadmit.adapters.kube.connection import Access
    from kubectl_gpuadmit.adapters.kube.kubeconfig import connect
    from kubectl_gpuadmit.adapters.kube.reading import server_version
    from kubectl_gpuadmit.adapters.kube.resources import Catalogue
    from kubectl_gpuadmit.cli.models import with_load

    rules = policy_file(question.policy) if question.policy else None
    policy = with_load(load_policy(rules), question)
    access = Access(
        kubeconfig=live.kubeconfig,
        context=live.context,
        cluster=live.cluster,
        user=live.user,
        as_user=live.as_user,
        as_groups=live.as_groups,
        request_timeout=live.request_timeout,
    )
    progress.step("logging in")
    connection = connect(access)
    progress.step(f"asking {connection.host}")
    version = question.kubernetes or _known_version(server_version(connection))
    return Session(
        question=question,
        live=live,
        connection=connection,
        catalogue=Catalogue(connection),
        policy=policy,
        policy_file=rules,
        namespace=live.namespace or connection.namespace,
        version=version,
    )


def _known_version(text: str) -> str:
    """The API server's version, or the nearest whose rules are known, which is said."""
    found = re.fullmatch(r"1\.(\d+)", text)
    if found is None:
        return f"1.{SUPPORTED[-1]}"
    nearest = min(max(int(found[1]), SUPPORTED[0]), SUPPORTED[-1])
    if nearest != int(found[1]):
        say(f"warning: the rules of Kubernetes {text} are not known; those of 1.{nearest} are used")
    return f"1.{nearest}"


def requester_of(session: Session, cluster: Cluster) -> Requester | None:
    """Who asks, where an admission policy may want to know."""
    from kubectl_gpuadmit.adapters.kube.whoami import whoami
    from kubectl_gpuadmit.admission import native

    if not native.present(cluster):
        return None
    return whoami(session.connection) or session.question.requester


def workloads_of(
    documents: Sequence[Document], session: Session, cluster: Cluster | None = None
) -> list[Workload]:
    from kubectl_gpuadmit.kube.workloads import expand
    from kubectl_gpuadmit.verdict import Skipped

    found: list[Workload] = []
    for document in documents:
        try:
            made = expand(
                document,
                declared=session.policy.declared_kinds,
                namespace=session.namespace,
                cluster=cluster,
            )
        except BadManifest:
            continue  # the engine reports it
        if not isinstance(made, Skipped):
            found.append(made)
    return found
