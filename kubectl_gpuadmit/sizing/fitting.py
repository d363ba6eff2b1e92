"""Whether the models that a pod serves fit the devices that placement could give it.

Puts together what was recognised, what is known of the model and what the nodes have; the envelope
judges each kind of devices. Nothing here chooses a level or words for a refusal.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, structs

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import extended
from kubectl_gpuadmit.kube import gpus as gpulib
from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.objects import ConfigMap, Pod
from kubectl_gpuadmit.kube.pointers import resolve
from kubectl_gpuadmit.kube.policy_parameters import KEPT
from kubectl_gpuadmit.kube.versions import LATEST
from kubectl_gpuadmit.kube.workloads import PodGroup, Workload
from kubectl_gpuadmit.sizing import devices as devicelib
from kubectl_gpuadmit.sizing import objects
from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.devices import Devices
from kubectl_gpuadmit.sizing.recognise import recognised
from kubectl_gpuadmit.sizing.recognition import Recognised, Recognition
from kubectl_gpuadmit.sizing.registry import Facts, Models, look_up
from kubectl_gpuadmit.sizing.serving import Serving

if TYPE_CHECKING:
    from kubectl_gpuadmit.sizing.envelope import Envelope

GIB = 1 << 30

Fits = Literal["fits", "exceeds", "unknown"]


class Load(Struct, frozen=True):
    """What a service has to bear: so many requests of that many tokens at once; 0: nothing said."""

    concurrency: int = 0
    context: int = 0


class OnDevices(Struct, frozen=True, kw_only=True):
    """One engine on one kind of devices."""

    devices: Devices
    fits: Fits
    envelope: Envelope | None = None
    need_gib: float | None = None
    """A GPU, where only a registry's figure is known, or only the weights are certain."""
    by_weights: bool = False
    """``need_gib`` is of the weights alone: nobody knows the engine."""
    shards: int = 1
    """With ``by_weights``: GPUs that share the weights at most."""
    too_few: bool = False
    """They are fewer than the engine is told to use, though others would be enough."""
    unknown: tuple[str, ...] = ()

    @property
    def loads(self) -> bool:
        """False where it fits once it runs, and not while it loads: weights that are quantised on
        the way are whole at first."""
        warnings = self.envelope.warnings if self.envelope is not None else ()
        return all(warning.reason != "loading-exceeds" for warning in warnings)


class EngineFit(Struct, frozen=True, kw_only=True):
    """One engine of a pod."""

    recognised: Recognised
    facts: Facts | None
    missing: tuple[str, ...] = ()
    """Why nothing could be judged at all."""
    on: tuple[OnDevices, ...] = ()
    alternatives: tuple[OnDevices, ...] = ()
    """Each alternative of a claim, as if it were the one that is given."""
    gpus: int = 0
    """GPUs of one replica that its pods hold together, the most where alternatives differ."""
    pods: int = 1
    """Pods that one replica spans."""

    @property
    def too_few(self) -> bool:
        """The engine is told to use more GPUs than its pods hold: it does not start."""
        return bool(self.on) and self.recognised.serving.world_size > self.gpus

    def standing(self, nodes: frozenset[str] = frozenset()) -> Fits:
        """The gravest answer on these nodes; without them over all kinds of devices that could be
        chosen: it exceeds where none is enough, and fits where one is."""
        if self.too_few:
            return "exceeds"
        there = [one.fits for one in self.on if nodes & frozenset(one.devices.nodes)]
        if there:
            return "exceeds" if "exceeds" in there else "unknown" if "unknown" in there else "fits"
        answers = {one.fits for one in self.on}
        if "fits" in answers:
            return "fits"
        return "exceeds" if answers == {"exceeds"} else "unknown"


class PodFit(Struct, frozen=True, kw_only=True):
    """All engines of one pod group; none: it serves no model."""

    engines: tuple[EngineFit, ...] = ()
    why: str = ""
    """Where there is no engine: what the pod runs instead, in a sentence."""
    certain: bool = True
    """Where there is no engine: whether it is certain that no model is served."""

    def standing(self, nodes: frozenset[str] = frozenset()) -> Fits | Literal["not-a-model"]:
        """The gravest of its engines' answers."""
        if not self.engines:
            return "not-a-model" if self.certain else "unknown"
        answers = [engine.standing(nodes) for engine in self.engines]
        return "exceeds" if "exceeds" in answers else "unknown" if "unknown" in answers else "fits"

    @property
    def runs_somewhere(self) -> bool:
        """True where every engine has devices that are enough for it, or nobody can say."""
        return all(
            not engine.on
            or (not engine.too_few and any(o.fits != "exceeds" and o.loads for o in engine.on))
            for engine in self.engines
        )


NOT_A_MODEL = PodFit()

_MEMO: dict[tuple[int | str, ...], tuple[tuple[Any, ...], PodFit]] = {}
_MEMO_SIZE = 64
"""Several rules ask about the pod in hand: the last few answers, by identity."""


def fit(
    workload: Workload,
    group: PodGroup,
    pod: Pod,
    cluster: Cluster,
    models: Models,
    want: Load,
    *,
    now: dt.datetime,
    patterns: tuple[str, ...] = gpulib.DEFAULT,
    kubernetes: str = LATEST,
) -> PodFit:
    """The answer for one pod group. ``pod`` is the group's as it would be stored."""
    if not gpulib.pod_gpus(pod, patterns) and not pod.spec.resourceClaims:
        return NOT_A_MODEL
    claimed = cluster.state_of(extended.KINDS)
    parts = (workload, group.template, cluster.static_memo, models, now, *claimed)
    key: tuple[int | str, ...] = (*map(id, parts), want.concurrency, want.context, kubernetes)
    known = _MEMO.get(key)
    if known is not None and all(a is b for a, b in zip(known[0], parts, strict=True)):
        return known[1]
    found = _fit(workload, group, pod, cluster, models, want, now, kubernetes)
    if len(_MEMO) >= _MEMO_SIZE:
        _MEMO.clear()
    _MEMO[key] = (parts, found)
    return found


def of_group(workload: Workload, group: PodGroup, cluster: Cluster, models: Models) -> Recognition:
    """What one group's template starts."""
    namespace = workload.ref.namespace

    def config(name: str) -> Mapping[str, str] | str:
        found = cluster.get("ConfigMap", namespace, name)
        if isinstance(found, ConfigMap):
            if found.data is None or KEPT in found.annotations:  # a snapshot keeps no more
                return f"ConfigMap {namespace}/{name}: its data are not in the source"
            return found.data
        return f"ConfigMap {namespace}/{name}: not in the source"

    return recognised(
        workload.manifest,
        workload.ref.kind,
        group.role,
        group.template,
        naming=models.naming,
        config=config,
    )


def _fit(
    workload: Workload,
    group: PodGroup,
    pod: Pod,
    cluster: Cluster,
    models: Models,
    want: Load,
    now: dt.datetime,
    kubernetes: str,
) -> PodFit:
    found = of_group(workload, group, cluster, models)
    engines: list[EngineFit] = []
    for one in found.found:
        leader = _leader(workload, group, cluster, models) if one.follows else one
        if leader is None:
            why = f"container {one.container} joins an engine of another pod, and none is found"
            engines.append(EngineFit(recognised=one, facts=None, missing=(why,)))
        else:
            shown = structs.replace(leader, container=one.container, pointer=one.pointer)
            if one.follows:
                shown = structs.replace(shown, gpus=one.gpus, follows=True)
            engines.append(
                _engine(workload, group, pod, cluster, models, shown, want, now, kubernetes)
            )
    return PodFit(engines=tuple(engines), why=found.why, certain=found.certain)


def _leader(
    workload: Workload, group: PodGroup, cluster: Cluster, models: Models
) -> Recognised | None:
    """The engine of another group that a worker's pods belong to."""
    for other in workload.groups:
        if other.role == group.role:
            continue
        for one in of_group(workload, other, cluster, models).found:
            if not one.follows:
                return one
    return None


def _engine(
    workload: Workload,
    group: PodGroup,
    pod: Pod,
    cluster: Cluster,
    models: Models,
    one: Recognised,
    want: Load,
    now: dt.datetime,
    kubernetes: str,
) -> EngineFit:
    if not one.known:
        missing = one.missing or (f"the model that container {one.container} loads",)
        return EngineFit(recognised=one, facts=None, missing=missing)
    facts = look_up(models, one.model)
    if isinstance(facts, str):
        return EngineFit(recognised=one, facts=None, missing=(facts, *one.missing))
    draft = _draft(models, one)
    if isinstance(draft, str):
        return EngineFit(recognised=one, facts=facts, missing=(draft,))
    facts = structs.replace(facts, draft=draft)
    resource, count = _resource(group, pod, one)
    kinds: tuple[Devices, ...] | str = ()
    if resource and not cluster.knows("Node"):
        named = devicelib.pinned(pod, resource, count)
        why = f"memory of {resource}: no Node objects given, and no selector names a product"
        kinds = (named,) if named is not None else why
    elif resource:
        kinds = devicelib.with_residue(
            cluster, devicelib.candidates(cluster, pod, resource, count), now
        )
    others: tuple[Devices, ...] = ()
    backs = next(iter(cluster.every("DeviceClass")), None) is not None
    if not isinstance(kinds, str) and (pod.spec.resourceClaims or backs):
        container = resolve(group.template, one.pointer)
        claimed, others = _by_dra(
            cluster,
            pod,
            workload.ref.namespace,
            container if isinstance(container, dict) else {},
            one.pointer,
            kubernetes,
            now,
        )
        if not kinds:
            kinds = claimed
        elif not isinstance(claimed, str):
            kinds += claimed
    if kinds == ():
        kinds = (
            f"memory of {resource}: no node that the pod may use has {count} of it"
            if resource
            else "memory of its GPUs: neither a resource nor a claim of its container names any"
        )
    if isinstance(kinds, str):
        return EngineFit(recognised=one, facts=facts, missing=(kinds,))
    pods = _pods_of_a_replica(workload, one)
    most = max(kind.count for kind in kinds)
    on = tuple(_on_enough(facts, one, kind, pod, want, pods, most) for kind in kinds)
    each = tuple(_on_enough(facts, one, kind, pod, want, pods, most) for kind in others)
    return EngineFit(
        recognised=one, facts=facts, on=on, alternatives=each, gpus=most * pods, pods=pods
    )


def _by_dra(
    cluster: Cluster,
    pod: Pod,
    namespace: str,
    container: Mapping[str, Any],
    pointer: str,
    kubernetes: str,
    now: dt.datetime,
) -> tuple[tuple[Devices, ...] | str, tuple[Devices, ...]]:
    """What DRA would give the container, and each alternative of it by itself."""
    from kubectl_gpuadmit.sizing import claimed

    wanted = claimed.asked(pod, container, pointer)
    kinds = claimed.candidates(cluster, pod, namespace, wanted, kubernetes=kubernetes, now=now)
    if isinstance(kinds, str) or not kinds:
        return kinds, ()
    return kinds, claimed.alternatives(
        cluster, pod, namespace, wanted, kubernetes=kubernetes, now=now
    )


def _on_enough(
    facts: Facts, one: Recognised, kind: Devices, pod: Pod, want: Load, pods: int, most: int
) -> OnDevices:
    """Of devices that are fewer than the engine is told to use, while other kinds are enough, only
    that is said."""
    if kind.count * pods < one.serving.world_size <= most * pods:
        return OnDevices(devices=kind, fits="exceeds", too_few=True)
    return on_devices(facts, one, kind, pod, want)


def _draft(models: Models, one: Recognised) -> Architecture | str | None:
    """The model that guesses ahead, where one is loaded; or what is missing to know it."""
    name = one.serving.speculative_model
    if not name or one.serving.speculative_method in ("ngram", "mtp", "nextn"):
        return None
    found = look_up(models, name)
    if isinstance(found, str):
        return f"draft {found}"
    return found.architecture or f"draft model {name}: its architecture is not known"


def on_devices(facts: Facts, one: Recognised, kind: Devices, pod: Pod, want: Load) -> OnDevices:
    """One engine on one kind of devices."""
    if kind.share_of_mib is not None:
        return _on_share(facts, one, kind, pod, want)
    if kind.mib is None:
        product = f" of {kind.product}" if kind.product else ""
        where = kind.nodes[0] if kind.nodes else "the nodes"
        why = f"GPU memory{product} on {where}: no label nvidia.com/gpu.memory"
        return OnDevices(devices=kind, fits="unknown", unknown=(why,))
    if facts.architecture is None:
        return _by_figure(facts, one, kind)
    if one.serving.engine == "unknown":
        return _by_weights(facts, one, kind)
    from kubectl_gpuadmit.sizing.envelope import Want, envelope  # only where a model is known

    found = envelope(
        facts.architecture,
        one.serving,
        device_mib=kind.mib,
        free_mib=kind.free_mib,
        product=kind.product,
        checkpoint=facts.checkpoint,
        draft=facts.draft,
        want=Want(concurrency=want.concurrency or None, context=want.context or None),
        shm_bytes=shared_memory(pod, one.pointer),
    )
    told = tuple(f"{m} (container {one.container})" for m in found.unknown)
    return OnDevices(devices=kind, fits=found.fits, envelope=found, unknown=told)


def _on_share(facts: Facts, one: Recognised, kind: Devices, pod: Pod, want: Load) -> OnDevices:
    """A driver may show a process its share alone, or the device and trust it: where both answers
    are the same, it is the answer."""
    alone = structs.replace(kind, share_of_mib=None)
    beside = structs.replace(alone, mib=kind.share_of_mib, free_mib=kind.mib)
    bounded = on_devices(facts, one, alone, pod, want)
    if bounded.fits == on_devices(facts, one, beside, pod, want).fits:
        return bounded
    why = (
        f"whether the driver shows the engine its share of {kind.mib or 0:,} MiB alone, or the "
        f"whole device of {kind.share_of_mib or 0:,}"
    )
    return OnDevices(devices=kind, fits="unknown", unknown=(why,))


def _by_weights(facts: Facts, one: Recognised, kind: Devices) -> OnDevices:
    """Of an engine that nobody knows one thing is certain: weights that do not fit all of its GPUs
    together fit in no way."""
    assert facts.architecture is not None
    from kubectl_gpuadmit.sizing.engines import lmdeploy
    from kubectl_gpuadmit.sizing.envelope import envelope

    shards = max(kind.count, 1)
    if one.engine == "lmdeploy":
        shards = one.serving.world_size  # one GPU unless it is told more
    stored = one.serving.quantization not in (None, *lmdeploy.STORED_AS_NAMED)
    found = envelope(
        facts.architecture,
        Serving(engine="llama.cpp"),
        device_mib=kind.mib,
        checkpoint=facts.checkpoint,
    )
    weights = found.weights
    usable = (kind.usable_mib or 0) * (1 << 20)
    as_named = not stored or facts.architecture.quantization is not None
    if as_named and weights is not None and weights.low / shards > usable:
        need = weights.low / shards / GIB
        return OnDevices(
            devices=kind, fits="exceeds", need_gib=need, by_weights=True, shards=shards
        )
    engine = f"the engine of container {one.container}" if one.engine == "unknown" else one.engine
    why = f"how {engine} uses the memory of a GPU"
    return OnDevices(devices=kind, fits="unknown", unknown=found.unknown or (why,))


def _by_figure(facts: Facts, one: Recognised, kind: Devices) -> OnDevices:
    """A registry's figure is for one replica in all: it is divided only where the engine shards."""
    assert facts.memory_gib is not None
    need = facts.memory_gib / max(one.serving.world_size, 1)
    usable = kind.usable_mib or 0
    fits: Fits = "fits" if need * 1024 <= usable else "exceeds"
    return OnDevices(devices=kind, fits=fits, need_gib=need)


def _resource(group: PodGroup, pod: Pod, one: Recognised) -> tuple[str, int]:
    """The GPU resource of the engine's container, and how many of it; the pod's own where the
    container names none (annotations)."""
    container = resolve(group.template, one.pointer)
    resources = container.get("resources") if isinstance(container, dict) else None
    asked: dict[str, int] = {}
    for part in ("requests", "limits"):
        amounts = resources.get(part) if isinstance(resources, dict) else None
        for name, amount in (amounts or {}).items() if isinstance(amounts, dict) else ():
            meaning = gpulib.means(name) if isinstance(name, str) else None
            if meaning is not None and meaning.counts_devices and gpulib.is_gpu(name):
                try:
                    asked[name] = quantity.value(amount)
                except (quantity.QuantityError, TypeError):
                    continue
    asked = {name: amount for name, amount in asked.items() if amount}
    if not asked:
        asked = {
            name: amount
            for name, amount in gpulib.pod_gpus(pod).items()
            if (m := gpulib.means(name)) is not None and m.counts_devices
        }
        if not asked and gpulib.ANNOTATED_FRACTION in gpulib.pod_gpus(pod):
            asked = {"nvidia.com/gpu": gpulib.pod_gpus(pod)[gpulib.ANNOTATED_FRACTION]}
    return next(iter(sorted(asked.items())), ("", 0))


def _pods_of_a_replica(workload: Workload, one: Recognised) -> int:
    """Pods that hold one engine together: as many as its GPUs need, where the kind makes groups."""
    world = one.serving.world_size
    if not one.gpus or world <= one.gpus:
        return 1
    spans = workload.gang or len(workload.groups) > 1 or one.follows
    nodes = next((g.value for g in reversed(one.given) if g.field == "nodes"), None)
    if not spans and not (isinstance(nodes, int) and nodes > 1):
        return 1
    pods = -(-world // one.gpus)
    size = workload_size(workload)
    return min(pods, size) if size else pods


def workload_size(workload: Workload) -> int:
    """Pods of one group where the kind states it; 0 where it does not."""
    told = objects.variables(workload.ref.kind, workload.manifest).get("LWS_GROUP_SIZE", "")
    return int(told) if told.isdecimal() else 0


def shared_memory(pod: Pod, pointer: str) -> int | None:
    """Bytes of ``/dev/shm`` in one container: 64 MiB by the runtime, or what its volume bounds;
    None where nothing bounds it (the node's memory, or the pod's limit)."""
    if pod.spec.hostIPC:
        return None
    field, _, index = pointer.rpartition("/")
    listed = pod.spec.initContainers if field.endswith("initContainers") else pod.spec.containers
    number = int(index) if index.isdecimal() else 0
    if not listed or number >= len(listed):
        return None
    volumes = {volume.name: volume for volume in pod.spec.volumes or ()}
    for mount in listed[number].volumeMounts or ():
        if mount.mountPath.rstrip("/") in ("/dev/shm", "/dev"):
            volume = volumes.get(mount.name)
            limit = volume.emptyDir.sizeLimit if volume and volume.emptyDir else None
            if limit is None:
                return None
            try:
                return quantity.value(limit)
            except quantity.QuantityError:
                return None
    return 64 << 20
