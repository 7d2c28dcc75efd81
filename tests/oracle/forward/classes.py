"""The real classes: built from configs, with drawn parameters, in float64 throughout, and called."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import transformers
from torch.overrides import TorchFunctionMode

Config = dict[str, Any]
Weights = dict[str, torch.Tensor]
Inputs = dict[str, torch.Tensor]
"""What a model reads, by the names of its arrays here: tokens, and source or token_types where it has them."""

BATCH, TOKENS, SOURCE = 2, 13, 11

NORMS = (
    *("norm", "ln_1", "ln_2", "ln_f", "norm_1", "norm_2", "norm_f", "ln_attn", "ln_mlp", "norm_mlstm", "norm_ffn"),
    *("ln1", "ln2", "ln_out", "pre_ln"),
)
ONE_IS_ADDED = ("gemma2", "gemma3_text", "qwen3_next", "recurrent_gemma", "minimax_m3_vl_text")
"""Classes that add 1 to a norm's weight, but for the gated norm of Qwen3-Next."""
TABLES = (
    *(
        "embed_tokens",
        "embed_positions",
        "embed_in",
        "wte",
        "wpe",
        "shared.weight",
        "word_embeddings",
        "tok_embeddings",
        "backbone.embeddings",
    ),
    *("position_embeddings", "token_type_embeddings", "relative_attention_bias"),
)
COMPUTED = ("slope_rate", "query_decay", "key_decay", "diagonal_decay")
"""Buffers of lightning attention, which follow from the config."""
CALMER = {
    "jamba": {"mamba.out_proj": 0.2},
    "mamba2": {"mixer.out_proj": 0.7},
    "nemotron_h": {"mixer.out_proj": 0.3, "fc2_latent_proj": 0.06, "mixer.down_proj": 0.5, "shared_experts.down": 0.1},
    "zaya": {"router_mlp.out_proj": 1.5, "balancing_biases": 0.6},
    "zamba": {"self_attn.q_proj": 0.6, "linear.weight": 0.5, "x_proj_weight": 0.3, "mamba.out_proj": 0.3},
    "zamba2": {"self_attn.q_proj": 0.3, "q_adapter_list": 0.5, "linear.weight": 0.1, "mamba.out_proj": 0.7},
}
"""By type of model, parts that would do too much with numbers of the usual size, and what theirs are multiplied by."""
FACTORS = (
    *("embed_scale", "layer_scalar", "correct_output_scale", "router.scale", "per_expert_scale"),
    *("qk_norm.temp", "hidden_states_scale", "residual_scale", "router_states_scale"),
)
KEY_BIASES = ("self_attn.k_proj.bias", "encoder_attn.k_proj.bias", "attention.self.key.bias", "attention.key.bias")


class Widened(TorchFunctionMode):
    """Float64 where a class asks for float32 whatever its own dtype: in RMSNorm, softmax and the rotary angles."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        wide = [torch.float64 if value is torch.float32 else value for value in args]
        named = {key: torch.float64 if value is torch.float32 else value for key, value in (kwargs or {}).items()}
        return (torch.Tensor.double if func is torch.Tensor.float else func)(*wide, **named)


@contextmanager
def exact() -> Iterator[None]:
    """Inside, models are built and run in float64 throughout."""
    torch.set_default_dtype(torch.float64)
    with Widened():
        yield
    torch.set_default_dtype(torch.float32)


def build(config: Config, weights: Weights | None = None) -> Any:
    """The real class of a config, with `weights` in it."""
    raw = copy.deepcopy(config)  # the library writes into a dict it is handed
    settings = transformers.CONFIG_MAPPING[raw.pop("model_type")](**raw)
    settings._attn_implementation = settings._experts_implementation = "eager"
    model = getattr(transformers, config["architectures"][0])(settings).eval()
    model.tie_weights()
    if config["model_type"] == "t5" and config.get("tie_word_embeddings") is False:
        # Version 5 ties the head whatever the config says; published checkpoints have two tables, as version 4 had.
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    arrays = held(model)
    for name, values in (weights or {}).items():
        arrays.pop(name).data.copy_(values)
    assert not weights or not arrays, f"left as they were: {list(arrays)}"
    return model


def held(model: Any) -> Weights:
    """What a checkpoint of it holds: parameters, and buffers of numbers (BART's bias of logits)."""
    kept = model.state_dict()
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in kept and buffer.is_floating_point()}
    drawn = {name: buffer for name, buffer in buffers.items() if not name.endswith(COMPUTED)}
    return {**dict(model.named_parameters()), **drawn}


def read(config: Config, rng: np.random.Generator) -> Inputs:
    """Random texts, and what else the class reads."""
    words = config["vocab_size"]
    inputs = {"tokens": rng.integers(0, words, (BATCH, TOKENS))}
    if config["model_type"] in ("t5", "bart"):
        inputs["source"] = rng.integers(0, words, (BATCH, SOURCE))
    if "type_vocab_size" in config:
        inputs["token_types"] = rng.integers(0, config["type_vocab_size"], (BATCH, TOKENS))
    return {name: torch.from_numpy(values) for name, values in inputs.items()}


def called(model: Any, inputs: Inputs, **how: Any) -> Any:
    """What the class gives for these."""
    if "source" in inputs:
        return model(input_ids=inputs["source"], decoder_input_ids=inputs["tokens"], **how)
    types = {"token_type_ids": inputs["token_types"]} if "token_types" in inputs else {}
    return model(input_ids=inputs["tokens"], **types, **how)


def answer(model: Any, inputs: Inputs) -> torch.Tensor:
    """The logits; of a class without a head its last hidden states and, as one more token's, what its pooler gives."""
    output = called(model, inputs)
    if "logits" in output:
        return output.logits
    return torch.cat([output.last_hidden_state, output.pooler_output[:, None]], dim=1)


def neutral(config: Config, name: str) -> float:
    """The value at which a parameter or buffer changes nothing: of a gain 1, or 0 where the class itself adds the 1."""
    gain = name.lower().endswith((*(f"{norm}.weight" for norm in NORMS), "layernorm_embedding.weight"))
    is_added = config["model_type"] in ONE_IS_ADDED and not name.endswith("linear_attn.norm.weight")
    return float(name.endswith(FACTORS) or (gain and not is_added))


def cancels(config: Config, name: str) -> bool:
    """Whether a parameter adds the same to all scores of a query: a bias of keys that nothing rotates.

    Or whether the norm above the layers takes out again what it multiplies by: the last layer's scale.
    """
    if name.endswith(f"layers.{config.get('num_hidden_layers', 0) - 1}.layer_scalar"):
        return True
    return config["model_type"] in ("opt", "bert", "albert", "bart") and name.endswith(KEY_BIASES)


def drawn(config: Config, rng: np.random.Generator) -> Weights:
    """Random parameters, all multiples of 1/256: float32 holds them exactly, and they compress."""
    weights = {}
    for name, parameter in held(build(config)).items():
        spread = 0.3
        if parameter.ndim == 2:  # GPT-2 stores its matrices as (in, out), everyone else as (out, in)
            inputs = 0 if config["model_type"] == "gpt2" and "transformer.h." in name else 1
            spread = 1.4 / math.sqrt(parameter.shape[inputs])
        if parameter.ndim == 3:  # of all experts; two classes store them as (experts, in, out)
            spread = 1.4 / math.sqrt(parameter.shape[1 if config["model_type"] in ("gpt_oss", "llama4_text") else 2])
        if any(table in name for table in TABLES) and parameter.ndim == 2:
            spread = 0.7
        if "altup" in name and name.endswith(("modality_router.weight", "correction_coefs.weight")):
            spread *= 3  # what they read is divided by the width
        if name.endswith("Attention.q.weight"):  # T5 does not divide scores by the root of a head's size
            spread /= math.sqrt(config["d_kv"])
        if name.endswith("q_proj.weight") and config["model_type"] == "gpt_neo":  # nor does GPT-Neo
            spread /= math.sqrt(config["hidden_size"] / config["num_heads"])
        if "decoder.layers" in name and name.endswith("q_proj.weight") and config["model_type"] == "bart":
            spread *= 2.2  # its scores are small
        if name.endswith("conv.in_proj.weight"):  # three of LFM2's projections are multiplied with each other
            spread *= 0.6
        for part, factor in CALMER.get(config["model_type"], {}).items():
            spread *= factor if part in name else 1
        mean = 1.0 if name.endswith(".D") else neutral(config, name)  # what goes around a state space keeps it in range
        values = mean + spread * rng.standard_normal(tuple(parameter.shape))
        if name.endswith("q_norm.weight") and config["model_type"] in ("gemma3n_text", "gemma4_text"):
            values *= 0.5  # they do not divide scores by the root of a head's size either
        weights[name] = torch.from_numpy((np.round(values * 256) / 256).astype(np.float32))
    return weights
