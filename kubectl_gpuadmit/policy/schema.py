"""The shape of a policy file as JSON Schema, made from the registered rules; checks nothing itself.

Editors read the shipped ``schema.json``, the loader checks against the same value: one description,
two readers. Only the keywords that ``policy.shape`` understands are used.

``false`` stands beside ``off`` because YAML 1.1, which Kubernetes' tools read, takes the bare word
``off`` for a boolean.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from kubectl_gpuadmit.kube.times import DURATION_PATTERN
from kubectl_gpuadmit.policy.entries import COMPARISON_PATTERN
from kubectl_gpuadmit.rule import Rule

Schema = dict[str, Any]

API_VERSION = "gpu-admit.io/v1"
KIND = "AdmissionPolicy"
SCHEMA_ID = "https://gpu-admit.io/schemas/policy/v1.json"

LEVEL: Schema = {"enum": ["off", "audit", "warn", "deny", False]}
TEXT: Schema = {"type": "string", "minLength": 1}
TEXTS: Schema = {"type": "array", "items": TEXT, "minItems": 1}
PAIRS: Schema = {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}
NAME: Schema = {
    "type": "string",
    "pattern": r"^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$",
    "examples": ["route-batch"],
}
PATH: Schema = {"type": "string", "pattern": r"^[.$/]\S+$", "examples": [".spec.template"]}
PATH_OR_NUMBER: Schema = {"anyOf": [PATH, {"type": "integer", "minimum": 0, "maximum": 10**6}]}


def _object(properties: Schema, *, required: Iterable[str] = (), text: str = "") -> Schema:
    shape: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
    if required:
        shape["required"] = list(required)
    if text:
        shape["description"] = text
    return shape


def _at_least_one(shape: Schema) -> Schema:
    return {**shape, "minProperties": 1}


def _map_of(shape: Schema, *, text: str = "") -> Schema:
    return {
        "type": "object",
        "additionalProperties": shape,
        **({"description": text} if text else {}),
    }


LEVELS: Schema = {"type": "object", "additionalProperties": LEVEL}
TOLERATION = _object(
    {
        "key": TEXT,
        "operator": {"enum": ["Equal", "Exists", "Lt", "Gt"]},
        "value": {"type": "string"},
        "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
        "tolerationSeconds": {"type": "integer"},
    }
)
TOLERATIONS: Schema = {"type": "array", "items": TOLERATION, "minItems": 1}
EXPRESSION = _object(
    {
        "key": TEXT,
        "operator": {"enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
        "values": {"type": "array", "items": {"type": "string"}},
    },
    required=("key", "operator"),
)
TAINT = _object(
    {
        "key": TEXT,
        "operator": {"enum": ["Equal", "Exists"]},
        "value": {"type": "string"},
        "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
    },
    required=("key",),
)
CHANGE = _at_least_one(
    _object(
        {
            "nodeSelector": PAIRS,
            "tolerations": TOLERATIONS,
            "labels": PAIRS,
            "annotations": PAIRS,
            "priorityClassName": TEXT,
            "schedulingGates": TEXTS,
        },
        text="Written into the pod template; values of the same key give way.",
    )
)
COMPARISON: Schema = {
    "anyOf": [
        {"type": "string", "pattern": COMPARISON_PATTERN, "examples": [">40", ">=4", "8"]},
        {"type": "integer", "minimum": 0, "maximum": 10**12},
    ]
}
STATIC_MATCH = _object(
    {
        "labels": PAIRS,
        "annotations": PAIRS,
        "matchExpressions": {"type": "array", "items": EXPRESSION, "minItems": 1},
        "namespaces": TEXTS,
        "kinds": TEXTS,
        "classes": TEXTS,
        "resources": {"type": "object", "additionalProperties": COMPARISON, "minProperties": 1},
    },
    text="All that is given must hold. gpuMemoryGB is the memory of all the pod's GPUs together.",
)
_SWITCH: Schema = {"enum": ["true", "false", True, False]}
KUBELET = _object(
    {
        "topologyManagerPolicy": {
            "enum": ["none", "best-effort", "restricted", "single-numa-node"]
        },
        "topologyManagerScope": {"enum": ["container", "pod"]},
        "topologyManagerPolicyOptions": _object(
            {
                "prefer-closest-numa-nodes": _SWITCH,
                "max-allowable-numa-nodes": {"type": "string", "pattern": "^[0-9]{1,3}$"},
            }
        ),
        "cpuManagerPolicy": {"enum": ["none", "static"]},
        "cpuManagerPolicyOptions": _object(
            dict.fromkeys(
                (
                    "full-pcpus-only",
                    "distribute-cpus-across-numa",
                    "align-by-socket",
                    "distribute-cpus-across-cores",
                    "strict-cpu-reservation",
                    "prefer-align-cpus-by-uncorecache",
                ),
                _SWITCH,
            )
        ),
        "memoryManagerPolicy": {"enum": ["None", "Static"]},
        "reservedSystemCPUs": {
            "type": "string",
            "pattern": r"^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$",
            "examples": ["0-3,64-67"],
        },
        "featureGates": {"type": "object", "additionalProperties": {"type": "boolean"}},
    },
    required=("topologyManagerPolicy",),
    text="KubeletConfiguration of the pool's nodes, for nodes that do not tell theirs.",
)
DENY = _object({"message": TEXT}, required=("message",))
STATIC = _object(
    {
        "name": NAME,
        "level": LEVEL,
        "ifMissing": LEVEL,
        "namespaces": LEVELS,
        "pools": LEVELS,
        "match": STATIC_MATCH,
        "mutate": CHANGE,
        "deny": DENY,
        "requiredTaints": {"type": "array", "items": TAINT, "minItems": 1},
    },
    required=("name", "match"),
    text="A match, and what follows from it: a change, a refusal, taints that must be there.",
)
SEED_POLICIES = _object(
    {"policies": {"type": "array", "items": STATIC, "minItems": 1}}, required=("policies",)
)
"""The older form: a ConfigMap's ``config.yaml`` with a list of match, mutate and deny."""

SEED_FAVORITES = _object(
    {
        "apiVersion": {"const": "v1"},
        "kind": {"const": "Policy"},
        "favorites": {
            "type": "array",
            "minItems": 1,
            "items": _at_least_one(
                _object(
                    {
                        "name": NAME,
                        "matchExpressions": {"type": "array", "items": EXPRESSION, "minItems": 1},
                        "nodeSelector": PAIRS,
                        "tolerations": TOLERATIONS,
                        "requiredTaints": {"type": "array", "items": TAINT, "minItems": 1},
                    }
                )
            ),
        },
    },
    required=("favorites",),
)
"""The older form: a ConfigMap's ``checks`` with matchExpressions, nodeSelector, requiredTaints."""


RELEASE: Schema = {
    "type": "string",
    "pattern": r"^v?[0-9]{1,4}\.[0-9]{1,4}(\.[-+.0-9A-Za-z]+)?$",
    "examples": ["1.36", "0.5", "26.7.0"],
}
LEDGER = _object(
    {
        "versions": _object(
            {"kubernetes": RELEASE, "nvidiaDraDriver": RELEASE, "gpuOperator": RELEASE},
            text="What runs here; text, so that 1.30 is not 1.3.",
        ),
        "features": {
            "type": "array",
            "items": _object(
                {
                    "feature": TEXT,
                    "component": {"enum": ["nvidia-dra-driver", "kubernetes"]},
                    "owner": {"type": "string"},
                    "expires": {"type": "string"},
                    "reason": {"type": "string"},
                    "testCluster": {"type": "string"},
                },
                required=("feature",),
                text="One decision for an alpha feature. An empty field is printed as unresolved;"
                " without owner and expires it allows nothing.",
            ),
        },
    },
    text="Which immature device features may be used, by whose word and until when.",
)
TENANTS: Schema = {
    "type": "array",
    "items": _object(
        {
            "name": NAME,
            "namespaces": TEXTS,
            "deviceClasses": TEXTS,
            "selectors": {"type": "array", "items": TEXT},
            "maxDevices": {"type": "integer", "minimum": 0, "maximum": 10**6},
            "runtimeClasses": {"type": "array", "items": TEXT},
        },
        required=("name", "namespaces"),
        text="What claims of these namespaces may ask for; what is not given is not restricted.",
    ),
}

GIGABYTES: Schema = {
    "anyOf": [
        {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?(GB|GiB|MiB)$", "examples": ["60GB"]},
        {"type": "number", "minimum": 0, "maximum": 10**6},
    ]
}

MODEL = _at_least_one(
    _object(
        {
            "name": TEXT,
            "also": TEXTS,
            "like": TEXT,
            "memory": GIGABYTES,
            "config": {"type": "object", "additionalProperties": {}},
        },
        required=("name",),
        text="One model: like another one of the catalogue, by its config.json, or by the GPU "
        "memory that one replica needs in all.",
    )
)
MODELS = _object(
    {
        "annotations": TEXTS,
        "labels": TEXTS,
        "images": PAIRS,
        "catalogue": {"type": "array", "items": MODEL, "minItems": 1},
        "mlflow": {
            "type": "string",
            "pattern": r"^https?://\S+$",
            "examples": ["http://mlflow.ml:5000"],
        },
    },
    text="Which model a pod serves, where its arguments do not say, and what models need.",
)

LEVELLED: Schema = {
    "anyOf": [
        _object({"level": LEVEL, "ifMissing": LEVEL, "namespaces": LEVELS, "pools": LEVELS}),
        LEVEL,
    ]
}
"""A reason code that is no rule's own: it has levels and no settings."""

DEFS: Schema = {"levelled": LEVELLED}
"""Shapes that stand under ``$defs`` because many places share them."""


def setting_key(name: str) -> str:
    """How a keyword argument is spelled in the file: ``max_gpus`` -> ``maxGpus``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def setting_shape(name: str, default: Any) -> Schema:
    """The shape of a setting, from its default: no number is negative, a percent at most 100."""
    match default:
        case bool():
            return {"type": "boolean"}
        case int() | float():
            shape: Schema = {
                "type": "integer" if isinstance(default, int) else "number",
                "minimum": 0,
                "maximum": 100 if name.endswith("percent") else 10**9,
            }
            return shape
        case str():
            return {"type": "string"}
        case dt.timedelta():
            return {
                "type": "string",
                "pattern": DURATION_PATTERN,
                "examples": ["90s", "5m", "4h", "2d"],
            }
        case tuple():
            return {"type": "array", "items": TEXT}
        case Mapping():
            return {"type": "object", "additionalProperties": {"type": "string"}}
        case _:
            raise TypeError(f"setting {name} has a default of an unsupported type: {default!r}")


def _rule_shape(rule: Rule) -> Schema:
    settings = {
        setting_key(name): setting_shape(name, default) for name, default in rule.settings.items()
    }
    properties: Schema = {
        "level": LEVEL,
        "ifMissing": LEVEL,
        "namespaces": LEVELS,
        "pools": LEVELS,
    }
    if settings:
        properties["settings"] = _object(settings)
    shape = _object(properties)
    shape["description"] = rule.documentation.partition("\n")[0]
    return {"anyOf": [shape, LEVEL]}


def policy_schema(rules: Mapping[str, Rule], catalogue: Mapping[str, str]) -> Schema:
    """JSON Schema (2020-12) of a policy file.

    ``rules`` is the registry; ``catalogue`` has the reason codes of the engine's other parts, which
    a policy may level too but not configure.
    """
    named = {name: _rule_shape(rule) for name, rule in sorted(rules.items())}
    shared = {"$ref": "#/$defs/levelled"}
    named.update((code, shared) for code in sorted(catalogue) if code not in named)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Policy of kubectl gpu-admit",
        "$defs": DEFS,
        **_object(
            {
                "apiVersion": {"const": API_VERSION},
                "kind": {"const": KIND},
                "metadata": _object({"name": NAME}),
                "pools": _map_of(
                    _object(
                        {"nodeSelector": PAIRS, "tolerations": TOLERATIONS, "kubelet": KUBELET},
                        required=("nodeSelector",),
                    ),
                    text="Nodes that carry all these labels, and what a pod needs to enter.",
                ),
                "classes": _map_of(
                    _object(
                        {
                            "match": _at_least_one(
                                _object(
                                    {
                                        "labels": PAIRS,
                                        "annotations": PAIRS,
                                        "priorityClasses": TEXTS,
                                        "ownerKinds": TEXTS,
                                    }
                                )
                            ),
                            "pool": TEXT,
                            "priorityClass": TEXT,
                        },
                        required=("match",),
                    ),
                    text="Kinds of work: the signs of each, its pool, its priority class.",
                ),
                "defaults": _object({"level": LEVEL, "ifMissing": LEVEL}),
                "rules": _object(named, text="Level and settings of each rule, or just its level."),
                "static": {"type": "array", "items": STATIC},
                "exceptions": {
                    "type": "array",
                    "items": _object(
                        {
                            "rules": TEXTS,
                            "match": _at_least_one(
                                _object(
                                    {
                                        "namespaces": TEXTS,
                                        "kinds": TEXTS,
                                        "names": TEXTS,
                                        "labels": PAIRS,
                                    }
                                )
                            ),
                            "owner": TEXT,
                            "reason": TEXT,
                            "expires": TEXT,
                        },
                        required=("rules", "match", "owner", "reason", "expires"),
                    ),
                },
                "kinds": {
                    "type": "array",
                    "items": _object(
                        {
                            "apiVersion": TEXT,
                            "group": TEXT,
                            "kind": TEXT,
                            "podTemplate": PATH,
                            "replicas": PATH_OR_NUMBER,
                            "multiply": {"type": "array", "items": PATH_OR_NUMBER},
                            "role": PATH,
                            "gang": {"type": "boolean"},
                        },
                        required=("kind", "podTemplate"),
                        text="Where a custom kind keeps its pod template and its number of pods.",
                    ),
                },
                "ledger": LEDGER,
                "tenants": TENANTS,
                "gpuResources": TEXTS,
                "ttlAnnotations": TEXTS,
                "admissionPlugins": {
                    "type": "array",
                    "items": {"enum": ["ExtendedResourceToleration"]},
                    "description": "Admission plugins that this cluster's API server runs though"
                    " they are off by default.",
                },
                "models": MODELS,
            },
            required=("apiVersion", "kind"),
        ),
    }
