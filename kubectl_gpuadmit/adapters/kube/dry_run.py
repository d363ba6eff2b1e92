"""Asks the API server what it would say to a pod, without storing it; judges no answer."""

from __future__ import annotations

from typing import Any

import msgspec

from kubectl_gpuadmit.adapters.kube.connection import Connection
from kubectl_gpuadmit.adapters.kube.faults import HttpStatus
from kubectl_gpuadmit.adapters.kube.resources import BUILT_IN
from kubectl_gpuadmit.agreement import ServerAnswer


def ask(connection: Connection, pod: dict[str, Any], *, role: str = "") -> ServerAnswer:
    """The answer to ``create pod`` with ``dryRun=All``. Raises Unanswerable where there is none.

    The whole chain is run, quota included; webhooks see it if they declare that they have no side
    effects. It is asked as the user of this call, not as the controller.
    """
    namespace = str(pod["metadata"]["namespace"])
    resource = BUILT_IN["Pod"]
    try:
        reply = connection.dry_run(resource.path("v1", namespace), msgspec.json.encode(pod))
    except HttpStatus as problem:
        if problem.by_rbac:
            return ServerAnswer(
                role,
                allowed=False,
                message=f'user "{problem.user}" may not create pods in {namespace}',
                not_asked=f"a Role in {namespace} would need: {resource.rule('create')}",
            )
        if problem.status in (401, 429) or (problem.status >= 500 and not _of_admission(problem)):
            raise connection.fail(problem) from None
        return ServerAnswer(role, allowed=False, message=problem.message)
    return ServerAnswer(role, allowed=True, warnings=reply.warnings)


def _of_admission(problem: HttpStatus) -> bool:
    """A webhook that does not answer is a 500 of the API server, and an answer for all that."""
    return "webhook" in problem.message or "quota" in problem.message
