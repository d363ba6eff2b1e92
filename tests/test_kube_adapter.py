"""The live adapter above a real wire: paging, refusals, throttling, broken connections."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kubectl_gpuadmit.adapters.kube import listing, whoami
from kubectl_gpuadmit.adapters.kube.connection import Access, Connection
from kubectl_gpuadmit.adapters.kube.faults import HttpStatus
from kubectl_gpuadmit.adapters.kube.kubeconfig import connect
from kubectl_gpuadmit.adapters.kube.named import document, fetch
from kubectl_gpuadmit.adapters.kube.reading import read_cluster, server_version
from kubectl_gpuadmit.adapters.kube.resources import BUILT_IN, Catalogue, Resource
from kubectl_gpuadmit.cli.main import main
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.errors import BadInput, GpuAdmitError, NothingChecked, Unanswerable
from kubectl_gpuadmit.kube.requester import Requester
from kubectl_gpuadmit.narrowed import Absence
from kubectl_gpuadmit.needs import Need
from tests.fakes.apiserver import ApiServer, Reply, Request, forbidden, kubeconfig_of, page, refusal

Json = dict[str, Any]

PODS = BUILT_IN["Pod"]


def pod(number: int, namespace: str = "team-a") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p-{number}", "namespace": namespace, "managedFields": [{"x": 1}]},
        "spec": {"nodeName": "n-0", "containers": [{"name": "main"}]},
        "status": {"phase": "Running"},
    }


def thing(kind: str, name: str, api_version: str = "v1", **more: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **more}}


@pytest.fixture
def naps() -> list[float]:
    return []


@pytest.fixture
def connection(server: ApiServer, tmp_path: Path, naps: list[float]) -> Connection:
    file = server.kubeconfig(tmp_path, namespace="team-a")
    return connect(Access(kubeconfig=str(file)), sleep=naps.append)


# -- lists -----------------------------------------------------------------------------------------


def test_a_list_is_read_page_by_page_from_the_store_itself(
    server: ApiServer, connection: Connection
) -> None:
    server.objects = [pod(n) for n in range(1203)]
    found = listing.objects(connection, PODS)
    assert [one.name for one in found] == [f"p-{n}" for n in range(1203)]
    assert [request.query for request in server.asked] == [
        {"limit": "500"},
        {"limit": "500", "continue": "500"},
        {"limit": "500", "continue": "1000"},
    ]


def test_an_expired_continue_token_begins_the_list_anew_with_longer_pages(
    server: ApiServer, connection: Connection
) -> None:
    server.objects = [pod(n) for n in range(700)]
    gone = refusal(410, "The provided continue parameter is too old", reason="Expired")

    def once(request: Request) -> Reply:
        return page(request, server.objects, "v1", "Pod")

    server.on("/api/v1/pods", once, gone, once)
    found = listing.objects(connection, PODS)
    assert len(found) == 700
    assert [r.query.get("limit") for r in server.asked] == ["500", "500", "2000"]


def test_a_list_that_expires_for_ever_is_given_up(
    server: ApiServer, connection: Connection
) -> None:
    server.on("/api/v1/pods", refusal(410, "too old", reason="Expired"))
    with pytest.raises(HttpStatus) as problem:
        listing.objects(connection, PODS)
    assert connection.fail(problem.value).ref == "list-expired"
    assert [r.query.get("limit") for r in server.asked] == ["500", "2000", "8000", None]


def test_a_kind_served_in_an_older_version_is_found_there(
    server: ApiServer, connection: Connection
) -> None:
    classes = BUILT_IN["DeviceClass"]
    for version in ("v1", "v1beta2"):
        path = f"/apis/resource.k8s.io/{version}/deviceclasses"
        server.on(path, refusal(404, "the server could not find the requested resource"))
    server.objects = [thing("DeviceClass", "gpu", "resource.k8s.io/v1beta1")]
    assert [one.name for one in listing.objects(connection, classes)] == ["gpu"]


def test_a_kind_that_is_not_served_has_no_objects(
    server: ApiServer, connection: Connection
) -> None:
    missing = Resource("Widget", "widgets", "example.com", ("v1",))
    server.on("/apis/example.com/v1/widgets", refusal(404, "404 page not found"))
    assert listing.objects(connection, missing) == []


def test_packed_replies_are_unpacked(server: ApiServer, connection: Connection) -> None:
    whole = page(Request("GET", "/", {}, b""), [pod(0)], "v1", "Pod").body
    server.on("/api/v1/pods", Reply(gzip.compress(whole), headers=[("Content-Encoding", "gzip")]))
    assert [one.name for one in listing.objects(connection, PODS)] == ["p-0"]


def test_work_in_parallel_keeps_its_order_and_raises_what_was_raised() -> None:
    assert listing.in_parallel(lambda n: n * n, range(20)) == [n * n for n in range(20)]
    with pytest.raises(ZeroDivisionError):
        listing.in_parallel(lambda n: 1 // n, [1, 0, 2])
    assert listing.in_parallel(str, []) == []


# -- a cluster -------------------------------------------------------------------------------------


def policy_with(kind: Json | None, **ref: Any) -> list[Json]:
    group, named = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
    spec = {"paramKind": kind} if kind else {}
    return [
        {**thing(named, "limits", group), "spec": spec},
        {
            **thing(f"{named}Binding", "limits", group),
            "spec": {"policyName": "limits", "paramRef": ref},
        },
    ]


POLICY_NEEDS = [Need("ValidatingAdmissionPolicy"), Need("ValidatingAdmissionPolicyBinding")]
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}
LIMIT = {"apiVersion": "example.com/v1", "kind": "Limit"}


def recorded(cluster: Cluster) -> list[Any]:
    """The spec of every record about parameters."""
    return [one.document["spec"] for one in cluster.every("PolicyParameters")]  # type: ignore


def test_parameters_of_admission_policies_are_read_once_the_policies_are_known(
    server: ApiServer, connection: Connection
) -> None:
    server.objects = [
        *policy_with(CONFIG_MAP, name="settings"),
        thing("ConfigMap", "settings", namespace="team-a"),
    ]
    cluster = read_cluster(connection, POLICY_NEEDS, homes=["team-a", "team-b"]).cluster
    assert not cluster.knows("ConfigMap"), "only those of the name were read"
    assert [one.name for one in cluster.every("ConfigMap")] == ["settings"]
    assert recorded(cluster) == [{**CONFIG_MAP, "served": True, "namespaced": True}]
    asked = [(one.path, one.query) for one in server.asked if "configmaps" in one.path]
    fields = {"fieldSelector": "metadata.name=settings", "limit": "500"}
    assert asked == [
        (f"/api/v1/namespaces/{home}/configmaps", fields) for home in ("team-a", "team-b")
    ]


def test_a_snapshot_reads_the_parameters_of_all_namespaces(
    server: ApiServer, connection: Connection
) -> None:
    selector = {
        "matchLabels": {"for": "gpu"},
        "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["a", "b"]}],
    }
    server.objects = policy_with(CONFIG_MAP, selector=selector)
    read_cluster(connection, POLICY_NEEDS, homes=["team-a"], everywhere=True)
    asked = [(one.path, one.query) for one in server.asked if "configmaps" in one.path]
    labels = {"labelSelector": "for=gpu,tier notin (a,b)", "limit": "500"}
    assert asked == [("/api/v1/configmaps", labels)]


def test_parameters_of_any_kind_are_found_by_discovery(
    server: ApiServer, connection: Connection
) -> None:
    server.serve("example.com", "v1", "Limit", "limits", scope="Cluster")
    server.objects = [
        *policy_with(LIMIT, name="a"),
        {**thing("Limit", "a", "example.com/v1"), "spec": {"max": 3}},
    ]
    cluster = read_cluster(connection, POLICY_NEEDS, homes=["team-a"]).cluster
    (found,) = cluster.every("Limit")
    assert found.document["spec"] == {"max": 3}  # type: ignore[attr-defined]
    assert recorded(cluster) == [{**LIMIT, "served": True, "namespaced": False}]
    other = {"apiVersion": "example.com/v2", "kind": "Limit"}
    server.objects = policy_with(other, name="a")
    cluster = read_cluster(connection, POLICY_NEEDS, homes=["team-a"]).cluster
    assert recorded(cluster) == [{**other, "served": False}]


def test_refused_parameters_narrow_the_answer_and_secrets_are_never_asked_for(
    server: ApiServer, connection: Connection
) -> None:
    server.objects = policy_with(CONFIG_MAP, name="settings")
    path = "/api/v1/namespaces/team-a/configmaps"
    server.on(path, forbidden("list", "configmaps"))
    facts = read_cluster(connection, POLICY_NEEDS, homes=["team-a"])
    assert recorded(facts.cluster) == []
    assert facts.absences == (
        Absence(
            ("ConfigMap",),
            'user "dev" may not list configmaps in namespace team-a',
            'a Role in team-a would need: apiGroups: [""], resources: [configmaps], verbs: [list]',
        ),
    )
    server.objects = policy_with({"apiVersion": "v1", "kind": "Secret"}, name="settings")
    read_cluster(connection, POLICY_NEEDS, homes=["team-a"])
    assert not [one.path for one in server.asked if "secrets" in one.path]


def test_the_api_server_says_who_asks(server: ApiServer, connection: Connection) -> None:
    info = {"username": "dev", "groups": ["developers"], "extra": {"scopes": ["read"]}}
    server.on(whoami.PATH, Reply({"status": {"userInfo": info}}), method="POST")
    assert whoami.whoami(connection) == Requester("dev", ("developers",), "", {"scopes": ("read",)})
    (asked,) = server.asked
    assert asked.json["kind"] == "SelfSubjectReview"
    server.on(whoami.PATH, forbidden("create", "selfsubjectreviews"), method="POST")
    assert whoami.whoami(connection) is None


def test_a_refused_kind_narrows_the_answer_and_names_the_rule(
    server: ApiServer, connection: Connection
) -> None:
    server.objects = [pod(0), pod(1, "team-b"), thing("Node", "n-0"), thing("Namespace", "team-a")]
    server.on("/api/v1/pods", forbidden("list", "pods"))
    server.on("/api/v1/namespaces", forbidden("list", "namespaces"))
    server.on("/api/v1/nodes", forbidden("list", "nodes"))
    facts = read_cluster(
        connection,
        [Need("Pod"), Need("Node"), Need("Namespace"), Need("ResourceQuota", ("team-a",))],
        homes=["team-a"],
    )
    cluster = facts.cluster
    known = [k for k in ("Pod", "Node", "Namespace", "ResourceQuota") if cluster.knows(k)]
    assert known == ["ResourceQuota"]
    assert [one.name for one in cluster.pods()] == ["p-0"], "those of its own namespace"
    assert cluster.namespace("team-a") is not None
    assert facts.absences == (
        Absence(
            ("Pod",),
            'user "dev" may not list pods in all namespaces',
            'a ClusterRole would need: apiGroups: [""], resources: [pods], verbs: [list]',
            "placement",
        ),
        Absence(
            ("Node",),
            'user "dev" may not list nodes',
            'a ClusterRole would need: apiGroups: [""], resources: [nodes], verbs: [list]',
            "placement",
        ),
        Absence(
            ("Namespace",),
            'user "dev" may not list namespaces',
            'a ClusterRole would need: apiGroups: [""], resources: [namespaces], verbs: [list]',
            "admission",
        ),
    )


def test_placing_a_pod_does_not_make_a_kind_known_of_which_only_a_part_was_read(
    server: ApiServer, connection: Connection
) -> None:
    server.objects = [pod(0)]
    server.on("/api/v1/pods", forbidden("list", "pods"))
    cluster = read_cluster(connection, [Need("Pod")], homes=["team-a"]).cluster.fork()
    cluster.apply(next(cluster.pods()))
    assert not cluster.knows("Pod")


@pytest.mark.parametrize(
    ("said", "version"),
    [({"major": "1", "minor": "31+"}, "1.31"), ({"major": "1", "minor": "37"}, "1.37"), ({}, "")],
)
def test_the_version_of_the_api_server_is_read(
    said: dict[str, str], version: str, server: ApiServer, connection: Connection
) -> None:
    server.on("/version", Reply(said))
    assert server_version(connection) == version


# -- what goes wrong -------------------------------------------------------------------------------


def test_throttling_is_waited_out_as_long_as_the_server_says(
    server: ApiServer, connection: Connection, naps: list[float]
) -> None:
    busy = refusal(429, "Too many requests", headers=[("Retry-After", "3")])
    server.on("/api/v1/pods", busy, busy, lambda r: page(r, [pod(0)], "v1", "Pod"))
    assert len(listing.objects(connection, PODS)) == 1
    assert naps == [3.0, 3.0]


def test_throttling_without_end_is_an_error_after_bounded_waiting(
    server: ApiServer, connection: Connection, naps: list[float]
) -> None:
    server.on("/api/v1/pods", refusal(429, "busy", headers=[("Retry-After", "9")]))
    with pytest.raises(HttpStatus) as problem:
        listing.objects(connection, PODS)
    assert (connection.fail(problem.value).ref, naps) == ("throttled", [9.0, 9.0])


def test_a_connection_that_breaks_once_is_tried_again(
    server: ApiServer, connection: Connection
) -> None:
    whole = page(Request("GET", "/", {}, b""), [pod(0)], "v1", "Pod").body
    server.on("/api/v1/pods", Reply(whole, cut=20), Reply(whole))
    assert len(listing.objects(connection, PODS)) == 1


REFS = {
    "credentials that are not accepted": (refusal(401, "Unauthorized"), "unauthorized"),
    "a refusal": (forbidden("get", "pods"), "forbidden"),
    "another server": (Reply(b"<html>Log in</html>"), "garbled-reply"),
    "half a reply, again and again": (
        Reply({"major": "1", "minor": "37"}, cut=5),
        "connection-broken",
    ),
    "an empty close": (Reply(b"{}", cut=0), "connection-broken"),
    "a failure of the server": (refusal(500, "etcdserver: no leader"), "server-error"),
    "an answer that does not come": (Reply({}, after=1.0), "timed-out"),
}


@pytest.mark.parametrize("case", REFS)
def test_every_fault_is_one_error_of_exit_code_3(
    case: str, server: ApiServer, tmp_path: Path
) -> None:
    reply, ref = REFS[case]
    server.on("/version", reply)
    access = Access(kubeconfig=str(server.kubeconfig(tmp_path)), request_timeout=0.3)
    connection = connect(access, sleep=lambda seconds: None)
    with pytest.raises(GpuAdmitError) as problem:
        try:
            connection.get("/version")
        except HttpStatus as status:
            raise connection.fail(status) from None
    error = problem.value
    assert (error.ref, error.exit_code) == (ref, 3)
    assert error.hint and "\n" not in error.message


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.parametrize(
    ("server_url", "ref", "said"),
    [
        (f"http://127.0.0.1:{closed_port()}", "unreachable", "Connection refused"),
        ("https://no-such-host.invalid:6443", "unreachable", "cannot be resolved"),
        ("http://", "bad-kubeconfig", "is no address"),
    ],
)
def test_an_address_where_nobody_answers(
    server_url: str, ref: str, said: str, tmp_path: Path
) -> None:
    connection = connect(Access(kubeconfig=str(kubeconfig_of(tmp_path, server_url))))
    with pytest.raises(Unanswerable) as problem:
        connection.get("/version")
    assert problem.value.ref == ref
    assert said in problem.value.message


def test_a_server_that_speaks_no_tls_is_no_traceback(server: ApiServer, tmp_path: Path) -> None:
    url = server.url.replace("http:", "https:")
    connection = connect(Access(kubeconfig=str(kubeconfig_of(tmp_path, url))))
    with pytest.raises(Unanswerable) as problem:
        connection.get("/version")
    assert problem.value.ref == "tls-failed"


def test_a_server_that_accepts_and_says_nothing_times_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        access = Access(kubeconfig=str(kubeconfig_of(tmp_path, url)), request_timeout=0.2)
        with pytest.raises(Unanswerable) as problem:
            connect(access).get("/version")
    assert problem.value.ref == "timed-out"


# -- named objects ---------------------------------------------------------------------------------


def deployment(name: str, namespace: str = "team-a") -> dict[str, Any]:
    made = thing("Deployment", name, "apps/v1", namespace=namespace, uid=f"uid-{name}")
    return {**made, "spec": {"replicas": 1}, "status": {"replicas": 1}}


@pytest.mark.parametrize(
    "words",
    [
        ["deploy/a", "deploy/b"],
        ["deployments.apps/a", "Deployment/b"],
        ["deploy", "a", "b"],
        ["deploy"],
        ["deployments.v1.apps"],
        ["sts,deploy"],
    ],
)
def test_objects_are_named_as_for_kubectl(
    words: list[str], server: ApiServer, connection: Connection
) -> None:
    server.objects = [deployment("a"), deployment("b"), deployment("c", "team-b")]
    found = fetch(connection, Catalogue(connection), words, namespace="team-a")
    assert [one["metadata"]["name"] for one in found] == ["a", "b"]


def test_a_custom_resource_is_found_by_its_short_name(
    server: ApiServer, connection: Connection
) -> None:
    group = "leaderworkerset.x-k8s.io"
    server.serve(group, "v1", "LeaderWorkerSet", "leaderworkersets", "lws")
    server.objects = [thing("LeaderWorkerSet", "big", f"{group}/v1", namespace="team-a")]
    found = fetch(connection, Catalogue(connection), ["lws/big"], namespace="team-a")
    assert [(one["kind"], one["metadata"]["name"]) for one in found] == [("LeaderWorkerSet", "big")]


def test_labels_and_all_namespaces_go_to_the_api_server(
    server: ApiServer, connection: Connection
) -> None:
    server.objects = [deployment("a"), deployment("c", "team-b")]
    found = fetch(
        connection, Catalogue(connection), ["deploy"], namespace="x", labels="a=b", everywhere=True
    )
    assert [one["metadata"]["name"] for one in found] == ["a", "c"]
    assert server.asked[-1].path == "/apis/apps/v1/deployments"
    assert server.asked[-1].query["labelSelector"] == "a=b"


@pytest.mark.parametrize(
    ("words", "ref", "hint"),
    [
        (["deploy/aa"], "no-such-object", "did you mean a?"),
        (["deplo/a"], "unknown-type", "did you mean deploy?"),
        (["deploy/a", "b"], "usage", "kubectl gpu-admit explain deploy/a job/b"),
        (["deploy/"], "usage", "for example deploy/web"),
        (["sts"], "no-such-object", "kubectl get sts -A"),
    ],
)
def test_a_name_that_leads_nowhere_is_bad_input(
    words: list[str], ref: str, hint: str, server: ApiServer, connection: Connection
) -> None:
    server.objects = [deployment("a")]
    with pytest.raises(BadInput) as problem:
        fetch(connection, Catalogue(connection), words, namespace="team-a")
    assert (problem.value.ref, problem.value.hint, problem.value.exit_code) == (ref, hint, 2)
    assert isinstance(problem.value, NothingChecked) == (words == ["sts"])


def test_a_refused_object_names_the_rule(server: ApiServer, connection: Connection) -> None:
    path = "/apis/apps/v1/namespaces/team-a/deployments/a"
    server.on(path, forbidden("get", "deployments", group="apps"))
    with pytest.raises(Unanswerable) as problem:
        fetch(connection, Catalogue(connection), ["deploy/a"], namespace="team-a")
    assert problem.value.ref == "forbidden"
    assert problem.value.message == 'user "dev" may not get deployments.apps in namespace team-a'
    assert problem.value.hint == (
        'a Role would need: apiGroups: ["apps"], resources: [deployments], verbs: [get]'
    )


def test_a_stored_object_is_judged_without_what_the_cluster_wrote_into_it() -> None:
    made = document({**pod(0), "spec": {"nodeName": "n", "priority": 7, "containers": []}})
    assert made.data == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p-0", "namespace": "team-a"},
        "spec": {"containers": []},
    }
    assert made.location == "pod/p-0 in team-a"


# -- the whole program -----------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["explain -f", "check"])
def test_a_manifest_is_judged_over_the_wire(
    command: str, server: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    server.objects = [
        {**thing("Node", "n-0"), "status": {"allocatable": amounts, "capacity": amounts}},
        thing("Namespace", "team-a"),
    ]
    server.on("/apis/policy/v1/poddisruptionbudgets", forbidden("list", "poddisruptionbudgets"))
    manifest = tmp_path / "pod.json"
    made = pod(0)
    del made["spec"]["nodeName"], made["metadata"]["managedFields"], made["status"]
    made["spec"]["containers"] = [{"name": "main", "image": "x:1"}]
    manifest.write_text(json.dumps(made))
    config = ["--kubeconfig", str(server.kubeconfig(tmp_path)), "-o", "json"]
    assert main([*command.split(), str(manifest), *config]) == 0
    report = json.loads(capsys.readouterr().out)
    (verdict,) = report["workloads"]
    assert report["source"] == {"kind": "live", "name": "fake", "ageSeconds": 0}
    assert (verdict["admission"], verdict["placement"]) == ("admitted", "fits")
    assert [u["missing"] for u in verdict["unknowns"]] == [
        'also not looked at: user "dev" may not list poddisruptionbudgets in all namespaces'
    ]


def test_a_cluster_that_does_not_let_us_in_is_one_line(
    server: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on("/version", refusal(401, "Unauthorized"))
    config = ["--kubeconfig", str(server.kubeconfig(tmp_path))]
    assert main(["explain", "deploy/web", *config]) == 3
    assert capsys.readouterr().err == (
        "error: the API server does not accept these credentials [unauthorized]\n"
        "hint: log in again; kubectl auth whoami says who you are\n"
    )


def test_a_version_that_is_not_known_yet_is_said(
    server: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on("/version", Reply({"major": "1", "minor": "41"}))
    server.objects = [deployment("web", "default")]
    config = ["--kubeconfig", str(server.kubeconfig(tmp_path))]
    main(["explain", "deploy/web", *config])
    assert "the rules of Kubernetes 1.41 are not known" in capsys.readouterr().err


def test_ctrl_c_does_not_wait_for_a_server_that_says_nothing(
    server: ApiServer, tmp_path: Path
) -> None:
    import os
    import signal

    server.on("/api/v1/nodes", Reply({}, after=30.0))
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(json.dumps(pod(0)))
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "kubectl_gpuadmit.cli.main", "explain", "-f", str(manifest)]
    command += ["--kubeconfig", str(server.kubeconfig(tmp_path))]
    running = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": str(root)}, stderr=subprocess.PIPE, text=True
    )
    ends = time.monotonic() + 20
    while "/api/v1/nodes" not in server.paths() and time.monotonic() < ends:
        threading.Event().wait(0.05)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=10)
    assert (running.returncode, err) == (130, "stopped: nothing was written\n")
