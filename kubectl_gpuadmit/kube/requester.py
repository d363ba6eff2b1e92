"""Who sends a request to the API server, as far as it is known; asks nobody.

Source: k8s.io/apiserver v0.37.2 pkg/endpoints/filters/impersonation/impersonation.go,
pkg/authentication/serviceaccount/util.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
ANONYMOUS = "system:anonymous"

_ACCOUNT = re.compile(r"system:serviceaccount:([^:]+):([^:]+)")


class Requester(Struct, frozen=True):
    """``request.userInfo`` of an admission request. None: not known."""

    username: str
    groups: tuple[str, ...] | None = None
    uid: str | None = None
    extra: dict[str, tuple[str, ...]] | None = None


def impersonated(user: str, groups: Iterable[str] = ()) -> Requester:
    """Whom ``--as`` and ``--as-group`` name, with the groups that the API server adds."""
    listed = list(dict.fromkeys(groups))
    account = _ACCOUNT.fullmatch(user)
    if account and not listed:
        listed = _groups(account[1])
    if user == ANONYMOUS:
        listed += [] if UNAUTHENTICATED in listed else [UNAUTHENTICATED]
    elif AUTHENTICATED not in listed and UNAUTHENTICATED not in listed:
        listed.append(AUTHENTICATED)
    return Requester(user, tuple(listed), "", {})


def service_account(namespace: str, name: str) -> Requester:
    """A service account that shows its token: its uid and what its token adds are drawn."""
    groups = (*_groups(namespace), AUTHENTICATED)
    return Requester(f"system:serviceaccount:{namespace}:{name}", groups)


def _groups(namespace: str) -> list[str]:
    return ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
