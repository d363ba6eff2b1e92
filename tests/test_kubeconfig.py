"""Flags, kubeconfigs and login plugins, up to what the API server is then sent."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import pytest

from kubectl_gpuadmit.adapters.kube.connection import Access
from kubectl_gpuadmit.adapters.kube.faults import HttpStatus
from kubectl_gpuadmit.adapters.kube.kubeconfig import connect
from kubectl_gpuadmit.errors import BadInput, GpuAdmitError, Unanswerable
from tests.fakes.apiserver import ApiServer, kubeconfig_of


def test_flags_say_as_whom_to_ask(server: ApiServer, tmp_path: Path) -> None:
    access = Access(
        kubeconfig=str(server.kubeconfig(tmp_path)), as_user="bob", as_groups=("dev", "ops")
    )
    connect(access).get("/version")
    headers = server.asked[0].headers
    assert headers["Authorization"] == "Bearer secret"
    assert headers["Impersonate-User"] == "bob"
    assert headers.get_all("Impersonate-Group") == ["dev", "ops"]


def test_the_context_gives_its_name_and_namespace(server: ApiServer, tmp_path: Path) -> None:
    file = server.kubeconfig(tmp_path, namespace="team-a")
    connection = connect(Access(kubeconfig=str(file)))
    assert (connection.name, connection.namespace) == ("fake", "team-a")


def test_a_login_plugin_gives_the_token(server: ApiServer, tmp_path: Path) -> None:
    said = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "from-plugin"},
    }
    script = f"print({json.dumps(json.dumps(said))})"
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": ["-c", script],
            "interactiveMode": "Never",
        }
    }
    connect(Access(kubeconfig=str(server.kubeconfig(tmp_path, user=user)))).get("/version")
    assert server.asked[0].headers["Authorization"] == "Bearer from-plugin"


def test_a_login_plugin_that_fails_is_quoted(
    server: ApiServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": ["-c", "raise SystemExit('token expired: run sso login')"],
            "interactiveMode": "Never",
        }
    }
    with pytest.raises(Unanswerable) as problem:
        connect(Access(kubeconfig=str(server.kubeconfig(tmp_path, user=user))))
    assert problem.value.ref == "login-failed"
    assert "run sso login" in problem.value.message
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("access", "ref"),
    [
        ({"context": "nope"}, "unknown-context"),
        ({"cluster": "nope"}, "unknown-cluster"),
        ({"user": "nope"}, "unknown-user"),
        ({"kubeconfig": "/nowhere/config"}, "no-such-path"),
    ],
)
def test_a_name_that_the_kubeconfig_does_not_have(
    access: dict[str, str], ref: str, server: ApiServer, tmp_path: Path
) -> None:
    given = {"kubeconfig": str(server.kubeconfig(tmp_path)), **access}
    with pytest.raises(BadInput) as problem:
        connect(Access(**given))
    assert (problem.value.ref, problem.value.exit_code) == (ref, 2)


EXPIRED = """-----BEGIN CERTIFICATE-----
MIIBAzCBqgIBATAKBggqhkjOPQQDAjAOMQwwCgYDVQQDDANkZXYwHhcNMjQwMTAx
MDAwMDAwWhcNMjQwMjAxMDAwMDAwWjAOMQwwCgYDVQQDDANkZXYwWTATBgcqhkjO
PQIBBggqhkjOPQMBBwNCAARAVUfP5kXCyhLb1jZa0wblcSlNCR1H/xyGxcvLf2Hp
RJ+slP64kpPHx+YM1Z34lO3tH6AJ8e02O7GYLRJH2GgZMAoGCCqGSM49BAMCA0gA
MEUCIC9aPHswN8ebqu8gsQZf0RS6kW9jXIo2mGC72kN9FbciAiEA5ulUi7latBQK
4aOHZAI/Jk6pVgK3p1WJCumjmRXZ6C8=
-----END CERTIFICATE-----
"""


def test_a_client_certificate_that_has_run_out_is_said(tmp_path: Path) -> None:
    user = {"client-certificate-data": base64.b64encode(EXPIRED.encode()).decode()}
    file = kubeconfig_of(tmp_path, "https://127.0.0.1:6443", user)
    error = connect(Access(kubeconfig=str(file))).fail(HttpStatus(401, b"{}", {}))
    assert (error.ref, error.message) == (
        "certificate-expired",
        "your client certificate ran out on 2024-02-01 00:00 UTC",
    )


@pytest.mark.parametrize("text", ["", "just text", "{", "clusters: 7", "current-context: c"])
def test_a_kubeconfig_that_is_none_is_bad_input(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(GpuAdmitError) as problem:
        connect(Access(kubeconfig=str(file)))
    assert problem.value.ref in (
        "bad-kubeconfig",
        "unknown-context",
        "no-current-context",
    )


def test_cluster_and_user_replace_parts_of_the_context(tmp_path: Path, server: ApiServer) -> None:
    config = json.loads(kubeconfig_of(tmp_path, "http://127.0.0.1:1").read_text())
    config["clusters"].append({"name": "other", "cluster": {"server": server.url}})
    config["users"].append({"name": "guest", "user": {"token": "guest"}})
    file = tmp_path / "both"
    file.write_text(json.dumps(config))
    connect(Access(kubeconfig=str(file), cluster="other", user="guest")).get("/version")
    assert server.asked[0].headers["Authorization"] == "Bearer guest"


def test_without_kubeconfig_and_outside_a_pod_the_error_says_what_to_give(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(Unanswerable) as problem:
        connect(Access())
    assert problem.value.ref == "no-kubeconfig"
