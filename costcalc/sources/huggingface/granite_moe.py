"""GraniteMoeForCausalLM and its kin: four multipliers, experts of one width in every layer; GraniteMoeSharedForCausalLM
with an expert for all tokens; GraniteMoeSWAForCausalLM with sinks, windows and layers without positions.
"""

from __future__ import annotations

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    NO_POSITIONS,
    SLIDING,
    Written,
    layer_count,
    rms_norm,
    types_by_period,
    windows_by_type,
)
from costcalc.sources.huggingface.sparse import (
    ROTATED,
    UNROTATED,
    attention,
    count,
    gated,
    head_size,
    layers_by_kind,
    mixture,
    rotations,
    whole,
)


def read_granitemoe(config: Config) -> Written:
    """Full attention, no expert for all tokens."""
    layers = layer_count(config)
    config.layer_types(layers, (FULL,))
    return _read(config, [FULL] * layers, None)


def read_granitemoeshared(config: Config) -> Written:
    """`shared_intermediate_size` 0 is no expert for all tokens."""
    layers = layer_count(config)
    config.layer_types(layers, (FULL,))
    return _read(config, [FULL] * layers, None, shared=_shared(config))


def read_granitemoe_swa(config: Config) -> Written:
    """Every fourth layer, the first included, sees all where `layer_types` is null; a 0 in `layer_rope_theta` is a
    layer without positions.
    """
    layers = layer_count(config)
    types = types_by_period(config, 4, full=0)
    window = config.size_or_none("sliding_window")
    windows_by_type(config, types, window, why_none="`sliding_window` is null")
    return _read(config, types, window, bases=_bases(config, layers), shared=_shared(config), sinks=True)


def _shared(config: Config) -> Written | None:
    width = count(config, "shared_intermediate_size")
    return gated(config, width) if width else None


def _bases(config: Config, layers: int) -> list[float]:
    """The base of each layer's rotations, 0 for none; empty where all have the model's."""
    listed = config["layer_rope_theta"]
    if listed is None:
        return []
    if not isinstance(listed, list) or len(listed) != layers:
        got = f"{len(listed)} entries" if isinstance(listed, list) else shown(listed)
        what = f"`layer_rope_theta` must be a list of {layers} numbers, got {got}"
        raise config.refusal(what, "one for each layer, 0 for no positions", "layer_rope_theta")
    for index, base in enumerate(listed):
        if isinstance(base, bool) or not isinstance(base, (int, float)) or not 0 <= base < 1e30:
            what = f"`layer_rope_theta` has {shown(base)}"
            raise config.refusal(what, "a number for each layer, 0 for no positions", "layer_rope_theta", index)
    return listed


def _read(
    config: Config,
    types: list[str],
    window: int | None,
    *,
    bases: list[float] | None = None,
    shared: Written | None = None,
    sinks: bool = False,
) -> Written:
    """`attention_bias` is on the output as well; scores, embeddings, sublayers and logits are multiplied or divided."""
    bias, norm, head_dim = config.flag("attention_bias"), rms_norm(config), head_size(config)
    positions = rotations(config, head_dim, theta=1e4)
    expert, used = gated(config, config.size("intermediate_size")), {"scores": "softmax_of_chosen"}
    network = mixture(config, expert, router=used, shared=shared, experts="num_local_experts")
    core = {"bias": bias, "out_bias": bias, "sinks": sinks, "scale": _constant(config, "attention_multiplier")}
    added = _constant(config, "residual_multiplier")

    turned = [{**positions, "theta": base} if base else NO_POSITIONS for base in bases or []]
    turns = [f"rope{turned.index(own)}" if base else UNROTATED for own, base in zip(turned, bases or [], strict=True)]
    named = dict(zip(turns, turned, strict=True)) or {ROTATED: positions}

    def layer_of(word: str, turn: str) -> Written:
        reach = window if word == SLIDING else None
        return {
            "norm": norm,
            "positions": named[turn],
            "residual_scale": added,
            "attention": attention(config, head_dim=head_dim, window=reach, **core),
            "feed_forward": network,
        }

    kinds = list(zip(types, turns or [ROTATED] * len(types), strict=True))
    return whole(
        config,
        norm,
        positions,
        layers_by_kind(kinds, layer_of),
        embedding={"scale": _constant(config, "embedding_multiplier")},
        head={"kind": "vocabulary", "scale": 1 / _constant(config, "logits_scaling")},
    )


def _constant(config: Config, key: str) -> float:
    config.note(key)
    return config.number_or_none(key) or 1.0


READERS = {
    "granitemoe": read_granitemoe,
    "granitemoeshared": read_granitemoeshared,
    "granitemoe_swa": read_granitemoe_swa,
}
CLASSES = {
    "granitemoe": ("GraniteMoeForCausalLM",),
    "granitemoeshared": ("GraniteMoeSharedForCausalLM",),
    "granitemoe_swa": ("GraniteMoeSWAForCausalLM",),
}
