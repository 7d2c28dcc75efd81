"""Gates behind norms, means of what is summed, and networks for the next layer: their records and rules."""

import pytest

import costcalc
from costcalc.architecture.norm_gate import NormGate
from costcalc.architecture.places import DECODER, At
from costcalc.inventory import Matmul, Tokens, Weight

AT = At("decoder.layers", times=3)


def layers(*entries, **more):
    plain = {"attention": {"heads": 1, "head_dim": 6}, "feed_forward": {"d_ff": 37}}
    return {
        "vocab_size": 19,
        "d_model": 13,
        "norm": "rmsnorm",
        "layers": [{**plain, **each} for each in entries],
        **more,
    }


def test_every_record():
    """13 -> 5 -> 13, behind either norm or the attention's alone."""
    path, down, up = "decoder.layers.attention_norm_gate", {"D": 13, "rank": 5}, {"rank": 5, "D": 13}
    assert list(NormGate(rank=5).records(AT, "attention_norm", 13, DECODER)) == [
        Weight(f"{path}_down", down, 3),
        Matmul(f"{path}_down", {"B·T": Tokens(), **down}, 3, f"{path}_down"),
        Weight(f"{path}_up", up, 3),
        Matmul(f"{path}_up", {"B·T": Tokens(), **up}, 3, f"{path}_up"),
    ]
    alone = NormGate(rank=5, before="attention")
    assert list(alone.records(AT, "feed_forward_norm", 13, DECODER)) == []
    assert len(list(alone.records(AT, "attention_norm", 13, DECODER))) == 4


def test_a_model_worked_out():
    """Beside a plain layer of 4·13·6 + 2·13·37 + 2·13 weights four matrices of 13·5; a shortcut has 2·13·41 more."""
    plain, gated, later = (
        costcalc.parameters(costcalc.load(layers(each, {}))).total
        for each in ({}, {"norm_gate": {"rank": 5}}, {"shortcut": {"d_ff": 41}})
    )
    assert plain == 2 * 19 * 13 + 2 * (4 * 13 * 6 + 2 * 13 * 37 + 2 * 13) + 13
    assert (gated - plain, later - plain) == (4 * 13 * 5, 2 * 13 * 41)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm_gate": {"rank": 5}, "norms": "post"}, "`norm_gate` stands behind norms in front of sublayers"),
        ({"norm_gate": {"rank": 5}, "parallel": "two_norms"}, "`norm_gate` stands behind norms in front of sublayers"),
        (
            {"residual_mean": True, "residual_scale": 0.5},
            "`residual_mean` is a sum of its own: it goes with no other scale",
        ),
        (
            {"shortcut": {"d_ff": 41}, "norms": "post"},
            "a `shortcut` reads what a `feed_forward` reads, behind a norm before it",
        ),
    ],
)
def test_what_does_not_go_together(refusal, changes, message):
    error = refusal(**layers(changes, {}))
    assert str(error) == message
    assert error.where == ("decoder", "layers", 0)


def test_behind_a_shortcut_there_is_a_layer(refusal):
    error = refusal(**layers({}, {"shortcut": {"d_ff": 41}}))
    assert str(error) == "the last layer has a `shortcut`, and its result is added behind the next one"
    alone = {**layers({})["layers"][0], "shortcut": {"d_ff": 41}}
    assert "no other layers to look at" in str(refusal(**layers({}, multi_token={"layer": alone})))
