"""Changes of the pod that may help it onto nodes: proposed as data, tried by the engine alone.

Patches are RFC 6902 with paths that start at the pod template: ``/spec/nodeSelector/…``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod, Taint
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.verdict import Remedy

_TYPO, _OTHER_VALUE, _TOLERATE, _SOFTEN, _DROP, _LESS = 0, 10, 15, 35, 20, 40


def near(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, '' if none is close."""
    import difflib

    found = difflib.get_close_matches(word, sorted(set(known)), n=1, cutoff=0.75)
    return found[0] if found else ""


def pointer(*parts: str) -> str:
    """RFC 6901: ``("spec", "a/b")`` -> ``/spec/a~1b``."""
    return "".join(f"/{token(part)}" for part in parts)


def known_values(cluster: Cluster, key: str) -> tuple[str, ...]:
    """Values of a label over all nodes, most frequent first."""
    counts = Counter(info.labels[key] for info in cluster.nodes.values() if key in info.labels)
    return tuple(v for v, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def other_label(cluster: Cluster, pod: Pod, key: str, value: str) -> tuple[Remedy, ...]:
    """For a nodeSelector entry that no node carries: the probable typo, other values, or none."""
    if (pod.spec.nodeSelector or {}).get(key) != value:
        return ()
    at = pointer("spec", "nodeSelector", key)
    found: list[Remedy] = []
    values = known_values(cluster, key)
    if values:
        meant = near(value, values)
        for other in dict.fromkeys(v for v in (meant, *values[:3]) if v):
            found.append(
                Remedy(
                    summary=f"nodeSelector {key}: {other} instead of {value}",
                    patch=({"op": "replace", "path": at, "value": other},),
                    cost=_TYPO if other == meant else _OTHER_VALUE,
                )
            )
    else:
        keys = {k for info in cluster.nodes.values() for k in info.labels}
        meant = near(key, keys)
        if meant and meant not in (pod.spec.nodeSelector or {}):
            found.append(
                Remedy(
                    summary=f"nodeSelector {meant} instead of {key}",
                    patch=(
                        {"op": "remove", "path": at},
                        {
                            "op": "add",
                            "path": pointer("spec", "nodeSelector", meant),
                            "value": value,
                        },
                    ),
                    cost=_TYPO,
                )
            )
    found.append(without_label(pod, key))
    return tuple(found)


def without_label(pod: Pod, key: str) -> Remedy:
    """The nodeSelector without this key (without the selector where it is the only one)."""
    alone = len(pod.spec.nodeSelector or {}) == 1
    at = pointer("spec", "nodeSelector") if alone else pointer("spec", "nodeSelector", key)
    return Remedy(
        summary=f"no nodeSelector {key}", patch=({"op": "remove", "path": at},), cost=_DROP
    )


def toleration(pod: Pod, taints: Sequence[Taint]) -> Remedy:
    """Tolerations for these taints, appended to the pod's own."""
    values: list[dict[str, str]] = []
    for taint in taints:
        entry = {"key": taint.key, "operator": "Exists", "effect": taint.effect}
        if taint.value:
            entry = {
                "key": taint.key,
                "operator": "Equal",
                "value": taint.value,
                "effect": taint.effect,
            }
        values.append(entry)
    ops: tuple[dict[str, Any], ...]
    if pod.spec.tolerations:
        ops = tuple({"op": "add", "path": "/spec/tolerations/-", "value": v} for v in values)
    else:
        ops = ({"op": "add", "path": "/spec/tolerations", "value": values},)
    names = ", ".join(f"{t.key}:{t.effect}" for t in taints)
    return Remedy(summary=f"tolerate {names}", patch=ops, cost=_TOLERATE)


def other_resource(pod: Pod, name: str, meant: str) -> tuple[Remedy, ...]:
    """The resource under the name that was probably meant, wherever the pod asks for it."""
    ops: list[dict[str, Any]] = []
    for at, amounts in _resource_lists(pod):
        if name in amounts and meant not in amounts:
            ops += (
                {"op": "remove", "path": f"{at}{pointer(name)}"},
                {"op": "add", "path": f"{at}{pointer(meant)}", "value": amounts[name]},
            )
    if not ops:
        return ()
    return (Remedy(summary=f"{meant} instead of {name}", patch=tuple(ops), cost=_TYPO),)


def fewer(pod: Pod, name: str, asked: int, number: int) -> tuple[Remedy, ...]:
    """``number`` of an extended resource instead of ``asked``, where one container asks for all."""
    lists = [(at, amounts) for at, amounts in _resource_lists(pod) if name in amounts]
    if number < 1 or not lists or len({at.rsplit("/", 2)[0] for at, _ in lists}) > 1:
        return ()
    return (
        Remedy(
            summary=f"{number} {name} a pod instead of {asked}",
            patch=tuple(
                {
                    "op": "replace",
                    "path": f"{at}{pointer(name)}",
                    "value": str(number) if isinstance(amounts[name], str) else number,
                }
                for at, amounts in lists
            ),
            cost=_LESS,
        ),
    )


def soft_spread(pod: Pod, key: str) -> tuple[Remedy, ...]:
    """ScheduleAnyway for the hard constraints over this topology key."""
    ops = tuple(
        {
            "op": "replace",
            "path": f"/spec/topologySpreadConstraints/{i}/whenUnsatisfiable",
            "value": "ScheduleAnyway",
        }
        for i, c in enumerate(pod.spec.topologySpreadConstraints or ())
        if c.topologyKey == key and c.whenUnsatisfiable == "DoNotSchedule"
    )
    if not ops:
        return ()
    return (Remedy(summary=f"spread over {key} only where possible", patch=ops, cost=_SOFTEN),)


def removed(field: str, summary: str) -> Remedy:
    """Without one field of the pod's spec."""
    return Remedy(summary=summary, patch=({"op": "remove", "path": f"/spec/{field}"},), cost=_DROP)


def _resource_lists(pod: Pod) -> list[tuple[str, dict[str, Any]]]:
    """(pointer, amounts) of every requests and limits of the pod's containers."""
    found: list[tuple[str, dict[str, Any]]] = []
    for group in ("initContainers", "containers"):
        for i, container in enumerate(getattr(pod.spec, group) or ()):
            for part in ("limits", "requests"):
                amounts = getattr(container.resources, part, None)
                if amounts:
                    found.append((f"/spec/{group}/{i}/resources/{part}", amounts))
    return found
