"""What all mixers share: states of constant size, and which form of a scan runs."""

import pytest

from costcalc.architecture.mixer import MLSTM, RGLRU, RWKV, GatedDelta, Lightning, Mamba1, Mamba2, ShortConv
from costcalc.architecture.mixer.state import chunked
from costcalc.architecture.places import DECODER, At
from costcalc.inventory import Cached, Matmul, Workload

KINDS = {
    "mamba1": Mamba1(d_inner=22, d_state=3, d_conv=5, dt_rank=7),
    "mamba2": Mamba2(heads=6, head_dim=5, d_state=7, groups=2, d_conv=3, chunk=4),
    "gated_delta": GatedDelta(heads=6, key_heads=2, key_dim=5, value_dim=7, d_conv=3, chunk=4),
    "lightning": Lightning(heads=6, head_dim=5, chunk=4),
    "short_conv": ShortConv(d_conv=5),
    "rg_lru": RGLRU(width=22, heads=2, d_conv=5),
    "rwkv": RWKV(width=22),
    "mlstm": MLSTM(heads=6, qk_dim=5, v_dim=7),
}
IN_CHUNKS = {"mamba2", "gated_delta", "lightning"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_does_not_grow_and_each_sequence_has_its_own(kind):
    states = [r for r in KINDS[kind].records(At("mixer", 3), 13, DECODER) if type(r) is Cached]
    assert states
    for state in states:
        one = state.elements(Workload(new_tokens=1))
        assert state.kind == "state"
        assert state.elements(Workload(new_tokens=1, past_tokens=8191)) == one
        assert state.elements(Workload(batch=7, new_tokens=11)) == 7 * one
        assert one == 3 * state._replace(times=1).elements(Workload())


@pytest.mark.parametrize("kind", KINDS)
def test_a_prefill_is_as_much_as_its_decode_steps_unless_kernels_are_handed_chunks(kind):
    matmuls = [r for r in KINDS[kind].records(At("mixer"), 13, DECODER) if type(r) is Matmul]

    def flops(workload):
        return sum(matmul.flops(workload) for matmul in matmuls if matmul.runs(workload))

    steps = sum(flops(Workload(past_tokens=past)) for past in range(11))
    assert flops(Workload(new_tokens=11)) == steps
    assert flops(Workload(new_tokens=11, past_tokens=5)) == steps
    handed = flops(Workload(new_tokens=11, counting="rectangle"))
    assert handed > steps or kind in ("rwkv", "mlstm")


@pytest.mark.parametrize("kind", KINDS)
def test_one_form_of_a_scan_runs(kind):
    """Chunk by chunk where kernels are asked about a text; token by token in a decode step, and by mathematics."""
    matmuls = [r for r in KINDS[kind].records(At("mixer"), 13, DECODER) if type(r) is Matmul and r.form]
    assert {m.form for m in matmuls} == ({"recurrent", "chunked"} if kind in IN_CHUNKS else set())
    for form, lengths in (
        ("recurrent", {"new_tokens": 11}),
        ("recurrent", {"new_tokens": 1, "past_tokens": 5, "counting": "rectangle"}),
        ("chunked", {"new_tokens": 11, "counting": "rectangle"}),
        ("chunked", {"new_tokens": 11, "past_tokens": 5, "counting": "rectangle"}),
        ("chunked", {"new_tokens": 1, "counting": "rectangle"}),  # a text of one token starts a request
    ):
        assert {m.form for m in matmuls if m.runs(Workload(**lengths))} <= {form}
        assert all(not m.is_of_latent for m in matmuls)


def test_a_convolution_multiplies_each_channel_with_its_own_taps(told):
    """22 channels of 5 taps: 110; its kernel is handed 4 zeros on both sides, so that 11 tokens are 15 places."""
    mixer = told(KINDS["mamba1"])
    assert mixer.parameters["conv"] == 22 * 5
    assert mixer.scans(new_tokens=11)["conv"] == 11 * 110
    assert mixer.scans(new_tokens=11, counting="rectangle")["conv"] == 15 * 110
    assert mixer.scans(batch=3, new_tokens=11, counting="rectangle")["conv"] == 3 * 15 * 110


def test_products_in_chunks():
    """11 tokens in chunks of 4: 12 padded ones, each with all 4 of its chunk; unpadded 2 · 16 + 9 = 41 pairs."""
    workload = Workload(batch=3, new_tokens=11)
    products = {"inside": {"chunk": 4, "heads": 7}, "through": {"heads": 7}}
    padded = [r.flops(workload) for r in chunked(At("mixer"), 4, products)]
    plain = [r.flops(workload) for r in chunked(At("mixer"), 4, products, padded=False)]
    assert padded == [2 * 3 * 12 * 4 * 7, 2 * 3 * 12 * 7]
    assert plain == [2 * 3 * 41 * 7, 2 * 3 * 11 * 7]


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"short_conv"}))
def test_the_dtype_of_a_state(kind, told):
    """Inputs that a convolution needs once more follow the cache; what is summed up has a dtype of its own."""
    follows = {"conv_state", "shift_state"}
    for mixer, dtype in ((KINDS[kind], "fp32"), (KINDS[kind].model_copy(update={"state_dtype": "bf16"}), "bf16")):
        for name, (_, own) in told(mixer).states.items():
            assert own == (None if name in follows else dtype), name


def test_what_is_meant_where_nothing_is_written():
    """The class defaults of transformers, and of the papers' code."""
    mamba1, mamba2 = Mamba1(d_inner=22, dt_rank=7), Mamba2(heads=6, head_dim=5)
    delta, lightning = GatedDelta(heads=6, key_dim=5, value_dim=7), Lightning(heads=6, head_dim=5)
    assert (mamba1.kind, mamba1.d_state, mamba1.d_conv, mamba1.conv_bias, mamba1.bias) == ("mamba1", 16, 4, True, False)
    assert (mamba2.d_state, mamba2.groups, mamba2.d_conv, mamba2.chunk, mamba2.conv_bias) == (128, 1, 4, 256, True)
    assert (delta.d_conv, delta.chunk, delta.conv_bias, delta.decay) == (4, 64, False, "per_head")
    assert (lightning.chunk, ShortConv().d_conv, RGLRU(width=22, heads=2).d_conv) == (256, 3, 4)
