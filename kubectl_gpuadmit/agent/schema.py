"""The CustomResourceDefinition of GpuTopology, made from the structs that read it; applies nothing.

Made, not written, so that the two cannot drift apart. Structural schemas allow no references
(apiextensions.k8s.io/v1), so each struct is written out where it stands.
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.kube import gpu_topology as wire

MOST_GPUS, MOST_ITEMS, LONGEST_TEXT = 256, 4096, 65536
"""Bounds, so that the API server can estimate the cost of rules over the object."""
COLUMNS = (
    ("Driver", ".spec.driverVersion", "string", "Version of the driver."),
    ("As of", ".spec.asOf", "date", "When the agent looked last."),
    ("Problem", ".spec.problems[0]", "string", "The first thing that could not be read."),
)


def definition() -> dict[str, Any]:
    """The CRD as plain data."""
    spec = schema(wire.GpuTopologySpec)
    spec["required"] = ["schema", "asOf"]
    spec["properties"]["schema"]["minimum"] = 1
    spec["properties"]["asOf"]["format"] = "date-time"
    columns = [
        {"name": name, "jsonPath": path, "type": kind, "description": text}
        for name, path, kind, text in COLUMNS
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gputopologies.{wire.GROUP}"},
        "spec": {
            "group": wire.GROUP,
            "scope": "Cluster",
            "names": {
                "kind": "GpuTopology",
                "listKind": "GpuTopologyList",
                "plural": "gputopologies",
                "singular": "gputopology",
                "shortNames": ["gputopo"],
            },
            "versions": [
                {
                    "name": wire.VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": columns,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "description": "What the node agent of kubectl gpu-admit saw.",
                            "required": ["spec"],
                            "properties": {
                                "apiVersion": {"type": "string"},
                                "kind": {"type": "string"},
                                "metadata": {"type": "object"},
                                "spec": spec,
                            },
                        }
                    },
                }
            ],
        },
    }


def schema(held: Any) -> dict[str, Any]:
    """The structural schema of a type as the structs of kube/gpu_topology use them."""
    origin, args = get_origin(held), get_args(held)
    if origin in (Union, UnionType):
        (inner,) = (arg for arg in args if arg is not NoneType)
        return schema(inner)
    if origin is tuple:
        most = MOST_GPUS if args[0] is wire.ReportedGpu else MOST_ITEMS
        return {"type": "array", "maxItems": most, "items": schema(args[0])}
    if origin is dict:
        return {"type": "object", "maxProperties": 64, "additionalProperties": schema(args[1])}
    match held:
        case type() if issubclass(held, Struct):
            return _struct(held)
        case _ if held is bool:
            return {"type": "boolean"}
        case _ if held is int:
            return {"type": "integer", "format": "int64"}
        case _ if held is str:
            return {"type": "string", "maxLength": LONGEST_TEXT}
    raise TypeError(f"no schema for {held}")


def _struct(held: type[Struct]) -> dict[str, Any]:
    hints = get_type_hints(held)
    fields = msgspec.structs.fields(held)
    made: dict[str, Any] = {
        "type": "object",
        "properties": {field.encode_name: schema(hints[field.name]) for field in fields},
    }
    needed = [field.encode_name for field in fields if field.default is msgspec.NODEFAULT]
    return made | ({"required": needed} if needed else {})
