"""The fields of Kubernetes' own types: what its decoder knows, and what it says to the rest.

``table.json`` is generated from Kubernetes' Go types (tests/controlplane/fields.py). It is read
when the first document is judged, and each type is unfolded when a document first holds one.
"""

from __future__ import annotations

from kubectl_gpuadmit.kube.fields.decoding import Decoded, Problem, decoded, fits, problems_of
from kubectl_gpuadmit.kube.fields.meant import Meant, is_secret, meant, wanted, without
from kubectl_gpuadmit.kube.fields.table import Table, Type, table

__all__ = [
    "Decoded",
    "Meant",
    "Problem",
    "Table",
    "Type",
    "decoded",
    "fits",
    "is_secret",
    "meant",
    "problems_of",
    "table",
    "wanted",
    "without",
]
