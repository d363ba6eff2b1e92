"""ResourceQuota admission over a whole run: what is charged, how many pods fit, what is refused.

A ``Ledger`` starts from status.used of the cluster's quotas and is charged with everything that the
run would create. Rows are immutable, so a fork costs one dict. Quotas without a status (a run
brings them along) start from what the cluster's own objects use.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/resourcequota/controller.go (CheckRequest).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from kubectl_gpuadmit.admission import quota_refusals, quota_usage
from kubectl_gpuadmit.admission.quota_row import Row
from kubectl_gpuadmit.admission.quota_usage import Charge
from kubectl_gpuadmit.admission.refusal import stored_name
from kubectl_gpuadmit.admission.resource_lists import ZERO, ResourceList, plus, read, times
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import quota_keys
from kubectl_gpuadmit.kube.dra import DeviceClass, ResourceClaim, ResourceClaimTemplate
from kubectl_gpuadmit.kube.objects import KubeObject, ObjectMeta, Pod, ResourceQuota
from kubectl_gpuadmit.kube.quantity import Quantity
from kubectl_gpuadmit.verdict import Finding, Unknown

_RULE = "admission/quota"

Answer = tuple[tuple[Finding, ...], tuple[Unknown, ...]]


class Ledger:
    """What every quota of a run has been charged. Change a fork, never a ledger that others use."""

    __slots__ = ("_accepted", "_classes", "_cluster", "_rows", "_templates")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rows: dict[str, tuple[Row, ...]] = {}
        self._accepted: tuple[tuple[str, Charge, int], ...] = ()
        self._classes: dict[str, str] | None = None
        self._templates: dict[tuple[str, str], ResourceClaimTemplate] = {}

    @classmethod
    def of(cls, cluster: Cluster) -> Ledger:
        """``cluster`` as it was before the run; the ledger keeps it and only reads it."""
        return cls(cluster)

    def fork(self) -> Ledger:
        """A what-if copy: cheap, and independent of this one from now on."""
        twin = Ledger(self._cluster)
        twin._rows = dict(self._rows)
        twin._accepted = self._accepted
        twin._classes = self._classes
        twin._templates = self._templates
        return twin

    def rows(self, namespace: str) -> tuple[Row, ...]:
        """The quotas of a namespace by name, as they stand."""
        rows = self._rows.get(namespace)
        if rows is None:
            rows = tuple(self._row(quota) for quota in self._cluster.quotas(namespace))
            self._rows[namespace] = rows
        return rows

    # -- charging ----------------------------------------------------------------------------

    def admit_pods(
        self, pod: Pod, namespace: str, count: int
    ) -> tuple[int, tuple[Finding, ...], tuple[Unknown, ...]]:
        """Charges as many of ``count`` equal pods as the quotas admit, one after another.

        Gives that number, the findings for the first pod that is refused, and what is not known.
        """
        if not self.rows(namespace):
            return count, (), self._unknowns(namespace, ())
        fit, findings, unknowns = self._admit(namespace, quota_usage.of_pod(pod), count)
        if fit and pod.spec.resourceClaims:
            findings += self._template_claims(pod, namespace, fit)
        return fit, findings, unknowns

    def admit_objects(self, namespace: str, counts: Mapping[str, int]) -> Answer:
        """Charges objects by number: ``{"deployments.apps": 1}``. Pods: ``admit_pods``."""
        findings: list[Finding] = []
        unknowns: list[Unknown] = []
        if self.rows(namespace):
            for resource, count in counts.items():
                if resource != "pods" and count > 0:
                    charge = quota_usage.of_object(resource)
                    _, found, unsure = self._admit(namespace, charge, count)
                    findings += found
                    unknowns += unsure
        return tuple(findings), tuple(dict.fromkeys(unknowns))

    def admit_object(self, obj: KubeObject, namespace: str) -> Answer:
        """Charges one object that does not exist yet, by its content (storage, devices, ports)."""
        if not self.rows(namespace):
            return (), self._unknowns(namespace, ())
        _, findings, unknowns = self._admit(namespace, self._charge(obj), 1)
        return findings, unknowns

    def apply(self, obj: KubeObject) -> Answer:
        """An object that the run brings along: a quota takes effect, all else is charged.

        One that the cluster has already counts as updated in place and is not charged again.
        """
        if isinstance(obj, ResourceQuota):
            self.apply_quota(obj)
        if isinstance(obj, ResourceClaimTemplate):
            self._templates = {**self._templates, (obj.namespace, obj.name): obj}
        if isinstance(obj, DeviceClass):
            extended = obj.spec.extendedResourceName or ""
            self._classes = {**self._device_classes(), obj.name: extended}
            return (), ()
        if not obj.namespace or self._cluster.get(obj.kind, obj.namespace, obj.name) is not None:
            return (), ()
        charge = self._charge(obj)
        if not self.rows(obj.namespace):
            self._accepted += ((obj.namespace, charge, 1),)
            return (), ()
        _, findings, unknowns = self._admit(obj.namespace, charge, 1)
        return findings, unknowns

    def apply_quota(self, quota: ResourceQuota) -> None:
        """A quota that the run brings along: limits from its spec, used what the namespace uses."""
        rows = [row for row in self.rows(quota.namespace) if row.quota.name != quota.name]
        rows.append(self._counted(quota))
        self._rows[quota.namespace] = tuple(sorted(rows, key=lambda row: row.quota.name))

    def release(self, pod: Pod) -> None:
        """Takes off what a pod of the cluster was charged: it ends, or is replaced."""
        namespace = pod.namespace
        if not self.rows(namespace):
            return
        charge = quota_usage.of_pod(pod)
        self._rows[namespace] = tuple(
            row.released(charge.usage)
            if quota_usage.concerns(row.quota.spec, row.hard, charge)
            else row
            for row in self.rows(namespace)
        )

    def needed(self, pod: Pod, namespace: str, count: int) -> dict[str, dict[str, Quantity]]:
        """Quota name -> key -> limit that would admit ``count`` more pods, where it is too low."""
        charge = quota_usage.of_pod(pod)
        wanted: dict[str, dict[str, Quantity]] = {}
        for row in self.rows(namespace):
            if quota_usage.concerns(row.quota.spec, row.hard, charge):
                for key, amount in row.delta(charge).items():
                    total = plus(row.used.get(key, ZERO), times(amount, count))
                    if total.nano > row.hard[key].nano:
                        wanted.setdefault(row.quota.name, {})[key] = total
        return wanted

    def raise_limits(self, namespace: str, name: str, limits: Mapping[str, Quantity]) -> None:
        """Sets new limits of a quota and leaves what is used of it as it is."""
        self._rows[namespace] = tuple(
            replace(row, hard={**row.hard, **limits}) if row.quota.name == name else row
            for row in self.rows(namespace)
        )

    # -- inside ------------------------------------------------------------------------------

    def _template_claims(self, pod: Pod, namespace: str, count: int) -> tuple[Finding, ...]:
        """Claims that the controller makes for admitted pods; over quota they are never made."""
        found: list[Finding] = []
        for claim in pod.spec.resourceClaims or ():
            name = claim.resourceClaimTemplateName
            template = self._templates.get((namespace, name or "")) or self._cluster.get(
                "ResourceClaimTemplate", namespace, name or ""
            )
            if not isinstance(template, ResourceClaimTemplate):
                continue
            made = ResourceClaim(
                apiVersion=template.apiVersion,
                metadata=ObjectMeta(
                    namespace=namespace, generateName=f"{stored_name(pod)}-{claim.name}-"
                ),
                spec=template.spec.spec,
            )
            _, refused, _ = self._admit(namespace, self._charge(made), count)
            found += (
                replace(
                    finding,
                    reason="quota/template-trap",
                    detail=f"claim {claim.name} from template {name} is refused after the pod is"
                    f" admitted, which then stays Pending: {finding.detail}",
                    level="warn",
                    permanent=False,
                    suggest=(),
                )
                for finding in refused
            )
        return tuple(found)

    def _charge(self, obj: KubeObject) -> Charge:
        return quota_usage.of(obj, self._device_classes())

    def _device_classes(self) -> dict[str, str]:
        if self._classes is None:
            self._classes = {
                obj.name: obj.spec.extendedResourceName or ""
                for obj in self._cluster.every("DeviceClass")
                if isinstance(obj, DeviceClass)
            }
        return self._classes

    def _admit(
        self, namespace: str, charge: Charge, count: int
    ) -> tuple[int, tuple[Finding, ...], tuple[Unknown, ...]]:
        rows = self.rows(namespace)
        refused: list[Finding] = []
        deltas: dict[int, ResourceList] = {}
        for index, row in enumerate(rows):
            if not quota_usage.concerns(row.quota.spec, row.hard, charge):
                continue
            counted = frozenset(filter(charge.counts, row.hard))
            missing = charge.unspecified(counted)
            if missing:
                refused.append(quota_refusals.must_specify(row, charge, missing))
            elif not counted <= row.used.keys():
                refused.append(quota_refusals.status_unknown(row, charge, counted))
            else:
                deltas[index] = row.delta(charge)
        if not refused and any(amount.nano < 0 for amount in charge.usage.values()):
            refused.append(quota_refusals.negative(charge))
        unknowns = self._unknowns(namespace, tuple(rows[i] for i in deltas))
        if refused:
            return 0, tuple(refused), unknowns
        fit = count
        for index, delta in deltas.items():
            fit = rows[index].room(delta, fit)
        if fit:
            self._accepted += ((namespace, charge, fit),)
            after = tuple(
                row.charged(deltas[i], fit) if i in deltas else row for i, row in enumerate(rows)
            )
            self._rows[namespace] = after
            rows = after
        if fit < count:
            for index, delta in deltas.items():
                keys = rows[index].exceeded(delta)
                if keys:
                    refused.append(
                        quota_refusals.exceeded(rows[index], charge, delta, keys, fit, count)
                    )
        return fit, tuple(refused), unknowns

    def _row(self, quota: ResourceQuota) -> Row:
        status = quota.status
        if status.hard is None and status.used is None:
            return self._counted(quota)
        version = quota.metadata.resourceVersion
        return Row(
            quota=quota,
            hard=read(status.hard),
            used=read(status.used),
            source="status.used" + (f", resourceVersion {version}" if version else ""),
        )

    def _counted(self, quota: ResourceQuota) -> Row:
        """The row that the quota controller would make of spec.hard and the namespace's objects."""
        namespace = quota.namespace
        hard = read(quota.spec.hard)
        used: ResourceList = {key: ZERO for key in hard if quota_keys.counter(key)}
        run: ResourceList = {}
        classes = self._device_classes()
        uncounted: list[str] = []
        for kind, objects, wanted in self._countable(namespace, classes):
            if not any(map(wanted, hard)):
                continue
            if not self._cluster.knows(kind):
                uncounted.append(kind)
            for obj in objects():
                _sum(quota, hard, used, quota_usage.of(obj, classes), 1)
        for where, charge, count in self._accepted:
            if where == namespace:
                _sum(quota, hard, used, charge, count)
                _sum(quota, hard, run, charge, count)
        return Row(
            quota=quota,
            hard=hard,
            used=used,
            source="counted from the objects of the namespace",
            run=run,
            uncounted=tuple(uncounted),
        )

    def _countable(
        self, namespace: str, classes: dict[str, str]
    ) -> list[tuple[str, Callable[[], list[KubeObject]], Callable[[str], bool]]]:
        """(kind, its objects, the keys that it is counted for) of everything that quotas count."""
        cluster = self._cluster

        def every(kind: str) -> Callable[[], list[KubeObject]]:
            if kind == "Pod":
                return lambda: list(cluster.pods_in(namespace))
            return lambda: list(cluster.every(kind, namespace))

        special: dict[str, Callable[[str], bool]] = {
            "Pod": quota_keys.of_pods,
            "Service": quota_keys.of_services,
            "PersistentVolumeClaim": quota_keys.of_volume_claims,
            "ResourceClaim": lambda key: (
                quota_keys.of_resource_claims(key, classes) and not quota_keys.of_pods(key)
            ),
        }
        found = [(kind, every(kind), wanted) for kind, wanted in special.items()]
        for kind in cluster.kinds():
            first = next(iter(cluster.every(kind, namespace)), None)
            if first is not None and kind not in special:
                resource = quota_usage.resource_of(first)
                found.append((kind, every(kind), quota_usage.of_object(resource).counts))
        return found

    def _unknowns(self, namespace: str, rows: tuple[Row, ...]) -> tuple[Unknown, ...]:
        found = []
        if not self._cluster.knows("ResourceQuota"):
            found.append(
                Unknown(
                    rule=_RULE,
                    missing=f"ResourceQuota objects of namespace {namespace}: not in the snapshot",
                    hint=f"kubectl -n {namespace} get resourcequotas -o yaml",
                )
            )
        for row in rows:
            if row.uncounted:
                kinds = ", ".join(row.uncounted)
                found.append(
                    Unknown(
                        rule=_RULE,
                        missing=f"what ResourceQuota {row.quota.name} has used: {kinds} objects are"
                        " not in the snapshot",
                        hint=f"kubectl -n {namespace} get {kinds.lower()} -o yaml",
                    )
                )
        return tuple(found)


def _sum(
    quota: ResourceQuota, hard: ResourceList, into: ResourceList, charge: Charge, count: int
) -> None:
    if quota_usage.concerns(quota.spec, hard, charge):
        for key, amount in charge.usage.items():
            if key in hard and charge.counts(key):
                into[key] = plus(into.get(key, ZERO), times(amount, count))
