"""Asks the kubelet which container has which devices, over its PodResources v1 socket.

Rules of this module
1. It alone imports ``grpc``, inside functions.
2. The messages are made from the table below when they are first needed: no generated code to keep
   in step. Fields that the table leaves out are skipped, as protobuf does with fields of a newer
   kubelet. ``tests/fakes/kubelet.py`` serves the same messages.
3. A connection lasts for one look: a kubelet that has restarted has a new socket.

Source: k8s.io/kubelet 0.37.2, pkg/apis/podresources/v1/api.proto.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kubectl_gpuadmit.errors import Unanswerable
from kubectl_gpuadmit.topology.readings import (
    ClaimGrant,
    ContainerGrant,
    DeviceGrant,
    Grants,
    MemoryGrant,
)

SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
SERVICE = "v1.PodResourcesLister"
SECONDS = 10.0
LONGEST_ANSWER = 16 << 20
"""What the kubelet itself allows (kubelet/apis/podresources/constants.go)."""

MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    # message -> (field, number, type); "*" before a type: repeated
    "ListPodResourcesRequest": (),
    "ListPodResourcesResponse": (("pod_resources", 1, "*PodResources"),),
    "AllocatableResourcesRequest": (),
    "AllocatableResourcesResponse": (
        ("devices", 1, "*ContainerDevices"),
        ("cpu_ids", 2, "*int64"),
        ("memory", 3, "*ContainerMemory"),
    ),
    "GetPodResourcesRequest": (("pod_name", 1, "string"), ("pod_namespace", 2, "string")),
    "GetPodResourcesResponse": (("pod_resources", 1, "PodResources"),),
    "PodResources": (
        ("name", 1, "string"),
        ("namespace", 2, "string"),
        ("containers", 3, "*ContainerResources"),
        ("cpu_ids", 4, "*int64"),
        ("memory", 5, "*ContainerMemory"),
    ),
    "ContainerResources": (
        ("name", 1, "string"),
        ("devices", 2, "*ContainerDevices"),
        ("cpu_ids", 3, "*int64"),
        ("memory", 4, "*ContainerMemory"),
        ("dynamic_resources", 5, "*DynamicResource"),
    ),
    "ContainerMemory": (
        ("memory_type", 1, "string"),
        ("size", 2, "uint64"),
        ("topology", 3, "TopologyInfo"),
    ),
    "ContainerDevices": (
        ("resource_name", 1, "string"),
        ("device_ids", 2, "*string"),
        ("topology", 3, "TopologyInfo"),
    ),
    "TopologyInfo": (("nodes", 1, "*NUMANode"),),
    "NUMANode": (("ID", 1, "int64"),),
    "DynamicResource": (
        ("claim_name", 2, "string"),
        ("claim_namespace", 3, "string"),
        ("claim_resources", 4, "*ClaimResource"),
    ),
    "ClaimResource": (
        ("cdi_devices", 1, "*CDIDevice"),
        ("driver_name", 2, "string"),
        ("pool_name", 3, "string"),
        ("device_name", 4, "string"),
    ),
    "CDIDevice": (("name", 1, "string"),),
}
METHODS = {
    "List": ("ListPodResourcesRequest", "ListPodResourcesResponse"),
    "GetAllocatableResources": ("AllocatableResourcesRequest", "AllocatableResourcesResponse"),
    "Get": ("GetPodResourcesRequest", "GetPodResourcesResponse"),
}


@cache
def message(name: str) -> Any:
    """The class of a message of the API."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"v1.{name}"))


@cache
def _pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    file = descriptor_pb2.FileDescriptorProto(
        name="gpu_admit/podresources.proto", package="v1", syntax="proto3"
    )
    scalars = {"string": 9, "int64": 3, "uint64": 4}  # FieldDescriptorProto.Type
    for name, fields in MESSAGES.items():
        made = file.message_type.add(name=name)
        for label, number, kind in fields:
            plain = kind.lstrip("*")
            field = made.field.add(name=label, number=number, label=3 if kind[0] == "*" else 1)
            field.type = scalars.get(plain, 11)  # type: ignore[assignment]
            if plain not in scalars:
                field.type_name = f".v1.{plain}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


class PodResources:
    """The kubelet of this node, by the path of its socket."""

    def __init__(self, socket: str = SOCKET, *, seconds: float = SECONDS) -> None:
        self._socket = socket
        self._seconds = seconds

    def read(self) -> Grants:
        """One look. Raises Unanswerable (``kubelet-silent``, ``extra-missing``)."""
        grpc = _grpc()
        options = [
            ("grpc.max_receive_message_length", LONGEST_ANSWER),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_http_proxy", 0),
        ]
        try:
            with grpc.insecure_channel(f"unix:{self._socket}", options=options) as channel:
                listed = self._call(channel, "List")
                return Grants(
                    containers=tuple(
                        _container(pod, container)
                        for pod in listed.pod_resources
                        for container in pod.containers
                    ),
                    **self._allocatable(grpc, channel),
                )
        except grpc.RpcError as problem:
            raise self._silent(problem) from None

    def of_pod(self, namespace: str, name: str) -> tuple[ContainerGrant, ...]:
        """What one pod has. Raises Unanswerable (``kubelet-silent``), also for an unknown pod."""
        grpc = _grpc()
        try:
            with grpc.insecure_channel(f"unix:{self._socket}") as channel:
                pod = self._call(
                    channel, "Get", pod_name=name, pod_namespace=namespace
                ).pod_resources
                return tuple(_container(pod, container) for container in pod.containers)
        except grpc.RpcError as problem:
            raise self._silent(problem) from None

    def _call(self, channel: Any, method: str, **fields: str) -> Any:
        asked, answered = METHODS[method]
        call = channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=lambda one: one.SerializeToString(),
            response_deserializer=message(answered).FromString,
        )
        return call(message(asked)(**fields), timeout=self._seconds)

    def _allocatable(self, grpc: Any, channel: Any) -> dict[str, Any]:
        """Old kubelets have it behind a feature gate; without it nothing is known."""
        try:
            answer = self._call(channel, "GetAllocatableResources")
        except grpc.RpcError:
            return {}
        return {
            "allocatable": tuple(map(_devices, answer.devices)),
            "memory": tuple(map(_memory, answer.memory)),
        }

    def _silent(self, problem: Any) -> Unanswerable:
        code = problem.code().name.lower().replace("_", " ")
        return Unanswerable(
            "kubelet-silent",
            f"the kubelet does not answer on {self._socket}: {code}",
            hint="mount /var/lib/kubelet/pod-resources; is the kubelet running?",
        )


def _grpc() -> Any:
    try:
        import google.protobuf  # noqa: F401  for the messages
        import grpc
    except ImportError:
        raise Unanswerable(
            "extra-missing",
            "the kubelet cannot be asked: grpcio and protobuf are not installed",
            hint="pip install 'kubectl-gpu-admit[agent]'",
        ) from None
    return grpc


def _container(pod: Any, container: Any) -> ContainerGrant:
    return ContainerGrant(
        namespace=pod.namespace,
        pod=pod.name,
        container=container.name,
        devices=tuple(map(_devices, container.devices)),
        claims=tuple(
            ClaimGrant(
                namespace=one.claim_namespace,
                claim=one.claim_name,
                driver=part.driver_name,
                pool=part.pool_name,
                device=part.device_name,
                cdi=tuple(device.name for device in part.cdi_devices),
            )
            for one in container.dynamic_resources
            for part in one.claim_resources
        ),
        cpus=tuple(sorted(container.cpu_ids)),
        memory=tuple(map(_memory, container.memory)),
    )


def _devices(one: Any) -> DeviceGrant:
    return DeviceGrant(one.resource_name, tuple(sorted(one.device_ids)), _numa(one.topology))


def _memory(one: Any) -> MemoryGrant:
    return MemoryGrant(one.memory_type, int(one.size), _numa(one.topology))


def _numa(topology: Any) -> tuple[int, ...]:
    return tuple(sorted(int(node.ID) for node in topology.nodes))
