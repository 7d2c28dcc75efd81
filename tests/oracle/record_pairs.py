"""Record ground truth for encoder-decoder classes, and for decoders with ALiBi, in the manner of `record.py`.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_pairs.py               # rewrites pairs.json and alibi.json
    throwaway/bin/python tests/oracle/record_pairs.py --defaults    # rewrites the importers' class defaults
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import logging
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from record import DEFAULTS
from torch.utils.flop_counter import FlopCounterMode

Config = dict[str, Any]

HERE = Path(__file__).resolve().parent
BART_LIKE = {
    "bart": "Bart",
    "mbart": "MBart",
    "plbart": "PLBart",
    "mvp": "Mvp",
    "blenderbot": "Blenderbot",
    "blenderbot-small": "BlenderbotSmall",
    "pegasus": "Pegasus",
    "marian": "Marian",
    "m2m_100": "M2M100",
}
T5_LIKE = {"t5": "T5", "mt5": "MT5", "umt5": "UMT5"}
STEMS = {**BART_LIKE, **T5_LIKE}
ALIBI = {"bloom": "BloomForCausalLM", "mpt": "MptForCausalLM", "falcon": "FalconForCausalLM"}
# What a config class renames itself, beside its attribute_map.
MORE_ALIASES = {"bloom": {"n_embed": "hidden_size"}, "falcon": {"n_embed": "hidden_size"}}

# Changes to the class defaults of the usual class, `;` between cases; `class=` names another class.
BART_CASES = """
    decoder_layers=1; encoder_layers=3; encoder_layers=1 decoder_layers=5; encoder_ffn_dim=37 decoder_ffn_dim=41;
    encoder_attention_heads=4 decoder_attention_heads=8; vocab_size=5027 max_position_embeddings=77;
    scale_embedding=true activation_function="relu"; scale_embedding=false; tie_word_embeddings=false;
    class=Model; class=Model decoder_ffn_dim=41 encoder_layers=1; num_hidden_layers=3 encoder_layers=3
"""
CAUSAL_CASES = """;
    class=ForCausalLM; class=ForCausalLM decoder_layers=3 decoder_ffn_dim=41 encoder_ffn_dim=37;
    class=ForCausalLM tie_word_embeddings=false; class=ForCausalLM decoder_attention_heads=8 encoder_layers=7
"""
MARIAN_CASES = """;
    share_encoder_decoder_embeddings=false; share_encoder_decoder_embeddings=false tie_word_embeddings=false;
    share_encoder_decoder_embeddings=false decoder_vocab_size=5027;
    share_encoder_decoder_embeddings=false decoder_vocab_size=5027 tie_word_embeddings=false vocab_size=1009;
    share_encoder_decoder_embeddings=false decoder_vocab_size=5027 class=Model; decoder_vocab_size=58101
"""
T5_CASES = """
    num_layers=1; num_layers=3; num_decoder_layers=1; num_layers=5 num_decoder_layers=1;
    num_layers=1 num_decoder_layers=3;
    d_kv=13; d_kv=31 num_heads=5; d_ff=37; feed_forward_proj="gated-gelu"; feed_forward_proj="gated-silu" d_ff=41;
    feed_forward_proj="gelu"; feed_forward_proj="relu"; relative_attention_num_buckets=17; vocab_size=5027;
    relative_attention_max_distance=77 relative_attention_num_buckets=64; num_layers=2 tie_word_embeddings=false;
    hidden_size=60 num_attention_heads=7 head_dim=11; class=Model; class=Model num_decoder_layers=1;
    class=EncoderModel; class=EncoderModel num_layers=3 num_decoder_layers=1 d_kv=13
"""
ALIBI_CASES = {
    "bloom": """
    n_layer=1; n_layer=7; hidden_size=60 n_head=5; n_embed=42 n_head=6; num_attention_heads=2 num_hidden_layers=3;
    tie_word_embeddings=false; vocab_size=5027; hidden_size=61 n_head=1; hidden_size=66 n_head=11 n_layer=3;
    pretraining_tp=2 layer_norm_epsilon=1e-6
    """,
    "mpt": """
    n_layers=1; n_layers=3; d_model=60 n_heads=5; hidden_size=42 num_attention_heads=6; tie_word_embeddings=false;
    vocab_size=5027; n_heads=1; max_seq_len=77; attn_config={"softmax_scale":0.5,"clip_qkv":6.0}; no_bias=false;
    expansion_ratio=3; attn_config={"alibi":false}; attn_config={"qk_ln":true}; attn_config={"alibi_bias_max":16};
    attn_config={"attn_type":"multiquery_attention"}
    """,
    "falcon": """
    num_hidden_layers=1; num_hidden_layers=3; alibi=true; bias=true; multi_query=false; parallel_attn=false;
    multi_query=false parallel_attn=false bias=true alibi=true; ffn_hidden_size=37; tie_word_embeddings=false;
    new_decoder_architecture=true num_attention_heads=8 hidden_size=512 num_kv_heads=2;
    new_decoder_architecture=true num_attention_heads=6 hidden_size=60 num_kv_heads=3 bias=true;
    new_decoder_architecture=true num_attention_heads=6 hidden_size=60; num_kv_heads=71; num_kv_heads=1;
    new_decoder_architecture=true num_attention_heads=6 hidden_size=60 num_kv_heads=2 num_ln_in_parallel_attn=1;
    new_decoder_architecture=true num_attention_heads=6 hidden_size=60 num_kv_heads=2 num_ln_in_parallel_attn=2;
    num_ln_in_parallel_attn=1; parallel_attn=false num_ln_in_parallel_attn=2; n_embed=142; activation="relu";
    new_decoder_architecture=true multi_query=false num_attention_heads=6 hidden_size=60 num_kv_heads=3 alibi=true
    """,
}
SHALLOW: dict[str, Config] = {
    **{model_type: {"encoder_layers": 2, "decoder_layers": 2} for model_type in BART_LIKE},
    "marian": {"encoder_layers": 2, "decoder_layers": 2, "pad_token_id": 0, "decoder_start_token_id": 0},
    "mpt": {"n_layers": 2},
    "falcon": {"num_hidden_layers": 2},
}
"""What a case has where it says nothing else: full-size models are slow."""

# What the library will not build, or will not run.
REFUSED = {
    "t5": 'feed_forward_proj="gelu-gated"; feed_forward_proj="gated-gelu-new"',
    "bart": "encoder_attention_heads=7; decoder_attention_heads=7",
    "marian": "d_model=60 encoder_attention_heads=7",
    "bloom": "hidden_size=61 n_head=5",
    "falcon": """
    hidden_size=60 num_attention_heads=7; hidden_size=60 num_attention_heads=4; num_ln_in_parallel_attn=2;
    multi_query=false num_kv_heads=1; new_decoder_architecture=true parallel_attn=false;
    new_decoder_architecture=true num_attention_heads=8 hidden_size=512 num_ln_in_parallel_attn=3;
    new_decoder_architecture=true num_attention_heads=8 hidden_size=512 num_kv_heads=3
    """,
}


def usual_class(model_type: str) -> str:
    """The class with a head on it."""
    if model_type in ALIBI:
        return ALIBI[model_type]
    return "MarianMTModel" if model_type == "marian" else f"{STEMS[model_type]}ForConditionalGeneration"


def cases(model_type: str, text: str) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case in `text`, its class in `architectures`."""
    for case in filter(None, (" ".join(case.split()) for case in text.split(";"))):
        changes = dict(word.split("=", 1) for word in case.split())
        ending = changes.pop("class", None)
        named = usual_class(model_type) if ending is None else f"{STEMS[model_type]}{ending}"
        diff = {key: json.loads(value) for key, value in changes.items()}
        diff = {"architectures": [named], **SHALLOW.get(model_type, {}), **diff}
        yield case.replace(" ", ",").replace('"', ""), diff


def texts(model_type: str) -> str:
    """The cases of a model type."""
    if model_type in ALIBI:
        return ALIBI_CASES[model_type]
    if model_type in T5_LIKE:
        return T5_CASES
    marian = MARIAN_CASES if model_type == "marian" else ""
    return BART_CASES + marian + (CAUSAL_CASES if model_type != "m2m_100" else "")


def random_config(model_type: str, rng: random.Random) -> Config:
    """A small whole config of odd sizes, its class and every switch that it knows drawn at random."""
    if model_type in ALIBI:
        return {"architectures": [ALIBI[model_type]], **_random_alibi(model_type, rng)}
    if model_type in T5_LIKE:
        return _random_t5(T5_LIKE[model_type], rng)
    stem, heads, other = BART_LIKE[model_type], rng.choice((1, 2, 3, 5)), rng.choice((1, 2, 3))
    usual = usual_class(model_type)
    classes = [usual, usual, usual, f"{stem}Model", *([f"{stem}ForCausalLM"] * (model_type != "m2m_100"))]
    config: Config = {
        "architectures": [rng.choice(classes)],
        "vocab_size": rng.choice((97, 1000, 2003)),
        "d_model": 2 * heads * other * rng.choice((3, 4, 7)),
        "encoder_layers": rng.choice((1, 2, 3, 5)),
        "decoder_layers": rng.choice((1, 2, 3, 5)),
        "encoder_ffn_dim": rng.randint(1, 300),
        "decoder_ffn_dim": rng.randint(1, 300),
        "encoder_attention_heads": heads,
        "decoder_attention_heads": other,
        "max_position_embeddings": rng.choice((50, 64, 99)),
        "scale_embedding": rng.random() < 0.5,
    }
    ids = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_eos_token_id")
    config |= dict.fromkeys(ids, 1)
    if "ForCausalLM" in config["architectures"][0]:
        config["tie_word_embeddings"] = rng.random() < 0.5
    elif model_type == "marian" and rng.random() < 0.6:
        config |= {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": rng.choice((89, 1009))}
        config["tie_word_embeddings"] = rng.random() < 0.5
    return config


def _random_t5(stem: str, rng: random.Random) -> Config:
    usual = f"{stem}ForConditionalGeneration"
    return {
        "architectures": [rng.choice((usual, usual, usual, f"{stem}Model", f"{stem}EncoderModel"))],
        "vocab_size": rng.choice((13, 97, 1000, 2003)),
        "d_model": rng.randint(5, 90),
        "d_kv": rng.choice((3, 7, 8, 13)),
        "d_ff": rng.randint(1, 300),
        "num_layers": rng.choice((1, 2, 3, 5)),
        "num_decoder_layers": rng.choice((None, 1, 2, 3)),
        "num_heads": rng.randint(1, 8),
        "relative_attention_num_buckets": rng.choice((5, 8, 17, 32)),
        "feed_forward_proj": rng.choice(("relu", "gelu", "gated-gelu", "gated-silu")),
    }


def _random_alibi(model_type: str, rng: random.Random) -> Config:
    heads, layers = rng.choice((1, 2, 3, 4, 6, 7, 8)), rng.choice((1, 2, 3, 5))
    width = heads * 2 * rng.choice((1, 3, 4, 7))
    config: Config = {"vocab_size": rng.choice((13, 97, 1000, 2003)), "tie_word_embeddings": rng.random() < 0.5}
    if model_type == "bloom":
        return config | {"hidden_size": width, "n_head": heads, "n_layer": layers}
    if model_type == "mpt":
        return config | {"d_model": width, "n_heads": heads, "n_layers": layers, "max_seq_len": rng.choice((50, 77))}
    config |= {"hidden_size": width, "num_attention_heads": heads, "num_hidden_layers": layers}
    config |= {"alibi": rng.random() < 0.5, "bias": rng.random() < 0.5, "multi_query": rng.random() < 0.5}
    config["ffn_hidden_size"] = rng.choice((None, rng.randint(1, 300)))
    if rng.random() < 0.5:
        config["new_decoder_architecture"] = True
        config["num_kv_heads"] = rng.choice([k for k in range(1, heads + 1) if heads % k == 0])
        return config | {"num_ln_in_parallel_attn": rng.choice((None, 1, 2))}
    return config | {"parallel_attn": rng.random() < 0.5}


def build(config: Config) -> Any:
    """The class that a raw `config.json` dict names, on the meta device."""
    raw = copy.deepcopy(config)
    model_type, (named,) = raw.pop("model_type"), raw.pop("architectures")
    settings = transformers.CONFIG_MAPPING[model_type](**raw)
    settings._attn_implementation = "eager"
    with torch.device("meta"):
        model = getattr(transformers, named)(settings)
    model.eval()
    model.tie_weights()
    return model


def run(model: Any, new: int, memory: int, batch: int = 1, **given: Any) -> tuple[int, Any]:
    """FLOPs of one pass of an encoder-decoder over `memory` source and `new` target tokens, and what it returns."""
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        source = {} if "encoder_outputs" in given else {"input_ids": torch.zeros((batch, memory), dtype=torch.long)}
        target = torch.zeros((batch, new), dtype=torch.long)
        output = model(**source, decoder_input_ids=target, use_cache=True, **given)
    return counter.get_total_flops(), output


def forward(model: Any, new: int, cache: Any = None) -> int:
    """FLOPs of one pass of a single stack; an encoder takes no cache."""
    cached = {} if cache is None else {"cache": cache, "use_cache": True}
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(input_ids=torch.zeros((1, new), dtype=torch.long), **cached)
    return counter.get_total_flops()


def held(cache: Any) -> int:
    """Elements of a cache; it may be laid out for more layers than there are, which are never filled."""
    return sum(layer.keys.numel() + layer.values.numel() for layer in cache.layers if layer.keys is not None)


def measure(config: Config) -> dict[str, int]:
    """All the numbers of one row."""
    model = build(config)
    parameters = dict(model.named_parameters())
    row = {"params": sum(p.numel() for p in parameters.values())}
    row["trainable"] = sum(p.numel() for p in parameters.values() if p.requires_grad)
    row["buffers"] = sum(b.numel() for name, b in model.named_buffers() if name in model.state_dict())
    named = config["architectures"][0]
    if named.endswith("EncoderModel"):
        return row | {"flops16": forward(model, 16), "flops48": forward(model, 48)}
    if named.endswith("ForCausalLM"):
        return row | _measure_causal(model)
    for tokens in (16, 48):
        row[f"flops{tokens}"], output = run(model, tokens, tokens)
        row |= {f"cache{tokens}": held(output.cache.self_attention_cache)}
        row |= {f"cross{tokens}": held(output.cache.cross_attention_cache)}
    row["flops5_memory11_batch3"] = run(model, 5, 11, batch=3)[0]
    _, output = run(model, 13, 7)
    encoder = (output.encoder_last_hidden_state,)
    row["decode_past13_memory7"], output = run(model, 1, 7, encoder_outputs=encoder, cache=output.cache)
    row["cache14"] = held(output.cache.self_attention_cache)
    return row | {"cross7": held(output.cache.cross_attention_cache)}


def _measure_causal(model: Any) -> dict[str, int]:
    row = {}
    for tokens in (16, 48):
        cache = transformers.DynamicCache()  # its own would be laid out for as many layers as an encoder has
        row[f"flops{tokens}"] = forward(model, tokens, cache)
        row[f"cache{tokens}"] = held(cache)
    for name, new, past in (("decode48", 1, 47), ("flops5_past13", 5, 13)):
        forward(model, past, cache := transformers.DynamicCache())
        row[name] = forward(model, new, cache)
    return row


def record(model_types: list[str], randoms: int) -> Iterator[dict[str, Any]]:
    """Every row, in a fixed order."""
    for model_type in model_types:
        rng = random.Random(f"costcalc {model_type}")
        drawn = [(f"random-{n:02d}", random_config(model_type, rng)) for n in range(randoms)]
        default = ("default", {"architectures": [usual_class(model_type)]})
        for name, diff in (default, *cases(model_type, texts(model_type)), *drawn):
            config = {"model_type": model_type, **diff}
            numbers = measure(config)
            if name in ("default", "random-00"):  # whole, as the library writes it
                config = {
                    **json.loads(json.dumps(build(config).config.to_dict())),
                    "architectures": diff["architectures"],
                }
            yield {"id": f"{model_type}/{name}", "config": config, **numbers}
        for name, diff in cases(model_type, REFUSED.get(model_type, "")):
            config = {"model_type": model_type, **diff}
            doing = "build"
            try:
                build(config)
                doing = "run"
                measure(config)
            except Exception as error:  # whatever the library raises is the record
                reason = f"{doing}: {str(error).splitlines()[-1].strip()}"
                yield {"id": f"{model_type}/refused/{name}", "config": config, "error": reason[:160]}
            else:
                raise SystemExit(f"{model_type}/{name}: expected the library to refuse this")


def write_defaults() -> None:
    """The raw field defaults of each config class, as `record.py` writes them."""
    for model_type in (*T5_LIKE, *BART_LIKE, *ALIBI):
        cls = transformers.CONFIG_MAPPING[model_type]
        data = {field.name: field.default for field in dataclasses.fields(cls) if field.name in cls.__annotations__}
        aliases = {**cls.attribute_map, **MORE_ALIASES.get(model_type, {})}
        if aliases:
            data["_aliases"] = aliases
        data["_provenance"] = f"transformers {transformers.__version__} {cls.__name__} field defaults"
        (DEFAULTS / f"{model_type}.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Parse the command line and write."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--defaults", action="store_true", help="write the class defaults instead")
    parser.add_argument("--randoms", type=int, default=8, help="random configs a model type")
    options = parser.parse_args()
    if options.defaults:
        write_defaults()
        return
    for name, model_types in (("pairs", [*T5_LIKE, *BART_LIKE]), ("alibi", [*ALIBI])):
        rows = [json.dumps(row, separators=(",", ":")) for row in record(model_types, options.randoms)]
        (HERE / f"{name}.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
