"""Vision and audio encoders of a multimodal ``config.json``."""

from __future__ import annotations

from kubectl_gpuadmit.sizing.architecture import Tower
from kubectl_gpuadmit.sizing.formats.fields import LAYERS, Fields


def of(config: Fields) -> tuple[Tower | None, Tower | None]:
    """The vision and the audio encoder; None where the file has none, or too little of it."""
    thinker = config.inner("thinker_config") or config
    vision = thinker.inner("vision_config", "vision_tower_config", "visual")
    audio = thinker.inner("audio_config", "audio_tower_config")
    return (
        _tower(vision, config) if vision is not None else None,
        _tower(audio, config) if audio is not None else None,
    )


def _tower(tower: Fields, config: Fields) -> Tower | None:
    """Sizes of patches are numbers or pairs; families name the rest in many ways."""
    hidden = tower.count("hidden_size", "embed_dim", "d_model", "width", "encoder_hidden_size")
    layers = tower.count("num_hidden_layers", "depth", "layers", "encoder_layers", most=LAYERS)
    if tower.data.get("embed_dim") is not None and tower.text("model_type").startswith("qwen2_vl"):
        hidden = tower.count("embed_dim")  # there hidden_size is the width that it leads to
    if not hidden or not layers:
        return None
    return Tower(
        model_type=tower.text("model_type"),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=tower.count(
            "num_attention_heads", "num_heads", "heads", "encoder_attention_heads"
        )
        or 0,
        intermediate_size=tower.count("intermediate_size", "encoder_ffn_dim") or 0,
        patch_size=_side(tower, "patch_size"),
        temporal_patch_size=tower.count("temporal_patch_size") or 1,
        image_size=_side(tower, "image_size", "img_size"),
        in_channels=tower.count("in_channels", "in_chans", "num_channels") or 3,
        num_position_embeddings=tower.count("num_position_embeddings") or 0,
        spatial_merge_size=tower.count("spatial_merge_size") or 1,
        out_hidden_size=tower.count("out_hidden_size", "output_dim") or 0,
        projector=config.text("projector_hidden_act"),
        deepstack=len(tower.items("deepstack_visual_indexes")),
        max_source_positions=tower.count("max_source_positions") or 0,
        num_mel_bins=tower.count("num_mel_bins") or 0,
    )


def _side(tower: Fields, *names: str) -> int:
    for name in names:
        if isinstance(tower.data.get(name), list):
            sides = tower.counts(name)
            return sides[0] if sides else 0
    return tower.count(*names) or 0
