"""AXK1ForCausalLM (A.X-K1): DeepSeek-V3's attention and experts, and a norm of what the experts of a layer give.
AXK2ForCausalLM (A.X-K2): DeepSeek-V3.2's attention, gated by its queries' latent, and gates behind norms.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, rms_norm
from costcalc.sources.huggingface.deepseek import sigmoid_router
from costcalc.sources.huggingface.indexed import KERNELS, OWN, checked_types, chosen, of_layers
from costcalc.sources.huggingface.latent import TRAINING, agrees, block, latent, model, rotated_size, two_kinds
from costcalc.sources.huggingface.sparse import DENSE, SPARSE, agreed, count, dense_first, later_tokens, words

OLDER = ("first_k_dense_replace", "moe_layer_freq")
"""Keys that say which layers have experts where no list does."""


def read_axk1(config: Config) -> Written:
    """`mlp_layer_types`, else `first_k_dense_replace` dense layers, one where neither is written."""
    layers, key = layer_count(config), "first_k_dense_replace"
    config.expect("moe_layer_freq", None, 1)
    agrees(config, "head_dim", rotated_size(config), "`qk_rope_head_dim` numbers of a head are rotated")
    kinds = words(config, "mlp_layer_types", layers, (DENSE, SPARSE))
    if kinds is None:
        kinds = dense_first(layers, 1 if config[key] is None else count(config, key))
    elif config[key] is not None:
        kinds = agreed(config, kinds, dense_first(layers, count(config, key)), key) or kinds
    networks = two_kinds(config, kinds, sigmoid_router(config))
    if SPARSE in networks:
        networks[SPARSE] = {**networks[SPARSE], "norm": rms_norm(config)}
    later = later_tokens(config, "num_nextn_predict_layers", "num_mtp_layers")
    return model(config, kinds, latent(config), networks, **later)


def read_axk2(config: Config) -> Written:
    """`mlp_layer_types`, else every `moe_layer_freq`th layer behind `first_k_dense_replace`, one of either where those
    are not written. Groups of experts only where both keys of them are. A gate behind the norm before each attention,
    and before experts.
    """
    layers = layer_count(config)
    checked_types(config, layers)
    config.note(*TRAINING, *KERNELS)
    kinds = _networks_of_axk2(config, layers)
    for key in ("num_experts_per_tok", "num_key_value_heads"):
        config.size(key)
    config.flag("norm_topk_prob")
    if (config["n_group"] is None) != (config["topk_group"] is None):
        raise config.refusal("`n_group` and `topk_group` go together, and one is null", "write both", "n_group")
    networks = two_kinds(config, kinds, sigmoid_router(config))
    of_queries = {"query_reads": "both", "output_gate": "per_channel", "gate_reads": "query_latent"}
    attention = {**chosen(config, latent(config, overwritten=True)), **of_queries}
    rank = config.size("gated_norm_rank")

    def layer_of(kind: str, _: str) -> Written:
        gate = {"rank": rank, "before": "all" if kind == SPARSE else "attention"}
        return block(config, attention, networks[kind], norm_gate=gate)

    return of_layers(config, [(kind, OWN) for kind in kinds], layer_of)


def _networks_of_axk2(config: Config, layers: int) -> list[str]:
    kinds = words(config, "mlp_layer_types", layers, (DENSE, SPARSE))
    dense, period = (config.whole(key) if key in config.data else 1 for key in OLDER)
    config.note(*OLDER)
    if kinds is None and period < 1:
        what = f"`{OLDER[1]}` {period}: one of so many layers has experts"
        raise config.refusal(what, f'write "{OLDER[1]}": 1', OLDER[1])
    return kinds or [SPARSE if layer >= dense and layer % period == 0 else DENSE for layer in range(layers)]


READERS = {"axk1": read_axk1, "axk2": read_axk2}
CLASSES = {"axk1": ("AXK1ForCausalLM",), "axk2": ("AXK2ForCausalLM",)}
