"""Record the logits of tiny random models from the real `transformers` classes: the outside oracle of the forward pass.

Nothing is downloaded: a config is built from what a raw `config.json` would hold, every parameter is drawn from a fixed
seed, and the config, the parameters, the tokens and the logits of a model go to one `.npz` beside this file. The script
stops when something in a model would not show in its logits. README.md says what each array means.

Run it in a throwaway environment, never in the project's own:

    python -m venv throwaway && throwaway/bin/pip install torch==2.13.0 'transformers==5.24.*'
    throwaway/bin/python tests/oracle/forward/record.py    # rewrites the .npz files; prints what it measured
"""

from __future__ import annotations

import copy
import json
import logging
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import transformers
from torch.overrides import TorchFunctionMode

Config = dict[str, Any]
Weights = dict[str, torch.Tensor]

HERE = Path(__file__).resolve().parent
BATCH, TOKENS, PREFILL = 2, 13, 7
SHOWS, GELU_SHOWS = 1e-3, 1e-4
"""What a change moves at least, as a share of the largest logit; the two GELUs are never further apart than 5e-4."""

# Of each file: the class, what its config.json holds, and changes to it that must show, `;` between them.
SIZES = "vocab_size=97 intermediate_size=37 num_hidden_layers=3 max_position_embeddings=17"
MODELS = {
    "gpt2": (
        "GPT2LMHeadModel",
        """model_type="gpt2" vocab_size=97 n_embd=35 n_head=5 n_inner=37 n_layer=3 n_positions=17
        activation_function="gelu_new" layer_norm_epsilon=0.01 bos_token_id=1 eos_token_id=2""",
        """layer_norm_epsilon=1e-5; scale_attn_weights=false; activation_function="gelu" """,
    ),
    "llama": (
        "LlamaForCausalLM",
        f"""model_type="llama" {SIZES} hidden_size=24 num_attention_heads=6 num_key_value_heads=2 head_dim=10
        hidden_act="silu" rms_norm_eps=0.005 rope_theta=50.0 tie_word_embeddings=false""",
        "rms_norm_eps=1e-6; rope_theta=1e4",
    ),
    "llama_biased": (
        "LlamaForCausalLM",
        f"""model_type="llama" {SIZES} hidden_size=30 num_attention_heads=5 num_key_value_heads=1 hidden_act="silu"
        attention_bias=true mlp_bias=true rms_norm_eps=0.01 rope_theta=200.0 tie_word_embeddings=true""",
        "rms_norm_eps=1e-6; rope_theta=1e4",
    ),
    "qwen3": (
        "Qwen3ForCausalLM",
        f"""model_type="qwen3" {SIZES} hidden_size=23 num_attention_heads=6 num_key_value_heads=3 head_dim=10
        hidden_act="silu" rms_norm_eps=0.02 rope_parameters={{"rope_type":"default","rope_theta":70.0}}
        tie_word_embeddings=true""",
        """rms_norm_eps=1e-6; rope_parameters={"rope_type":"default","rope_theta":1e4}""",
    ),
    "gemma2": (
        "Gemma2ForCausalLM",
        f"""model_type="gemma2" {SIZES} hidden_size=30 num_attention_heads=6 num_key_value_heads=2 head_dim=14
        hidden_activation="gelu_pytorch_tanh" rms_norm_eps=0.05 query_pre_attn_scalar=11 attn_logit_softcapping=2.0
        final_logit_softcapping=8.0 sliding_window=4""",
        """rms_norm_eps=1e-6; rope_theta=100.0; query_pre_attn_scalar=14; attn_logit_softcapping=null;
        final_logit_softcapping=null; sliding_window=3; sliding_window=5; sliding_window=17;
        layer_types=["full_attention","sliding_attention","full_attention"]; hidden_activation="gelu" """,
    ),
    "mistral": (
        "MistralForCausalLM",
        f"""model_type="mistral" {SIZES} hidden_size=31 num_attention_heads=6 num_key_value_heads=2 head_dim=14
        hidden_act="silu" rms_norm_eps=0.005 rope_theta=30.0 sliding_window=5 tie_word_embeddings=false""",
        "rms_norm_eps=1e-6; rope_theta=1e4; sliding_window=null; sliding_window=4; sliding_window=6",
    ),
    "phi": (
        "PhiForCausalLM",
        """model_type="phi" vocab_size=97 intermediate_size=37 num_hidden_layers=2 max_position_embeddings=17
        hidden_size=30 num_attention_heads=3 hidden_act="gelu_new" layer_norm_eps=0.01 partial_rotary_factor=0.4
        rope_theta=20.0 tie_word_embeddings=false""",
        """layer_norm_eps=1e-5; rope_theta=1e4; partial_rotary_factor=0.6; hidden_act="gelu" """,
    ),
    "olmo2": (  # norms on the output of each sublayer, and over the whole projection of queries and of keys
        "Olmo2ForCausalLM",
        f"""model_type="olmo2" {SIZES} hidden_size=30 num_attention_heads=3 num_key_value_heads=1 hidden_act="silu"
        rms_norm_eps=0.02 rope_theta=40.0 tie_word_embeddings=false""",
        "rms_norm_eps=1e-6; rope_theta=1e4",
    ),
    "gpt_neox": (  # parallel with two norms, GELU by erf
        "GPTNeoXForCausalLM",
        f"""model_type="gpt_neox" {SIZES} hidden_size=30 num_attention_heads=3 hidden_act="gelu" layer_norm_eps=0.01
        rotary_pct=0.4 rotary_emb_base=20 tie_word_embeddings=false""",
        """layer_norm_eps=1e-5; rotary_emb_base=10000; rotary_pct=0.6; hidden_act="gelu_new";
        use_parallel_residual=false""",
    ),
    "opt": (  # norms after the residual sum, a table narrower than the model, two rows of positions before the first
        "OPTForCausalLM",
        """model_type="opt" vocab_size=97 hidden_size=35 word_embed_proj_dim=23 ffn_dim=37 num_hidden_layers=3
        num_attention_heads=5 max_position_embeddings=17 do_layer_norm_before=false activation_function="relu" """,
        """activation_function="silu"; num_attention_heads=7""",
    ),
}


def parsed(text: str) -> Config:
    """The keys and values of `key=value` words."""
    return {key: json.loads(value) for key, value in (word.split("=", 1) for word in text.split())}


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
    settings._attn_implementation = "eager"
    model = getattr(transformers, config["architectures"][0])(settings).eval()
    model.tie_weights()
    parameters = dict(model.named_parameters())
    for name, values in (weights or {}).items():
        parameters.pop(name).data.copy_(values)
    assert not weights or not parameters, f"left as they were: {list(parameters)}"
    return model


def neutral(config: Config, name: str) -> float:
    """The value at which a parameter or buffer changes nothing: of a gain 1, or 0 where the class itself adds the 1."""
    gain = name.endswith(("norm.weight", "ln_1.weight", "ln_2.weight", "ln_f.weight"))
    return float(name.endswith("embed_scale") or (gain and config["model_type"] != "gemma2"))


def drawn(config: Config, rng: np.random.Generator) -> Weights:
    """Random parameters, all multiples of 1/256: float32 holds them exactly, and they compress."""
    weights = {}
    for name, parameter in build(config).named_parameters():
        spread = 0.3
        if parameter.ndim == 2:  # GPT-2 stores its matrices as (in, out), everyone else as (out, in)
            spread = 1.4 / math.sqrt(parameter.shape[0 if "transformer.h." in name else 1])
        if any(table in name for table in ("embed_tokens", "embed_positions", "embed_in", "wte", "wpe")):
            spread = 0.7
        values = neutral(config, name) + spread * rng.standard_normal(tuple(parameter.shape))
        weights[name] = torch.from_numpy((np.round(values * 256) / 256).astype(np.float32))
    return weights


def stepwise(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """The logits of a prefill and then of one token at a time, with the library's own cache."""
    cache, logits = None, []
    for part in tokens.split([PREFILL] + [1] * (TOKENS - PREFILL), dim=1):
        output = model(input_ids=part, cache=cache, use_cache=True)
        cache = output.cache
        logits.append(output.logits)
    return torch.cat(logits, dim=1)


def apart(other: torch.Tensor, logits: torch.Tensor) -> float:
    """The largest difference, as a share of the largest logit."""
    return float((other.double() - logits).abs().max() / logits.abs().max())


def changed(config: Config, weights: Weights, changes: str, tokens: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """What was changed, and the logits then: config keys, functions, each norm left out, each parameter neutral."""
    for change in changes.split(";"):
        yield change.strip(), build(config | parsed(change), weights)(input_ids=tokens).logits
    model = build(config, weights)
    library = sys.modules[type(model).__module__]
    swaps: dict[str, Callable] = {"rotate_half": lambda x: torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)}
    if config.get("num_key_value_heads", 1) > 1:
        swaps["repeat_kv"] = lambda x, n: x.repeat(1, n, 1, 1)  # query head h reads key head h % K, not h // (N / K)
    for name in filter(lambda name: hasattr(library, name), swaps):
        with mock.patch.object(library, name, swaps[name]):
            yield f"another {name}", model(input_ids=tokens).logits
    for name, module in model.named_modules():
        if "Norm" in type(module).__name__:
            with mock.patch.object(module, "forward", lambda x: x):
                yield f"no {name}", model(input_ids=tokens).logits
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        # One is a spare copy, the other adds the same to all scores of a query where no rotation tells keys apart.
        if "original_inv_freq" not in name and not (config["model_type"] == "opt" and name.endswith("k_proj.bias")):
            kept = tensor.detach().clone()
            tensor.data.fill_(neutral(config, name))
            yield f"neutral {name}", model(input_ids=tokens).logits
            tensor.data.copy_(kept)


def check_inside(model: Any, tokens: torch.Tensor) -> str:
    """Eager attention masks as it should and is neither uniform nor saturated, and every layer does something."""
    output = model(input_ids=tokens, output_attentions=True, output_hidden_states=True)
    types = getattr(model.config, "layer_types", None) or ["sliding_attention"] * len(output.attentions)
    back = torch.arange(TOKENS)[:, None] - torch.arange(TOKENS)
    evenness = []
    for kind, scores in zip(types, output.attentions, strict=True):
        window = (getattr(model.config, "sliding_window", None) if kind == "sliding_attention" else None) or TOKENS
        assert ((scores > 0) == ((back >= 0) & (back < window))).all(), f"{kind} does not see {window} tokens"
        entropy = -torch.special.xlogy(scores, scores).sum(-1)[..., window - 1 :]
        evenness.append(round(float(entropy.mean()) / math.log(window), 2))
    states = output.hidden_states[:-1]  # the last one is after the final norm
    steps = [round(float((new - old).norm() / old.norm()), 2) for old, new in pairwise(states)]
    assert all(0.4 < value < 0.95 for value in evenness), f"entropy of attention, as a share of uniform: {evenness}"
    assert all(0.2 < value < 5 for value in steps), f"a layer's change of the residual stream: {steps}"
    return f"entropy of attention {evenness} of uniform, layers move the stream by {steps}"


def record(name: str) -> None:
    """Check one model, print what was measured, write its file."""
    kind, keys, changes = MODELS[name]
    config: Config = {"architectures": [kind], **parsed(keys)}
    rng = np.random.default_rng(list(name.encode()))
    tokens = torch.from_numpy(rng.integers(0, config["vocab_size"], (BATCH, TOKENS)))
    with exact():
        weights = drawn(config, rng)
        model = build(config, weights)
        assert all(value.dtype == torch.float64 for value in (*model.parameters(), *model.buffers()))
        logits = model(input_ids=tokens).logits
        inside = check_inside(model, tokens)
        cached = apart(stepwise(model, tokens), logits)
        moved = {what: apart(other, logits) for what, other in changed(config, weights, changes, tokens)}
    single = apart(build(config, weights)(input_ids=tokens).logits, logits)
    double = apart(build(config, weights).double()(input_ids=tokens).logits, logits)
    print(f"\n{name}: float32 {single:.1e}, .double() {double:.1e}, stepwise {cached:.1e}; {inside}")
    print(*(f"  {share:.1e} {what}" for what, share in sorted(moved.items(), key=lambda item: item[1])), sep="\n")
    assert max(single, double) < 1e-5 and cached < 1e-10
    assert all(share > (GELU_SHOWS if '"gelu' in what else SHOWS) for what, share in moved.items())
    arrays = {key: value.numpy() for key, value in {"tokens": tokens, "logits": logits, **weights}.items()}
    np.savez_compressed(HERE / f"{name}.npz", config=np.array(json.dumps(config)), **arrays)


def main() -> None:
    """Write every file."""
    logging.disable(logging.CRITICAL)
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    for name in MODELS:
        record(name)


if __name__ == "__main__":
    main()
