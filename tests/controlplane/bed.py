"""A control plane for tests: etcd, API server, scheduler, controllers on free loopback ports.

No node runs: nodes are objects that a test creates, and the test (or ``kubelet.Kubelet``) plays the
kubelet. The node lifecycle controller is off, for it would find every node dead.

Credentials are made at each start without another program. The API server signs its own certificate
(``--cert-dir``); clients show tokens of a ``--token-auth-file``; the key that signs service account
tokens is 31 random bytes as a P-256 key in PEM, whose public half Go works out when it reads it.
"""

from __future__ import annotations

import base64
import json
import secrets
import shutil
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from tests.controlplane import binaries, client
from tests.controlplane.client import ApiError, Client, Json, Server
from tests.controlplane.processes import Program, free_ports

Item = TypeVar("Item")
Answer = TypeVar("Answer")

PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
OFF = (
    "node-lifecycle-controller",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller",  # wants a CA to publish
)
"""Controllers that do not run."""

RBAC = "rbac.authorization.k8s.io"
USERS = {"admin": "system:masters", "developer": "developers", "stranger": "strangers"}
"""Who can log in, and the group; ``developer`` may do what ``allow`` says, ``stranger`` nothing."""

NAMESPACE_ONLY: tuple[Json, ...] = (
    {
        "apiGroups": [""],
        "resources": [
            *("pods", "pods/log", "events", "services", "configmaps", "serviceaccounts"),
            *("persistentvolumeclaims", "resourcequotas", "limitranges", "replicationcontrollers"),
        ],
        "verbs": ["get", "list", "watch"],
    },
    {
        "apiGroups": [""],
        "resources": ["pods", "services", "configmaps"],
        "verbs": ["create", "delete", "patch"],
    },
    {
        "apiGroups": ["apps", "batch", "events.k8s.io", "policy"],
        "resources": ["*"],
        "verbs": ["*"],
    },
)
"""What a member of a team usually may do, in the team's own namespace: nothing cluster-wide."""


class NotStarted(Exception):
    """A program ended or did not become ready; the text carries the end of its log."""


class ControlPlane:
    """A running control plane: ``with ControlPlane() as bed``. Nothing survives the end of it.

    ``arguments`` appends flags by program name:
    ``{"kube-apiserver": ["--feature-gates=X=true"]}``.
    """

    def __init__(
        self, *, arguments: Mapping[str, Sequence[str]] | None = None, build: bool = True
    ) -> None:
        self._paths = {name: binaries.find(name, build=build) for name in PROGRAMS}
        self._arguments = dict(arguments or {})
        self.folder = Path(tempfile.mkdtemp(prefix="gpu-admit-controlplane-"))
        self.programs: list[Program] = []
        self.tokens = {user: secrets.token_urlsafe(24) for user in USERS}
        self.started_in = 0.0
        """Seconds from the first program's start until everything was ready."""

    def __enter__(self) -> ControlPlane:
        try:
            self.start()
        except BaseException:
            self._end_programs()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # -- start and stop

    def start(self) -> None:
        begun = time.monotonic()
        for attempt in range(3):
            try:
                self._start_api_server()
                break
            except NotStarted as problem:  # somebody else may have taken a port meanwhile
                self._end_programs()
                if attempt == 2 or "address already in use" not in str(problem):
                    raise
        self.client = Client(self.server)
        self.kubeconfig = self._write_kubeconfig("admin")
        self._start_rest()
        can_create = self._has_service_account("default")
        self.wait(can_create, what="the service account controller", timeout=60)
        self.started_in = time.monotonic() - begun

    def stop(self) -> None:
        if hasattr(self, "client"):
            self.client.close()
        self._end_programs()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end_programs(self) -> None:
        for program in reversed(self.programs):
            program.kill()
        self.programs.clear()

    def _start_api_server(self) -> None:
        store, peer, port = free_ports(3)
        data = self.folder / "etcd"
        shutil.rmtree(data, ignore_errors=True)
        url = f"http://127.0.0.1:{store}"
        self._run(
            "etcd",
            f"--data-dir={data}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
            "--quota-backend-bytes=4294967296",
            "--log-level=warn",
        )
        key = self.folder / "service-accounts.pem"
        _private(key, signing_key())
        tokens = self.folder / "tokens.csv"
        lines = [f"{self.tokens[user]},{user},{user},{group}\n" for user, group in USERS.items()]
        _private(tokens, "".join(lines))
        certificates = self.folder / "certificates"
        self._run(
            "kube-apiserver",
            f"--etcd-servers={url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={port}",
            f"--cert-dir={certificates}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
        )
        self.port = port
        self.ca = certificates / "apiserver.crt"
        self._ready(port, self.tokens["admin"])
        self.server = Server(port, self.ca, self.tokens["admin"])

    def _start_rest(self) -> None:
        scheduling, managing = free_ports(2)
        settings = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.kubeconfig), "qps": 2000, "burst": 4000},
        }
        configuration = self.folder / "scheduler.json"
        configuration.write_text(json.dumps(settings))
        self._run(
            "kube-scheduler",
            f"--config={configuration}",
            "--bind-address=127.0.0.1",
            f"--secure-port={scheduling}",
        )
        self._run(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            f"--controllers=*,{','.join('-' + name for name in OFF)}",
            "--leader-elect=false",
            "--use-service-account-credentials",  # as kubeadm: each controller is a user of its own
            "--kube-api-qps=2000",
            "--kube-api-burst=4000",
            "--bind-address=127.0.0.1",
            f"--secure-port={managing}",
            f"--service-account-private-key-file={self.folder / 'service-accounts.pem'}",
            f"--root-ca-file={self.ca}",
        )
        self._ready(scheduling, "", path="/readyz")
        self._ready(managing, "", path="/healthz")

    def _run(self, name: str, *flags: str) -> None:
        command = [str(self._paths[name]), *flags, *self._arguments.get(name, ())]
        self.programs.append(Program(command, self.folder / f"{name}.log"))

    def _ready(self, port: int, token: str, *, path: str = "/readyz", timeout: float = 90) -> None:
        """Waits until it says so. Its certificate is not looked at: it may be that moment's own."""
        anyone = ssl._create_unverified_context()
        request = urllib.request.Request(f"https://127.0.0.1:{port}{path}")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        end = time.monotonic() + timeout
        while True:
            for program in self.programs:
                if program.ended:
                    raise NotStarted(f"{program.name} ended at once:\n{program.tail()}")
            try:
                with urllib.request.urlopen(request, context=anyone, timeout=5):
                    return
            except (urllib.error.URLError, OSError) as problem:
                if time.monotonic() > end:
                    late = f"not ready after {timeout:.0f} s: {problem}\n{self.logs()}"
                    raise NotStarted(late) from None
            time.sleep(0.05)

    # -- users

    def kubeconfig_of(self, user: str, *, namespace: str = "default") -> Path:
        """Path of the kubeconfig of one of ``USERS``, whose current namespace is ``namespace``."""
        return self._write_kubeconfig(user, namespace=namespace)

    def allow(
        self, namespace: str, *, user: str = "developer", rules: Sequence[Json] = NAMESPACE_ONLY
    ) -> Path:
        """Gives the user a role in that namespace alone; the kubeconfig to log in with."""
        role = {
            "apiVersion": f"{RBAC}/v1",
            "kind": "Role",
            "metadata": {"name": f"only-{user}", "namespace": namespace},
            "rules": list(rules),
        }
        binding = {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"only-{user}", "namespace": namespace},
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": f"only-{user}"},
            "subjects": [{"kind": "User", "name": user, "apiGroup": RBAC}],
        }
        for document in (role, binding):
            self.client.delete(document)
            self.client.create(document)
        return self.kubeconfig_of(user, namespace=namespace)

    def _write_kubeconfig(self, user: str, *, namespace: str = "default") -> Path:
        place = "" if namespace == "default" else f"-{namespace}"
        path = self.folder / f"{user}{place}.kubeconfig"
        content = client.kubeconfig(
            port=self.port, ca=self.ca, user=user, token=self.tokens[user], namespace=namespace
        )
        _private(path, json.dumps(content, indent=2))
        return path

    # -- waiting and looking

    def wait(
        self, answer: Callable[[], Answer | None], *, what: str, timeout: float = 30
    ) -> Answer:
        """The first true answer. Asks after 20 ms, then ever less often, up to 0.5 s apart."""
        end, pause = time.monotonic() + timeout, 0.02
        while True:
            if found := answer():
                return found
            if time.monotonic() > end:
                raise TimeoutError(f"{what}: not within {timeout:.0f} s\n{self.logs()}")
            time.sleep(min(pause, max(end - time.monotonic(), 0.001)))
            pause = min(pause * 1.5, 0.5)

    def each(
        self, work: Callable[[Client, Item], Answer], items: Iterable[Item], *, connections: int = 6
    ) -> list[Answer]:
        """``work`` on every item over several connections, in order of the items."""
        return client.each(self.server, work, items, connections=connections)

    def logs(self, lines: int = 15) -> str:
        """The end of every program's log, and where the whole lies."""
        return "\n".join(f"--- {one.name} ({one.log})\n{one.tail(lines)}" for one in self.programs)

    @property
    def memory(self) -> dict[str, int]:
        """Program -> resident bytes."""
        return {program.name: program.memory for program in self.programs}

    # -- objects

    def namespace(self, name: str, *, labels: Mapping[str, str] | None = None) -> str:
        """Makes the namespace where it is missing and waits until pods can be created in it."""
        document = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": dict(labels or {})},
        }
        try:
            self.client.create(document)
        except ApiError as problem:
            if problem.reason != "AlreadyExists":
                raise
        self.wait(self._has_service_account(name), what=f"the default service account of {name}")
        return name

    def _has_service_account(self, namespace: str) -> Callable[[], bool]:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"

        def there() -> bool:
            try:
                self.client.get(path)
            except ApiError as problem:
                if problem.status != 404:
                    raise
                return False
            return True

        return there

    def node(self, document: Json) -> Json:
        """Creates a node as its kubelet would and makes it ready; see ``add_node``."""
        return add_node(self.client, document)

    def outcome(self, namespace: str, name: str, *, timeout: float = 30) -> Outcome:
        """What the scheduler has said about the pod, once it has said anything."""
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        return self.wait(
            lambda: Outcome.of(self.client.get(path)),
            what=f"the scheduler on {namespace}/{name}",
            timeout=timeout,
        )

    def clear(self) -> None:
        """Removes what a test may have created except namespaces (they take seconds to go)."""
        names = [n["metadata"]["name"] for n in self.client.list("v1", "Namespace")]
        everywhere = [("", api, kind) for api, kind in CLUSTER_KINDS]
        inside = [(name, api, kind) for api, kind in NAMESPACED_KINDS for name in names]
        at_once: Json = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}

        def remove(connection: Client, place: tuple[str, str, str]) -> None:
            namespace, api, kind = place
            path = connection.path(api, kind, namespace)
            if kind != "PriorityClass":
                connection.request("DELETE", path, at_once)
                return
            for one in connection.list(api, kind):
                if not one["metadata"]["name"].startswith("system-"):
                    connection.delete(one)

        self.each(remove, inside)
        self.each(remove, everywhere)
        self.wait(lambda: not self.client.list("v1", "Pod"), what="an empty cluster")


NAMESPACED_KINDS = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("v1", "ResourceQuota"),
    ("v1", "LimitRange"),
    ("policy/v1", "PodDisruptionBudget"),
    ("v1", "PersistentVolumeClaim"),
    ("resource.k8s.io/v1", "ResourceClaim"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"),
    ("v1", "Event"),
)
CLUSTER_KINDS = (
    ("v1", "Node"),
    ("v1", "PersistentVolume"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "CSINode"),
    ("node.k8s.io/v1", "RuntimeClass"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("resource.k8s.io/v1", "DeviceClass"),
    ("resource.k8s.io/v1", "ResourceSlice"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"),
)


class Outcome:
    """What the scheduler said: ``node`` where it is bound, else ``message`` says why not."""

    def __init__(self, node: str, message: str, nominated: str) -> None:
        self.node = node
        self.message = message
        self.nominated = nominated

    @classmethod
    def of(cls, pod: Json) -> Outcome | None:
        """None while it has not said anything."""
        node = pod["spec"].get("nodeName", "")
        conditions = {c["type"]: c for c in pod.get("status", {}).get("conditions", ())}
        scheduled = conditions.get("PodScheduled", {})
        if not node and scheduled.get("status") != "False":
            return None
        message = "" if node else scheduled.get("message", "")
        return cls(node, message, pod["status"].get("nominatedNodeName", ""))

    def __repr__(self) -> str:
        return f"Outcome({self.node!r}, {self.message!r}, nominated={self.nominated!r})"


def add_node(connection: Client, document: Json) -> Json:
    """Creates the node with its status, then takes off the not-ready taint that every new node gets
    (admission plugin TaintNodesByCondition) unless the document wants it."""
    stored = connection.create(document)
    wanted = document.get("spec", {}).get("taints") or []
    if (stored["spec"].get("taints") or []) == wanted:
        return stored
    return connection.patch(document, {"spec": {"taints": wanted or None}})


def signing_key() -> str:
    """A P-256 private key as SEC 1 in PEM (RFC 5915), without the optional public half.

    The first byte is zero, so that the number is below the order of the curve.
    """
    number = b"\0" + secrets.token_bytes(31)
    curve = bytes.fromhex("a00a06082a8648ce3d030107")
    body = bytes.fromhex("020101") + b"\x04\x20" + number + curve
    text = base64.encodebytes(b"\x30" + bytes([len(body)]) + body).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{text}-----END EC PRIVATE KEY-----\n"


def _private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
