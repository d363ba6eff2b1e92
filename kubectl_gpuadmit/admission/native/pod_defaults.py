"""The defaults of all fields of a pod, on plain data: a policy may look at any of them.

``admission.defaults`` fills in what changes a verdict of ours; here it is everything.

Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/defaults.go, zz_generated.defaults.go,
conversion.go (serviceAccount, security context); plugin/pkg/admission/serviceaccount (token).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"


def fill(pod: Json) -> None:
    """Fills in the defaults of a typed pod, in place."""
    spec = pod["spec"]
    _pod_spec(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    for container in containers(spec):
        for port in container.get("ports") or ():
            if spec.get("hostNetwork") and not port.get("hostPort") and port.get("containerPort"):
                port["hostPort"] = port["containerPort"]
        wanted = container.get("resources") or {}
        if wanted.get("limits"):
            wanted["requests"] = {**wanted["limits"], **(wanted.get("requests") or {})}


def fill_template(template: Json) -> None:
    """The defaults that a pod template has already in its workload; the rest its pods get."""
    _pod_spec(template.setdefault("spec", {}))


def _pod_spec(spec: Json) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for container in containers(spec):
        _container(container)
    for volume in spec.get("volumes") or ():
        _volume(volume)


def containers(spec: Json) -> Iterator[Json]:
    """Init containers, containers and ephemeral ones."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for one in spec.get(kind) or ():
            if isinstance(one, dict):
                yield one


def _container(container: Json) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(str(container.get("image") or ""))
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for env in container.get("env") or ():
        field = (env.get("valueFrom") or {}).get("fieldRef")
        if field is not None and not field.get("apiVersion"):
            field["apiVersion"] = "v1"
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(probe := container.get(name), dict):
            _probe(probe)
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict) and isinstance(get := hook.get("httpGet"), dict):
            _http_get(get)


def _pull_policy(image: str) -> str:
    """Always for ``:latest`` and for no tag, else IfNotPresent (parsers.ParseImageName)."""
    name, at, _ = image.partition("@")
    tag = re.search(r":([^:/]+)$", name)
    if tag is None and at:
        return "IfNotPresent"
    return "Always" if tag is None or tag[1] == "latest" else "IfNotPresent"


def _probe(probe: Json) -> None:
    for field, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if not probe.get(field):
            probe[field] = value
    if isinstance(get := probe.get("httpGet"), dict):
        _http_get(get)
    if isinstance(grpc := probe.get("grpc"), dict) and grpc.get("service") is None:
        grpc["service"] = ""


def _http_get(get: Json) -> None:
    get["path"] = get.get("path") or "/"
    get["scheme"] = get.get("scheme") or "HTTP"


_MODES = ("secret", "configMap", "downwardAPI", "projected")


def _volume(volume: Json) -> None:
    if len(volume) <= 1:
        volume["emptyDir"] = {}
    for name in _MODES:
        if isinstance(source := volume.get(name), dict):
            if source.get("defaultMode") is None:
                source["defaultMode"] = 420
            parts = source.get("sources") or () if name == "projected" else (source,)
            for part in parts:
                _projection(part)
    if isinstance(path := volume.get("hostPath"), dict) and path.get("type") is None:
        path["type"] = ""
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if isinstance(claim, dict):
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _projection(part: Json) -> None:
    token = part.get("serviceAccountToken")
    if isinstance(token, dict) and not token.get("expirationSeconds"):
        token["expirationSeconds"] = 3600
    items = (part.get("downwardAPI") or {}).get("items") or part.get("items") or ()
    for item in items:
        field = item.get("fieldRef")
        if isinstance(field, dict) and not field.get("apiVersion"):
            field["apiVersion"] = "v1"


def mount_token(spec: Json) -> None:
    """The token of the service account, which its plugin mounts into every container."""
    volumes = spec.get("volumes") or []
    named = "kube-api-access-xxxxx"
    used = False
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            mounts = container.get("volumeMounts") or []
            if any(mount.get("mountPath") == TOKEN for mount in mounts):
                continue
            used = True
            container["volumeMounts"] = [
                *mounts,
                {"name": named, "readOnly": True, "mountPath": TOKEN},
            ]
    if not used:
        return
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {
            "configMap": {
                "name": "kube-root-ca.crt",
                "items": [{"key": "ca.crt", "path": "ca.crt"}],
            }
        },
        {
            "downwardAPI": {
                "items": [
                    {
                        "path": "namespace",
                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                    }
                ]
            }
        },
    ]
    volume = {"name": named, "projected": {"sources": sources, "defaultMode": 420}}
    spec["volumes"] = [*volumes, volume]
