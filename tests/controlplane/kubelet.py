"""Plays the kubelets of all nodes: what is bound runs, what is evicted or deleted goes away."""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
from collections.abc import Sequence
from types import TracebackType

from tests.controlplane.client import ApiError, Client, Json, Server


def now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def running(pod: Json) -> Json:
    """The status of a pod all of whose containers run."""
    at = now()
    started = {"running": {"startedAt": at}}
    return {
        "phase": "Running",
        "startTime": pod.get("status", {}).get("startTime") or at,
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": at}
            for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ],
        "containerStatuses": [
            {
                "name": c["name"],
                "image": c.get("image", ""),
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "started": True,
                "state": started,
            }
            for c in pod["spec"]["containers"]
        ],
    }


def run(client: Client, pod: Json) -> Json:
    """Makes a bound pod Running and Ready."""
    return client.patch(pod, {"status": running(pod)}, part="status")


def fail(client: Client, pod: Json, *, reason: str = "", message: str = "") -> Json:
    """Makes it Failed, as a kubelet does that refuses it (``UnexpectedAdmissionError`` …)."""
    return client.patch(
        pod, {"status": {"phase": "Failed", "reason": reason, "message": message}}, part="status"
    )


def succeed(client: Client, pod: Json) -> Json:
    return client.patch(pod, {"status": {"phase": "Succeeded"}}, part="status")


class Kubelet:
    """Watches pods in a thread of its own while the ``with`` lasts.

    A pod that gets a node becomes Running unless its name is among ``leave``; one that is deleted
    or evicted (it has a deletion timestamp) is removed at once.
    """

    def __init__(self, server: Server, *, leave: Sequence[str] = ()) -> None:
        self._server = server
        self._leave = frozenset(leave)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._play, name="kubelet", daemon=True)

    def __enter__(self) -> Kubelet:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join(timeout=5)

    def _play(self) -> None:
        client = Client(self._server)
        while not self._end.is_set():
            with contextlib.suppress(OSError, ApiError):
                reply = client.get("/api/v1/pods")
                for item in reply.get("items") or ():
                    self._handle(client, item)
                version = reply["metadata"]["resourceVersion"]
                for event in client.watch("/api/v1/pods", version, seconds=2):
                    if event["type"] in ("ADDED", "MODIFIED"):
                        self._handle(client, event["object"])
        client.close()

    def _handle(self, client: Client, pod: Json) -> None:
        pod = {**pod, "apiVersion": "v1", "kind": "Pod"}
        with contextlib.suppress(ApiError):  # it changed or went meanwhile: the next event tells
            if pod["metadata"].get("deletionTimestamp"):
                client.delete(pod)
            elif _starts(pod) and pod["metadata"]["name"] not in self._leave:
                run(client, pod)


def _starts(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") == "Pending"
