"""Of the corpus, strict decoding refuses what Kubernetes 1.37 has no field for, and no more."""

from __future__ import annotations

from corpus import items, needs_corpus

from kubectl_gpuadmit.admission import decoding
from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.kube.workloads import Workload, expand

# A draft of KEP-5547, whose `level` was released as `key`; another tool's test data: adminAccess is
# no field of the alternatives of a request.
REFUSED = {
    "079-job-gang-workload-podgroup-kep5547.yaml": [
        "spec.scheduling.schedulingConstraints.topology[0].level: TopologyConstraint has no such"
        " field"
    ],
    "066-ks-claim-rich.yaml": [
        "spec.devices.requests[0].firstAvailable[0].adminAccess: DeviceSubRequest has no such field"
    ],
}


def details(document: Document) -> list[str]:
    try:
        made = expand(document)
    except BadManifest:
        return []
    if isinstance(made, Workload):
        return [one.detail for one in decoding.of_workload(made, kubernetes="1.37")]
    return [one.detail for one in decoding.of_object(document.data, kubernetes="1.37")]


@needs_corpus
def test_real_manifests_are_read_but_for_two() -> None:
    refused = {}
    for folder in ("workloads", "dra"):
        for item in items(folder):
            found = [
                detail
                for document in read_documents(item.path.read_bytes(), item.path.name)
                if isinstance(document, Document)
                for detail in details(document)
            ]
            if found:
                refused[item.path.name] = found
    assert refused == REFUSED
