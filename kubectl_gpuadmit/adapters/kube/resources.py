"""Kinds and the paths under which API servers serve them; discovery for what is not built in.

The table holds the kinds that the engine reads and built-in workloads, with short names.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.adapters.kube.connection import Connection
from kubectl_gpuadmit.adapters.kube.faults import HttpStatus
from kubectl_gpuadmit.errors import BadInput
from kubectl_gpuadmit.kube.workloads import kinds

_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Resource(Struct, frozen=True):
    """One resource of an API server."""

    kind: str
    plural: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    """Served ones, or those to be tried, the best first."""
    namespaced: bool = True
    names: tuple[str, ...] = ()
    """Short names and the singular."""

    def path(self, version: str, namespace: str = "", name: str = "") -> str:
        """The path of a list, or of one object."""
        root = f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"
        inside = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{inside}/{self.plural}" + (f"/{name}" if name else "")

    @property
    def full_name(self) -> str:
        """``deployments.apps``, as RBAC and kubectl write it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def rule(self, verb: str) -> str:
        """The RBAC rule that would allow it."""
        return f'apiGroups: ["{self.group}"], resources: [{self.plural}], verbs: [{verb}]'


_DRA = ("v1", "v1beta2", "v1beta1")
_ADMISSION = "admissionregistration.k8s.io"

BUILT_IN: dict[str, Resource] = {
    r.kind: r
    for r in (
        Resource("Pod", "pods", names=("po", "pod")),
        Resource("Node", "nodes", namespaced=False, names=("no", "node")),
        Resource("Namespace", "namespaces", namespaced=False, names=("ns", "namespace")),
        Resource("ResourceQuota", "resourcequotas", names=("quota", "resourcequota")),
        Resource("LimitRange", "limitranges", names=("limits", "limitrange")),
        Resource("ServiceAccount", "serviceaccounts", names=("sa", "serviceaccount")),
        Resource("PersistentVolumeClaim", "persistentvolumeclaims", names=("pvc",)),
        Resource("PersistentVolume", "persistentvolumes", namespaced=False, names=("pv",)),
        Resource("ConfigMap", "configmaps", names=("cm", "configmap")),
        Resource("Service", "services", names=("svc", "service")),
        Resource("ConfigMap", "configmaps", names=("cm", "configmap")),
        Resource("Event", "events", names=("ev", "event")),
        Resource("ReplicationController", "replicationcontrollers", names=("rc",)),
        Resource("Deployment", "deployments", "apps", names=("deploy", "deployment")),
        Resource("ReplicaSet", "replicasets", "apps", names=("rs", "replicaset")),
        Resource("StatefulSet", "statefulsets", "apps", names=("sts", "statefulset")),
        Resource("DaemonSet", "daemonsets", "apps", names=("ds", "daemonset")),
        Resource("Job", "jobs", "batch", names=("job",)),
        Resource("CronJob", "cronjobs", "batch", names=("cj", "cronjob")),
        Resource("PriorityClass", "priorityclasses", "scheduling.k8s.io", namespaced=False),
        Resource("PodDisruptionBudget", "poddisruptionbudgets", "policy", names=("pdb",)),
        Resource("StorageClass", "storageclasses", "storage.k8s.io", namespaced=False),
        Resource("CSINode", "csinodes", "storage.k8s.io", namespaced=False),
        Resource("CSIDriver", "csidrivers", "storage.k8s.io", namespaced=False),
        Resource("CSIStorageCapacity", "csistoragecapacities", "storage.k8s.io"),
        Resource("RuntimeClass", "runtimeclasses", "node.k8s.io", namespaced=False),
        Resource("DeviceClass", "deviceclasses", "resource.k8s.io", _DRA, namespaced=False),
        Resource("ResourceSlice", "resourceslices", "resource.k8s.io", _DRA, namespaced=False),
        Resource("ResourceClaim", "resourceclaims", "resource.k8s.io", _DRA),
        Resource("ResourceClaimTemplate", "resourceclaimtemplates", "resource.k8s.io", _DRA),
        Resource(
            "DeviceTaintRule",
            "devicetaintrules",
            "resource.k8s.io",
            ("v1", "v1beta2", "v1alpha3"),
            namespaced=False,
        ),
        Resource(
            "NodeResourceTopology",
            "noderesourcetopologies",
            "topology.node.k8s.io",
            ("v1alpha2", "v1alpha1"),
            namespaced=False,
        ),
        Resource("GpuTopology", "gputopologies", "gpu-admit.io", ("v1alpha1",), namespaced=False),
        Resource("TrainingRuntime", "trainingruntimes", "trainer.kubeflow.org", ("v1alpha1",)),
        Resource(
            "ClusterTrainingRuntime",
            "clustertrainingruntimes",
            "trainer.kubeflow.org",
            ("v1alpha1",),
            namespaced=False,
        ),
        *(
            Resource(kind, plural, _ADMISSION, versions, namespaced=False)
            for kind, plural, versions in (
                ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", ("v1",)),
                ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", ("v1",)),
                (
                    "ValidatingAdmissionPolicy",
                    "validatingadmissionpolicies",
                    ("v1", "v1beta1"),
                ),
                (
                    "ValidatingAdmissionPolicyBinding",
                    "validatingadmissionpolicybindings",
                    ("v1", "v1beta1"),
                ),
                (
                    "MutatingAdmissionPolicy",
                    "mutatingadmissionpolicies",
                    ("v1", "v1beta1", "v1alpha1"),
                ),
                (
                    "MutatingAdmissionPolicyBinding",
                    "mutatingadmissionpolicybindings",
                    ("v1", "v1beta1", "v1alpha1"),
                ),
            )
        ),
    )
}
"""Kind -> resource, for what needs no discovery."""


class Catalogue:
    """Finds resources by what people type and by kind; asks the API server at most once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._discovered: tuple[Resource, ...] | None = None

    def typed(self, text: str) -> Resource:
        """``deploy``, ``Deployment``, ``jobs.batch``, ``lws``: kubectl's ways to name a resource.

        Of several groups with such a resource, the one whose pods we can tell is taken. Raises
        BadInput (``unknown-type``).
        """
        wanted = text.lower()
        for one in BUILT_IN.values():
            if wanted in _spellings(one):
                return one
        found = [one for one in self.discovered() if wanted in _spellings(one)]
        mapped = {(group, kind) for group, kind in kinds()}
        found.sort(key=lambda one: ((one.group, one.kind) not in mapped, one.group))
        if found:
            return found[0]
        import difflib

        names = {
            name for one in (*BUILT_IN.values(), *self.discovered()) for name in _spellings(one)
        }
        close = difflib.get_close_matches(wanted, sorted(names), n=1)
        hint = f"did you mean {close[0]}?" if close else "kubectl api-resources lists what there is"
        raise BadInput("unknown-type", f"the cluster has no resource type {text}", hint=hint)

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a manifest's apiVersion and kind, None where it is not served."""
        group, _, version = api_version.rpartition("/")
        known = BUILT_IN.get(kind)
        if known is not None and known.group == group:
            return known
        for one in self.discovered():
            if (one.group, one.kind) == (group, kind):
                return msgspec.structs.replace(one, versions=(version,))
        return None

    def served(self, api_version: str, kind: str) -> Resource | None:
        """The same, but only where this very version is served; of the core group only kinds of the
        table are found."""
        group, _, version = api_version.rpartition("/")
        known = BUILT_IN.get(kind)
        if known is not None and known.group == group and version == known.versions[0]:
            return known
        for one in self.discovered():
            if (one.group, one.kind) == (group, kind) and version in one.versions:
                return msgspec.structs.replace(one, versions=(version,))
        return None

    def discovered(self) -> tuple[Resource, ...]:
        """Every resource outside the core group, as the API server lists them."""
        if self._discovered is None:
            try:
                reply = self._connection.get("/apis", accept=_DISCOVERY)
            except HttpStatus as problem:
                raise self._connection.fail(problem) from None
            self._discovered = tuple(_resources(reply.body))
        return self._discovered


def _spellings(one: Resource) -> set[str]:
    plain = {one.plural, one.kind.lower(), *(name.lower() for name in one.names)}
    if not one.group:
        return plain
    first = one.versions[0]
    return plain | {f"{name}.{one.group}" for name in plain} | {f"{one.plural}.{first}.{one.group}"}


class _Discovered(Struct):
    items: list[dict[str, Any]] = []


def _resources(body: bytes) -> list[Resource]:
    """Of an aggregated discovery document (Kubernetes 1.27 and later)."""
    found: dict[tuple[str, str], Resource] = {}
    for group in msgspec.json.decode(body, type=_Discovered).items:
        name = str(group.get("metadata", {}).get("name", ""))
        for version in group.get("versions", ()):
            for entry in version.get("resources", ()):
                kind = str(entry.get("responseKind", {}).get("kind", ""))
                plural = str(entry.get("resource", ""))
                known = found.get((name, plural))
                versions = (*known.versions, str(version["version"])) if known else ()
                found[name, plural] = Resource(
                    kind=kind,
                    plural=plural,
                    group=name,
                    versions=versions or (str(version["version"]),),
                    namespaced=entry.get("scope") == "Namespaced",
                    names=(
                        *entry.get("shortNames", ()),
                        *filter(None, [entry.get("singularResource")]),
                    ),
                )
    return list(found.values())
