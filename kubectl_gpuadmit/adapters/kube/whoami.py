"""Asks the API server who is asking, as ``kubectl auth whoami`` does; stores nothing.

Source: k8s.io/api v0.37.2 authentication/v1 SelfSubjectReview (1.28; every authenticated user may,
by the role system:basic-user). Under ``--as`` it names the user who is impersonated.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from kubectl_gpuadmit.adapters.kube.connection import Connection
from kubectl_gpuadmit.adapters.kube.faults import HttpStatus
from kubectl_gpuadmit.kube.requester import Requester

PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_BODY = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'


class _User(Struct):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class _Status(Struct):
    userInfo: _User = field(default_factory=_User)


class _Review(Struct):
    status: _Status = field(default_factory=_Status)


def whoami(connection: Connection) -> Requester | None:
    """The user of this connection, None where the API server does not say.

    Raises Unanswerable where nobody answers at all.
    """
    try:
        reply = connection.create(PATH, _BODY)
        found = msgspec.json.decode(reply.body, type=_Review).status.userInfo
    except (HttpStatus, msgspec.MsgspecError):
        return None
    if not found.username:
        return None
    return Requester(found.username, found.groups or (), found.uid, found.extra or {})
