"""The agent on a running control plane, with the identity that it has in a pod of its DaemonSet."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubectl_gpuadmit.adapters.kube.connection import Access
from kubectl_gpuadmit.adapters.kube.kubeconfig import connect
from kubectl_gpuadmit.adapters.kube.node_maps import ConfigMaps, CustomObjects
from kubectl_gpuadmit.adapters.snapshot import load_snapshot
from kubectl_gpuadmit.agent import manifests
from kubectl_gpuadmit.cli.main import main
from kubectl_gpuadmit.errors import GpuAdmitError
from kubectl_gpuadmit.kube import gpu_topology as wire
from kubectl_gpuadmit.kube.gpu_topology import GpuTopologySpec, ReportedGpu
from kubectl_gpuadmit.kube.gpu_topology_object import document
from kubectl_gpuadmit.kube.objects import GpuTopology
from tests.agent.conftest import driver, h100, nvml_library, short  # noqa: F401  fixtures
from tests.agent.node import Node
from tests.controlplane.bed import ControlPlane
from tests.controlplane.client import ApiError, Client, Json
from tests.controlplane.client import kubeconfig as made_kubeconfig
from tests.controlplane.test_bed import node
from tests.fakes.kubelet import devices, pod

API = f"{wire.GROUP}/{wire.VERSION}"


@pytest.fixture
def bed(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    with installed(control_plane, "crd"):
        yield control_plane


@pytest.fixture(params=["crd", "configmap"])
def either(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """Installed for objects of its own kind, then for ConfigMaps; says which."""
    with installed(control_plane, request.param):
        yield request.param


@contextmanager
def installed(bed: ControlPlane, store: str) -> Iterator[None]:
    """Two nodes and everything that ``--manifests`` prints but the DaemonSet."""
    bed.node(node("n-0"))
    bed.node(node("n-1"))
    bed.namespace(manifests.NAMESPACE)
    made = [
        one
        for one in manifests.objects(store=store)
        if one["kind"] not in ("Namespace", "DaemonSet")
    ]
    try:
        for one in made:
            bed.client.create(one)
        if store == "crd":
            bed.wait(lambda: serves(bed), what="the new resource")
        bed.wait(lambda: guarded(bed, store), what="the policy to count")
        yield
    finally:
        for one in reversed(made):
            bed.client.delete(one)
        path = f"/api/v1/namespaces/{manifests.NAMESPACE}/configmaps"
        for one in bed.client.get(path)["items"]:
            if one["metadata"]["name"].startswith(manifests.PREFIX):
                bed.client.request("DELETE", f"{path}/{one['metadata']['name']}")


def serves(bed: ControlPlane) -> bool:
    try:
        bed.client.get(f"/apis/{API}/gputopologies")
    except ApiError:
        return False
    return True


def guarded(bed: ControlPlane, store: str) -> bool:
    """Whether the policy refuses already: it counts some time after it is stored."""
    try:
        store_of(bed, config_of(bed, "n-0"), store).write("n-1", SPEC)
    except GpuAdmitError as problem:
        return "an agent writes the map of its own node" in problem.message
    return False


def config_of(bed: ControlPlane, node_name: str) -> Path:
    """A kubeconfig with a token bound to a pod of the DaemonSet on that node, as kubelets ask."""
    place = manifests.NAMESPACE
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"agent-{node_name}", "namespace": place},
        "spec": {
            "serviceAccountName": manifests.NAME,
            "nodeName": node_name,
            "containers": [{"name": "agent", "image": "x:1"}],
        },
    }
    try:
        stored = bed.client.create(made)
    except ApiError as problem:
        assert problem.reason == "AlreadyExists", problem
        stored = bed.client.get(bed.client.path_of(made))
    return written(bed, f"agent-{node_name}", token_of(bed, stored))


def token_of(bed: ControlPlane, bound: Json) -> str:
    """A token of the service account, bound to that pod."""
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {
            "boundObjectRef": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": bound["metadata"]["name"],
                "uid": bound["metadata"]["uid"],
            }
        },
    }
    path = f"/api/v1/namespaces/{manifests.NAMESPACE}/serviceaccounts/{manifests.NAME}/token"
    token = bed.client.request("POST", path, asked)["status"]["token"]
    assert isinstance(token, str)
    return token


def written(bed: ControlPlane, name: str, token: str) -> Path:
    content = made_kubeconfig(
        port=bed.port, ca=bed.ca, user=name, token=token, namespace=manifests.NAMESPACE
    )
    path = bed.folder / f"{name}.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(content))
    return path


def store_of(bed: ControlPlane, config: Path, store: str = "crd") -> CustomObjects | ConfigMaps:
    connection = connect(Access(kubeconfig=str(config)))
    return (
        CustomObjects(connection) if store == "crd" else ConfigMaps(connection, manifests.NAMESPACE)
    )


SPEC = GpuTopologySpec(
    schema=wire.SCHEMA,
    asOf="2026-11-29T10:00:00Z",
    heartbeatSeconds=300,
    source="nvml",
    gpus=(ReportedGpu(0, uuid="GPU-0", pciBusID="0000:1b:00.0", residueMiB=0, pcieSwitch=""),),
    links=("X",),
    holders=(),
)


def stored(bed: ControlPlane, name: str) -> Json:
    return bed.client.get(f"/apis/{API}/gputopologies/{name}")


def test_an_agent_writes_its_own_nodes_map_and_reads_it_back(
    control_plane: ControlPlane, either: str
) -> None:
    place = store_of(control_plane, config_of(control_plane, "n-0"), either)
    assert place.load("n-0") is None
    assert place.renew("n-0", "2026-11-29T10:01:00Z")[0] is None
    kept, size = place.write("n-0", SPEC)
    assert (kept, size > 300) == (SPEC, True)
    later = msgspec.structs.replace(SPEC, asOf="2026-11-29T10:05:00Z")
    assert place.renew("n-0", later.asOf)[0] == later
    assert place.load("n-0") == later


def test_the_map_is_owned_by_its_node(bed: ControlPlane) -> None:
    store_of(bed, config_of(bed, "n-0")).write("n-0", SPEC)
    uid = bed.client.get("/api/v1/nodes/n-0")["metadata"]["uid"]
    assert stored(bed, "n-0")["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n-0", "uid": uid}
    ]
    bed.client.delete(node("n-0"))
    bed.wait(lambda: gone(bed, "n-0"), what="the garbage collector", timeout=60)


def gone(bed: ControlPlane, name: str) -> bool:
    try:
        stored(bed, name)
    except ApiError as problem:
        return problem.status == 404
    return False


def test_an_agent_is_refused_for_another_nodes_map(
    control_plane: ControlPlane, either: str
) -> None:
    store_of(control_plane, config_of(control_plane, "n-1"), either).write("n-1", SPEC)
    place = store_of(control_plane, config_of(control_plane, "n-0"), either)
    name = "n-1" if either == "crd" else "gpu-topology-n-1"
    for attempt in (
        lambda: place.write("n-1", msgspec.structs.replace(SPEC, source="forged")),
        lambda: place.renew("n-1", "2030-01-01T00:00:00Z"),
    ):
        with pytest.raises(GpuAdmitError) as told:
            attempt()
        assert told.value.ref == "forbidden"
        assert f"an agent writes the map of its own node (n-0), not {name}" in str(told.value)
    assert place.load("n-1") == SPEC


def test_a_token_that_is_bound_to_no_pod_is_refused(bed: ControlPlane) -> None:
    path = f"/api/v1/namespaces/{manifests.NAMESPACE}/serviceaccounts/{manifests.NAME}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = bed.client.request("POST", path, asked)["status"]["token"]
    with pytest.raises(GpuAdmitError, match="its token is bound to none"):
        store_of(bed, written(bed, "unbound", token)).write("n-0", SPEC)


def test_an_agent_may_not_make_another_object_the_owner(bed: ControlPlane) -> None:
    agent = Client(bed.server, token=token_in(config_of(bed, "n-0")))
    made = document("n-0", SPEC, uid="0")
    made["metadata"]["ownerReferences"][0]["name"] = "n-1"
    with pytest.raises(ApiError, match="owned by that node, and by nothing else"):
        agent.create(made)


def test_an_agent_may_neither_delete_maps_nor_list_anything(bed: ControlPlane) -> None:
    store_of(bed, config_of(bed, "n-0")).write("n-0", SPEC)
    agent = Client(bed.server, token=token_in(config_of(bed, "n-0")))
    for method, path in (
        ("DELETE", f"/apis/{API}/gputopologies/n-0"),
        ("GET", f"/apis/{API}/gputopologies"),
        ("GET", "/api/v1/nodes"),
        ("GET", "/api/v1/pods"),
        ("GET", "/api/v1/secrets"),
    ):
        with pytest.raises(ApiError) as told:
            agent.request(method, path)
        assert told.value.status == 403, path


def token_in(config: Path) -> str:
    token = json.loads(config.read_text())["users"][0]["user"]["token"]
    assert isinstance(token, str)
    return token


def test_an_administrator_is_not_held_to_the_agents_policy(bed: ControlPlane) -> None:
    kept, _ = store_of(bed, bed.kubeconfig).write("n-1", SPEC)
    assert kept == SPEC


def test_the_api_server_refuses_a_map_that_does_not_fit_the_schema(bed: ControlPlane) -> None:
    made = document("n-0", SPEC)
    made["spec"]["gpus"][0]["index"] = "zero"
    with pytest.raises(ApiError, match=r"spec\.gpus\[0\]\.index"):
        bed.client.create(made)


def test_without_the_crd_the_agent_says_what_to_apply(control_plane: ControlPlane) -> None:
    control_plane.node(node("n-0"))
    with pytest.raises(GpuAdmitError) as told:
        store_of(control_plane, control_plane.kubeconfig).write("n-0", SPEC)
    assert (told.value.ref, "agent --manifests" in told.value.hint) == ("not-served", True)


def test_the_daemon_sets_own_pod_is_admitted_and_may_write(bed: ControlPlane) -> None:
    label = {"metadata": {"labels": {"nvidia.com/gpu.present": "true"}}}
    bed.client.patch(node("n-1"), label)
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "nvidia"},
        "handler": "nvidia",
    }
    bed.client.create(runtime)
    (daemon,) = [one for one in manifests.objects() if one["kind"] == "DaemonSet"]
    bed.client.create(daemon)
    pods = f"/api/v1/namespaces/{manifests.NAMESPACE}/pods"

    def bound() -> Json | None:
        found = [
            one
            for one in bed.client.get(pods)["items"]
            if one["metadata"].get("ownerReferences") and one["spec"].get("nodeName")
        ]
        return found[0] if found else None

    made = bed.wait(bound, what="the agent's pod on n-1")
    assert (made["spec"]["nodeName"], made["spec"]["hostPID"]) == ("n-1", True)
    config = written(bed, "from-daemon-set", token_of(bed, made))
    assert store_of(bed, config).write("n-1", SPEC)[0] == SPEC
    with pytest.raises(GpuAdmitError, match="an agent writes the map of its own node"):
        store_of(bed, config).write("n-0", SPEC)


def test_a_snapshot_of_the_cluster_has_the_maps(
    bed: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_of(bed, config_of(bed, "n-0")).write("n-0", SPEC)
    file = tmp_path / "now.json"
    assert main(["snapshot", "-o", str(file), "--kubeconfig", str(bed.kubeconfig)]) == 0
    capsys.readouterr()
    cluster = load_snapshot(str(file)).cluster
    (kept,) = cluster.every("GpuTopology")
    assert isinstance(kept, GpuTopology)
    assert (kept.name, kept.spec) == ("n-0", SPEC)


def test_the_process_writes_the_map_of_its_node_and_ends_when_it_is_told_to(
    bed: ControlPlane,
    h100: Node,  # noqa: F811
) -> None:
    uuid = "GPU-00001002-5a5a-4b4b-8c8c-000000001002"
    h100.kubelet.pods = [pod("team-a", "llama", devices=devices("nvidia.com/gpu", uuid, numa=[0]))]
    agent = started(h100, "n-0", config_of(bed, "n-0"), "--interval=1")
    try:
        spec = bed.wait(lambda: spec_of(bed, "n-0"), what="the map")
        h100.kubelet.pods = []
        bed.wait(lambda: spec_of(bed, "n-0").get("holders") == [], what="the pod's end in the map")
    finally:
        agent.terminate()
        said = agent.communicate(timeout=20)[1].decode()
    assert agent.returncode == 0, said
    assert [gpu["nvlinks"]["active"] for gpu in spec["gpus"]] == [18] * 8
    assert spec["holders"] == [
        {
            "device": uuid,
            "namespace": "team-a",
            "pod": "llama",
            "container": "main",
            "via": "device-plugin",
            "resource": "nvidia.com/gpu",
        }
    ]
    assert [line.split(" ", 1)[1] for line in said.splitlines()] == [
        "agent 0.1.0 for node n-0: a look each 1 s",
        "stopped: the object stays, and grows old",
    ]


def test_the_process_writes_also_where_its_log_is_on_a_full_disk(
    bed: ControlPlane,
    h100: Node,  # noqa: F811
) -> None:
    config = config_of(bed, "n-0")
    with Path("/dev/full").open("w") as full:
        agent = started(h100, "n-0", config, "--interval=1", stderr=full)
        try:
            bed.wait(lambda: spec_of(bed, "n-0"), what="the map")
            time.sleep(1.2)
            assert agent.poll() is None
        finally:
            agent.terminate()
            agent.wait(timeout=20)


def spec_of(bed: ControlPlane, name: str) -> Any:
    try:
        return stored(bed, name)["spec"]
    except ApiError:
        return None


def started(
    at: Node, name: str, config: Path, *more: str, stderr: Any = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    command = [
        *(sys.executable, "-m", "kubectl_gpuadmit.cli.main", "agent", f"--node={name}"),
        *(f"--kubeconfig={config}", "--listen="),
        *at.arguments,
        *more,
    ]
    return subprocess.Popen(command, env=at.environment, stdout=subprocess.DEVNULL, stderr=stderr)
