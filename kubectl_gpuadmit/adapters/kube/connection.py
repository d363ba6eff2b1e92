"""One API server as one user: credentials, requests with bounded retries; raw replies.

Rules of this module
1. ``kubernetes`` sets TLS up and renews tokens. Requests go through its urllib3 pool, so replies
   stay bytes; it is imported inside functions, for it takes long.
2. A request is asked again only where that cannot harm: reads, dry runs, deletions; no other write.
3. Waits are bounded: ``MAX_WAIT`` seconds over all retries of a request.
"""

from __future__ import annotations

import datetime as dt
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from kubectl_gpuadmit.adapters.kube.faults import BUSY, HttpStatus, error_of
from kubectl_gpuadmit.errors import Unanswerable

ATTEMPTS = 4
MAX_WAIT = 20.0
"""Seconds that all retries of one request may wait together."""

READ_SECONDS = 60.0
"""How long an answer may pause where --request-timeout says nothing: a half-dead connection must
not hold us for ever."""

CONNECT_SECONDS = 10.0


class Access(Struct, frozen=True, kw_only=True):
    """How to reach a cluster, as kubectl's own flags say it; '' means the kubeconfig's."""

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    as_user: str = ""
    as_groups: tuple[str, ...] = ()
    request_timeout: float | None = None
    """Seconds; None for the default, 0 for no limit."""


class Reply(Struct, frozen=True):
    """What came back with a 2xx status."""

    body: bytes
    warnings: tuple[str, ...] = ()
    """Texts of ``Warning`` headers."""


class Connection:
    """Asks one API server. Safe to use from several threads."""

    def __init__(
        self,
        configuration: Any,
        *,
        name: str,
        namespace: str,
        access: Access,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        from kubernetes.client import ApiClient

        self.name = name
        """The context, by which people know the cluster."""
        self.namespace = namespace
        """The context's namespace."""
        self._configuration = configuration
        self._host = str(configuration.host).rstrip("/")
        self._pool = ApiClient(configuration).rest_client.pool_manager
        self._access = access
        self._sleep = sleep
        self._lock = threading.Lock()

    @property
    def host(self) -> str:
        return self._host

    def get(self, path: str, query: Mapping[str, str] | None = None, *, accept: str = "") -> Reply:
        """The reply to a GET. Raises HttpStatus, or Unanswerable for what is no answer at all."""
        return self._request("GET", path, query or {}, accept=accept)

    def dry_run(self, path: str, body: bytes) -> Reply:
        """The reply to a POST with ``dryRun=All``: nothing is stored. Raises as ``get`` does."""
        query = {"dryRun": "All", "fieldManager": "kubectl-gpu-admit"}
        return self._request("POST", path, query, body=body)

    def patch(self, path: str, body: bytes, *, content: str, query: Mapping[str, str]) -> Reply:
        """The reply to one PATCH, never asked again here: who writes knows what is newest by then.
        Raises as ``get`` does."""
        url = f"{self._host}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            return self._once("PATCH", url, body=body, accept="", kind=content)
        except HttpStatus as problem:
            problem.what = path
            raise

    def create(self, path: str, body: bytes) -> Reply:
        """The reply to a POST that stores. Asked once."""
        return self._once("POST", f"{self._host}{path}", body=body, accept="")

    def delete(self, path: str) -> Reply:
        """The reply to a DELETE, dependents in the background: what is gone stays gone however
        often it is asked. Raises as ``get`` does."""
        return self._request("DELETE", path, {"propagationPolicy": "Background"})

    def fail(self, problem: HttpStatus) -> Unanswerable:
        """The error that ends the call because of this status."""
        if problem.status == 401:
            expired = _expired_certificate(self._configuration.cert_file)
            if expired is not None:
                return Unanswerable(
                    "certificate-expired",
                    f"your client certificate ran out on {expired:%Y-%m-%d %H:%M} UTC",
                    hint="get a new kubeconfig from who runs the cluster",
                )
        error = error_of(problem, host=self._host)
        assert error is not None, "every status is in the table"
        return error

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: bytes | None = None,
        accept: str = "",
    ) -> Reply:
        url = f"{self._host}{path}" + (f"?{urlencode(query)}" if query else "")
        waited = 0.0
        for attempt in range(1, ATTEMPTS + 1):
            pause = float(2 ** (attempt - 1)) / 2
            last = attempt == ATTEMPTS
            try:
                return self._once(method, url, body=body, accept=accept)
            except HttpStatus as problem:
                problem.what = path
                if problem.status not in BUSY or last or (body and problem.status != 429):
                    raise
                if problem.status != 429 and problem.retry_after is None and attempt > 1:
                    raise
                pause = problem.retry_after if problem.retry_after is not None else pause
                if waited + pause > MAX_WAIT:
                    raise
            except Unanswerable as problem:
                if problem.ref != "connection-broken" or attempt > 2:
                    raise
            self._sleep(pause)
            waited += pause
        raise AssertionError("the last attempt returns or raises")

    def _once(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None,
        accept: str,
        kind: str = "application/json",
    ) -> Reply:
        from urllib3.exceptions import HTTPError

        try:
            reply = self._pool.request(
                method,
                url,
                body=body,
                headers=self._headers(accept, kind if body is not None else ""),
                timeout=self._timeout(),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            try:
                content = reply.read()
            finally:
                reply.release_conn()
        except (HTTPError, OSError) as problem:
            error = error_of(problem, host=self._host)
            if error is None:
                raise Unanswerable(
                    "unreachable",
                    f"talking to {self._host} failed: {problem}",
                    hint="kubectl cluster-info",
                ) from problem
            raise error from problem
        if not 200 <= reply.status < 300:
            raise HttpStatus(reply.status, content, reply.headers)
        if not content.lstrip()[:1] == b"{":
            raise Unanswerable(
                "garbled-reply",
                f"{self._host} answers, but not as an API server does",
                hint="check server: in the kubeconfig; does a proxy ask for a login?",
            )
        warnings = reply.headers.getlist("Warning") if "Warning" in reply.headers else []
        return Reply(content, tuple(_warning(text) for text in warnings))

    def _timeout(self) -> Any:
        from urllib3 import Timeout

        given = self._access.request_timeout
        if given is None:
            return Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
        return Timeout(connect=given or None, read=given or None)

    def _headers(self, accept: str, content: str) -> Any:
        from urllib3 import HTTPHeaderDict

        headers = HTTPHeaderDict()
        headers["Accept"] = accept or "application/json"
        headers["Accept-Encoding"] = "gzip"
        headers["User-Agent"] = "kubectl-gpu-admit"
        if content:
            headers["Content-Type"] = content
        with self._lock:  # may run a plugin to renew a token
            for setting in self._configuration.auth_settings().values():
                if setting["value"]:
                    headers[setting["key"]] = setting["value"]
        if self._access.as_user:
            headers["Impersonate-User"] = self._access.as_user
        for group in self._access.as_groups:
            headers.add("Impersonate-Group", group)
        return headers


def _warning(text: str) -> str:
    found = re.match(r'\d+ \S+ "(.*)"', text)
    return found[1].replace('\\"', '"') if found else text


_VALIDITY = re.compile(
    rb"\x30[\x1e\x20\x22](?:\x17\x0d\d{12}Z|\x18\x0f\d{14}Z)(?:\x17\x0d(\d{12})Z|\x18\x0f(\d{14})Z)"
)


def _expired_certificate(file: str | None) -> dt.datetime | None:
    """When the first certificate of a PEM file ended, None if it is still good or cannot be read.

    Reads the ``Validity`` of X.509 alone, which is two times in a row.
    """
    import ssl

    try:
        pem = Path(file or "").read_text("ascii")
        start = pem.index("-----BEGIN CERTIFICATE-----")
        end = pem.index("-----END CERTIFICATE-----", start) + len("-----END CERTIFICATE-----")
        der = ssl.PEM_cert_to_DER_cert(pem[start:end])
    except (OSError, ValueError):
        return None
    found = _VALIDITY.search(der)
    if found is None:
        return None
    short, long = found[1], found[2]
    text = (short or long).decode()
    if short:
        text = ("19" if text[0] >= "5" else "20") + text
    ends = dt.datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=dt.UTC)
    return ends if ends < dt.datetime.now(dt.UTC) else None
