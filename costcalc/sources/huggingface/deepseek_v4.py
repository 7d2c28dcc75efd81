"""DeepseekV4ForCausalLM: a window of tokens and compressed entries behind it, hyper-connections, experts that the first
layers look up by token.
"""

from __future__ import annotations

from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import SLIDING, Written, layer_count, rms_norm, rope_mapping
from costcalc.sources.huggingface.sparse import PART, gated, later_tokens, layers_by_kind, mixture, whole

SPARSE, HEAVY = "compressed_sparse_attention", "heavily_compressed_attention"
HASHED, CHOSEN = "hash_moe", "moe"
OF_RATIO = {0: SLIDING, 4: SPARSE, 128: HEAVY}
"""What published files call the types of layers by: how many tokens an entry stands for."""
RATES = {SPARSE: 4, HEAVY: 128}
OLDER_RATES = {SPARSE: "compress_rate_csa", HEAVY: "compress_rate_hca"}
USUAL_HASHED = 3
SCORES = {"sqrtsoftplus": "sqrt_softplus", "sigmoid": "sigmoid"}
NAMES = {SLIDING: "window", SPARSE: "sparse", HEAVY: "heavy", HASHED: "hashed", CHOSEN: "chosen"}
TURNED = "qk_rope_head_dim"
MAIN, COMPRESS = "main", "compress"
AS_BUILT = ("num_key_value_heads", "norm_topk_prob", "topk_method", "expert_dtype")
"""Keys that the class does not read: one array of keys, the scores' sum made 1, the types of stored weights."""


def read_deepseek_v4(config: Config) -> Written:
    """Layers by type of attention and of routing. Experts are as wide as the one for all tokens. The cache of a layer
    without entries is that of any class: it holds keys and values, although these are the same.
    """
    config.note("hc_eps", PART, TURNED, *AS_BUILT)
    config.expect("n_shared_experts", None, 1)
    config.expect("attention_bias", None, False)
    layers, norm = layer_count(config), rms_norm(config)
    types, networks = _types(config, layers), _networks(config, layers)
    positions = {word: _positions(config, MAIN if word == SLIDING else COMPRESS) for word in dict.fromkeys(types)}
    core, rates = _attention(config, norm), _rates(config, types)
    experts = {word: _experts(config, hashed=word == HASHED) for word in dict.fromkeys(networks)}

    def layer_of(kind: str, network: str) -> Written:
        compression = _compression(config, kind, rates)
        return {
            "norm": norm,
            "positions": positions[kind],
            "attention": {**core, "compression": compression, "held_twice": compression is None},
            "feed_forward": experts[network],
        }

    made = _named(layers_by_kind(list(zip(types, networks, strict=True)), layer_of))
    written = whole(config, norm, positions[types[0]], made)
    streams = {
        "streams": config.size("hc_mult"),
        "iterations": config.size("hc_sinkhorn_iters"),
        "eps": config.number("hc_eps"),
    }
    written["decoder"]["hyper_connections"] = streams
    return {**written, **later_tokens(config, "num_nextn_predict_layers")}


def _named(layers: list[Written]) -> list[Written]:
    """The words of types are long: shorter ones for names."""
    short: dict[int, Written] = {}
    for layer in layers:
        if id(layer) not in short:
            name = layer.get("name", "")
            for word, brief in NAMES.items():
                name = name.replace(word, brief).replace("local", NAMES[SLIDING])
            short[id(layer)] = {**layer, "name": name} if name else layer
    return [short[id(layer)] for layer in layers]


def _types(config: Config, layers: int) -> list[str]:
    """`layer_types`, or else the ratios that published files hold, or else the class's own: two of heavy compression,
    then both in turn. What is listed beyond the layers is of further predictions, and is passed over.
    """
    listed, ratios = config["layer_types"], config["compress_ratios"]
    if listed is not None:
        return _listed(config, "layer_types", layers, (SLIDING, *RATES))
    if ratios is not None:
        return [OF_RATIO[ratio] for ratio in _listed(config, "compress_ratios", layers, tuple(OF_RATIO))]
    return [HEAVY if layer < 2 or layer % 2 == 0 else SPARSE for layer in range(layers)]


def _networks(config: Config, layers: int) -> list[str]:
    """`mlp_layer_types`, or else so many layers at first that look experts up."""
    count = config["num_hash_layers"]
    if config["mlp_layer_types"] is not None:
        return _listed(config, "mlp_layer_types", layers, (HASHED, CHOSEN))
    hashed = USUAL_HASHED if count is None else config.whole("num_hash_layers")
    if hashed < 0:
        raise config.refusal(f"`num_hash_layers` is {hashed}", 'write "num_hash_layers": 0', "num_hash_layers")
    return [HASHED if layer < hashed else CHOSEN for layer in range(layers)]


def _listed(config: Config, key: str, layers: int, known: tuple[Any, ...]) -> list[Any]:
    """One known word for each layer, and maybe more behind those."""
    listed = config[key]
    if not isinstance(listed, list) or len(listed) < layers:
        got = f"{len(listed)} entries" if isinstance(listed, list) else shown(listed)
        raise config.refusal(f"`{key}` must be a list of {layers} entries, got {got}", "one for each layer", key)
    for index, value in enumerate(listed[:layers]):
        if isinstance(value, bool) or value not in known:
            hint = f"one of: {', '.join(str(word) for word in known)}"
            raise config.refusal(f"`{key}` has {shown(value)}, which is not read", hint, key, index)
    return listed[:layers]


def _rates(config: Config, types: list[str]) -> dict[str, int]:
    """How many tokens an entry stands for; caches of sparse layers ask for that of heavy ones too."""
    written = config["compress_rates"]
    rates: dict[str, Any] = dict(RATES) if written is None else written
    if not isinstance(rates, dict):
        what = f"`compress_rates` must hold a number for each type of layer, got {shown(rates)}"
        raise config.refusal(what, f'write "compress_rates": {{"{SPARSE}": 4, "{HEAVY}": 128}}', "compress_rates")
    found: dict[str, int] = {}
    needed = {word: word in types or (word == HEAVY and SPARSE in types) for word in RATES}
    for word, older in OLDER_RATES.items():
        value: Any = rates.get(word) if config[older] is None else config.size(older)
        if needed[word] and (type(value) is not int or value < 1):
            what = f"`compress_rates` must have a whole number for {word}, got {shown(value)}"
            raise config.refusal(what, f'write "{word}": {RATES[word]}', "compress_rates")
        found[word] = value if needed[word] else 1
    return found


def _positions(config: Config, label: str) -> Written:
    """RoPE of a window, and of entries, which has a base of its own: in the entry of `rope_parameters`, if that has
    both, or beside it. The part of a head that turns is a share, or in published files a number.
    """
    config.note("rope_theta", "compress_rope_theta", "rope_scaling", "rope_parameters")
    new, head_dim = rope_mapping(config), config.size("head_dim")
    nested = all(isinstance(new.get(word), dict) for word in (MAIN, COMPRESS))
    own = new[label] if nested else {}
    beside = config.values.get("rope_theta" if label == MAIN else "compress_rope_theta")
    share = own.get(PART, 1.0) if nested else _share(config, head_dim)
    turned = int(head_dim * share) if isinstance(share, (int, float)) and 0 < share <= 1 else 0
    turned += turned % 2
    if not 0 < turned <= head_dim:
        what = f"RoPE rotates pairs, and `{PART}` {shown(share)} of a head of {head_dim} gives {turned}"
        raise config.refusal(what, f'write "{PART}": 0.125', PART)
    return {"kind": "rope", "theta": own.get("rope_theta", beside), "rotary_dim": turned}


def _share(config: Config, head_dim: int) -> float:
    """The part of a head that turns, 64 of 512 where nothing says so."""
    share, number = config[PART], config[TURNED]
    if share is not None:
        return float(share) if isinstance(share, (int, float)) and not isinstance(share, bool) else 0.0
    return 64 / 512 if number is None else config.size(TURNED) / head_dim


def _attention(config: Config, norm: Written) -> Written:
    """With a window of 1 the class's cache would keep all tokens."""
    heads, head_dim, groups = (config.size(key) for key in ("num_attention_heads", "head_dim", "o_groups"))
    window = config.size("sliding_window")
    if window < 2:
        what = "`sliding_window` 1: the class keeps all tokens then, and attends to them"
        raise config.refusal(what, "write 2 or more", "sliding_window")
    if heads * head_dim % groups:
        what = f"`o_groups` {groups} do not divide {heads} heads of {head_dim}"
        raise config.refusal(what, "change one of them", "o_groups")
    return {
        "kind": "compressed",
        "heads": heads,
        "head_dim": head_dim,
        "q_rank": config.size("q_lora_rank"),
        "window": window,
        "out_groups": groups,
        "out_rank": config.size("o_lora_rank"),
        "norm": norm,
    }


def _compression(config: Config, word: str, rates: dict[str, int]) -> Written | None:
    """Entries of one series that all are met, or of two of which some are chosen."""
    index = {"heads": "index_n_heads", "head_dim": "index_head_dim", "entries": "index_topk"}
    config.note(*index.values())
    if word == SLIDING:
        return None
    if word == HEAVY:
        return {"rate": rates[word], "overlap": False}
    return {"rate": rates[word], "overlap": True, "choice": {name: config.size(key) for name, key in index.items()}}


def _experts(config: Config, *, hashed: bool) -> Written:
    """Bounded gates; `mlp_bias` is of the one for all tokens alone."""
    config.expect("scoring_func", *SCORES)
    width, limit = config.size("moe_intermediate_size"), {"limit": config.number("swiglu_limit")}
    choice: Written = {"table": config.size("vocab_size")} if hashed else {"correction": "buffer"}
    scores, scale = SCORES[config["scoring_func"]], config.number("routed_scaling_factor")
    router = {"scores": scores, "normalize": True, "scale": scale, **choice}
    shared = {**gated(config, width, bias=config.flag("mlp_bias")), **limit}
    return mixture(config, {**gated(config, width), **limit}, router=router, shared=shared, experts="n_routed_experts")


READERS = {"deepseek_v4": read_deepseek_v4}
CLASSES = {"deepseek_v4": ("DeepseekV4ForCausalLM",)}
