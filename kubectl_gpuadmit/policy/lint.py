"""Everything wrong or doubtful about a policy file, not only the first thing that stops it.

Errors are what ``load_policy`` refuses. Warnings are its own: what can never match, what overlaps,
what has expired, and, given a cluster, what selects nothing there. Every ``ref`` is explained in
docs/errors.md.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices.maturity import rows
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.policy.entries import Pool, PoolKubelet, StaticMatch, StaticRule
from kubectl_gpuadmit.policy.load import Catalogue, Reading, no_reasons
from kubectl_gpuadmit.policy.model import Policy
from kubectl_gpuadmit.policy.shape import Problem
from kubectl_gpuadmit.rule import REGISTRY

CLASS_SETTINGS: dict[str, tuple[str, ...]] = {
    "topology/shared-switch": ("latency",),
    "topology/splits-island": ("training", "inference"),
}
"""Rule -> its settings that name classes."""


def lint(
    raw: bytes,
    file: str,
    *,
    now: dt.datetime | None = None,
    cluster: Cluster | None = None,
    catalogue: Catalogue = no_reasons,
) -> list[Problem]:
    """All problems by line. Without ``now`` nothing is called expired; with ``cluster`` the policy
    is
    also held against the nodes and priority classes that are there."""
    reading = Reading(file, catalogue)
    policy = reading.policy(raw)
    if policy is not None:
        _Doubts(reading, policy).all(now, cluster)
    return reading.ordered()


class _Doubts:
    """The warnings about one policy."""

    def __init__(self, reading: Reading, policy: Policy) -> None:
        self.reading = reading
        self.policy = policy

    def warn(self, pointer: str, ref: str, message: str, hint: str = "") -> None:
        self.reading.report(pointer, ref, message, hint, "warning")

    def all(self, now: dt.datetime | None, cluster: Cluster | None) -> None:
        for exception in self.policy.exceptions if now else ():
            if now and exception.expires < now:
                self.warn(
                    f"/exceptions/{exception.index}/expires",
                    "policy-exception-expired",
                    f"expired {times.spell(now - exception.expires)} ago and is no longer in force",
                    f"remove it, or let {exception.owner} renew it",
                )
        self.ledger(now)
        self.selectors()
        for pointer, entry in self.entries():
            if why := _contradiction(entry.match):
                self.warn(f"{pointer}/match", "policy-never-matches", f"can never match: {why}")
        self.overlaps(cluster)
        self.classless()
        if cluster is not None:
            self.against(cluster)

    def ledger(self, now: dt.datetime | None) -> None:
        """Decisions that decide nothing (any more), and those that cannot stand together."""
        ledger = self.policy.ledger
        for row in rows(ledger, now=now or dt.datetime.min.replace(tzinfo=dt.UTC)):
            if row.entry is None:
                continue
            pointer = f"/ledger/features/{row.entry.index}"
            name = row.gate.name
            if row.empty:
                nothing = "" if row.entry.decides else " and allows nothing"
                self.warn(
                    pointer,
                    "policy-ledger-unresolved",
                    f"{name}: {', '.join(row.empty)} not filled in{nothing}",
                    "an empty field is a decision that nobody has taken",
                )
            if now and row.entry.expires and row.entry.expires < now:
                self.warn(
                    f"{pointer}/expires",
                    "policy-ledger-expired",
                    f"{name}: expired {times.spell(now - row.entry.expires)} ago: refused again",
                    f"remove it, or let {row.entry.owner or 'its owner'} renew it",
                )
            for conflict in row.conflicts:
                self.warn(pointer, "policy-ledger-conflict", f"{name} {conflict}")

    def selectors(self) -> None:
        """What a tenant may write, and the API server would not take."""
        for index, tenant in enumerate(self.policy.tenants):
            for place, expression in enumerate(tenant.selectors or ()):
                why = _refused(expression)
                if why:
                    self.warn(
                        f"/tenants/{index}/selectors/{place}",
                        "policy-selector-refused",
                        f"the API server refuses a claim with this selector: {why}",
                        "correct the expression: no claim can be stored with it",
                    )

    def entries(self) -> list[tuple[str, StaticRule]]:
        key = self.reading.list_name
        return [(f"/{key}/{entry.index}", entry) for entry in self.policy.static]

    def overlaps(self, cluster: Cluster | None) -> None:
        pools = self.policy.pools
        knows = cluster is not None and cluster.knows("Node")
        for index, one in enumerate(pools):
            for other in pools[index + 1 :]:
                a, b = one.nodeSelector, other.nodeSelector
                if any(a[key] != b[key] for key in a.keys() & b.keys()):
                    continue
                nodes = _nodes(cluster, {**a, **b}) if cluster and knows else []
                if knows and not nodes:
                    continue
                where = f": {nodes[0]}" if nodes else ""
                self.warn(
                    f"/pools/{token(other.name)}/nodeSelector",
                    "policy-pools-overlap",
                    f"a node can belong to {one.name} and {other.name}{where}; it counts for "
                    f"{_narrower(one, other).name}",
                    "give both pools one label key with different values",
                )

    def classless(self) -> None:
        on = {
            name
            for name, config in self.policy.rules.items()
            if self.policy.level(name) != "off" or any(v != "off" for v in config.pools.values())
        }
        if not self.policy.classes:
            for name in sorted(on & {"labels/class", "partition/route", "partition/confine"}):
                effect = (
                    "every GPU pod is refused" if name == "labels/class" else "it concerns no pod"
                )
                self.warn(
                    f"/rules/{token(name)}",
                    "policy-no-classes",
                    f"no classes are declared: {effect}",
                )

        for name in sorted(on & CLASS_SETTINGS.keys()):
            given = self.policy.settings(name)
            for setting in CLASS_SETTINGS[name]:
                named = given.get(setting, REGISTRY[name].settings[setting])
                absent = [one for one in named if self.policy.named_class(one) is None]
                if absent and (setting in given or len(absent) == len(named)):
                    where = f"/settings/{setting}" if setting in given else ""
                    self.warn(
                        f"/rules/{token(name)}{where}",
                        "policy-class-absent",
                        f"{setting}: no class is called {', '.join(absent)}",
                        f"set {setting} to names of this policy's classes",
                    )

    def against(self, cluster: Cluster) -> None:
        if cluster.knows("Node"):
            for pool in self.policy.pools:
                if not _nodes(cluster, pool.nodeSelector):
                    self.warn(
                        f"/pools/{token(pool.name)}/nodeSelector",
                        "policy-pool-without-nodes",
                        f"no node carries {_pairs(pool.nodeSelector)}",
                        _values(cluster, pool.nodeSelector),
                    )
                if pool.kubelet is not None:
                    self.kubelet(cluster, pool, pool.kubelet)
            for pointer, entry in self.entries():
                self.static(cluster, pointer, entry)
        if cluster.knows("PriorityClass"):
            known = {cls.name for cls in cluster.priority_classes()}
            named = [
                (f"/classes/{token(cls.name)}/priorityClass", cls.priorityClass)
                for cls in self.policy.classes
            ] + [
                (f"{pointer}/mutate/priorityClassName", entry.mutate.priorityClassName)
                for pointer, entry in self.entries()
                if entry.mutate
            ]
            for pointer, name in named:
                if name and name not in known:
                    self.warn(
                        pointer,
                        "policy-priority-class-absent",
                        f"the cluster has no priority class {name}",
                    )

    def kubelet(self, cluster: Cluster, pool: Pool, declared: PoolKubelet) -> None:
        """A declaration that the pool's own nodes contradict: theirs counts."""
        from kubectl_gpuadmit.topology import kubelets, maps

        other: dict[tuple[str, str], list[str]] = {}
        for name in _nodes(cluster, pool.nodeSelector):
            found = maps.node_map(cluster, name, dt.datetime.min.replace(tzinfo=dt.UTC))
            told = kubelets.told(cluster, name, found)
            policy = told.kubelet.topology_policy if told is not None else None
            if told is not None and policy and policy != declared.topologyManagerPolicy:
                other.setdefault((policy, told.source), []).append(name)
        for (policy, source), names in sorted(other.items()):
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            self.warn(
                f"/pools/{token(pool.name)}/kubelet/topologyManagerPolicy",
                "policy-kubelet-differs",
                f"{names[0]}{more} has {policy}, says {source}: that counts, not the declaration",
                f"write {policy}, or leave the pool's kubelet out",
            )

    def static(self, cluster: Cluster, pointer: str, entry: StaticRule) -> None:
        where = pointer if self.reading.list_name == "favorites" else f"{pointer}/mutate"
        selector = entry.mutate.nodeSelector if entry.mutate else {}
        if selector and not _nodes(cluster, selector):
            self.warn(
                f"{where}/nodeSelector",
                "policy-selects-no-node",
                f"no node carries {_pairs(selector)}",
                _values(cluster, selector),
            )
        for number, taint in enumerate(entry.requiredTaints):
            if not any(taint.is_met_by(t) for n in cluster.nodes.values() for t in n.taints):
                self.warn(
                    f"{pointer}/requiredTaints/{number}",
                    "policy-taint-absent",
                    f"no node carries the taint {taint}",
                )


def _refused(expression: str) -> str:
    """Why no claim with the selector can be stored, in one line; '' where one can."""
    from kubectl_gpuadmit.cel import dra

    compiled = dra.compile(expression, new=True)
    if isinstance(compiled, dra.Selector):
        return compiled.too_complex
    first = compiled.message.partition("\n")[0]
    return first.removeprefix("compilation failed: ERROR: <input>:")


def _narrower(one: Pool, other: Pool) -> Pool:
    return other if len(other.nodeSelector) > len(one.nodeSelector) else one


def _nodes(cluster: Cluster | None, selector: Mapping[str, str]) -> list[str]:
    nodes = cluster.nodes.values() if cluster else ()
    return [node.name for node in nodes if selector.items() <= node.labels.items()]


def _values(cluster: Cluster, selector: Mapping[str, str]) -> str:
    """What the first label that no node has with this value is set to instead."""
    for key, value in selector.items():
        there = sorted({n.labels[key] for n in cluster.nodes.values() if key in n.labels})
        if value not in there:
            return f"nodes have {key}: {', '.join(there[:6])}" if there else f"no node has {key}"
    return "no single node carries all of them"


def _pairs(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())


def _contradiction(match: StaticMatch) -> str:
    """Why no pod can satisfy the match, '' if some could."""
    for resource, comparison in match.resources.items():
        if comparison.operator == "<" and comparison.number == 0:
            return f"{resource} is never below 0"
    allowed: dict[str, set[str]] = {
        key: {value} for key, value in match.labels.items() if "*" not in value
    }
    present = set(match.labels)
    absent: set[str] = set()
    excluded: dict[str, set[str]] = {}
    for expression in match.matchExpressions:
        key, values = expression.key, set(expression.values or ())
        match expression.operator:
            case "In":
                allowed[key] = allowed[key] & values if key in allowed else values
                present.add(key)
                if not allowed[key]:
                    return f"label {key} would need two values at once"
            case "NotIn":
                excluded.setdefault(key, set()).update(values)
            case "Exists":
                present.add(key)
            case _:
                absent.add(key)
    if both := sorted(present & absent):
        return f"label {both[0]} must be there and must not"
    for key, values in allowed.items():
        if key in excluded and values <= excluded[key]:
            return f"label {key} may have no value that it must have"
    return ""
