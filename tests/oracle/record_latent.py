"""Record ground truth for classes with latent attention, in the manner of `record.py`.

Run it in the throwaway environment that `record.py` describes (README.md beside this file says what each field means):

    throwaway/bin/python tests/oracle/record_latent.py               # rewrites latent.json
    throwaway/bin/python tests/oracle/record_latent.py --defaults    # rewrites the importers' class defaults
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
from record import DEFAULTS, forward, held

Config = dict[str, Any]

HERE = Path(__file__).resolve().parent
CLASSES = {
    "axk1": "AXK1ForCausalLM",
    "deepseek_v2": "DeepseekV2ForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
    "glm4_moe_lite": "Glm4MoeLiteForCausalLM",
    "kimi_k2": "DeepseekV3ForCausalLM",
    "minicpm3": "MiniCPM3ForCausalLM",
    "sarvam_mla": "DeepseekV3ForCausalLM",
    "youtu": "YoutuForCausalLM",
}
READ_AS = {"kimi_k2": "deepseek_v3"}
"""No class has this type; `Kimi_K25Config` reads a text part of it as that one."""
DENSE = ("minicpm3", "youtu")

# V=101, D=85, N=5, R_q=17, R=23, nope=7, rope=6, v=11, F=37 and 19, E=12, X=3, L=4 where a case says nothing else.
SIZES: Config = {
    "vocab_size": 101,
    "hidden_size": 85,
    "intermediate_size": 37,
    "num_hidden_layers": 4,
    "num_attention_heads": 5,
    "num_key_value_heads": 5,
    "q_lora_rank": 17,
    "kv_lora_rank": 23,
    "qk_nope_head_dim": 7,
    "qk_rope_head_dim": 6,
    "v_head_dim": 11,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS: Config = {
    "moe_intermediate_size": 19,
    "n_routed_experts": 12,
    "n_shared_experts": 1,
    "num_experts_per_tok": 3,
}
V2: Config = {"kv_lora_rank": 22, "qk_nope_head_dim": 14}
"""Even: the class views pairs of what it rotates as complex numbers, in place."""
GROUPS: Config = {"n_group": 3, "topk_group": 2, "first_k_dense_replace": 1}
OWN: dict[str, Config] = {
    "axk1": {**EXPERTS, "n_group": 3, "topk_group": 2},
    "deepseek_v2": {**EXPERTS, **V2, "first_k_dense_replace": 1},
    "deepseek_v3": {**EXPERTS, **GROUPS},
    "glm4_moe_lite": EXPERTS,
    "kimi_k2": {**EXPERTS, **GROUPS},
    "sarvam_mla": EXPERTS,
}
"""What a type has beside or in place of those sizes."""

# Changes to that, `;` between cases; a name of a key may be an older one.
ATTENTION = """
    q_lora_rank=null; attention_bias=true; q_lora_rank=null attention_bias=true; num_attention_heads=1
    num_key_value_heads=1; num_attention_heads=17 num_key_value_heads=17; v_head_dim=29; qk_rope_head_dim=2;
    kv_lora_rank=2 q_lora_rank=1; num_hidden_layers=1; num_hidden_layers=7; tie_word_embeddings=true;
    tie_word_embeddings=false; rope_theta=50000.0; hidden_act="gelu"
"""
WITH_RANK = ATTENTION.replace("q_lora_rank=null;", "").replace("q_lora_rank=null attention_bias=true;", "")
"""Of a class whose queries are always made of a latent."""
ROUTING = """; n_shared_experts=0; n_shared_experts=3; num_experts_per_tok=1; num_experts_per_tok=8;
    norm_topk_prob=false; norm_topk_prob=true; routed_scaling_factor=2.827; moe_intermediate_size=1;
    n_routed_experts=6 num_experts_per_tok=2
"""
FIRST = """; first_k_dense_replace=0; first_k_dense_replace=3; first_k_dense_replace=4; first_k_dense_replace=9 """
V3 = f"""{FIRST}; n_group=1 topk_group=1; n_group=6 topk_group=6; n_group=2 topk_group=1 num_experts_per_tok=6;
    num_nextn_predict_layers=0; num_nextn_predict_layers=1; num_mtp_layers=2; rope_interleave=false;
    num_local_experts=24 num_experts_per_tok=5; num_key_value_heads=null; head_dim=6; qk_head_dim=13;
    moe_layer_freq=1 ep_size=1
"""
GATED = """; mlp_bias=true; mlp_bias=true attention_bias=true;
    num_attention_heads=17 num_key_value_heads=17 mlp_bias=true
"""
CASES = {
    "axk1": f"""{WITH_RANK}{ROUTING}{FIRST}; mlp_layer_types=["sparse","dense","dense","sparse"];
    mlp_layer_types=["dense","dense","dense","dense"]; mlp_layer_types=["sparse","sparse","sparse","sparse"];
    n_group=1 topk_group=1; num_local_experts=24; rope_interleave=false; num_nextn_predict_layers=1; head_dim=6;
    moe_layer_freq=1
    """,
    "deepseek_v2": f"""{ATTENTION}{ROUTING}{FIRST}{GATED}; topk_method="group_limited_greedy" n_group=3 topk_group=1;
    topk_method="group_limited_greedy" n_group=12 topk_group=4; topk_method="greedy" n_group=5 topk_group=1;
    num_experts=24; head_dim=77; num_key_value_heads=null; scoring_func="softmax" moe_layer_freq=1
    """,
    "deepseek_v3": ATTENTION + ROUTING + V3,
    "kimi_k2": "num_nextn_predict_layers=0 n_group=1 topk_group=1; q_lora_rank=null; attention_bias=true",
    "sarvam_mla": f"""{ATTENTION}{ROUTING}{FIRST}; num_experts=24; num_shared_experts=2; head_dim=29; q_head_dim=13;
    n_group=3 topk_group=2; num_nextn_predict_layers=1; num_key_value_heads=null
    """,
    "glm4_moe_lite": f"""{ATTENTION}{ROUTING}; mlp_layer_types=["sparse","dense","dense","sparse"];
    mlp_layer_types=["dense","dense","dense","dense"]; mlp_layer_types=["sparse","sparse","sparse","sparse"];
    n_group=3 topk_group=2; first_k_dense_replace=1; num_local_experts=24; rope_interleave=false;
    num_nextn_predict_layers=1; head_dim=4
    """,
    "minicpm3": f"""{ATTENTION}{GATED}; v_head_dim=null; v_head_dim=null num_attention_heads=17
    num_key_value_heads=17; scale_emb=1 scale_depth=1 dim_model_base=85; scale_depth=null dim_model_base=null;
    head_dim=77; num_key_value_heads=null
    """,
    "youtu": f"{ATTENTION}; rope_interleave=false; head_dim=6",
}
# What the library will not build, or will not run.
SIZED = "num_key_value_heads=1; num_key_value_heads=10; qk_rope_head_dim=5"
REFUSED = {
    "axk1": f"""{SIZED}; num_experts_per_tok=13; n_group=5 topk_group=5; mlp_layer_types=["dense"]
    """,
    "deepseek_v2": """num_key_value_heads=1; qk_rope_head_dim=5; num_attention_heads=6 num_key_value_heads=6;
    topk_method="noaux_tc"; topk_method=null; topk_method="group_limited_greedy";
    topk_method="group_limited_greedy" n_group=5 topk_group=1; num_experts_per_tok=13; num_experts_per_tok=null;
    first_k_dense_replace=null
    """,
    "deepseek_v3": f"""{SIZED}; num_experts_per_tok=13; n_group=5 topk_group=5; n_group=12 topk_group=12;
    topk_group=4; head_dim=4; first_k_dense_replace=null; v_head_dim=null; q_lora_rank="17"
    """,
    "sarvam_mla": f"{SIZED}; num_experts_per_tok=13; n_routed_experts=1 num_experts_per_tok=1",
    "glm4_moe_lite": f"""{SIZED}; num_experts_per_tok=13; n_group=5 topk_group=5; n_group=12 topk_group=12;
    mlp_layer_types=["dense"]
    """,
    "minicpm3": "num_key_value_heads=1; num_attention_heads=6 num_key_value_heads=6; qk_rope_head_dim=5",
    "youtu": f"{SIZED}; head_dim=4; v_head_dim=null",
}


def whole(model_type: str, changes: Config) -> Config:
    """The small config of a type with some changes; a renamed key takes the place of the class's own."""
    aliases = config_class(model_type).attribute_map
    given = {**SIZES, **OWN.get(model_type, {})}
    for key in changes:
        given.pop(aliases.get(key, key), None)
    return {"model_type": model_type, **given, **changes}


def cases(model_type: str, text: str) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case in `text`."""
    for case in filter(None, (" ".join(case.split()) for case in text.split(";"))):
        changes = {key: json.loads(value) for key, value in (word.split("=", 1) for word in case.split())}
        yield case.replace(" ", ",").replace('"', ""), whole(model_type, changes)


def random_config(model_type: str, rng: random.Random) -> Config:
    """A small whole config with every switch that the class has drawn at random."""
    heads, layers, step = rng.choice((1, 2, 3, 4, 5, 7)), rng.choice((1, 2, 3, 5, 7)), 1 + (model_type == "deepseek_v2")
    drawn: Config = {
        "vocab_size": rng.choice((13, 97, 1009, 2003)),
        "hidden_size": heads * rng.choice((4, 9, 13)),
        "intermediate_size": rng.choice((1, 29, 37, 211)),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads if model_type in ("axk1", "glm4_moe_lite", "youtu") else rng.choice((heads, None)),
        "q_lora_rank": rng.choice((3, 5, 17) if model_type == "axk1" else (None, 5, 17)),
        "kv_lora_rank": step * rng.choice((3, 11, 31)),
        "qk_nope_head_dim": step * rng.choice((1, 7, 13)),
        "qk_rope_head_dim": rng.choice((2, 4, 10)),
        "v_head_dim": rng.choice((1, 11, 29)),
        **{key: rng.random() < 0.5 for key in ("attention_bias", "tie_word_embeddings")},
        **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0),
    }
    if model_type in ("deepseek_v2", "minicpm3"):
        drawn["mlp_bias"] = rng.random() < 0.5
    if model_type not in DENSE:
        drawn |= random_experts(model_type, layers, rng)
    return {"model_type": model_type, **drawn}


def random_experts(model_type: str, layers: int, rng: random.Random) -> Config:
    """Experts in groups, of which some are used, and which layers have them."""
    groups, of_group = rng.choice((1, 1, 2, 3)), rng.choice((2, 3, 5, 8))
    reached = rng.randint(1, groups)
    drawn: Config = {
        "moe_intermediate_size": rng.choice((1, 19, 23)),
        "n_routed_experts": groups * of_group,
        "n_shared_experts": rng.choice((0, 1, 2)),
        "num_experts_per_tok": rng.randint(1, reached * of_group),
        "n_group": groups,
        "topk_group": reached,
        "norm_topk_prob": rng.random() < 0.5,
        "routed_scaling_factor": rng.choice((1.0, 2.5)),
    }
    if model_type in ("axk1", "glm4_moe_lite"):
        return drawn | {"mlp_layer_types": rng.choice((None, rng.choices(("dense", "sparse"), k=layers)))}
    drawn["first_k_dense_replace"] = rng.randint(0, layers)
    if model_type == "deepseek_v2":
        drawn["topk_method"] = rng.choice(("greedy", "group_limited_greedy"))
    return drawn


def config_class(model_type: str) -> Any:
    """The config class that reads a type."""
    return transformers.CONFIG_MAPPING[READ_AS.get(model_type, model_type)]


def build(config: Config) -> Any:
    """The real class of a raw `config.json` dict, on the meta device, with as many experts as a token is sent to."""
    raw = copy.deepcopy(config)
    model_type = raw.pop("model_type")
    settings = config_class(model_type)(**raw)
    settings._attn_implementation, settings._experts_implementation = "eager", "batched_mm"
    with torch.device("meta"):
        model = getattr(transformers, CLASSES[model_type])(settings)
    model.eval()
    model.tie_weights()
    return model


def measure(config: Config) -> dict[str, int]:
    """All the numbers of one row."""
    model = build(config)
    row = {"params": sum(p.numel() for p in model.parameters())}
    row["buffers"] = sum(b.numel() for name, b in model.named_buffers() if name in model.state_dict())
    row["flops16"], after16 = forward(model, 16)
    row["flops48"], after48 = forward(model, 48)
    row["decode48"] = forward(model, 1, cache=forward(model, 47)[1])[0]
    row |= {"cache16": held(after16), "cache48": held(after48)}
    row["flops11_batch3"] = forward(model, 11, batch=3)[0]
    row["flops5_past13"] = forward(model, 5, cache=forward(model, 13)[1])[0]
    return row


def record(randoms: int) -> Iterator[dict[str, Any]]:
    """Every row, in a fixed order; `default` and `random-00` hold the whole `to_dict()`."""
    for model_type in CLASSES:
        rng = random.Random(f"costcalc {model_type}")
        drawn = [(f"random-{n:02d}", random_config(model_type, rng)) for n in range(randoms)]
        default = {"num_experts_per_tok": 6} if model_type == "deepseek_v2" else {}  # its own is null, and cannot run
        first = [] if model_type in READ_AS else [("default", {"model_type": model_type, **default})]
        for name, given in (*first, *cases(model_type, CASES[model_type]), *drawn):
            try:
                numbers = measure(given)
            except Exception as error:
                raise SystemExit(f"{model_type}/{name}: {error}") from error
            config = given if name not in ("default", "random-00") else _whole_of(given)
            yield {"id": f"{model_type}/{name}", "config": config, **numbers}
        yield from refused(model_type)


def _whole_of(config: Config) -> Config:
    """All that the library writes of a config, under its own type."""
    return {**json.loads(json.dumps(build(config).config.to_dict())), "model_type": config["model_type"]}


def refused(model_type: str) -> Iterator[dict[str, Any]]:
    """Rows of what the library will not build or run, and what it says."""
    for name, config in cases(model_type, REFUSED.get(model_type, "")):
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
    """The raw field defaults of each config class and of those that it is made of, as `record.py` writes them."""
    for model_type in CLASSES:
        cls = config_class(model_type)
        own = {name for base in cls.__mro__ if issubclass(base, transformers.PreTrainedConfig)
               and base is not transformers.PreTrainedConfig for name in base.__annotations__}  # fmt: skip
        data = {f.name: f.default for f in dataclasses.fields(cls) if f.name in own}
        data = {key: value for key, value in data.items() if not isinstance(value, AttributeError)}
        if cls.attribute_map:
            data["_aliases"] = dict(cls.attribute_map)
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
    rows = [json.dumps(row, separators=(",", ":")) for row in record(options.randoms)]
    (HERE / "latent.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
