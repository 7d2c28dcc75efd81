"""Latent attention: the records of both forms, and DeepSeek's published sizes."""

import pytest
from pydantic import ValidationError

from costcalc.architecture.attention import Latent
from costcalc.architecture.norm import LayerNorm
from costcalc.architecture.places import DECODER, ENCODER, At
from costcalc.inventory import Cached, Context, Matmul, Pairs, Tokens, Weight, Workload

AT = At("decoder.layers.attention", times=3)
SMALL = Latent(heads=6, kv_rank=11, nope_dim=5, rope_dim=2, v_dim=7)
FROM_LATENT = Latent(heads=6, q_rank=17, kv_rank=11, nope_dim=5, rope_dim=2, v_dim=7)
ROWS, SEEN, PAIRS = {"B·T": Tokens()}, {"B·S": Context()}, {"B·P": Pairs(), "N": 6}
K_UP, V_UP = {"R": 11, "N": 6, "H_nope": 5}, {"R": 11, "N": 6, "H_v": 7}
DEEPSEEK_V3 = Latent(heads=128, q_rank=1536, kv_rank=512, nope_dim=128, rope_dim=64, v_dim=128)


def path(name):
    return f"decoder.layers.attention.{name}"


def weight(name, axes):
    return Weight(path(name), axes, 3)


def linear(name, rows, axes):
    return [weight(name, axes), Matmul(path(name), {**rows, **axes}, 3, path(name))]


def formed(form, rows, scored, mixed):
    return [
        Matmul(path("k_up"), {**rows, **K_UP}, 3, path("k_up"), form=form),
        Matmul(path("scores"), {**PAIRS, **scored}, 3, None, "scores", form),
        Matmul(path("values"), {**PAIRS, **mixed}, 3, None, "values", form),
        Matmul(path("v_up"), {**rows, **V_UP}, 3, path("v_up"), form=form),
    ]


def records(attention, stream=DECODER):
    return list(attention.records(AT, 13, stream))


def test_every_record_of_both_forms():
    assert records(SMALL) == [
        *linear("q", ROWS, {"D": 13, "N": 6, "H_qk": 7}),
        *linear("kv_down", ROWS, {"D": 13, "R_held": 13}),
        weight("kv_norm", {"R": 11}),
        weight("k_up", K_UP),
        weight("v_up", V_UP),
        *formed("expanded", SEEN, {"H_qk": 7}, {"H_v": 7}),
        *formed("absorbed", ROWS, {"R_held": 13}, {"R": 11}),
        Cached(path("latent_cache"), {**SEEN, "R_held": 13}, 3, form="latent"),
        Cached(path("k_cache"), {**SEEN, "N": 6, "H_qk": 7}, 3, form="decompressed"),
        Cached(path("v_cache"), {**SEEN, "N": 6, "H_v": 7}, 3, form="decompressed"),
        *linear("output", ROWS, {"N": 6, "H_v": 7, "D": 13}),
    ]


def test_queries_of_a_latent():
    made = records(FROM_LATENT)
    assert made[:5] == [
        *linear("q_down", ROWS, {"D": 13, "R_q": 17}),
        weight("q_norm", {"R_q": 17}),
        *linear("q_up", ROWS, {"R_q": 17, "N": 6, "H_qk": 7}),
    ]
    assert made[5:] == records(SMALL)[2:]


def test_biases_are_on_what_makes_latents_and_on_the_output():
    biased = records(FROM_LATENT.model_copy(update={"bias": True, "out_bias": True}))
    biases = {r.path: r.axes for r in biased if r.path.endswith("_bias")}
    assert biases == {
        path("q_down_bias"): {"R_q": 17},
        path("kv_down_bias"): {"R_held": 13},
        path("output_bias"): {"D": 13},
    }


def test_the_norm_of_latents_is_any():
    norms = [r.path for r in records(FROM_LATENT.model_copy(update={"norm": LayerNorm()})) if "_norm" in r.path]
    assert norms == [path(name) for name in ("q_norm", "q_norm_bias", "kv_norm", "kv_norm_bias")]


def test_an_encoder_keeps_nothing_and_expands_its_own_tokens():
    made = records(SMALL, ENCODER)
    assert not [r for r in made if type(r) is Cached]
    expanded = [r for r in made if type(r) is Matmul and r.path == path("k_up") and r.form == "expanded"]
    assert [list(r.axes) for r in expanded] == [["B·T", "R", "N", "H_nope"]]


def flops(attention, workload):
    return sum(r.flops(workload) for r in records(attention) if type(r) is Matmul and r.runs(workload))


def test_forms_worked_out():
    # 3 layers, 1 new token after 10: weights 13·42 + 13·13 + 42·13 = 1,261. Expanded: 11 seen tokens through
    # 11·6·(5 + 7) = 792, core 11·6·(7 + 7) = 924. Absorbed: 792 once, core 11·6·(13 + 11) = 1,584.
    step = {"new_tokens": 1, "past_tokens": 10}
    assert flops(SMALL, Workload(**step, latent="expanded")) == 3 * 2 * (1_261 + 11 * 792 + 924) == 65_382
    assert flops(SMALL, Workload(**step, latent="absorbed")) == 3 * 2 * (1_261 + 792 + 1_584) == 21_822
    assert flops(SMALL, Workload(**step)) == 21_822
    # Without a past the expanded form is usual, and each new token is expanded once.
    assert flops(SMALL, Workload(new_tokens=1)) == 3 * 2 * (1_261 + 792 + 6 * 14) == 12_822


def test_deepseek_v3():
    """arXiv 2412.19437, section 4.2: 187,107,328 weights of attention a layer; 576 numbers cached a token."""
    made = list(DEEPSEEK_V3.records(At("a"), 7168, DECODER))
    weights = sum(r.parameters for r in made if type(r) is Weight)
    # 7168·1536 + 1536·24576 + 7168·576 + 512·32768 + 16384·7168 and norms of 1,536 + 512
    assert weights == 11_010_048 + 37_748_736 + 4_128_768 + 16_777_216 + 117_440_512 + 2_048
    one = Workload(new_tokens=1)
    held = {r.form: 0 for r in made if type(r) is Cached}
    for r in made:
        if type(r) is Cached:
            held[r.form] += r.elements(one)
    assert held == {"latent": 576, "decompressed": 128 * (192 + 128)}


@pytest.mark.parametrize("missing", ["heads", "kv_rank", "nope_dim", "rope_dim", "v_dim"])
def test_no_size_can_be_left_out(missing):
    sizes = {"heads": 6, "kv_rank": 11, "nope_dim": 5, "rope_dim": 2, "v_dim": 7}
    with pytest.raises(ValidationError, match=missing):
        Latent(**{name: size for name, size in sizes.items() if name != missing})


def test_rotation_takes_pairs(refusal):
    layers = [{"attention": {"kind": "latent", "heads": 6, "kv_rank": 11, "nope_dim": 5, "rope_dim": 3, "v_dim": 7}}]
    error = refusal(layers=layers)
    assert str(error) == "rope_dim 3 is odd: RoPE rotates pairs"
    assert error.where == ("decoder", "layers", 0, "attention")


@pytest.mark.parametrize("positions", ["alibi", {"kind": "relative", "per_layer": True}])
def test_positions_that_latent_attention_does_not_have(refusal, positions):
    layers = [{"attention": SMALL.model_dump(), "positions": positions}]
    kind = positions if isinstance(positions, str) else positions["kind"]
    assert str(refusal(layers=layers)) == f"latent attention has rotary positions or none of its own, not {kind}"


def test_what_is_left_out_and_said():
    assert SMALL.left_out(13) == {"scale": (7**-0.5, "1 / sqrt(nope_dim + rope_dim)")}
    assert SMALL.rotated(13) == 2
    assert SMALL.summary(13) == "latent: 6 heads of 5 + 2 numbers, values of 7, cached as 11 + 2"
    assert FROM_LATENT.summary(13).endswith(", queries of a latent of 17")


def test_a_window_of_latents():
    """Of 7 keys. After 10 tokens a step meets 7, expands 7 latents and holds 7; a prefill of 11 expands all, meets 56.

    1 + 2 + ... + 7 + 4·7 = 56 pairs; a rectangle is 11·11, or in a step 1·(6 + 1).
    """
    some = SMALL.model_copy(update={"window": 7, "rope_norm": True})
    step, prefill = Workload(new_tokens=1, past_tokens=10, latent="expanded"), Workload(new_tokens=11)
    assert flops(some, step) == 3 * 2 * (1_261 + 7 * 792 + 7 * 6 * 14)
    assert flops(some, prefill) == 3 * 2 * (11 * 1_261 + 11 * 792 + 56 * 6 * 14)
    assert [r.elements(prefill) for r in records(some) if type(r) is Cached and r.form == "latent"] == [3 * 7 * 13]
    assert Weight(path("rope_norm"), {"H_rope": 2}, 3) in records(some)
    assert some.summary(13).endswith(", window 7")


def test_a_window_of_chosen_keys_is_refused(refusal):
    both = {"window": 5, "top_k": 5, "q_rank": 17, "indexer": {"heads": 2, "head_dim": 4}}
    error = refusal(layers=[{"attention": {**SMALL.model_dump(), **both}}])
    assert str(error) == "`window` and `top_k` exclude each other"
