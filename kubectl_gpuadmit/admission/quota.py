"""ResourceQuota admission over a whole run: what is charged, how many pods still fit, what is refused.

A ``Ledger`` starts from status.used of the cluster's quotas and is charged with everything that the
run would create. Rows are immutable, so a fork costs one dict. Quotas without a status (a run brings
them along) start from what the cluster's own objects use.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/resourcequota/controller.go (CheckRequest) and
pkg/quota/v1/resources.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kubectl_gpuadmit.admission import quota_usage
from kubectl_gpuadmit.admission.quota_usage import Charge
from kubectl_gpuadmit.admission.refusal import forbidden, refusal
from kubectl_gpuadmit.admission.resource_lists import ZERO, ResourceList, plus, read, times
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import quota_keys
from kubectl_gpuadmit.kube.objects import Generic, KubeObject, Pod, ResourceQuota
from kubectl_gpuadmit.kube.quantity import Quantity
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy, Unknown

REASONS = {
    "quota/exceeded": "A ResourceQuota of the namespace has less left than the object asks for. Ask"
    " for less, wait until others end, or have the quota raised.",
    "quota/must-specify": "A ResourceQuota counts cpu or memory, so every container must name it."
    " Set the requests or limits that the text lists, or a LimitRange default.",
    "quota/status-unknown": "The quota controller has not counted a key of a ResourceQuota yet, so"
    " the API server refuses what the key counts. Try again in a moment.",
    "quota/negative": "The object asks for a negative amount. Correct the number.",
}

_RULE = "admission/quota"

Answer = tuple[tuple[Finding, ...], tuple[Unknown, ...]]


class Row(Struct, frozen=True):
    """One quota and what is used of it now."""

    quota: ResourceQuota
    hard: ResourceList
    used: ResourceList
    source: str
    """Where ``used`` comes from."""
    run: ResourceList = {}
    """The part of ``used`` that objects of this run were charged."""
    uncounted: tuple[str, ...] = ()
    """Kinds that should have been counted into ``used`` and are not in the snapshot."""

    def charged(self, delta: ResourceList, count: int) -> Row:
        used, run = dict(self.used), dict(self.run)
        for key, amount in delta.items():
            used[key] = plus(used.get(key, ZERO), times(amount, count))
            run[key] = plus(run.get(key, ZERO), times(amount, count))
        return replace(self, used=used, run=run)

    def released(self, usage: ResourceList) -> Row:
        """Never below zero, as the controller counts what is left."""
        used = {
            key: Quantity(max(0, have.nano - usage[key].nano), have.format)
            if key in usage
            else have
            for key, have in self.used.items()
        }
        return replace(self, used=used)

    def delta(self, charge: Charge) -> ResourceList:
        """What the object adds to the keys of this quota."""
        return {k: q for k, q in charge.usage.items() if q.nano and k in self.hard}

    def room(self, delta: ResourceList, most: int) -> int:
        """How many such objects still fit, at most ``most``."""
        for key, amount in delta.items():
            if amount.nano > 0:
                left = self.hard[key].nano - self.used.get(key, ZERO).nano
                most = min(most, max(0, left // amount.nano))
        return most

    def exceeded(self, delta: ResourceList) -> list[str]:
        """Keys that one more such object would take over the limit."""
        return sorted(
            key
            for key, amount in delta.items()
            if self.used.get(key, ZERO).nano + amount.nano > self.hard[key].nano
        )


class Ledger:
    """What every quota of a run has been charged. Change a fork, never a ledger that others use."""

    __slots__ = ("_accepted", "_classes", "_cluster", "_rows")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rows: dict[str, tuple[Row, ...]] = {}
        self._accepted: tuple[tuple[str, Charge, int], ...] = ()
        self._classes: dict[str, str] | None = None

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
        return twin

    def rows(self, namespace: str) -> tuple[Row, ...]:
        """The quotas of a namespace by name, as they stand."""
        rows = self._rows.get(namespace)
        if rows is None:
            rows = tuple(self._row(quota) for quota in self._cluster.quotas(namespace))
            self._rows[namespace] = rows
        return rows

    # -- charging --------------------------------------------------------------------------------------

    def admit_pods(
        self, pod: Pod, namespace: str, count: int
    ) -> tuple[int, tuple[Finding, ...], tuple[Unknown, ...]]:
        """Charges as many of ``count`` equal pods as the quotas admit, one after another.

        Gives that number, the findings for the first pod that is refused, and what is not known.
        """
        if not self.rows(namespace):
            return count, (), self._unknowns(namespace, ())
        return self._admit(namespace, quota_usage.of_pod(pod), count)

    def admit_objects(self, namespace: str, counts: Mapping[str, int]) -> Answer:
        """Charges objects by number: ``{"deployments.apps": 1}``. Pods go through ``admit_pods``."""
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
        """Charges one object that does not exist yet, by its content (storage, devices, node ports)."""
        if not self.rows(namespace):
            return (), self._unknowns(namespace, ())
        _, findings, unknowns = self._admit(namespace, self._charge(obj), 1)
        return findings, unknowns

    def apply(self, obj: KubeObject) -> Answer:
        """An object that the run brings along: a quota takes effect, all else is charged.

        An object that the cluster has already is taken to be updated in place and not charged again.
        """
        if isinstance(obj, ResourceQuota):
            self.apply_quota(obj)
        if isinstance(obj, Generic) and obj.kind == "DeviceClass":
            self._classes = {**self._device_classes(), obj.name: _extended_name(obj)}
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
        """Quota name -> key -> limit at which ``count`` more pods would be admitted, where it is too low."""
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

    # -- inside ----------------------------------------------------------------------------------------

    def _charge(self, obj: KubeObject) -> Charge:
        return quota_usage.of(obj, self._device_classes())

    def _device_classes(self) -> dict[str, str]:
        if self._classes is None:
            self._classes = {
                obj.name: _extended_name(obj)
                for obj in self._cluster.every("DeviceClass")
                if isinstance(obj, Generic)
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
                refused.append(_must_specify(row, charge, missing))
            elif not counted <= row.used.keys():
                refused.append(_status_unknown(row, charge, counted))
            else:
                deltas[index] = row.delta(charge)
        if not refused and any(amount.nano < 0 for amount in charge.usage.values()):
            refused.append(_negative(charge))
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
                    refused.append(_exceeded(rows[index], charge, delta, keys, fit, count))
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


def _extended_name(obj: Generic) -> str:
    return str((obj.document.get("spec") or {}).get("extendedResourceName") or "")


def _sum(
    quota: ResourceQuota, hard: ResourceList, into: ResourceList, charge: Charge, count: int
) -> None:
    if quota_usage.concerns(quota.spec, hard, charge):
        for key, amount in charge.usage.items():
            if key in hard and charge.counts(key):
                into[key] = plus(into.get(key, ZERO), times(amount, count))


# -- words -----------------------------------------------------------------------------------------


def _listed(amounts: ResourceList, keys: list[str]) -> str:
    return ",".join(f"{key}={amounts[key]}" for key in keys if key in amounts)


def _share(row: Row, key: str, delta: ResourceList, fit: int) -> str:
    """``(8 by pods 1-2, 4 earlier in this run)``: which part of the use is the run's own."""
    own = times(delta[key], fit)
    earlier = Quantity(row.run.get(key, ZERO).nano - own.nano, own.format)
    parts = []
    if own.nano:
        which = "pod 1" if fit == 1 else f"pods 1-{fit}"
        parts.append(f"{own} by {which}")
    if earlier.nano > 0:
        parts.append(f"{earlier} earlier in this run")
    return f" ({', '.join(parts)})" if parts else ""


def _exceeded(
    row: Row, charge: Charge, delta: ResourceList, keys: list[str], fit: int, count: int
) -> Finding:
    name = row.quota.name
    text = (
        f"exceeded quota: {name}, requested: {_listed(delta, keys)},"
        f" used: {_listed(row.used, keys)}, limited: {_listed(row.hard, keys)}"
    )
    evidence = []
    lines = []
    raised: dict[str, str] = {}
    for key in keys:
        used, limit = row.used.get(key, ZERO), row.hard[key]
        words = f"asked {delta[key]} · used {used}{_share(row, key, delta, fit)} · limit {limit}"
        lines.append(f"{key} {words}")
        evidence.append(
            Evidence(
                f"ResourceQuota {name}",
                key,
                str(plus(used, delta[key])),
                str(limit),
                f"{words} · {row.source}",
            )
        )
        raised[key] = str(plus(used, times(delta[key], count - fit)))
    what = "pod" if charge.resource == "pods" else charge.resource
    which = f"{what} {fit + 1} of {count}: " if count > 1 else ""
    alone = any(times(delta[key], count).nano > row.hard[key].nano for key in keys)
    return refusal(
        "quota/exceeded",
        f"{which}ResourceQuota {name}: {'; '.join(lines)}",
        forbidden(charge.name, text, charge.resource),
        evidence=evidence,
        permanent=alone,
        suggest=(
            Remedy(
                summary=f"raise ResourceQuota {name} to "
                + ", ".join(f"{key}={amount}" for key, amount in raised.items()),
                command=patch_command(row.quota, raised),
                cost=90,
            ),
        ),
    )


def patch_command(quota: ResourceQuota, hard: Mapping[str, str | None]) -> str:
    """The kubectl command that sets (None: removes) keys of spec.hard."""
    patch = json.dumps({"spec": {"hard": dict(hard)}}, separators=(",", ":"))
    return (
        f"kubectl -n {quota.namespace} patch resourcequota {quota.name} --type=merge -p '{patch}'"
    )


def _must_specify(row: Row, charge: Charge, missing: dict[str, list[str]]) -> Finding:
    name = row.quota.name
    text = "must specify " + "; ".join(
        f"{key} for: {','.join(containers)}" for key, containers in missing.items()
    )
    evidence = [
        Evidence(
            f"ResourceQuota {name}",
            f"{key} of container {', '.join(containers)}",
            None,
            str(row.hard[key]),
            "status.hard" if row.quota.status.hard is not None else "spec.hard",
        )
        for key, containers in missing.items()
    ]
    return refusal(
        "quota/must-specify",
        f"ResourceQuota {name}: {text}",
        forbidden(charge.name, f"failed quota: {name}: {text}", charge.resource),
        evidence=evidence,
        field="/spec/containers",
    )


def _status_unknown(row: Row, charge: Charge, counted: frozenset[str]) -> Finding:
    name = row.quota.name
    text = f"status unknown for quota: {name}, resources: {','.join(sorted(counted))}"
    evidence = [
        Evidence(f"ResourceQuota {name}", key, None, str(row.hard[key]), row.source)
        for key in sorted(counted - row.used.keys())
    ]
    return refusal(
        "quota/status-unknown",
        f"ResourceQuota {name} has not been counted yet: "
        + ", ".join(sorted(counted - row.used.keys())),
        forbidden(charge.name, text, charge.resource),
        evidence=evidence,
        permanent=False,
    )


def _negative(charge: Charge) -> Finding:
    keys = sorted(key for key, amount in charge.usage.items() if amount.nano < 0)
    text = f"quota usage is negative for resource(s): {','.join(keys)}"
    return refusal(
        "quota/negative",
        text,
        forbidden(charge.name, text, charge.resource),
        evidence=[Evidence(charge.resource, key, str(charge.usage[key]), "0") for key in keys],
    )
