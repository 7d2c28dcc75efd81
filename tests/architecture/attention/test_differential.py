from __future__ import annotations

import pytest

from costcalc.architecture.attention import Differential
from costcalc.architecture.component import RuleError
from costcalc.architecture.norm import RMSNorm
from costcalc.architecture.places import DECODER, At
from costcalc.inventory import Cached, Context, Handed, Matmul, Pairs, Tokens, Weight, Workload

AT = At("decoder.layers.attention", times=3)
# N=6 heads on K=2 key/value heads of H=5, D=13
SMALL = Differential(heads=6, kv_heads=2, head_dim=5)


def path(name):
    return f"decoder.layers.attention.{name}"


def linear(name, axes):
    return [Weight(path(name), axes, 3), Matmul(path(name), {"B·T": Tokens(), **axes}, 3, path(name))]


def records(attention, at=AT, d_model=13):
    return list(attention.records(at, d_model, DECODER))


def test_everything_that_is_stated():
    pairs, held = Pairs(), {"B·S": Context(), "K": 2, "H": 5}
    assert records(SMALL) == [
        *linear("q", {"D": 13, "N": 6, "H": 5}),
        *linear("k", {"D": 13, "K": 2, "H": 5}),
        *linear("v", {"D": 13, "K": 2, "H": 5}),
        *(Weight(path(f"lambda_{name}"), {"H": 5}, 3) for name in ("q1", "k1", "q2", "k2")),
        Matmul(path("scores"), {"B·P": Handed(pairs, 2), "N": 6, "H": 5}, 3, None, "scores"),
        Matmul(path("values"), {"B·P": pairs, "N": 6, "H_v": 10}, 3, None, "values"),
        Cached(path("k_cache"), held, 3),
        Cached(path("v_cache"), held, 3),
        *linear("output", {"N": 6, "H": 5, "D": 13}),
    ]


def test_biases_and_the_gains_of_the_norm():
    more = [r for r in records(SMALL.model_copy(update={"bias": True, "norm": RMSNorm()})) if r not in records(SMALL)]
    held = {r.path: r.axes for r in more}
    of_keys = {"K": 2, "H": 5}
    biases = {"q_bias": {"N": 6, "H": 5}, "k_bias": of_keys, "v_bias": of_keys, "output_bias": {"D": 13}}
    assert held == {path(name): axes for name, axes in {**biases, "norm": {"H_v": 10}}.items()}


def test_scores_are_made_once_and_kernels_make_them_twice():
    """3 layers, 2 texts of 11: 66 pairs each, N·H = 30; values of twice the size. Kernels: 121 pairs, scores twice."""

    def flops(**workload):
        given = Workload(new_tokens=11, batch=2, **workload)
        return {r.role: r.flops(given) for r in records(SMALL) if type(r) is Matmul and r.of is None}

    assert flops() == {"scores": 2 * 3 * 2 * 66 * 30, "values": 2 * 3 * 2 * 66 * 60}
    assert flops(counting="rectangle") == {"scores": 2 * 2 * 3 * 2 * 121 * 30, "values": 2 * 3 * 2 * 121 * 60}


def test_diffllama():
    """The class as it is (tests/oracle/cousins.json): 4 x 2,048² and 4 vectors of 64 in each attention."""
    whole = Differential(heads=32, kv_heads=32, head_dim=64)
    assert sum(r.parameters for r in records(whole, At("a"), 2048) if type(r) is Weight) == 4 * 2048**2 + 256


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"heads": 7}, "heads 7 is not a multiple of kv_heads 2"),
        ({"heads": 3, "kv_heads": 1}, "heads 3 is odd: half of them is taken from the others"),
        ({"heads": 6, "kv_heads": 3}, "kv_heads 3 is odd: values are pairs of heads"),
    ],
)
def test_rules(fields, message):
    with pytest.raises(RuleError, match=message):
        SMALL.model_copy(update=fields).check((), 13)


def test_what_a_reader_is_told():
    said = "6 query heads on 2 key/value heads of 5, half of them taken from the others"
    assert SMALL.summary(13) == said
    assert SMALL.model_copy(update={"window": 7, "bias": True}).summary(13) == f"{said}, window 7, biases"
    assert SMALL.left_out(13) == {"scale": (5**-0.5, "1 / sqrt(head_dim)")}
    assert SMALL.rotated(13) == 5
