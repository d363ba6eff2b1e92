"""What ``fit`` says as ``gpu-admit.io/fit/v1``; estimates nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubectl_gpuadmit.sizing.advice import Alternative, Configuration, Line, shortest
from kubectl_gpuadmit.sizing.amount import Range
from kubectl_gpuadmit.sizing.constants import GIB
from kubectl_gpuadmit.sizing.envelope import Envelope
from kubectl_gpuadmit.sizing.logged import compared
from kubectl_gpuadmit.sizing.problem import Problem
from kubectl_gpuadmit.sizing.startlog import StartLog
from kubectl_gpuadmit.sizing.trial import Asked

SCHEMA_VERSION = "gpu-admit.io/fit/v1"


def document(asked: Asked, found: Envelope, fitting: Sequence[Alternative] = ()) -> dict[str, Any]:
    """One answer as plain dicts and lists in the documented order."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        **_asked(asked),
        **_answer(asked, found),
        "remedies": [
            {
                "change": one.change,
                "verified": True,
                "gpus": one.envelope.gpus,
                "maxModelLen": one.envelope.max_model_len,
                "maxConcurrency": _rounded(_likely(one.envelope.max_concurrency), 2),
            }
            for one in shortest(fitting)
        ],
    }


def advice_document(asked: Asked, found: Sequence[Configuration]) -> dict[str, Any]:
    """The configurations that fit, least memory first."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        **_asked(asked),
        "configurations": [_answer(one.trial, one.envelope) for one in found],
    }


def table_document(asked: Asked, found: Sequence[Line]) -> dict[str, Any]:
    """Products × contexts."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        **_asked(asked),
        "products": [
            {
                "gpu": line.product.name,
                "memoryMiB": line.product.mib,
                "contexts": [
                    {
                        "maxModelLen": cell.context,
                        "fits": _fits(cell.envelope),
                        "maxConcurrency": _rounded(_likely(cell.envelope.max_concurrency), 2),
                        "burst": cell.envelope.problems[0].dimension
                        if cell.envelope.problems
                        else None,
                        "unknown": list(cell.envelope.unknown),
                    }
                    for cell in line.cells
                ],
            }
            for line in found
        ],
    }


def log_document(asked: Asked, log: StartLog, found: Envelope | None) -> dict[str, Any]:
    """A log's figures with the estimate beside them."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        **_asked(asked),
        "log": {
            "weightsGiB": _gib(log.weights),
            "activationsGiB": _gib(log.activations),
            "outsideTorchGiB": _gib(log.outside_torch),
            "graphsGiB": _gib(log.graphs),
            "kvCacheGiB": _gib(log.cache),
            "kvCacheTokens": log.tokens,
            "maxConcurrency": log.concurrency,
            "refusal": log.refusal or None,
        },
        "estimate": None if found is None else _answer(asked, found),
        "errors": [
            {
                "what": one.what,
                "log": one.theirs,
                "estimate": one.ours,
                "error": round(one.error, 4),
            }
            for one in compared(log, found)
        ],
    }


def _asked(asked: Asked) -> dict[str, Any]:
    return {"model": asked.model, "source": asked.source, "engine": asked.engine}


def _answer(asked: Asked, found: Envelope) -> dict[str, Any]:
    serving = asked.serving
    return {
        "gpu": asked.product.name if asked.product else None,
        "gpus": found.gpus,
        "tensorParallel": serving.tensor_parallel_size or 1,
        "pipelineParallel": serving.pipeline_parallel_size or 1,
        "maxModelLen": found.max_model_len,
        "parameters": found.parameters,
        "perGpu": {
            "memoryMiB": asked.product.mib if asked.product else None,
            "budgetGiB": _gib(found.budget),
            "weightsGiB": _gib(_likely(found.weights)),
            "activationsGiB": _gib(_likely(found.activations)),
            "overheadGiB": _gib(_likely(found.overhead)),
            "kvCacheGiB": _gib(_likely(found.kv_cache)),
            "headroomGiB": _gib(_likely(found.headroom)),
            "recoveryGiB": _gib(_likely(found.recovery)),
            "loadingGiB": _gib(found.loading),
        },
        "kvBytesPerToken": _rounded(found.kv_bytes_per_token, 1),
        "kvCacheTokens": _whole(_likely(found.kv_tokens)),
        "maxConcurrency": _rounded(_likely(found.max_concurrency), 2),
        "longestModelLen": _whole(_likely(found.longest)),
        "fits": _fits(found),
        "range": {
            "weightsGiB": _ends(found.weights, GIB),
            "activationsGiB": _ends(found.activations, GIB),
            "overheadGiB": _ends(found.overhead, GIB),
            "kvCacheGiB": _ends(found.kv_cache, GIB),
            "kvCacheTokens": _ends(found.kv_tokens, 1),
            "maxConcurrency": _ends(found.max_concurrency, 1),
        },
        "problems": [_problem(p) for p in found.problems],
        "warnings": [_problem(p) for p in found.warnings],
        "unknown": list(found.unknown),
        "assumptions": [
            *({"what": text, "source": "the model's name"} for text in asked.assumed),
            *({"what": a.what, "source": a.source} for a in found.assumptions),
        ],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "reason": f"fit/{problem.reason}",
        "dimension": problem.dimension,
        "detail": problem.detail,
    }


def _fits(found: Envelope) -> bool | None:
    return {"fits": True, "exceeds": False}.get(found.fits)


def _likely(amount: Range | None) -> float | None:
    return None if amount is None else amount.likely


def _gib(size: float | None) -> float | None:
    return None if size is None else round(size / GIB, 2)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _ends(amount: Range | None, unit: int) -> list[float] | None:
    if amount is None:
        return None
    return [round(amount.low / unit, 2), round(amount.high / unit, 2)]
