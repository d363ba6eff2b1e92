"""From kubectl's flags, ``KUBECONFIG`` and the kubeconfig to a connection; asks no API server.

Exec and OIDC plugins run here. ``kubernetes`` does all of that; it is imported inside functions.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kubectl_gpuadmit.adapters.kube.connection import Access, Connection
from kubectl_gpuadmit.errors import BadInput, Unanswerable


def connect(access: Access, *, sleep: Callable[[float], None] = time.sleep) -> Connection:
    """The connection that the flags, ``KUBECONFIG`` and the kubeconfig say, as kubectl finds it.

    Nothing is asked of the API server yet; exec and OIDC plugins run. Raises BadInput for a
    kubeconfig that cannot be used, Unanswerable where there is none or credentials cannot be had.
    """
    from kubernetes.client import Configuration

    files = access.kubeconfig or os.environ.get("KUBECONFIG", "") or "~/.kube/config"
    found = [f for f in files.split(os.pathsep) if f and Path(f).expanduser().exists()]
    if access.kubeconfig and not found:
        raise BadInput(
            "no-such-path",
            "no such file or directory",
            file=access.kubeconfig,
            hint="check --kubeconfig",
        )
    configuration = Configuration()
    configuration.connection_pool_maxsize = 16
    if not found:
        return _inside_a_pod(configuration, access, sleep)
    context = _load(configuration, access, files)
    return Connection(
        configuration,
        name=context["shown"],
        namespace=context["namespace"],
        access=access,
        sleep=sleep,
    )


def _load(configuration: Any, access: Access, files: str) -> dict[str, str]:
    """Logs in: fills the configuration from the files and gives the context that was chosen."""
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

    try:
        merged = KubeConfigMerger(files)
        context = _chosen(merged.config, access, files)
        loader = KubeConfigLoader(
            merged.config,
            active_context=context["name"],
            config_base_path=None,
            config_persister=merged.save_changes,
        )
        with _captured() as said:
            loader.load_and_set(configuration)
    except BadInput:
        raise
    except ConfigException as problem:
        raise _unusable(f"the kubeconfig cannot be used: {problem}", files) from problem
    except Exception as problem:  # yaml's, binascii's, oauthlib's: whatever it stumbles over
        first = str(problem).strip().partition("\n")[0] or type(problem).__name__
        raise _unusable(f"the kubeconfig cannot be read: {first}", files) from problem
    if said and not configuration.api_key and not configuration.cert_file:
        raise Unanswerable(
            "login-failed",
            f"the login plugin of the kubeconfig failed: {said[-1]}",
            hint="run kubectl auth whoami: does it log in?",
        )
    if not loader.__dict__.get("host"):
        raise _unusable("the cluster has no server:", files)
    return context


def _unusable(message: str, files: str) -> BadInput:
    return BadInput("bad-kubeconfig", message, file=files, hint="kubectl config view")


def _chosen(config: Any, access: Access, files: str) -> dict[str, str]:
    """The context to use; one of our own where --cluster or --user replaces a part of it."""
    from kubernetes.config.kube_config import ConfigNode

    if config is None:
        raise _unusable("is empty", files)
    data = config.value
    entries = {kind: _named(data.get(kind)) for kind in ("contexts", "clusters", "users")}
    name = access.context or data.get("current-context") or ""
    asked = (
        ("context", name, "contexts"),
        ("cluster", access.cluster, "clusters"),
        ("user", access.user, "users"),
    )
    for what, wanted, kind in asked:
        if wanted and wanted not in entries[kind]:
            others = ", ".join(sorted(entries[kind])[:6]) or "none at all"
            raise BadInput(
                f"unknown-{what}",
                f"the kubeconfig has no {what} {wanted}",
                file=files,
                hint=f"it has {others}",
            )
    if not name and not access.cluster:
        raise Unanswerable(
            "no-current-context",
            "the kubeconfig has no current context",
            file=files,
            hint="--context NAME, or kubectl config use-context NAME",
        )
    context: dict[str, Any] = dict(_plain(entries["contexts"].get(name), "context"))
    shown = name or access.cluster
    if access.cluster or access.user:
        context["cluster"] = access.cluster or context.get("cluster")
        context["user"] = access.user or context.get("user")
        name = f"{name} with our flags"
        data["contexts"].append(
            ConfigNode(files, {"name": name, "context": context}, files.split(os.pathsep)[0])
        )
    namespace = context.get("namespace")
    return {"name": name, "shown": shown, "namespace": str(namespace or "default")}


def _named(listed: Any) -> dict[str, Any]:
    return {str(item["name"]): item for item in listed or () if "name" in item}


def _plain(entry: Any, key: str) -> dict[str, Any]:
    value = entry[key] if entry is not None and key in entry else {}
    value = getattr(value, "value", value)
    return value if isinstance(value, dict) else {}


@contextlib.contextmanager
def _captured() -> Iterator[list[str]]:
    """What ``kubernetes`` logs of a failing plugin: it raises nothing, and stderr is ours."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(" ".join(record.getMessage().split())[:300])

    root = logging.getLogger()
    before, listener = root.handlers[:], Listener()
    root.handlers[:] = [listener]
    try:
        yield said
    finally:
        root.handlers[:] = before


def _inside_a_pod(configuration: Any, access: Access, sleep: Callable[[float], None]) -> Connection:
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.incluster_config import load_incluster_config

    try:
        load_incluster_config(client_configuration=configuration)
    except ConfigException:
        raise Unanswerable(
            "no-kubeconfig",
            "there is no kubeconfig, and no snapshot was named",
            hint="--kubeconfig FILE, or KUBECONFIG, or --snapshot PATH",
        ) from None
    account = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
    namespace = account.read_text("utf-8").strip() if account.is_file() else "default"
    return Connection(
        configuration, name="in-cluster", namespace=namespace, access=access, sleep=sleep
    )
