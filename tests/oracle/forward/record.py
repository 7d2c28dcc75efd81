"""Record the logits of tiny random models from the real `transformers` classes: the outside oracle of the forward pass.

Nothing is downloaded: a config is built from what a raw `config.json` would hold, every parameter is drawn from a fixed
seed, and the config, the parameters, the tokens and the logits of a model go to one `.npz` beside this file. The script
stops when something in a model would not show in its logits. README.md says what each array means.

Run it in a throwaway environment, never in the project's own:

    python -m venv throwaway && throwaway/bin/pip install torch==2.13.0 'transformers==5.24.*'
    throwaway/bin/python tests/oracle/forward/record.py    # rewrites the .npz files; prints what it measured
    throwaway/bin/python tests/oracle/forward/record.py bert t5    # these only
"""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import transformers
from classes import (
    SOURCE,
    TOKENS,
    Config,
    Inputs,
    Weights,
    answer,
    build,
    called,
    cancels,
    drawn,
    exact,
    held,
    neutral,
    read,
)
from models import MODELS
from models_around import MODELS as AROUND
from models_by_layer import MODELS as BY_LAYER
from models_linear import MODELS as LINEAR
from models_ssm import MODELS as SSM
from models_zaya import MODELS as ZAYA

HERE = Path(__file__).resolve().parent
PREFILL = 7
SHOWS, GELU_SHOWS = 1e-3, 1e-4
"""What a change moves at least, as a share of the largest logit; the two GELUs are never further apart than 5e-4."""

LINEAR_LAYERS = ("linear_attention", "conv", "moe", "mlp")
"""Kinds of layer in which nothing attends."""
BOTH_WAYS = ("bert", "albert", "modernbert")
ADJACENT = ("deepseek_v2", "deepseek_v3", "llama4_text", "cohere2", "jamba", "zamba", "nemotron_h")
"""Classes in which rotation pairs neighbours, or does not ask `rotate_half`."""


def parsed(text: str) -> Config:
    """The keys and values of `key=value` words."""
    return {key: json.loads(value) for key, value in (word.split("=", 1) for word in text.split())}


def stepwise(model: Any, inputs: Inputs) -> torch.Tensor:
    """The logits of a prefill and then of one token at a time, with the library's own cache."""
    cache, logits, encoded = None, [], {}
    if model.config.model_type == "recurrent_gemma":  # it makes one, too, but does not give it back
        cache = transformers.DynamicCache(config=model.config)
    # The class of RWKV takes a single token of two texts for two tokens.
    step = 2 if model.config.model_type == "rwkv" else 1
    for part in inputs["tokens"].split([PREFILL] + [step] * ((TOKENS - PREFILL) // step), dim=1):
        given = {**inputs, "tokens": part}
        if encoded:
            output = model(decoder_input_ids=part, cache=cache, use_cache=True, **encoded)
        else:
            kept = "state" if model.config.model_type == "rwkv" else "cache"
            output = called(model, given, use_cache=True, **{kept: cache})
        if "source" in inputs:
            encoded = {"encoder_outputs": (output.encoder_last_hidden_state,)}
        cache = output.get("state", output.get("cache", cache))
        logits.append(output.logits)
    return torch.cat(logits, dim=1)


def apart(other: torch.Tensor, logits: torch.Tensor) -> float:
    """The largest difference, as a share of the largest logit."""
    return float((other.double() - logits).abs().max() / logits.abs().max())


def changed(config: Config, weights: Weights, changes: str, inputs: Inputs) -> Iterator[tuple[str, torch.Tensor]]:
    """What was changed, and the logits then: config keys, functions, each norm left out, each parameter neutral."""
    for change in changes.split(";"):
        yield change.strip(), answer(build(config | parsed(change), weights), inputs)
    model = build(config, weights)
    library = sys.modules[type(model).__module__]
    swaps: dict[str, Callable] = {}
    if config["model_type"] not in ADJACENT:
        swaps["rotate_half"] = lambda x: torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    if 1 < config.get("num_key_value_heads", 1) < config.get("num_attention_heads", 1):
        swaps["repeat_kv"] = lambda x, n: x.repeat(1, n, 1, 1)  # query head h reads key head h % K, not h // (N / K)
    for name in filter(lambda name: hasattr(library, name), swaps):
        with mock.patch.object(library, name, swaps[name]):
            yield f"another {name}", answer(model, inputs)
    for name, module in model.named_modules():
        if (kind := type(module).__name__).find("Norm") >= 0:
            is_of_two = "QKNorm" in kind  # the others may be given a gate as well
            with mock.patch.object(module, "forward", lambda x, *more, two=is_of_two: (x, *more) if two else x):
                yield f"no {name}", answer(model, inputs)
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        # One is a spare copy, the other adds the same to all scores of a query where no rotation tells keys apart.
        if "original_inv_freq" not in name and tensor.is_floating_point() and not cancels(config, name):
            kept = tensor.detach().clone()
            tensor.data.fill_(neutral(config, name))
            yield f"neutral {name}", answer(model, inputs)
            tensor.data.copy_(kept)


def attentions(model: Any, output: Any) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """Of each attention: a name, its weights (B, N, T, S), and which keys each query may see (T, S)."""
    if model.config.model_type == "rwkv":  # what it calls so are outputs
        return
    back = torch.arange(TOKENS)[:, None] - torch.arange(TOKENS)
    if "encoder_attentions" in output:
        for scores in output.encoder_attentions:
            yield "encoder", scores, torch.ones(SOURCE, SOURCE) > 0
        for scores in output.decoder_attentions:
            yield "decoder", scores, back >= 0
        for scores in output.cross_attentions:
            yield "cross", scores, torch.ones(TOKENS, SOURCE) > 0
        return
    named = getattr(model.config, "layer_types", None) or getattr(model.config, "attention_layers", None)
    given = output.get("attentions") or ()  # of MiniMax those of all layers, in linear ones the state
    attend = [kind for kind in named or ["sliding_attention"] * len(given) if kind not in LINEAR_LAYERS]
    for kind, scores in zip(named if named and len(named) == len(given) else attend, given, strict=True):
        if kind in LINEAR_LAYERS:
            continue
        sizes = dict.fromkeys(("sliding_attention", "hybrid_sliding"), "sliding_window") | {"local": "window_size"}
        window = getattr(model.config, sizes[kind], None) if kind in sizes else None
        if kind == "chunked_attention":
            chunks = torch.arange(TOKENS) // model.config.attention_chunk_size
            yield kind, scores, (back >= 0) & (chunks[:, None] == chunks)
        elif model.config.model_type in BOTH_WAYS:
            yield kind, scores, back.abs() <= (TOKENS if window is None else window)
        else:
            yield kind, scores, (back >= 0) & (back < (window or TOKENS))


def check_inside(model: Any, inputs: Inputs) -> str:
    """Eager attention masks as it should and is neither uniform nor saturated, and every layer does something."""
    output = called(model, inputs, output_attentions=True, output_hidden_states=True)
    evenness = []
    for kind, scores, seen in attentions(model, output):
        assert ((scores > 0) == seen).all(), f"{kind} sees other tokens"
        most = int(seen.sum(-1).max())
        full = seen.sum(-1) == most  # queries that see as many keys as any
        entropy = -torch.special.xlogy(scores, scores).sum(-1)[..., full]
        evenness.append(round(float(entropy.mean()) / math.log(most), 2))
    steps = []
    for name in ("hidden_states", "encoder_hidden_states", "decoder_hidden_states"):
        if name in output:
            states = output[name][:-1]  # the last one is after the final norm
            steps += [round(float((new - old).norm() / old.norm()), 2) for old, new in pairwise(states)]
    assert all(0.4 < value < 0.95 for value in evenness), f"entropy of attention, as a share of uniform: {evenness}"
    assert all(0.2 < value < 5 for value in steps), f"a layer's change of the residual stream: {steps}"
    return f"entropy of attention {evenness} of uniform, layers move the stream by {steps}"


def record(name: str) -> None:
    """Check one model, print what was measured, write its file."""
    kind, keys, changes = (MODELS | BY_LAYER | AROUND | LINEAR | SSM | ZAYA)[name]
    config: Config = {"architectures": [kind], **parsed(keys)}
    rng = np.random.default_rng(list(name.encode()))
    inputs = read(config, rng)
    with exact():
        weights = drawn(config, rng)
        model = build(config, weights)
        assert all(value.dtype == torch.float64 for value in (*model.parameters(), *held(model).values()))
        logits = answer(model, inputs)
        inside = check_inside(model, inputs)
        cached = 0.0 if config["model_type"] in BOTH_WAYS else apart(stepwise(model, inputs), logits)
        moved = {what: apart(other, logits) for what, other in changed(config, weights, changes, inputs)}
    single = apart(answer(build(config, weights), inputs), logits)
    double = apart(answer(build(config, weights).double(), inputs), logits)
    print(f"\n{name}: float32 {single:.1e}, .double() {double:.1e}, stepwise {cached:.1e}; {inside}")
    print(*(f"  {share:.1e} {what}" for what, share in sorted(moved.items(), key=lambda item: item[1])), sep="\n")
    assert max(single, double) < 1e-5 and cached < 1e-10
    assert all(share > (GELU_SHOWS if '"gelu' in what else SHOWS) for what, share in moved.items())
    given = {"tokens": inputs.pop("tokens"), "logits": logits[:, :TOKENS], **inputs}
    if logits.shape[1] > TOKENS:
        given["pooled"] = logits[:, TOKENS]
    arrays = {key: value.numpy() for key, value in {**given, **weights}.items()}
    np.savez_compressed(HERE / f"{name}.npz", config=np.array(json.dumps(config)), **arrays)


def main() -> None:
    """Write every file, or those that are named."""
    logging.disable(logging.CRITICAL)
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    for name in sys.argv[1:] or [*MODELS, *BY_LAYER, *AROUND, *LINEAR, *SSM, *ZAYA]:
        record(name)


if __name__ == "__main__":
    main()
