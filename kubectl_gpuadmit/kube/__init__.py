"""Kubernetes as data: objects, quantities, selectors, manifests, workloads. No verdicts here."""
