"""MambaForCausalLM and FalconMambaForCausalLM, of Mamba-1 (arXiv 2312.00752), and Mamba2ForCausalLM (arXiv 2405.21060):
nothing but mixers, each behind an RMSNorm.
"""

from __future__ import annotations

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import NO_POSITIONS, Written, layer_count
from costcalc.sources.huggingface.recurrent import agree
from costcalc.sources.huggingface.sparse import whole

REMARKS = "fused_add_norm pad_vocab_size_multiple"
"""Of the files before the library's, which published ones still hold; their vocabulary is padded already."""


def read_mamba(config: Config) -> Written:
    """No norm inside of the mixer."""
    return _mamba1(config, inner_norms=False)


def read_falcon_mamba(config: Config) -> Written:
    """RMS norms without parameters of the step size and of what enters and leaves the state."""
    return _mamba1(config, inner_norms="without_gain")


def _mamba1(config: Config, *, inner_norms: bool | str) -> Written:
    """`intermediate_size`, where it is written, is the width inside, whatever `expand` says."""
    inner = config.size("expand") * config.size("hidden_size")
    if config["intermediate_size"] is not None:
        inner = config.size("intermediate_size")
    bias = config.flag("use_bias")
    mixer = {
        "kind": "mamba1",
        "d_inner": inner,
        "d_state": config.size("state_size"),
        "d_conv": config.size("conv_kernel"),
        "dt_rank": rank(config, "time_step_rank"),
        "conv_bias": config.flag("use_conv_bias"),
        "bias": bias,
        "inner_norms": inner_norms,
        "heads": 1,
        "activation": config.activation("hidden_act"),
        "state_dtype": "fp32",
    }
    _original(config, d_inner=inner)
    return _of_mixers(config, mixer)


def read_mamba2(config: Config) -> Written:
    """Heads times their size are the width inside; `use_bias` is for both projections."""
    inner = config.size("expand") * config.size("hidden_size")
    heads, head_dim, groups = config.size("num_heads"), config.size("head_dim"), config.size("n_groups")
    check_heads(config, inner, heads=("num_heads", heads), head_dim=("head_dim", head_dim))
    check_groups(config, heads, groups=("n_groups", groups))
    bias = config.flag("use_bias")
    config.note("time_step_rank")  # Mamba-1's, which this one has none of
    mixer = {
        "kind": "mamba2",
        "heads": heads,
        "head_dim": head_dim,
        "d_state": config.size("state_size"),
        "groups": groups,
        "d_conv": config.size("conv_kernel"),
        "conv_bias": config.flag("use_conv_bias"),
        "bias": bias,
        "out_bias": bias,
        "gated_norm": True,
        "norm_before_gate": False,
        "chunk": config.size("chunk_size"),
        "activation": config.activation("hidden_act"),
        "state_dtype": "fp32",
    }
    agree(config, intermediate_size=inner)
    _original(config, d_inner=inner)
    return _of_mixers(config, mixer)


def _original(config: Config, *, d_inner: int) -> None:
    """Keys of the files that these were converted from say the same once more."""
    config.note(*REMARKS.split())
    config.expect("ssm_cfg", None, {})
    agree(
        config,
        d_model=config.size("hidden_size"),
        n_layer=layer_count(config),
        d_inner=d_inner,
        rms_norm=True,
    )


def _of_mixers(config: Config, mixer: Written) -> Written:
    norm = {"kind": "rmsnorm", "eps": config.number("layer_norm_epsilon")}
    layer = {"norm": norm, "positions": NO_POSITIONS, "mixer": mixer}
    return whole(config, norm, NO_POSITIONS, [layer] * layer_count(config))


def rank(config: Config, key: str) -> int:
    """The rank of step sizes; "auto" is a sixteenth of the width, rounded up."""
    return -(-config.size("hidden_size") // 16) if config[key] == "auto" else config.size(key)


def check_heads(config: Config, inner: int, *, heads: tuple[str, int], head_dim: tuple[str, int]) -> None:
    """Heads of Mamba-2, under their key, that do not come to the width inside are refused, as the classes do."""
    if heads[1] * head_dim[1] != inner:
        what = f"`{heads[0]}` {heads[1]} of `{head_dim[0]}` {head_dim[1]} do not come to the width inside, {inner}"
        raise config.refusal(what, "change one of them", heads[0])


def check_groups(config: Config, heads: int, *, groups: tuple[str, int]) -> None:
    """The heads of Mamba-2 are shared out evenly among its groups."""
    if heads % groups[1]:
        what = f"`{groups[0]}` {shown(groups[1])} does not divide the {heads} heads"
        raise config.refusal(what, "change one of the two", groups[0])


READERS = {"mamba": read_mamba, "falcon_mamba": read_falcon_mamba, "mamba2": read_mamba2}
CLASSES = {
    "mamba": ("MambaForCausalLM",),
    "falcon_mamba": ("FalconMambaForCausalLM",),
    "mamba2": ("Mamba2ForCausalLM",),
}
