"""Dots3NoteForCausalLM (dots.3 note): latent attention over chosen keys, and in a window with sizes of its own."""

from __future__ import annotations

import copy
from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, SLIDING, Written, layer_count, rms_norm, rope_mapping
from costcalc.sources.huggingface.indexed import INDEXED, KERNELS, TYPES, chosen, of_layers, plain_corrected_router
from costcalc.sources.huggingface.latent import TRAINING, block, latent, network
from costcalc.sources.huggingface.sparse import DENSE, SPARSE, gated, mixture, whole_number, words

OWN_SIZES = "num_attention_heads num_key_value_heads q_lora_rank kv_lora_rank head_dim qk_nope_head_dim v_head_dim"
ROPE, OWN, WINDOW = "qk_rope_head_dim", "per_layer_config", "sliding_window"
OF_WINDOWS = dict(zip(OWN_SIZES.split(), (64, 64, 1024, 1024, 256, 192, 128), strict=True))
"""What the class itself takes for layers with a window, where `per_layer_config` is not written: `swa_` and the key."""
THETA = {SLIDING: 5e4, INDEXED: 8e7, FULL: 8e7}
SHARED_WIDTH, OLDER_WIDTH = "shared_experts_intermediate_size", "moe_shared_expert_intermediate_size"


def read_dots3_note_text(config: Config) -> Written:
    """`per_layer_config` has a layer's sizes by its number, and where it is not written `swa_` keys have those of all
    layers with a window. The former leaves `use_dsa` out, which otherwise says whether there are indexers.
    """
    layers = layer_count(config)
    config.note(*TRAINING, *KERNELS, "rope_parameters", "rope_scaling", "rope_theta", "swa_rope_theta")
    types, kinds = _types(config, layers), _networks_by_layer(config, layers)
    own = _own_sizes(config, types)
    distinct: list[Written] = []
    for sizes in own:
        distinct += [] if sizes in distinct else [sizes]
    window = _window(config) if SLIDING in types else None
    config.note(WINDOW, "sliding_window_size", "index_n_heads", "index_head_dim", "index_topk")
    networks = _networks(config)
    of_type: dict[str, int] = {}

    def layer_of(word: str, kind: str, sizes: str) -> Written:
        core = _attention(_with(config, distinct[int(sizes)]), word, window)
        if of_type.setdefault(word, core["rope_dim"]) != core["rope_dim"]:
            what = f"layers of type {word} rotate {of_type[word]} and {core['rope_dim']} numbers: they share rotations"
            raise config.refusal(what, f"write one `{ROPE}` for all of a type", OWN)
        return block(config, core, networks[kind], positions=_positions(config, word))

    made = [(word, kind, str(distinct.index(sizes))) for word, kind, sizes in zip(types, kinds, own, strict=True)]
    return of_layers(config, made, layer_of)


def _types(config: Config, layers: int) -> list[str]:
    """`layer_types`, else the first two layers and every fourth from the sixth on see everything, or what is chosen."""
    slides = "use_sliding_window" not in config.data or config.flag("use_sliding_window")
    of_own = OWN in config.data
    chooses = config.flag("use_dsa") if config.data.get("use_dsa") is not None else None if of_own else True
    config.note("use_dsa", "use_sliding_window")
    types = config.layer_types(layers, (FULL, SLIDING, *TYPES))
    if types is None:
        wide = FULL if chooses is False else INDEXED
        types = [wide if not slides or layer < 2 or layer % 4 == 1 else SLIDING for layer in range(layers)]
    renamed = {True: {FULL: INDEXED}, False: {INDEXED: FULL}, None: {}}[chooses]
    older = dict.fromkeys(TYPES, INDEXED)
    return [older.get(renamed.get(word, word), renamed.get(word, word)) for word in types]


def _networks_by_layer(config: Config, layers: int) -> list[str]:
    """`mlp_layer_types`, else experts from `first_k_dense_replace` on, in one of `moe_layer_freq` layers or as a list
    of those marks them.
    """
    older = ("first_k_dense_replace", "moe_layer_freq")
    config.note(*older)
    kinds = words(config, "mlp_layer_types", layers, (DENSE, SPARSE))
    if kinds is not None:
        return kinds
    dense = config.whole(older[0]) if older[0] in config.data else 1
    marks = config.data.get(older[1], 1)
    if isinstance(marks, list):
        if len(marks) < layers:
            raise config.refusal(f"`{older[1]}` has {len(marks)} marks of {layers}", "one for each layer", older[1])
        return [SPARSE if layer >= dense and marks[layer] else DENSE for layer in range(layers)]
    period = config.size(older[1]) if older[1] in config.data else 1
    return [SPARSE if layer >= dense and layer % period == 0 else DENSE for layer in range(layers)]


def _own_sizes(config: Config, types: list[str]) -> list[Written]:
    """Of each layer the sizes that differ from those of all."""
    of_windows = {key: f"swa_{key}" for key in (*OF_WINDOWS, ROPE)}
    config.note(OWN, *of_windows.values())
    written = config.data.get(OWN)
    if written is None and OWN not in config.data:
        sizes = {key: config.data.get(old, OF_WINDOWS.get(key)) for key, old in of_windows.items()}
        if sizes[ROPE] is None:  # what is left of a head
            of_windows_alone = _with(config, sizes)
            sizes[ROPE] = of_windows_alone.size("head_dim") - of_windows_alone.size("qk_nope_head_dim")
        return [sizes if word == SLIDING else {} for word in types]
    own: list[Written] = [{} for _ in types]
    for number, sizes in (written or {}).items() if isinstance(written, dict) else _not_read(config, written):
        is_layer = str(number).isdigit() and int(number) < len(types) and isinstance(sizes, dict)
        unknown = [key for key in sizes if key not in (*OF_WINDOWS, ROPE)] if is_layer else [number]
        if unknown:
            what = f"`{OWN}` of layer {shown(number)[1:-1]}: {shown(unknown[0])} is not read"
            raise config.refusal(what, "write sizes of attention alone, by the numbers of layers", OWN)
        own[int(number)] = dict(sizes)
    return own


def _not_read(config: Config, written: object) -> Any:
    if written is None:
        return ()
    raise config.refusal(f"`{OWN}` must hold sizes by layer, got {shown(written)}", 'write "2": {...}', OWN)


def _with(config: Config, sizes: Written) -> Config:
    """The config as a layer sees it that has sizes of its own; what is read of it is read of the whole."""
    layer = copy.copy(config)
    layer.values, layer.data = {**config.values, **sizes}, {**config.data, **sizes}
    return layer


def _attention(config: Config, word: str, window: int | None) -> Written:
    """Both latents are multiplied, a head's output by a number, and a key's rotated numbers are normed."""
    if config["q_lora_rank"] is None:
        what = "`q_lora_rank` is null: queries are made of a latent"
        raise config.refusal(what, 'write "q_lora_rank": 1024', "q_lora_rank")
    config.size("num_key_value_heads")
    core, width, head = latent(config, overwritten=True), config.size("hidden_size"), config.size("head_dim")
    of_head = core["nope_dim"] + core["rope_dim"]
    if word == SLIDING and head != of_head:
        what = f"`head_dim` {head} of layers with a window, of {core['nope_dim']} + {core['rope_dim']} numbers"
        raise config.refusal(what, f'write "head_dim": {of_head}', "head_dim")
    core |= {"norm": rms_norm(config), "rope_norm": True, "output_gate": "per_head"}
    core |= {"scale": (width / core["q_rank"] / of_head) ** 0.5, "latent_scale": (width / core["kv_rank"]) ** 0.5}
    core |= {"window": window} if word == SLIDING else {}
    return chosen(config, core) if word == INDEXED else core


def _window(config: Config) -> int:
    """`sliding_window`, or an older name of it, or 512."""
    if config[WINDOW] is not None:
        return config.size(WINDOW)
    return config.size("sliding_window_size") if "sliding_window_size" in config.data else 512


def _networks(config: Config) -> Written:
    """One network, or experts and `n_shared_experts` of another width for all tokens."""
    if OLDER_WIDTH in config.data:
        config.values[SHARED_WIDTH] = config[OLDER_WIDTH]
    if whole_number(config, "n_shared_experts") < 1:
        raise config.refusal("`n_shared_experts` must be at least 1", 'write "n_shared_experts": 1', "n_shared_experts")
    shared = gated(config, config.size(SHARED_WIDTH) * config.size("n_shared_experts"))
    router, expert = plain_corrected_router(config), gated(config, config.size("moe_intermediate_size"))
    return {
        DENSE: network(config),
        SPARSE: mixture(config, expert, router=router, shared=shared, experts="n_routed_experts"),
    }


def _positions(config: Config, word: str) -> Written:
    """Each type of layer has its own base."""
    own = rope_mapping(config).get(word, rope_mapping(config))
    old = config.values.get("swa_rope_theta" if word == SLIDING else "rope_theta")
    base = own.get("rope_theta") if isinstance(own, dict) else None
    return {"kind": "rope", "theta": next(each for each in (base, old, THETA[word]) if each is not None)}


READERS = {"dots3_note_text": read_dots3_note_text}
CLASSES = {"dots3_note_text": ("Dots3NoteForCausalLM",)}
