"""Adds to a policy what a call says about models: files of ``--models``, target load, MLflow."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from kubectl_gpuadmit.cli.question import Question
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.policy import Policy


def with_load(policy: Policy, question: Question) -> Policy:
    """The policy with the target load and the model files of the call. Raises BadInput."""
    given = load_of(question)
    if given:
        from kubectl_gpuadmit import rules
        from kubectl_gpuadmit.policy.serving import RULE

        assert rules.__all__, "importing the package registers every rule"
        policy = policy.with_settings(RULE, given)
    if question.models:
        from kubectl_gpuadmit.adapters.models import read_models
        from kubectl_gpuadmit.policy.serving import models_of

        entries = [entry for path in question.models for entry in read_models(path)]
        policy = structs.replace(policy, models=models_of(policy).with_entries(entries))
    return policy


def load_of(question: Question) -> dict[str, int]:
    """Settings of ``model/memory-fit`` that the call gives."""
    load = {"concurrency": question.concurrency, "context": question.context_tokens}
    return {name: value for name, value in load.items() if value}


def knows_more(policy: Policy, question: Question) -> bool:
    """Whether files of the call or a registry said more of models than the policy file does."""
    models = policy.models
    return bool(question.models) or (models is not None and bool(models.asked or models.silent))


def with_registry(
    policy: Policy,
    documents: Sequence[Document | BadManifest],
    cluster: Cluster,
    *,
    namespace: str,
) -> Policy:
    """The policy with what its registry says of the models that the documents serve and that are
    not known otherwise; with the reason where it could not be asked."""
    models = policy.models
    if models is None or not models.mlflow:
        return policy
    from kubectl_gpuadmit.serves import unknown_models

    names = unknown_models(documents, cluster, policy, namespace=namespace)
    if not names:
        return policy
    from kubectl_gpuadmit.adapters import mlflow

    told = mlflow.ask(models.mlflow, names)
    asked = () if told.problem else ("MLflow",)
    silent = tuple(s for s in (*told.notes, told.problem) if s)
    more = structs.replace(models.with_entries(told.entries), asked=asked, silent=silent)
    return structs.replace(policy, models=more)
