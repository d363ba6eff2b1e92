"""Stable pseudonyms for names, so that a cluster can be shown to strangers; no verdict changes.

Text is renamed word by word: ``llama-8b-7d9f`` becomes ``qab-qac-qbd``. Each word gets one
pseudonym for the whole file, whatever it names, so every relation that Kubernetes or the engine
reads from names holds as before: a pod's name begins with its owner's, a label has the value of a
name, two objects name the same node. Numbers stay, they order the pods of a StatefulSet.

Why numbered words and no hash: pseudonyms are handed out in the order of the words, so lists that
are sorted by name stay in their order; equal input gives equal bytes; and there is no key that
somebody could lose or a dictionary try. What a reader still learns: how many words a name has,
which names share one, and their alphabetical order. Pseudonyms of two files have nothing to do with
each other: to compare two clusters, compare first and redact then.

Rules of this module
1. Every text is renamed unless a list here says that it is Kubernetes' own word.
2. What a policy names (``keep``) stays, else it would mean other objects than before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from kubectl_gpuadmit.devices.isolation import CLAIM_REF, RESOLVED
from kubectl_gpuadmit.kube.quota_keys import CLAIMS_PER_CLASS
from kubectl_gpuadmit.kube.workloads.model import DRAWN
from kubectl_gpuadmit.snapshots import public

_WORD = re.compile(r"[A-Za-z0-9_]+")
_WORDS_KEPT = (
    "default kube-system kube-public kube-node-lease true false True False leader worker launcher "
    "node trainer master main initializer dataset model metadata.name Always IfNotPresent Never "
    f"latest {DRAWN}"
)

LABELS = frozenset(
    {
        "gpu-partition",
        "karpenter.sh/capacity-type",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "node.cluster.x-k8s.io/instance-type",
        "trainer.kubeflow.org/trainjob-ancestor-step",
        "workload-type",
    }
)
LABEL_FAMILIES = (
    "amd.com/",
    "beta.kubernetes.io/",
    "cloud.google.com/gke-accelerator",
    "failure-domain.beta.kubernetes.io/",
    "feature.node.kubernetes.io/",
    "gpu.intel.com/",
    "network.topology.",
    "node-role.kubernetes.io/",
    "node.kubernetes.io/",
    "nvidia.com/",
    "pod-security.kubernetes.io/",
    "resource.kubernetes.io/",
    "topology.kubernetes.io/",
)
"""What label keys begin with whose values are no names but facts that the engine reads."""

NAMING_ANNOTATIONS = ("queue-name", "selected-node", "/model", "group-name", "pod-group-name")
"""What keys of annotations end in whose values are names; the others hold times and amounts."""

_CLASS_KINDS = frozenset(
    {"CSIDriver", "DeviceClass", "PriorityClass", "RuntimeClass", "StorageClass"}
)
"""Kinds whose names stay: quotas and pods speak of them in words of their own."""

_KEPT_FIELDS = frozenset({
    "accessModes", "allocatable", "allocatedResources", "allocationMode", "apiGroups",
    "apiVersion", "apiVersions", "capacity", "cel", "count", "creationTimestamp",
    "declaredFeatures", "default", "defaultRequest", "deletionTimestamp", "device",
    "deviceClassName", "disruptionsAllowed", "driver", "effect", "failurePolicy", "finalizers",
    "globalDefault", "handler", "hard", "hostIP", "key", "kind", "lastTransitionTime", "limits",
    "matchAttribute", "matchLabelKeys", "matchPolicy", "max", "maxLimitRequestRatio",
    "maxSurge", "maxUnavailable", "medium", "min", "minAvailable", "mismatchLabelKeys",
    "mlPolicy", "nodeAffinityPolicy", "nodeTaintsPolicy", "operations", "operator", "overhead",
    "phase", "podFixed", "preemptionPolicy", "priorityClassName", "protocol", "provisioner",
    "reason", "reinvocationPolicy", "requests", "resize", "resourceName", "resourceRules",
    "resource", "resourceVersion", "resources", "restartPolicy", "rules", "runtimeClassName",
    "samples",
    "schedulerName", "scopeName", "scopes", "selectors", "sharedCounters", "sideEffects",
    "sizeLimit", "startTime", "status", "storageClassName", "timeAdded", "topologyKey",
    "topologyKeys", "type", "uid", "unhealthyPodEvictionPolicy", "used", "validationActions",
    "volumeAttributesClassName", "volumeBindingMode", "volumeMode", "whenUnsatisfiable",
})  # fmt: skip
"""Fields of Kubernetes' own words, amounts and times; nothing below them is a name of anybody's."""

_OWN_WAY = frozenset({
    "annotations", "args", "attributes", "command", "deviceClassName", "devices", "disruptedPods",
    "drivers", "env", "hard", "image", "labels", "matchLabels", "modelName", "mountPath",
    "nodeSelector", "opaque", "path", "requests", "resources", "spec", "topologyPolicies", "used",
    "zones",
})  # fmt: skip
"""Fields that ``_Walk._own_way`` knows; told apart first, for most fields are none of them."""

_DROPPED_FIELDS = frozenset(
    {"auditAnnotations", "matchConditions", "mutations", "parameters", "validations", "variables"}
)
"""Free text of others' programs: nothing that the engine evaluates."""

_DEVICE_PATHS = re.compile(r"/(dev|proc|sys|usr/local/nvidia|run/nvidia|var/run/nvidia)\b.*|/")


class Redactor:
    """Pseudonyms for one file: made by ``of`` from everything that it will be asked about."""

    def __init__(self, words: Mapping[str, str], keep: Keep) -> None:
        self._words = words
        self._keep = keep
        self._texts: dict[str, str] = {}

    @classmethod
    def of(cls, items: Iterable[Mapping[str, Any]], keep: Keep | None = None) -> Redactor:
        """Reads every name of these objects, as ``trim.items`` gives them."""
        keep = keep or Keep()
        texts: set[str] = set()

        def note(text: str) -> str:
            texts.add(text)
            return text

        for item in items:
            keep.look_at(str((item.get("metadata") or {}).get("name") or ""))
            keep.look_at(str((item.get("metadata") or {}).get("namespace") or ""))
            _Walk(note, keep).object(item)
        seen = {word for text in texts for word in _WORD.findall(text)}
        return cls(_numbered(seen, keep), keep)

    def object(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """The object with pseudonyms."""
        return _Walk(self.name, self._keep).object(item)

    def name(self, text: str) -> str:
        """A text with every word that has one replaced by its pseudonym."""
        found = self._texts.get(text)
        if found is None:
            found = _WORD.sub(lambda match: self._words.get(match[0], match[0]), text)
            self._texts[text] = found
        return found

    @property
    def words(self) -> Mapping[str, str]:
        """Word -> pseudonym: whoever has this can undo it."""
        return self._words


class Keep:
    """What stays as it is: Kubernetes' own names, and what a policy names.

    ``labels`` are keys whose values stay, ``patterns`` shell patterns of names that stay.
    """

    def __init__(self, *, labels: Collection[str] = (), patterns: Collection[str] = ()) -> None:
        self._labels = frozenset(labels)
        self.patterns = tuple(p for p in patterns if p.strip("*?"))
        self.words = set(_WORD.findall(_WORDS_KEPT))
        for pattern in self.patterns:
            self.words.update(_WORD.findall(pattern) if not set(pattern) & set("*?[") else ())

    @classmethod
    def named_in(cls, policy: Any) -> Keep:
        """What the plain data of a policy names: any text in it may be a label's key, and what
        stands under ``namespaces`` and ``names`` means objects."""
        labels: set[str] = set()
        patterns: set[str] = set()
        _texts(policy, labels, patterns, of_objects=False)
        return cls(labels=labels, patterns=sorted(patterns))

    def look_at(self, name: str) -> None:
        """Keeps the words of a name that a pattern means."""
        if any(fnmatchcase(name, pattern) for pattern in self.patterns):
            self.words.update(_WORD.findall(name))

    def label(self, key: str) -> bool:
        return key in LABELS or key in self._labels or key.startswith(LABEL_FAMILIES)


def _texts(value: Any, labels: set[str], patterns: set[str], *, of_objects: bool) -> None:
    match value:
        case str():
            (patterns if of_objects else labels).add(value)
        case dict():
            for key, inner in value.items():
                (patterns if of_objects else labels).add(str(key))
                _texts(inner, labels, patterns, of_objects=key in ("namespaces", "names"))
        case list():
            for inner in value:
                _texts(inner, labels, patterns, of_objects=of_objects)


def _numbered(seen: set[str], keep: Keep) -> dict[str, str]:
    """Word -> pseudonym. Words between two that stay get pseudonyms between the two."""
    made: dict[str, str] = {}
    low, gap = "", list[str]()
    for word in [*sorted(w for w in seen if not w.isdecimal()), None]:
        if word is not None and (word not in keep.words or not word[0].islower()):
            gap += [word] if word not in keep.words else []
            continue
        width = 2
        while 26**width < len(gap):
            width += 1
        prefix = next(
            begun
            for begun in _between(low, word)
            if not any(w.startswith(begun) and len(w) == len(begun) + width for w in seen)
            and not any(fnmatchcase(f"{begun}aa", pattern) for pattern in keep.patterns)
        )
        made |= {one: prefix + _letters(n, width) for n, one in enumerate(gap)}
        low, gap = word or "", []
    return made


def _between(low: str, high: str | None) -> Iterator[str]:
    """Beginnings of words that sort after ``low`` and before ``high``, short ones first."""
    for length in range(len(low) + 1):
        for more in ("q", *_ALPHABET, *(a + b for a in _ALPHABET for b in "qxz")):
            begun = low[:length] + more
            if begun > low and (high is None or (begun < high and not high.startswith(begun))):
                yield begun
    for letter in _ALPHABET:  # order is lost, nothing else
        yield from (f"q{letter}{other}" for other in _ALPHABET)


_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def _letters(number: int, width: int) -> str:
    text = ""
    for _ in range(width):
        number, digit = divmod(number, 26)
        text = chr(ord("a") + digit) + text
    return text


class _Walk:
    """One pass over an object; ``rename`` gets every text that may be a name."""

    def __init__(self, rename: Callable[[str], str], keep: Keep) -> None:
        self._rename = rename
        self._keep = keep

    def object(self, item: Mapping[str, Any]) -> dict[str, Any]:
        kind = str(item.get("kind", ""))
        if kind == "KubeletConfiguration":  # policies, CPU numbers, gates
            return {**item, "metadata": self._field("metadata", item.get("metadata"), kind)}
        made: dict[str, Any] = {
            key: self._field(key, value, kind)
            for key, value in item.items()
            if key not in _DROPPED_FIELDS
        }
        if kind in _CLASS_KINDS and isinstance(item.get("metadata"), dict):
            name = item["metadata"].get("name")
            made["metadata"]["name"] = self._class(name) if isinstance(name, str) else name
        return made

    def _class(self, name: str) -> str:
        """A device class of one tenant bears the tenant's name, all others their maker's."""
        return self._rename(name) if name.startswith(f"{CLAIM_REF}-") else name

    def _quota(self, amounts: Mapping[str, Any]) -> dict[str, Any]:
        """Keys name resources and classes."""
        made = {}
        for key, amount in amounts.items():
            name, found, rest = key.partition(CLAIMS_PER_CLASS)
            made[f"{self._class(name)}{found}{rest}" if found else key] = amount
        return made

    @staticmethod
    def _opaque(config: Mapping[str, Any]) -> dict[str, Any]:
        """Which driver is told what kind of thing, and how to share: no more of it is read."""
        given = config.get("parameters")
        given = given if isinstance(given, dict) else {}
        kept = {key: given[key] for key in ("apiVersion", "kind") if key in given}
        sharing = given.get("sharing")
        if isinstance(sharing, dict) and "strategy" in sharing:
            kept["sharing"] = {"strategy": sharing["strategy"]}
        return {"driver": config.get("driver"), "parameters": kept}

    def _field(self, key: str, value: Any, kind: str) -> Any:
        return (self._own_way if key in _OWN_WAY else self._any_way)(key, value, kind)

    def _any_way(self, key: str, value: Any, kind: str) -> Any:
        if key in _KEPT_FIELDS and not (key == "status" and isinstance(value, dict)):
            return value
        return self._value(value, key, kind)

    def _own_way(self, key: str, value: Any, kind: str) -> Any:
        """Fields in ``_OWN_WAY``: most are of a form that is replaced in a way of its own."""
        match key, value:
            case "labels" | "matchLabels" | "nodeSelector", dict() if _flat(value):
                return {k: self._label(k, v) for k, v in value.items()}
            case "annotations", dict():
                return {k: self._annotation(k, v) for k, v in value.items()}
            case "hard" | "used", dict():
                return self._quota(value)
            case "deviceClassName", str():
                return self._class(value)
            case "image" | "modelName", str() if public.is_public_image(value) or public.is_public(
                value
            ):
                return value
            case "opaque", dict():
                return self._opaque(value)
            case "resources", dict() if "claims" in value:
                claims = self._value(value["claims"], "claims", kind)
                return {**value, "claims": claims}
            case "requests", list():
                return self._value(value, key, kind)
            case "devices", list() if kind == "ResourceSlice":
                return value
            case "spec", dict() if kind == "GpuTopology":
                return self._node_map(value)
            case "attributes" | "zones" | "topologyPolicies", list() if (
                kind == "NodeResourceTopology"
            ):
                return value
            case "drivers", list() if kind == "CSINode":
                return [{**self._value(d, key, kind), "name": d.get("name")} for d in value]
            case "disruptedPods", dict():
                return {self._rename(k): v for k, v in value.items()}
            case "env", list():
                return [self._env(one) for one in value]
            case "args" | "command", list():
                return [self._argument(one) for one in value]
            case "path" | "mountPath", str() if _DEVICE_PATHS.fullmatch(value):
                return value
        return self._any_way(key, value, kind)

    def _node_map(self, spec: dict[str, Any]) -> dict[str, Any]:
        """A node's map: hardware is nobody's name, who holds it is."""
        made = dict(spec)
        if isinstance(spec.get("holders"), list):
            made["holders"] = [self._holder(one) for one in spec["holders"]]
        kubelet = spec.get("kubelet")
        if isinstance(kubelet, dict) and isinstance(kubelet.get("assignments"), list):
            held = [self._holder(one) for one in kubelet["assignments"]]
            made["kubelet"] = {**kubelet, "assignments": held}
        if isinstance(spec.get("matrix"), str):  # pasted with prompts and host names, maybe
            rows = (
                line for line in spec["matrix"].split("\n") if "GPU" in line and "@" not in line
            )
            made["matrix"] = "\n".join(rows) + "\n"
        if isinstance(spec.get("problems"), list):
            made["problems"] = [self._rename(str(one)) for one in spec["problems"]]
        return made

    def _holder(self, one: Any) -> Any:
        if not isinstance(one, dict):
            return one
        named = {"namespace", "pod", "container"} | (
            {"resource"} if one.get("via") == "dra" else set()
        )
        return {
            k: self._rename(v) if k in named and isinstance(v, str) else v for k, v in one.items()
        }

    def _value(self, value: Any, key: str, kind: str) -> Any:
        match value:
            case str():
                return self._rename(value)
            case list():
                return [self._value(one, key, kind) for one in value]
            case {"scopeName": "PriorityClass" | "VolumeAttributesClass"}:
                return value
            case {"key": str(label), **rest} if rest.keys() & {"values", "value", "effect"}:
                return self._term(value, label)
            case dict():
                return {
                    k: self._field(k, v, kind) for k, v in value.items() if k not in _DROPPED_FIELDS
                }
            case _:
                return value

    def _term(self, term: Mapping[str, Any], label: str) -> dict[str, Any]:
        """A selector's requirement, a taint or a toleration: its values are of a label's kind."""
        made = dict(term)
        if isinstance(term.get("value"), str):
            made["value"] = self._label(label, term["value"])
        if isinstance(term.get("values"), list):
            made["values"] = [self._label(label, one) for one in term["values"]]
        return made

    def _label(self, key: str, value: Any) -> Any:
        if not isinstance(value, str) or self._keep.label(key):
            return value
        return self._rename(value)

    def _annotation(self, key: str, value: Any) -> Any:
        if key == RESOLVED and isinstance(value, str):
            return re.sub(r':\s*"([^"\\]*)"', lambda m: f':"{self._rename(m[1])}"', value)
        named = isinstance(value, str) and key.endswith(NAMING_ANNOTATIONS)
        named = named and not public.is_public(str(value))
        return self._rename(value) if named and not self._keep.label(key) else value

    def _env(self, one: Any) -> Any:
        if not isinstance(one, dict) or "VISIBLE_DEVICES" in str(one.get("name")):
            return one
        return {
            k: v if k == "name" or public.is_public(str(v)) else self._value(v, k, "")
            for k, v in one.items()
        }

    def _argument(self, one: Any) -> Any:
        """``--flag=value``: the flag is the program's own word, and so are an engine's program and
        a public model. A script is looked at word by word."""
        if not isinstance(one, str):
            return self._rename(one)
        return re.sub(r"\S+", lambda found: self._word(found[0]), one)

    def _word(self, word: str) -> str:
        if re.fullmatch(r"--?[A-Za-z][A-Za-z0-9_-]*", word) or public.is_public(word):
            return word
        flag, equals, value = word.partition("=")
        if equals and flag.startswith("-"):
            return f"{flag}={value if public.is_public(value) else self._rename(value)}"
        return self._rename(word)


def _flat(value: dict[str, Any]) -> bool:
    return all(isinstance(one, str | int | bool | None) for one in value.values())
