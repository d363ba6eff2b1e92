"""A kubelet's PodResources v1 socket: a gRPC server that says what a test puts into it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc

from kubectl_gpuadmit.adapters.kubelet import METHODS, SERVICE, message

Json = dict[str, Any]


@dataclass
class Kubelet:
    """``with Kubelet(path) as kubelet``; change ``pods`` and ``allocatable`` while it runs.

    Fields are those of the messages: ``kubelet.pods = [pod("team-a", "web", devices=…)]``.
    """

    socket: Path
    pods: Sequence[Json] = ()
    allocatable: Json | None = None
    calls: list[str] = field(default_factory=list)

    def __enter__(self) -> Kubelet:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Listens on a fresh socket, as a kubelet does when it starts."""
        self.socket.unlink(missing_ok=True)
        self._server = grpc.server(ThreadPoolExecutor(2))
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                getattr(self, f"_{name.lower()}"),
                request_deserializer=message(asked).FromString,
                response_serializer=lambda reply: reply.SerializeToString(),
            )
            for name, (asked, _) in METHODS.items()
        }
        generic = grpc.method_handlers_generic_handler(SERVICE, handlers)
        self._server.add_generic_rpc_handlers((generic,))
        self._server.add_insecure_port(f"unix:{self.socket}")
        self._server.start()

    def stop(self) -> None:
        """Ends it; the socket is gone."""
        self._server.stop(0).wait()
        self.socket.unlink(missing_ok=True)

    def _list(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.calls.append("List")
        return message("ListPodResourcesResponse")(pod_resources=list(self.pods))

    def _getallocatableresources(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.calls.append("GetAllocatableResources")
        if self.allocatable is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "not enabled")
        return message("AllocatableResourcesResponse")(**self.allocatable)

    def _get(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.calls.append("Get")
        for one in self.pods:
            if (one["name"], one["namespace"]) == (request.pod_name, request.pod_namespace):
                return message("GetPodResourcesResponse")(pod_resources=one)
        context.abort(grpc.StatusCode.UNKNOWN, "pod not found")
        raise AssertionError("not reached")


def pod(namespace: str, name: str, **container: Any) -> Json:
    """A pod with one container ``main``; ``devices`` and so on are fields of ContainerResources."""
    return {
        "namespace": namespace,
        "name": name,
        "containers": [{"name": "main", **container}],
    }


def devices(resource: str, *ids: str, numa: Sequence[int] = ()) -> list[Json]:
    topology = {"topology": {"nodes": [{"ID": node} for node in numa]}} if numa else {}
    return [{"resource_name": resource, "device_ids": list(ids), **topology}]
