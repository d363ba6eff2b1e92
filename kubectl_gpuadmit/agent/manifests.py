"""Everything that the agent needs in a cluster, as Kubernetes objects; applies none of them.

What it may do, and no more: read the Node that owns its object, and write that object. RBAC cannot
say "the object named like your own node", so a ValidatingAdmissionPolicy does: the API server puts
the node of the pod that a token is bound to into the user's extra (ServiceAccountTokenPodNodeInfo,
on by default since Kubernetes 1.30).
"""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.agent.schema import definition
from kubectl_gpuadmit.kube import gpu_topology as wire
from kubectl_gpuadmit.kube.gpu_topology_object import HOME, PREFIX

NAMESPACE = HOME
NAME = "gpu-admit-agent"
IMAGE = "gpu-admit:0.1.0"
PORT = 9435
RBAC = "rbac.authorization.k8s.io"
ADMISSION = "admissionregistration.k8s.io"
NODE_EXTRA = "authentication.kubernetes.io/node-name"
KUBELET_CONFIG = "/var/lib/kubelet/config.yaml"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def objects(
    *, namespace: str = NAMESPACE, image: str = IMAGE, store: str = "crd"
) -> list[dict[str, Any]]:
    """In the order in which they are applied. ``store`` is ``crd`` or ``configmap``."""
    with_crd = store == "crd"
    return [
        _namespace(namespace),
        *([definition()] if with_crd else []),
        _account(namespace),
        *_rights(namespace, with_crd=with_crd),
        _policy(namespace, with_crd=with_crd),
        _binding(),
        _daemon_set(namespace, image, store),
    ]


def files(**chosen: str) -> dict[str, list[dict[str, Any]]]:
    """The same by the file of ``deploy/agent/`` that they stand in, with a kustomization."""
    places = {
        "CustomResourceDefinition": "crd.yaml",
        "DaemonSet": "daemonset.yaml",
        "ValidatingAdmissionPolicy": "policy.yaml",
        "ValidatingAdmissionPolicyBinding": "policy.yaml",
        "Namespace": "namespace.yaml",
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for one in objects(**chosen):
        found.setdefault(places.get(one["kind"], "rbac.yaml"), []).append(one)
    found["kustomization.yaml"] = [
        {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": list(found),
        }
    ]
    return found


def text(listed: list[dict[str, Any]]) -> str:
    """The objects as YAML documents."""
    import yaml

    return "---\n".join(
        yaml.safe_dump(one, sort_keys=False, width=100, allow_unicode=True) for one in listed
    )


def _namespace(namespace: str) -> dict[str, Any]:
    """hostPID and hostPath volumes are beyond the restricted and baseline profiles."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": namespace,
            "labels": {"pod-security.kubernetes.io/enforce": "privileged"},
        },
    }


def _account(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": NAME, "namespace": namespace},
    }


def _rights(namespace: str, *, with_crd: bool) -> list[dict[str, Any]]:
    nodes = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}
    maps = {
        "apiGroups": [wire.GROUP],
        "resources": ["gputopologies"],
        "verbs": ["get", "create", "patch"],
    }
    inside = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "verbs": ["get", "create", "patch"],
    }
    found = [
        _role("ClusterRole", [nodes, maps] if with_crd else [nodes]),
        _role_binding("ClusterRole", namespace),
    ]
    if not with_crd:
        found += [_role("Role", [inside], namespace), _role_binding("Role", namespace)]
    return found


def _role(kind: str, rules: list[dict[str, Any]], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": NAME, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}


def _role_binding(kind: str, namespace: str) -> dict[str, Any]:
    metadata = {"name": NAME, **({"namespace": namespace} if kind == "Role" else {})}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    }


def _policy(namespace: str, *, with_crd: bool) -> dict[str, Any]:
    """The rule holds for the agent's service account alone: who else may write, RBAC says."""
    group, resource = (wire.GROUP, "gputopologies") if with_crd else ("", "configmaps")
    prefix = "" if with_crd else PREFIX
    mine = f"'{prefix}' + variables.node" if prefix else "variables.node"
    extra = "request.userInfo.extra"
    bound = f"{extra}['{NODE_EXTRA}']"
    return {
        "apiVersion": f"{ADMISSION}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [group],
                        "apiVersions": ["*"],
                        "resources": [resource],
                        "operations": ["CREATE", "UPDATE"],
                    }
                ]
            },
            "matchConditions": [
                {
                    "name": "by-the-agent",
                    "expression": "request.userInfo.username == "
                    f"'system:serviceaccount:{namespace}:{NAME}'",
                }
            ],
            "variables": [
                {
                    "name": "node",
                    "expression": f"has({extra}) && '{NODE_EXTRA}' in {extra} && "
                    f"size({bound}) == 1 ? {bound}[0] : ''",
                }
            ],
            "validations": [
                {
                    "expression": f"variables.node != '' && object.metadata.name == {mine}",
                    "messageExpression": "'an agent writes the map of its own node (' + "
                    "(variables.node == '' ? 'its token is bound to none' : variables.node) + "
                    "'), not ' + object.metadata.name",
                    "reason": "Forbidden",
                },
                {
                    "expression": "!has(object.metadata.ownerReferences) || "
                    "object.metadata.ownerReferences.all(o, o.kind == 'Node' && "
                    "o.apiVersion == 'v1' && o.name == variables.node)",
                    "message": "the map of a node is owned by that node, and by nothing else",
                    "reason": "Forbidden",
                },
            ],
        },
    }


def _binding() -> dict[str, Any]:
    return {
        "apiVersion": f"{ADMISSION}/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NAME},
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    }


def _daemon_set(namespace: str, image: str, store: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": NAME}
    sockets = "/var/lib/kubelet/pod-resources"
    container = {
        "name": "agent",
        "image": image,
        "args": ["agent", f"--listen=:{PORT}", f"--store={store}"],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            # the container runtime's NVIDIA hook: every GPU, and NVML with nvidia-smi alone
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
            {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
        ],
        "ports": [{"name": "metrics", "containerPort": PORT}],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "metrics"},
            "initialDelaySeconds": 30,
            "periodSeconds": 60,
            "failureThreshold": 3,
        },
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": "metrics"},
            "periodSeconds": 30,
        },
        "resources": {
            "requests": {"cpu": "10m", "memory": "96Mi"},
            "limits": {"memory": "192Mi"},
        },
        # root: the sockets of the kubelet and /proc of other users' processes are root's
        "securityContext": {**RESTRICTED, "runAsUser": 0},
        "volumeMounts": [
            {"name": "pod-resources", "mountPath": sockets, "readOnly": True},
            {"name": "kubelet-config", "mountPath": KUBELET_CONFIG, "readOnly": True},
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": "20%"}},
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {
                        "prometheus.io/scrape": "true",
                        "prometheus.io/port": str(PORT),
                    },
                },
                "spec": {
                    "serviceAccountName": NAME,
                    "hostPID": True,
                    "runtimeClassName": "nvidia",
                    "priorityClassName": "system-node-critical",
                    "nodeSelector": {"nvidia.com/gpu.present": "true"},
                    "tolerations": [{"operator": "Exists"}],
                    "terminationGracePeriodSeconds": 10,
                    "containers": [container],
                    "volumes": [
                        {
                            "name": "pod-resources",
                            "hostPath": {"path": sockets, "type": "Directory"},
                        },
                        # the one file: the folder around it holds every pod's secrets
                        {"name": "kubelet-config", "hostPath": {"path": KUBELET_CONFIG}},
                    ],
                },
            },
        },
    }
