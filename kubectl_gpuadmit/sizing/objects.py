"""What a workload's own object says about its model, where that is not in the pod template."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.sizing.engines import kserve, ray, vllm
from kubectl_gpuadmit.sizing.engines.arguments import Given, Parsed, settings
from kubectl_gpuadmit.sizing.startup.blanks import Blanks, is_known
from kubectl_gpuadmit.sizing.startup.container import Started


class Hint(Struct, frozen=True):
    """``engine``: what the kind starts where the container names no command. ``settings``: the
    whole of what the engine is told; ``more``: what overrides its command line."""

    engine: str = ""
    named: tuple[str, str] | None = None
    """The model, and where it is named."""
    settings: Parsed | None = None
    more: Parsed | None = None
    appended: str = ""
    """Variable whose text the kind's own start command appends to the arguments."""
    why: str = ""
    """Why the model is not known, although the object serves one."""

    def arguments(self, one: Started) -> tuple[str, ...]:
        """Words that the kind's own start command takes from the environment."""
        text = one.value(self.appended) if self.appended else None
        if not text or not is_known(text):
            return ()
        try:
            return tuple(shlex.split(text))
        except ValueError:  # an open quote: a shell would fail too
            return tuple(text.split())


def hint(kind: str, manifest: Mapping[str, Any], role: str) -> Hint:
    """What the object tells of the container; an empty hint where it tells nothing."""
    match kind:
        case "LLMInferenceService":
            return _llm_inference_service(manifest, role)
        case "InferenceService":
            return _inference_service(manifest, role) or Hint()
        case "RayService":
            return _ray_service(manifest, role) or Hint()
        case "DynamoGraphDeployment" | "DynamoComponentDeployment" | "NIMService" | "NIMPipeline":
            return Hint(why="the object does not say which model its engine loads")
        case _:
            return Hint()


def variables(kind: str, manifest: Mapping[str, Any]) -> dict[str, str]:
    """Environment that a controller adds: the LeaderWorkerSet webhook's (lws pkg/utils/pod)."""
    if kind != "LeaderWorkerSet":
        return {}
    spec = manifest.get("spec")
    template = spec.get("leaderWorkerTemplate") if isinstance(spec, dict) else None
    size = template.get("size") if isinstance(template, dict) else None
    return {"LWS_GROUP_SIZE": str(size)} if isinstance(size, int) else {}


def _llm_inference_service(manifest: Mapping[str, Any], role: str) -> Hint:
    """KServe's base configuration starts ``vllm serve /mnt/models … $VLLM_ADDITIONAL_ARGS``."""
    spec = manifest.get("spec")
    model = spec.get("model") if isinstance(spec, dict) else None
    model = model if isinstance(model, dict) else {}
    uri, name = model.get("uri"), model.get("name")
    named = None
    if isinstance(uri, str) and kserve.hub_name(uri):
        named = (kserve.hub_name(uri), "spec.model.uri")
    elif isinstance(name, str) and name:
        named = (name, "spec.model.name")
    more = settings(
        kserve.parallelism(manifest, role), kserve.PARALLELISM, Blanks(), where="spec.parallelism"
    )
    return Hint("vllm", named, more=more, appended="VLLM_ADDITIONAL_ARGS")


def _inference_service(manifest: Mapping[str, Any], role: str) -> Hint | None:
    uri = kserve.storage_uri(manifest, role if role in ("transformer", "explainer") else "")
    spec = manifest.get("spec")
    predictor = spec.get("predictor") if isinstance(spec, dict) else None
    predictor = predictor if isinstance(predictor, dict) else {}
    model = predictor.get("model")
    framework = model.get("modelFormat") if isinstance(model, dict) else None
    form = framework.get("name") if isinstance(framework, dict) else None
    engine = "kserve-huggingface" if form == "huggingface" or "huggingface" in predictor else ""
    named = (kserve.hub_name(uri), "storageUri") if kserve.hub_name(uri) else None
    if not engine and not named and not uri:
        return None
    why = f"the model at {uri} is not known by its address" if uri and not named else ""
    if not engine and not named:
        return None  # a framework without language models: TensorFlow, sklearn …
    return Hint(engine, named, why=why)


def _ray_service(manifest: Mapping[str, Any], role: str) -> Hint | None:
    if role == "head":
        return None
    found, why = ray.models(manifest)
    if len(found) > 1:
        return Hint("ray", why=f"{len(found)} models share the Ray cluster's GPUs")
    if not found:
        return Hint("ray", why=why) if why else None
    one = found[0]
    told = settings(one.engine, vllm.FLAGS, Blanks(), where="engine_kwargs")
    vllm.refine(told)
    if one.model:
        said = Given("model", one.model, f"model_source: {one.model}", "serveConfigV2")
        told.given.append(said)
    return Hint("ray", settings=told)
