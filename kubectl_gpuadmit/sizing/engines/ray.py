"""Ray Serve LLM: ``llm_configs`` in a RayService's ``serveConfigV2``.

Source: ray-project/ray python/ray/llm/_internal/serve/configs (model_loading_config, engine_kwargs,
accelerator_type).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from msgspec import Struct


class ServeModel(Struct, frozen=True):
    """One entry of ``llm_configs``."""

    model: str
    engine: Mapping[str, Any]
    accelerator: str = ""


def models(manifest: Mapping[str, Any]) -> tuple[tuple[ServeModel, ...], str]:
    """The models of a RayService, and '' or why they are not known."""
    spec = manifest.get("spec")
    text = spec.get("serveConfigV2") if isinstance(spec, dict) else None
    if not isinstance(text, str) or not text.strip():
        return (), ""
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return (), "serveConfigV2 is no YAML"
    applications = data.get("applications") if isinstance(data, dict) else None
    found: list[ServeModel] = []
    other = ""
    for application in applications if isinstance(applications, list) else ():
        args = application.get("args") if isinstance(application, dict) else None
        configs = args.get("llm_configs") if isinstance(args, dict) else None
        if not isinstance(configs, list):
            if isinstance(application, dict):
                path = application.get("import_path")
                other = f"Ray Serve application {path}: its own code decides what it loads"
            continue
        for config in configs:
            if isinstance(config, str):
                other = f"Ray Serve model file {config} lies in the image"
            elif isinstance(config, dict):
                found.append(_model(config))
    return tuple(found), "" if found else other


def _model(config: Mapping[str, Any]) -> ServeModel:
    loading = config.get("model_loading_config")
    loading = loading if isinstance(loading, dict) else {}
    source = loading.get("model_source") or loading.get("model_id")
    engine = config.get("engine_kwargs")
    accelerator = config.get("accelerator_type")
    return ServeModel(
        model=source if isinstance(source, str) else "",
        engine=engine if isinstance(engine, dict) else {},
        accelerator=accelerator if isinstance(accelerator, str) else "",
    )
