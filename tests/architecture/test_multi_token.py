"""Multi-token-prediction modules: beside the model, in no total."""

import pytest

from costcalc import flops, kv_cache, parameters
from costcalc.calculators.experts import mixtures
from costcalc.inventory import Workload

LAYER = {"attention": {"heads": 6, "kv_heads": 2, "head_dim": 5}, "feed_forward": {"d_ff": 37}}
MOE = {"kind": "mixture", "experts": 7, "experts_per_token": 2, "expert": {"kind": "gated", "d_ff": 11}}


def test_what_a_module_holds(made):
    plain, more = made(), made(multi_token={"repeat": 2, "layer": LAYER})
    # two norms, 26·13 = 338, a layer of 1,040 + 2·13·37 + 26 = 2,028, a norm: 2,405, twice
    assert parameters(more).extra == 2 * (26 + 338 + 2_028 + 13) == 4_810
    assert (parameters(plain).extra, parameters(plain).total) == (0, parameters(more).total)


def test_own_tables_are_copies_beside_the_models(made):
    alone = parameters(made(multi_token={"layer": LAYER})).extra
    assert parameters(made(multi_token={"layer": LAYER, "own_tables": True})).extra == alone + 2 * 19 * 13


def test_nothing_else_counts_them(made):
    plain = made()
    more = made(multi_token={"layer": {**LAYER, "feed_forward": MOE}, "own_tables": True})
    for name in ("total", "embedding", "active", "active_without_input_table", "active_without_tables", "buffers"):
        assert getattr(parameters(more), name) == getattr(parameters(plain), name), name
    assert flops(more, Workload(new_tokens=11)) == flops(plain, Workload(new_tokens=11))
    assert kv_cache(more, 11) == kv_cache(plain, 11)
    assert more.inventory.layout == plain.inventory.layout


def test_a_correction_buffer_of_a_module_is_extra_too(made):
    moe = {**MOE, "router": {"correction": "buffer"}}
    more = parameters(made(multi_token={"layer": {**LAYER, "feed_forward": moe}}))
    assert more.buffers == 0
    assert {weight.role for weight in more.components if weight.path.startswith("multi_token")} == {"extra"}


def test_the_norm_and_positions_of_the_top_are_its_defaults(made):
    module = made(positions="rope", multi_token={"layer": LAYER}).multi_token
    assert (module.norm.kind, module.layer.norm.kind, module.layer.positions.kind) == ("rmsnorm", "rmsnorm", "rope")
    own = made(multi_token={"norm": "layernorm", "layer": LAYER}).multi_token
    assert (own.norm.kind, own.layer.norm.kind) == ("layernorm", "rmsnorm")


@pytest.mark.parametrize(
    ("layer", "message", "key"),
    [
        ({"repeat": 2}, "a module has one layer", ("repeat",)),
        ({"share_weights": True}, "a module has one layer", ("share_weights",)),
        ({"cross_attention": {"heads": 6, "head_dim": 5}}, "a module has no other layers to look at", ()),
        (
            {"attention": {"heads": 6, "head_dim": 5, "cache_of": "x"}},
            "a module has no other layers to look at",
            (),
        ),
    ],
)
def test_what_a_module_cannot_have(refusal, layer, message, key):
    error = refusal(multi_token={"layer": {**LAYER, **layer}})
    assert (str(error), error.where) == (message, ("multi_token", "layer", *key))


@pytest.mark.parametrize("positions", [{"kind": "learned", "length": 31}, {"kind": "sinusoidal"}, "relative"])
def test_positions_that_a_module_cannot_add(refusal, positions):
    error = refusal(multi_token={"layer": {**LAYER, "positions": positions}})
    kind = positions if isinstance(positions, str) else positions["kind"]
    assert (str(error), error.where) == (
        f"a module adds no {kind} positions of its own",
        ("multi_token", "layer", "positions"),
    )


def test_a_module_ends_before_a_head(refusal):
    error = refusal(head="none", multi_token={"layer": LAYER})
    assert error.where == ("multi_token",)


def test_experts_of_a_module_are_no_mixture_of_the_model(made):
    more = made(multi_token={"layer": {**LAYER, "feed_forward": MOE}})
    assert mixtures(more.inventory) == []
    assert parameters(more).active == parameters(more).total


def test_an_encoder_has_none(refusal):
    error = refusal(layers=None, encoder={"layers": [LAYER]}, multi_token={"layer": LAYER})
    assert (str(error), error.where) == ("an encoder predicts no next tokens", ("multi_token",))


def test_its_rows_are_as_wide_as_the_model(refusal):
    error = refusal(embedding={"width": 7}, multi_token={"layer": LAYER})
    assert error.where == ("embedding", "width")


def test_parts_that_are_not_counted_are_named(made):
    assert parameters(made(not_counted=["vision tower", "projector"])).not_counted == ("vision tower", "projector")
    assert parameters(made()).not_counted == ()
