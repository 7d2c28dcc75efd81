"""Record ground truth for encoder classes, in the manner of `record.py` beside this file and in the same environment.

    throwaway/bin/python tests/oracle/record_encoders.py               # rewrites encoders.json beside this file
    throwaway/bin/python tests/oracle/record_encoders.py --defaults    # rewrites the class defaults the importers read

A row is of the class that its config names in `architectures`. What has a cache (`is_decoder`) is measured as in
`record.py`; with cross-attention also over a memory of 13 tokens.
"""

from __future__ import annotations

import copy
import json
import logging
import random
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import record
import torch
import transformers
from record import Config, cases, forward, held
from torch.utils.flop_counter import FlopCounterMode
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.models.megatron_bert import modeling_megatron_bert

HERE = Path(__file__).resolve().parent
MEMORY = 13

STEMS = {
    "bert": "Bert",
    "ernie": "Ernie",
    "megatron-bert": "MegatronBert",
    "roberta": "Roberta",
    "camembert": "Camembert",
    "data2vec-text": "Data2VecText",
    "xlm-roberta": "XLMRoberta",
    "roberta-prelayernorm": "RobertaPreLayerNorm",
    "xlm-roberta-xl": "XLMRobertaXL",
    "electra": "Electra",
    "bert-generation": "BertGeneration",
    "albert": "Albert",
    "distilbert": "DistilBert",
    "modernbert": "ModernBert",
    "eurobert": "EuroBert",
    "nomic_bert": "NomicBert",
    "jina_embeddings_v3": "JinaEmbeddingsV3",
    "modernbert-decoder": "ModernBertDecoder",
}
CAUSAL = list(STEMS)[:11]
"""Classes that read `is_decoder`."""
ROTARY = ("modernbert", "eurobert", "nomic_bert", "jina_embeddings_v3", "modernbert-decoder")
LOCAL = {"modernbert": (2, 3, 6, 9, 16, 40), "modernbert-decoder": (4, 5, 6, 9, 16, 40)}
"""Half a window of 1 is none at all to the library's cache."""
PADS_HIGH = ("modernbert", "eurobert", "modernbert-decoder")
"""Their default padding token is beyond a small vocabulary."""

# Changes to the class defaults, `;` between cases; `class=` is the use of the class, masked where it is not written.
COMMON = """
    num_hidden_layers=1; num_hidden_layers=3 class=bare; num_hidden_layers=7 tie_word_embeddings=false;
    tie_word_embeddings=true; num_hidden_layers=1 vocab_size=200003; intermediate_size=3071;
    tie_word_embeddings=false class=bare
"""
BERTS = f"""{COMMON};
    class=causal; class=causal is_decoder=true; class=causal is_decoder=true add_cross_attention=true;
    class=causal is_decoder=true tie_word_embeddings=false; num_attention_heads=1 hidden_size=67;
    hidden_size=60 num_attention_heads=4 max_position_embeddings=77; hidden_act="relu" type_vocab_size=1;
    max_position_embeddings=131 pad_token_id=0; max_position_embeddings=131 pad_token_id=3; type_vocab_size=7
"""
WINDOWS = """;
    num_hidden_layers=4; num_hidden_layers=7 global_attn_every_n_layers=2 local_attention=8;
    num_hidden_layers=3 global_attn_every_n_layers=1; num_hidden_layers=5 global_attn_every_n_layers=9
    local_attention=5;
    layer_types=SSF local_attention=6; layer_types=FFFF; layer_types=S local_attention=2; norm_bias=true;
    attention_bias=true; mlp_bias=true; classifier_bias=true; decoder_bias=false; norm_bias=true decoder_bias=false
    classifier_bias=true classifier_activation="relu" hidden_activation="silu" mlp_bias=true attention_bias=true;
    global_rope_theta=160000.0 local_rope_theta=10000.0 global_attn_every_n_layers=3 position_embedding_type="absolute";
    rope_parameters={"full_attention":{"rope_theta":7e4,"rope_type":"default"}}
"""
CASES = {
    **dict.fromkeys(CAUSAL, BERTS),
    "ernie": f"{BERTS}; task_type_vocab_size=5; use_task_id=true",
    "electra": f"""{BERTS};
    embedding_size=256; embedding_size=256 tie_word_embeddings=false; embedding_size=257; embedding_size=768 class=bare;
    embedding_size=31 tie_word_embeddings=false; embedding_size=31 class=causal is_decoder=true add_cross_attention=true
    """,
    "albert": f"""{COMMON};
    num_hidden_layers=3 num_hidden_groups=3; num_hidden_layers=5 num_hidden_groups=2; inner_group_num=2;
    num_hidden_layers=7 num_hidden_groups=3 inner_group_num=3 hidden_size=52 num_attention_heads=4; embedding_size=4096;
    num_hidden_layers=13 num_hidden_groups=13 hidden_size=52 num_attention_heads=4 embedding_size=31;
    num_hidden_layers=12 num_hidden_groups=4 hidden_size=52 num_attention_heads=4 class=bare; embedding_size=1;
    hidden_act="gelu" type_vocab_size=3; max_position_embeddings=97; hidden_size=67 num_attention_heads=1
    """,
    "distilbert": """
    n_layers=1; n_layers=3; n_layers=7 class=bare; tie_word_embeddings=false; tie_word_embeddings=false class=bare;
    sinusoidal_pos_embds=true; sinusoidal_pos_embds=true class=bare max_position_embeddings=97; activation="relu";
    hidden_dim=3071; n_heads=1 dim=67; hidden_size=60 num_attention_heads=4 num_hidden_layers=3; vocab_size=200003;
    tie_weights_=true qa_dropout=0.2; max_position_embeddings=48
    """,
    "modernbert": f"{COMMON}{WINDOWS}; layer_types=SF local_attention=1",
    "modernbert-decoder": f"{COMMON}{WINDOWS}".replace("local_attention=2", "local_attention=4"),
    "eurobert": f"""{COMMON};
    mlp_bias=true; mlp_bias=true tie_word_embeddings=true; attention_bias=true; num_key_value_heads=4; head_dim=32;
    num_key_value_heads=1 head_dim=96 attention_bias=true mlp_bias=true; hidden_act="gelu"; layer_types=FF;
    mlp_bias=true class=bare; num_key_value_heads=null head_dim=null
    """,
    "nomic_bert": f"""{COMMON};
    head_dim=32; head_dim=98 tie_word_embeddings=false; hidden_act="gelu" type_vocab_size=1; rope_theta=1e4;
    head_dim=null; hidden_size=60 num_attention_heads=6; max_position_embeddings=8;
    hidden_size=100 num_attention_heads=8
    """,
    "jina_embeddings_v3": f"""{COMMON};
    hidden_act="relu" type_vocab_size=3; rope_theta=1e4; hidden_size=60 num_attention_heads=6; pad_token_id=0;
    hidden_size=1000 num_attention_heads=4; max_position_embeddings=8; hidden_size=100 num_attention_heads=8
    """,
}
# What the library will not build, or will not run.
REFUSED = {
    **dict.fromkeys(
        CAUSAL,
        """add_cross_attention=true; hidden_size=100 num_attention_heads=8; hidden_act="geluu";
        class=causal add_cross_attention=true""",
    ),
    "bert-generation": 'add_cross_attention=true; hidden_size=100 num_attention_heads=8; hidden_act="geluu"',
    "albert": """hidden_size=100 num_attention_heads=8; num_hidden_groups=0; hidden_act="geluu" """,
    "distilbert": """dim=100 n_heads=8; activation="geluu"; n_heads=0""",
    "modernbert": """hidden_size=100 num_attention_heads=8; hidden_size=84 num_attention_heads=12; layer_types=XF;
        global_attn_every_n_layers=0; num_hidden_layers=3 layer_types=FF; global_attn_every_n_layers=null""",
    "modernbert-decoder": """hidden_size=100 num_attention_heads=8; hidden_size=84 num_attention_heads=12;
        global_attn_every_n_layers=0; num_hidden_layers=3 layer_types=FF""",
    "eurobert": "hidden_size=100 num_attention_heads=8; head_dim=7; num_key_value_heads=5",
    "nomic_bert": "head_dim=7; hidden_size=84 num_attention_heads=12",
    "jina_embeddings_v3": "hidden_size=84 num_attention_heads=12; hidden_size=4 num_attention_heads=8",
}


def class_name(model_type: str, use: str) -> str:
    """The class of a model type for a use."""
    special = {
        ("bert", "causal"): "BertLMHeadModel",
        ("bert-generation", "bare"): "BertGenerationEncoder",
        ("bert-generation", "masked"): "BertGenerationDecoder",
        ("bert-generation", "causal"): "BertGenerationDecoder",
        ("modernbert-decoder", "masked"): "ModernBertDecoderForCausalLM",
    }
    endings = {"masked": "ForMaskedLM", "bare": "Model", "causal": "ForCausalLM"}
    return special.get((model_type, use), STEMS[model_type] + endings[use])


def rows(model_type: str, text: str) -> Iterator[tuple[str, Config]]:
    """The name and the whole config of each case in `text`."""
    for name, diff in cases(model_type, re.sub(r"\bclass=(\w+)", r'class="\1"', text)):
        if model_type == "distilbert" and "n_layers" in diff:
            diff.pop("num_hidden_layers")
        use = diff.pop("class", "masked")
        yield name, {"model_type": model_type, "architectures": [class_name(model_type, use)], **diff}


def random_config(model_type: str, rng: random.Random) -> Config:
    """A small whole config of odd sizes, with every switch that the class knows drawn at random."""
    layers, heads, pick = rng.choice((1, 2, 3, 5, 7)), rng.choice((1, 2, 3, 4, 5, 6, 8)), rng.choice
    use = pick(("masked", "masked", "bare", *["causal"] * (2 * (model_type in CAUSAL))))
    config: Config = {"model_type": model_type, "architectures": [class_name(model_type, use)]}
    head_dim = pick((2, 4, 10, 16) if model_type in ROTARY else (1, 3, 4, 7, 11))
    config |= {"vocab_size": pick((13, 97, 1009, 2003)), "tie_word_embeddings": pick((True, False))}
    sizes = {"num_hidden_layers": layers, "num_attention_heads": heads, "hidden_size": heads * head_dim}
    config |= sizes | {"max_position_embeddings": pick((53, 67, 512))}
    inner, act = ("hidden_dim", "activation") if model_type == "distilbert" else ("intermediate_size", "hidden_act")
    act = "hidden_activation" if model_type.startswith("modernbert") else act
    config |= {inner: rng.randint(1, 300), act: pick(("gelu", "relu", "silu", "gelu_new"))}
    if model_type in PADS_HIGH:
        config["pad_token_id"] = 0
    config |= random_switches(model_type, use, rng, layers)
    return config


def random_switches(model_type: str, use: str, rng: random.Random, layers: int) -> Config:
    """What only some of the classes know."""
    pick, flag, found = rng.choice, lambda: rng.random() < 0.5, {}
    if model_type not in ("distilbert", "bert-generation", "modernbert", "modernbert-decoder", "eurobert"):
        found["type_vocab_size"] = pick((1, 2, 5))
    if model_type in CAUSAL and (use == "causal" or model_type in ("electra", "bert-generation")) and use != "masked":
        found["is_decoder"] = flag()
        found["add_cross_attention"] = found["is_decoder"] and flag()
    if model_type in ("roberta", "camembert", "data2vec-text", "xlm-roberta", "roberta-prelayernorm", "xlm-roberta-xl"):
        found["pad_token_id"] = pick((0, 1, 4))
    if model_type in ("electra", "albert"):
        found["embedding_size"] = pick((5, 8, 16, 29))
    if model_type == "albert":
        found |= {"num_hidden_groups": pick((1, 2, layers)) if layers > 1 else 1, "inner_group_num": pick((1, 1, 2, 3))}
    if model_type == "distilbert":
        found["sinusoidal_pos_embds"] = flag()
    if model_type == "eurobert":
        found |= {"attention_bias": flag(), "mlp_bias": flag()}
    if model_type == "nomic_bert" and flag():
        found["head_dim"] = pick((2, 6, 12))
    if model_type.startswith("modernbert"):
        switches = ("norm_bias", "attention_bias", "mlp_bias", "classifier_bias", "decoder_bias")
        found |= {key: flag() for key in switches} | {"local_attention": pick(LOCAL[model_type])}
        types = [pick(("sliding_attention", "full_attention")) for _ in range(layers)]
        found |= pick(({}, {"global_attn_every_n_layers": pick((1, 2, 4))}, {"layer_types": types}))
    return found


def build(config: Config) -> Any:
    """The class that a raw `config.json` dict names, on the meta device."""
    name = config["architectures"][0]
    with mock.patch.dict(record.CLASSES, {config["model_type"]: name}):
        return record.build(copy.deepcopy(config))


@contextmanager
def unseen_tokens() -> Iterator[None]:
    """MegatronBert looks at tokens and masks, which are not there on the meta device; neither changes a product."""
    nothing = lambda *_, **__: None  # noqa: E731
    masks = dict.fromkeys(("create_causal_mask", "create_bidirectional_mask"), nothing)
    with (
        mock.patch.object(transformers.PreTrainedModel, "warn_if_padding_and_no_attention_mask", nothing),
        mock.patch.multiple(modeling_megatron_bert, **masks),
    ):
        yield


def plain(model: Any, new: int, batch: int = 1) -> int:
    """FLOPs of one pass of a model that keeps nothing."""
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(input_ids=torch.zeros((batch, new), dtype=torch.long))
    return int(counter.get_total_flops())


def crossing(model: Any, new: int, cache: Any = None) -> tuple[int, Any]:
    """FLOPs of one pass of a decoder over `new` tokens that look at a memory, and the cache after it."""
    cache = cache or EncoderDecoderCache(DynamicCache(config=model.config), DynamicCache(config=model.config))
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        memory = torch.zeros((1, MEMORY, model.config.hidden_size))
        ids = torch.zeros((1, new), dtype=torch.long)
        output = model(input_ids=ids, encoder_hidden_states=memory, cache=cache, use_cache=True)
    return int(counter.get_total_flops()), output.cache


def measure(config: Config, extra: bool) -> dict[str, int]:
    """All the numbers of one row; `extra` adds a batch of three."""
    model = build(config)
    row = {"params": sum(p.numel() for p in model.parameters())}
    is_decoder = bool(getattr(model.config, "is_decoder", False)) or config["model_type"] == "modernbert-decoder"
    if not is_decoder:
        row |= {f"flops{new}": plain(model, new) for new in (16, 48)}
        return {**row, "flops11_batch3": plain(model, 11, batch=3)} if extra else row
    row["flops16"], after16 = forward(model, 16)
    row["flops48"], after48 = forward(model, 48)
    row["decode48"] = forward(model, 1, cache=forward(model, 47)[1])[0]
    row |= {"cache16": held(after16), "cache48": held(after48)}
    if extra:
        row["flops11_batch3"] = forward(model, 11, batch=3)[0]
    if getattr(model.config, "add_cross_attention", False) and config["model_type"] != "megatron-bert":
        row["crossing16"], after16 = crossing(model, 16)
        row["crossing_decode17"] = crossing(model, 1, cache=after16)[0]
        after16 = crossing(model, 16)[1]
        row["cross_cache"] = held(after16.cross_attention_cache)
    return row


def record_all(randoms: int) -> Iterator[dict[str, Any]]:
    """Every row, in a fixed order."""
    for model_type in STEMS:
        rng = random.Random(f"costcalc {model_type}")
        drawn = ((f"random-{n:02d}", random_config(model_type, rng)) for n in range(randoms))
        for name, config in (*rows(model_type, CASES[model_type]), *drawn):
            numbers = measure(config, extra := name.startswith("random"))
            full = json.loads(json.dumps(build(config).config.to_dict()))
            if measure({**full, "architectures": config["architectures"]}, extra) != numbers:
                raise SystemExit(f"{model_type}/{name}: the full to_dict() gives other numbers")
            yield {"id": f"{model_type}/{name}", "config": config, **numbers}
        for name, config in rows(model_type, REFUSED[model_type]):
            yield {"id": f"{model_type}/refused/{name}", "config": config, "error": refusal_of(config)}


def refusal_of(config: Config) -> str:
    """Where the library stops, and the last line of what it says."""
    doing = "build"
    try:
        build(config)
        doing = "run"
        measure(config, extra=False)
    except Exception as error:  # whatever the library raises is the record
        return f"{doing}: {str(error).splitlines()[-1].strip()}"[:160]
    raise SystemExit(f"{config}: expected the library to refuse this")


def main() -> None:
    """Write the rows, or the class defaults."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    transformers.logging.set_verbosity_error()
    if "--defaults" in sys.argv:
        with mock.patch.dict(record.CLASSES, STEMS, clear=True):
            record.write_defaults()
        path = record.DEFAULTS / "nomic_bert.json"  # its class says so, but not as a field
        tied = {"tie_word_embeddings": transformers.NomicBertConfig.tie_word_embeddings}
        path.write_text(json.dumps({**json.loads(path.read_text()), **tied}, indent=2) + "\n", encoding="utf-8")
        return
    with unseen_tokens():
        lines = [json.dumps(row, separators=(",", ":")) for row in record_all(randoms=8)]
    (HERE / "encoders.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
