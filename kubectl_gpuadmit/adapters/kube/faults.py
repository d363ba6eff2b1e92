"""Foreign exceptions and HTTP statuses -> our errors, in one table; asks and retries nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from msgspec import Struct

from kubectl_gpuadmit.errors import Unanswerable


class _Known(Struct, frozen=True):
    """One row: what our error says."""

    ref: str
    message: str
    hint: str


_TABLE: dict[str, _Known] = {
    # name of the exception's class or of one of its bases: (ref, message, hint); the first of the
    # class's own order counts. {host} and {why} are filled in.
    "NameResolutionError": _Known(
        ref="unreachable",
        message="the name of the API server {host} cannot be resolved",
        hint="check server: in the kubeconfig, your VPN and DNS",
    ),
    "ConnectTimeoutError": _Known(
        ref="unreachable",
        message="the API server {host} does not answer",
        hint="check your VPN and firewall; --request-timeout waits longer",
    ),
    "NewConnectionError": _Known(
        ref="unreachable",
        message="the API server {host} cannot be reached: {why}",
        hint="is the cluster up? kubectl cluster-info",
    ),
    "ProxyError": _Known(
        ref="unreachable",
        message="the proxy on the way to {host} does not let us through: {why}",
        hint="check HTTPS_PROXY, NO_PROXY and proxy-url: in the kubeconfig",
    ),
    "ReadTimeoutError": _Known(
        ref="timed-out",
        message="the API server {host} took too long to answer",
        hint="--request-timeout 5m waits longer",
    ),
    "SSLError": _Known(
        ref="tls-failed",
        message="no trusted connection to {host}: {why}",
        hint="check certificate-authority and server: in the kubeconfig",
    ),
    "ProtocolError": _Known(
        ref="connection-broken",
        message="the connection to {host} broke off: {why}",
        hint="try again; a proxy or load balancer may be closing it",
    ),
    "IncompleteRead": _Known(
        ref="connection-broken",
        message="the connection to {host} broke off in the middle of an answer",
        hint="try again; a proxy or load balancer may be closing it",
    ),
    "DecodeError": _Known(
        ref="garbled-reply",
        message="the answer of {host} cannot be unpacked",
        hint="does a proxy change answers on the way?",
    ),
    "LocationParseError": _Known(
        ref="bad-kubeconfig",
        message="server: {host} is no address",
        hint="write https://HOST:PORT",
    ),
    "LocationValueError": _Known(
        ref="bad-kubeconfig",
        message="server: {host} is no address",
        hint="write https://HOST:PORT",
    ),
    "HTTPError": _Known(
        ref="unreachable",
        message="talking to {host} failed: {why}",
        hint="kubectl cluster-info",
    ),
}

_REPLIES: dict[int, _Known] = {
    # HTTP status: (ref, message, hint); {what} is what was asked for.
    401: _Known(
        ref="unauthorized",
        message="the API server does not accept these credentials",
        hint="log in again; kubectl auth whoami says who you are",
    ),
    403: _Known(
        ref="forbidden",
        message="{what}: {said}",
        hint="ask for the right, or name another --context or --as",
    ),
    404: _Known(
        ref="not-served",
        message="the API server does not know {what}",
        hint="is this the right cluster?",
    ),
    410: _Known(
        ref="list-expired",
        message="the list of {what} changed faster than it could be read",
        hint="try again, or narrow it with -n",
    ),
    429: _Known(
        ref="throttled",
        message="the API server is too busy: it refused {what} again and again",
        hint="try again later",
    ),
    500: _Known(
        ref="server-error",
        message="the API server failed at {what}: {said}",
        hint="try again; ask who runs it",
    ),
}

BUSY = (429, 500, 502, 503, 504)
"""Statuses that may pass."""


class HttpStatus(Exception):
    """The API server answered with another status than 2xx."""

    def __init__(
        self, status: int, body: bytes, headers: Mapping[str, str], *, what: str = ""
    ) -> None:
        reply = _status_of(body)
        super().__init__(f"{status} {reply.message}")
        self.status = status
        self.what = what
        self.message = reply.message
        self.reason = reply.reason
        self.retry_after = _seconds(headers.get("Retry-After", ""))

    @property
    def user(self) -> str:
        """Whom the API server takes us for, as far as its refusal says so."""
        found = re.search(r'User "([^"]*)" cannot', self.message)
        return found[1] if found else ""

    @property
    def by_rbac(self) -> bool:
        """Refused by the authorizer, not by an admission check."""
        return (
            self.status == 403 and re.search(r'User "[^"]*" cannot \w+ ', self.message) is not None
        )


class _Status(Struct):
    message: str = ""
    reason: str = ""


def _status_of(body: bytes) -> _Status:
    try:
        data = json.loads(body)
    except ValueError:
        text = " ".join(body[:200].decode("utf-8", "replace").split())
        return _Status(message=text or "no reason given")
    if not isinstance(data, dict):
        return _Status(message="no reason given")
    return _Status(str(data.get("message") or "no reason given"), str(data.get("reason") or ""))


def _seconds(text: str) -> float | None:
    """``Retry-After`` in seconds; its form with a date is not used by API servers."""
    try:
        return max(float(text), 0.0)
    except ValueError:
        return None


def error_of(problem: Exception, *, host: str) -> Unanswerable | None:
    """Our error for an exception of urllib3 or an HttpStatus, None for what no table has."""
    if isinstance(problem, HttpStatus):
        status = problem.status
        known = status if status in _REPLIES else 500
        row = _REPLIES[known]
        message = row.message.format(what=problem.what or "this", said=problem.message)
        return Unanswerable(row.ref, message, hint=row.hint)
    for base in type(problem).__mro__:
        if base.__name__ in _TABLE:
            row = _TABLE[base.__name__]
            why, hint = _why(problem), row.hint
            if row.ref == "tls-failed" and "expired" in why:
                hint = "the API server's certificate has run out: ask who runs the cluster"
            return Unanswerable(row.ref, row.message.format(host=host, why=why), hint=hint)
    return None


def _why(problem: Exception) -> str:
    """The innermost plain reason: ``Connection refused`` rather than objects and addresses."""
    text = str(problem)
    for pattern in (
        r"certificate verify failed: ([^(]*[^( ])",
        r"\[Errno -?\d+\] ([^'\")]+)",
        r"\[SSL: \w+\] ([^(]+[^( ])",
        r"Remote end closed connection without response",
    ):
        found = re.search(pattern, text)
        if found:
            return found[found.lastindex or 0].strip().rstrip(".")
    return text.rpartition(": ")[2].strip(" ().'\"") or type(problem).__name__
