"""Phi-4-multimodal (arXiv 2503.01743): Phi-4-mini's decoder, beside towers whose keys stand in parts of their own.

Phi-3-vision (2404.14219) is Phi-3 beside one.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.phi import read_phi3

TOWERS = {"vision_config": "vision tower", "audio_config": "audio tower"}
OLD_TOWERS = ("audio_processor", "embd_layer", "img_processor", "speech_lora", "vision_lora")
"""Of the published file, whose code holds the LoRA weights of both in the text model's layers; the library does not."""


def read_phi4_multimodal(config: Config) -> Written:
    """Phi-3's decoder; the LoRA weights that images and speech switch on are named as left out with their towers."""
    config.note(*TOWERS)
    names = list(TOWERS.values())
    if config.model_type == "phi4mm":
        config.note(*OLD_TOWERS)
        names += [f"LoRA weights of the {name}" for name in names]
    return {**read_phi3(config), "not_counted": names}


def read_phi3_v(config: Config) -> Written:
    """Phi-3's decoder beside an image processor."""
    config.note(*OLD_TOWERS)
    return {**read_phi3(config), "not_counted": ["vision tower"]}


READERS = {
    "phi3_v": read_phi3_v,
    "phi4_multimodal": read_phi4_multimodal,
    "phi4mm": read_phi4_multimodal,
}
CLASSES = {
    "phi3_v": ("Phi3VForCausalLM",),
    "phi4_multimodal": ("Phi4MultimodalForCausalLM",),
    "phi4mm": ("Phi4MMForCausalLM",),
}
CODE = {"phi4mm": ("modeling_phi4mm",)}
