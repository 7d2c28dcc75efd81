"""Compressed convolutional attention: its records, ZAYA1's published sizes, and what it cannot be."""

import pytest
from pydantic import ValidationError

from costcalc.architecture.attention import Convolved
from costcalc.architecture.block import is_recurrent
from costcalc.architecture.places import DECODER, At
from costcalc.inventory import Cached, Context, Matmul, Pairs, Sequences, Tokens, Weight, Workload
from costcalc.inventory import Convolved as Places

AT = At("decoder.layers.attention", times=3)
SMALL = Convolved(heads=6, kv_heads=2, head_dim=5, taps=3, group_taps=4)
ZAYA1 = Convolved(heads=8, kv_heads=2, head_dim=128)
ROWS = {"B·T": Tokens()}


def path(name):
    return f"decoder.layers.attention.{name}"


def weight(name, axes):
    return Weight(path(name), axes, 3)


def linear(name, axes):
    return [weight(name, axes), Matmul(path(name), {**ROWS, **axes}, 3, path(name))]


def core(name, window=None):
    return Matmul(path(name), {"B·P": Pairs(window), "N": 6, "H": 5}, 3, None, name)


def cached(name, window=None):
    return Cached(path(name), {"B·S": Context(window), "K": 2, "H": 5}, 3)


def state(name, axes):
    return Cached(path(name), {"B": Sequences(), **axes}, 3, "state")


def records(attention, at=AT, d_model=13):
    return list(attention.records(at, d_model, DECODER))


def changed(**fields):
    return SMALL.model_copy(update=fields)


def test_every_record():
    """40 channels: 6 query heads and 2 key heads of 5."""
    each, within = {"channels": 40, "taps": 3}, {"heads_of_both": 8, "taps": 4, "block_in": 5, "block_out": 5}
    assert records(SMALL) == [
        *linear("q", {"D": 13, "N": 6, "H": 5}),
        *linear("k", {"D": 13, "K": 2, "H": 5}),
        *linear("v_current", {"D": 13, "half": 5}),
        *linear("v_delayed", {"D": 13, "half": 5}),
        weight("conv", each),
        Matmul(path("conv"), {"B·T": Places(4), **each}, 3, path("conv"), "scan"),
        weight("conv_bias", {"channels": 40}),
        *linear("group_conv", within),
        weight("group_conv_bias", {"channels": 40}),
        weight("key_scale", {"K": 2}),
        core("scores"),
        core("values"),
        cached("k_cache"),
        cached("v_cache"),
        state("conv_state", {"channels": 40, "taps": 5}),
        state("delayed_state", {"half": 5}),
        *linear("output", {"N": 6, "H": 5, "D": 13}),
    ]


def test_biases_are_on_all_projections():
    """Those of the convolutions are always there."""
    biased = {r.path: r.axes for r in records(changed(bias=True)) if r.path.endswith("_bias")}
    assert biased == {
        path("q_bias"): {"N": 6, "H": 5},
        path("k_bias"): {"K": 2, "H": 5},
        path("v_current_bias"): {"half": 5},
        path("v_delayed_bias"): {"half": 5},
        path("conv_bias"): {"channels": 40},
        path("group_conv_bias"): {"channels": 40},
        path("output_bias"): {"D": 13},
    }


def test_a_window_bounds_pairs_and_cache_and_no_state():
    plain, local = records(SMALL), records(changed(window=7))
    differ = [r for r in local if r not in plain]
    assert differ == [core("scores", 7), core("values", 7), cached("k_cache", 7), cached("v_cache", 7)]


def flops(attention, role, **workload):
    given = Workload(**workload)
    return sum(r.flops(given) for r in records(attention) if type(r) is Matmul and r.role == role)


def test_flops_worked_out():
    # 3 layers, 11 tokens of 2 texts. Products: q 13·30, k 13·10, two halves 13·5, output 30·13: 1,040; 8·4·25 = 800.
    assert flops(SMALL, "weight", new_tokens=11, batch=2) == 2 * 3 * 22 * (1_040 + 800)
    assert flops(SMALL, "scan", new_tokens=11, batch=2) == 2 * 3 * 22 * 120
    assert flops(SMALL, "scores", new_tokens=11, batch=2) == 2 * 3 * 2 * 66 * 30
    # A kernel is handed three places more of each text, in a step as well: the second convolution looks back to them.
    assert flops(SMALL, "scan", new_tokens=11, batch=2, counting="rectangle") == 2 * 3 * 28 * 120
    assert flops(SMALL, "scan", past_tokens=10, counting="rectangle") == 2 * 3 * 4 * 120
    assert flops(SMALL, "weight", new_tokens=11, batch=2, counting="rectangle") == 2 * 3 * 22 * (1_040 + 800)


def test_zaya1():
    """Zyphra's ZAYA1-8B, 2,048 wide: the class itself holds as many (tests/oracle/zaya.json).

    q 2,048·1,024, k 2,048·256, values twice 2,048·128, output 1,024·2,048; 1,280·2 + 1,280; 10·128·128·2 + 1,280; 2.
    An eighth of the keys and values of 16 heads; and 2,688 numbers whatever the text: 1,280·2 + 128.
    """
    made = records(ZAYA1, At("a"), 2048)
    weights = sum(r.parameters for r in made if type(r) is Weight)
    assert weights == 2_097_152 + 524_288 + 2 * 262_144 + 2_097_152 + 3_840 + 328_960 + 2
    held = {r.kind: 0 for r in made if type(r) is Cached}
    for r in made:
        if type(r) is Cached:
            held[r.kind] += r.elements(Workload())
    assert held == {"kv": 2 * 16 * 128 // 8, "state": 2_688}


def test_no_state_of_one_tap_each_but_half_of_the_values():
    held = [r.elements(Workload(new_tokens=11)) for r in records(changed(taps=1, group_taps=1)) if type(r) is Cached]
    assert held == [3 * 110, 3 * 110, 0, 3 * 5]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kv_heads": 4}, "heads 6 is not a multiple of kv_heads 4"),
        ({"kv_heads": 3}, "kv_heads 3 x head_dim 5 is odd: half of the values are those of the token before"),
        ({"kv_heads": 1}, "kv_heads 1 x head_dim 5 is odd: half of the values are those of the token before"),
    ],
)
def test_what_it_cannot_be(refusal, fields, message):
    error = refusal(layers=[{"attention": {**SMALL.model_dump(), **fields}}])
    assert str(error) == message
    assert error.where == ("decoder", "layers", 0, "attention")


@pytest.mark.parametrize("missing", ["heads", "kv_heads", "head_dim"])
def test_no_size_can_be_left_out(missing):
    sizes = {"heads": 6, "kv_heads": 2, "head_dim": 5}
    with pytest.raises(ValidationError, match=missing):
        Convolved(**{name: size for name, size in sizes.items() if name != missing})


@pytest.mark.parametrize("key", ["chunk", "cache_of", "qk_norm", "softcap"])
def test_what_only_others_have(made, key):
    with pytest.raises(ValidationError, match=key):
        made(layers=[{"attention": {**SMALL.model_dump(), key: 3}}])


def test_rotation_fits_into_a_head(refusal):
    layers = [{"attention": SMALL.model_dump(), "positions": {"kind": "rope", "rotary_dim": 6}}]
    assert str(refusal(layers=layers)) == "rotary_dim 6 is more than head_dim 5"


def test_it_looks_back_only(made, refusal):
    layers = [{"attention": SMALL.model_dump()}]
    assert is_recurrent(made(layers=layers).decoder.layers[0])
    error = refusal(encoder={"layers": layers}, layers=None)
    assert str(error) == "a recurrence looks back only: it is for a decoder"


def test_what_is_usual():
    assert (ZAYA1.taps, ZAYA1.group_taps, ZAYA1.bias, ZAYA1.window, ZAYA1.scale) == (2, 2, False, None, None)


def test_what_is_left_out_and_said():
    assert SMALL.left_out(13) == {"scale": (5**-0.5, "1 / sqrt(head_dim)")}
    assert SMALL.rotated(13) == 5
    assert SMALL.summary(13) == "6 query heads on 2 key/value heads of 5, convolved over 3 and 4 tokens"
    assert changed(window=1024, bias=True).summary(13).endswith("tokens, window 1,024, biases")
