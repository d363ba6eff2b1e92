"""What an evaluation found: values only, no judgement of their own, ready to encode as JSON.

Field names are those of product.md section 9; the JSON form is written by ``render.data``.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from kubectl_gpuadmit.errors import GpuAdmitError

Level = Literal["off", "audit", "warn", "deny"]
Fidelity = Literal["exact", "modelled", "unknown"]
Admission = Literal["admitted", "mutated", "denied", "unknown"]
Placement = Literal["fits", "waits", "never", "unknown"]
Running = Literal["fits", "exceeds", "unknown", "not-a-model"]


class Evidence(Struct, frozen=True, omit_defaults=False):
    """One measured fact. ``observed`` and ``wanted`` are numbers in the unit that ``what`` names,
    or the canonical Kubernetes text of a quantity or label."""

    subject: str
    """What was looked at, e.g. ``ResourceQuota team-a/gpus`` or ``Node inf-0``."""
    what: str
    """What was measured, e.g. ``requests.nvidia.com/gpu``."""
    observed: str | int | float | None
    wanted: str | int | float | None
    source: str = ""
    """Where the fact comes from, e.g. ``status.used, resourceVersion 4711``."""
    bound: Literal["", "least", "most"] = ""
    """How ``wanted`` binds ``observed``: at least that, at most that, or just so."""


class Finding(Struct, frozen=True):
    """What is wrong or worth knowing. A rule fills the first block, the engine the last."""

    reason: str
    """Stable code, ``family/what``; catalogued by the rule that yields it."""
    detail: str
    """One sentence in the words of the person who reads it, numbers included, no full stop."""
    evidence: tuple[Evidence, ...] = ()
    permanent: bool = True
    """False when time alone may clear it (a pod ends, a TTL passes)."""
    field: str = ""
    """RFC 6901 pointer into the workload's own manifest of what to look at, '' if none."""
    suggest: tuple[Remedy, ...] = ()
    """Changes worth trying; printed only after the engine has verified them."""

    rule: str = ""
    level: Level = "deny"
    fidelity: Fidelity = "exact"


class Unknown(Struct, frozen=True):
    """A fact that a rule needed and did not have."""

    rule: str
    missing: str
    """What is missing, e.g. ``ResourceQuota objects: not in the snapshot``."""
    level: Level = "warn"
    hint: str = ""
    """What would make it known, a command where there is one."""
    stage: Literal["admission", "placement", "running"] = "admission"


class ObjectEvent(Struct, frozen=True):
    """A Kubernetes Event that says why an object was changed; whoever changes it sends it."""

    type: Literal["Normal", "Warning"]
    reason: str
    """In CamelCase, as Events have it."""
    message: str
    """At most 1,024 bytes, as the API server takes it."""


class Mutation(Struct, frozen=True):
    """A change that a mutating rule makes, as RFC 6902 operations against the pod template.

    Paths start at the template: ``/metadata/labels/x``, ``/spec/nodeSelector``; with ``of`` set to
    ``object`` at the workload's own root: ``/spec/replicas``.
    """

    ops: tuple[dict[str, Any], ...]
    summary: str = ""
    rule: str = ""
    level: Level = "deny"
    """``audit`` and ``warn`` mutations are reported, not applied."""
    at: str = ""
    """RFC 6901 pointer to the template in the manifest (``/spec/template``), '' for a Pod."""
    of: Literal["template", "object"] = "template"
    event: ObjectEvent | None = None
    before: dict[str, Any] = {}
    """Path of an op -> the value that it replaces or removes, so that a diff can show it."""


class Outcome(Struct, frozen=True):
    """The three answers of section 9 without their reasons."""

    admission: Admission
    placement: Placement
    running: Running = "not-a-model"


class Remedy(Struct, frozen=True):
    """A change that would help. ``patch`` is RFC 6902 against the user's own manifest."""

    summary: str
    patch: tuple[dict[str, Any], ...] = ()
    command: str = ""
    cost: int = 50
    """Order of trying: 0 fixes a typo, 100 asks somebody else to change the cluster."""
    verified: bool = False
    result: Outcome | None = None


class Shortfall(Struct, frozen=True):
    """Why one filter refuses one node.

    ``reason`` is the scheduler's own text (``Insufficient nvidia.com/gpu``). Amounts are in the
    scheduler's unit: millicores for cpu, bytes for memory, else a count; None where none applies.
    """

    filter: str
    reason: str
    code: str
    """Reason code of our catalogue, e.g. ``placement/insufficient``."""
    requested: int | None = None
    used: int | None = None
    capacity: int | None = None
    permanent: bool = False
    """Kubernetes' UnschedulableAndUnresolvable: removing pods from the node would not help."""
    until: str = ""
    """Set where an operator or node event lifts it: ``uncordoned``, ``the node is Ready``."""
    subject: str = ""
    """What it is about: a resource name, taint ``key=value:effect``, label term, volume."""


class NodeVerdict(Struct, frozen=True):
    """One node's answer for the pod that could not be placed, or for the first one if all could."""

    node: str
    fits: bool
    shortfalls: tuple[Shortfall, ...] = ()


class Ref(Struct, frozen=True, order=True):
    """Names one object."""

    apiVersion: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"


class PodPlace(Struct, frozen=True):
    """Where one pod of the workload would go."""

    pod: str
    role: str
    node: str


class Group(Struct, frozen=True):
    """How many pods of one role a workload makes, and what each of them asks for."""

    role: str
    """'' where the kind has one template only."""
    pods: int
    gpus: dict[str, int]
    """GPU resource name -> number for each pod."""
    claims: int = 0
    """Entries of each pod's ``spec.resourceClaims``."""
    devices: dict[str, int] = field(default_factory=dict)
    """DeviceClass -> GPUs that each pod gets by claims of its own."""
    shared: dict[str, int] = field(default_factory=dict)
    """DeviceClass -> GPUs of claims that all the pods use together."""


class ServedOn(Struct, frozen=True):
    """One model on one kind of devices that placement could give; sizes are GiB a GPU, null where
    nobody knows them."""

    product: str
    resource: str
    nodes: int
    """How many nodes have such devices."""
    memoryMiB: int | None
    """Of one device, slice or share, as NVML reports it."""
    freeMiB: int | None
    """What others leave of it where they share it; null: all of it."""
    running: Running
    weightsGiB: float | None = None
    activationsGiB: float | None = None
    overheadGiB: float | None = None
    kvCacheGiB: float | None = None
    """Left for the KV cache."""
    kvCacheTokens: int | None = None
    maxConcurrency: float | None = None
    """Requests of the longest context at once."""
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What holds although it fits: it is close to the limit, stages are uneven."""


class ServedModel(Struct, frozen=True):
    """One model that pods of a workload serve, and from where it was recognised."""

    role: str
    container: str
    engine: str
    version: str
    model: str
    """'' where it is not known."""
    recognisedFrom: str
    arguments: tuple[str, ...]
    """What the engine was told that decides about memory, as written."""
    source: str
    """Where the model's needs are from."""
    gpus: int
    """GPUs of one replica."""
    running: Running
    on: tuple[ServedOn, ...] = ()
    """Where the pods go first, then where it fits, then the largest devices."""
    missing: tuple[str, ...] = ()


class Verdict(Struct, frozen=True):
    """The whole answer for one workload."""

    ref: Ref
    location: str
    """``file.yaml:12``, or the object's live name."""
    pods: int
    gpus: dict[str, int]
    """GPU resource name -> number over all pods of the workload."""
    admission: Admission
    placement: Placement
    running: Running
    blockers: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    patch: tuple[dict[str, Any], ...] = ()
    mutations: tuple[Mutation, ...] = ()
    """The same changes rule by rule, for the diff that a person sees."""
    nodes: tuple[NodeVerdict, ...] = ()
    places: tuple[PodPlace, ...] = ()
    waits_for: tuple[str, ...] = ()
    """Sentences: whose end, which TTL, whose preemption would let it in."""
    decided_by: str = ""
    """Scheduler or queue that has the last word where it is not the default scheduler."""
    remedies: tuple[Remedy, ...] = ()
    groups: tuple[Group, ...] = ()
    """The pods by role; empty where nobody counted them apart."""
    models: tuple[ServedModel, ...] = ()
    """Models that its pods serve."""
    devices: dict[str, int] = field(default_factory=dict)
    """DeviceClass -> GPUs that claims of all pods ask for; a shared claim counts once."""
    object_patch: tuple[dict[str, Any], ...] = ()
    """Applied changes of the workload's own object, beside those of its template."""
    events: tuple[ObjectEvent, ...] = ()
    """Events that belong to them."""

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.admission, self.placement, self.running)


class Source(Struct, frozen=True):
    """What the facts came from."""

    kind: Literal["live", "snapshot", "none"]
    name: str
    ageSeconds: int | None = None


class Skipped(Struct, frozen=True):
    """An input object that is not a workload or could not be judged, and what became of it."""

    ref: Ref
    location: str
    treated: Literal["applied", "unknown-kind", "not-a-workload", "unreadable"]
    detail: str = ""
    field: str = ""
    """Field of the document that is wrong, as the error names it."""
    error: str = ""
    """``ref`` of the error for what is unreadable."""
    hint: str = ""
    """What would make it judged."""


def unreadable(error: GpuAdmitError) -> Skipped:
    """An input document that could not be read, with everything that its error knows."""
    place = error.file
    if error.line:
        place += f":{error.line}" + (f":{error.column}" if error.column else "")
    return Skipped(
        ref=Ref("", "", "", ""),
        location=place,
        treated="unreadable",
        detail=error.message,
        field=error.field,
        error=error.ref,
        hint=error.hint,
    )


class Report(Struct, frozen=True):
    """One run: every workload in input order, and what else was in the input."""

    as_of: str
    source: Source
    workloads: tuple[Verdict, ...]
    skipped: tuple[Skipped, ...] = ()
    policy: str = ""
    unsearched: int = 0
    """Workloads at the end for which no remedy was looked for: a run has a bounded budget."""
    topology: str = ""
    """Where the maps of nodes' GPUs are from, '' where no rule looked at one."""
    asked: tuple[str, ...] | None = None
    """Rules that were asked of at least one workload; None where nobody counted."""
