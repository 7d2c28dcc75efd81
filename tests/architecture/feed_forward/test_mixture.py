"""Mixtures of experts: router, experts, shared expert; what a token uses; Mixtral's published sizes."""

import pytest

import costcalc
from costcalc.architecture.component import RuleError
from costcalc.architecture.feed_forward import Dense, Gated, Mixture
from costcalc.architecture.feed_forward.mixture import Router
from costcalc.architecture.feed_forward.router_network import RouterNetwork
from costcalc.architecture.norm import LayerNorm, RMSNorm
from costcalc.architecture.places import DECODER, SOURCE, At
from costcalc.inventory import Matmul, Memory, Routed, Tokens, Weight, Workload

AT = At("decoder.layers.feed_forward", times=3)
ROWS, ROUTED = {"B·T": Tokens()}, {"B·T·X": Routed(Tokens(), 2)}
SMALL = Mixture(experts=7, experts_per_token=2, expert=Gated(d_ff=11))


def path(name):
    return f"decoder.layers.feed_forward.{name}"


def linear(name, axes, rows=ROWS):
    return [Weight(path(name), axes, 3), Matmul(path(name), {**rows, **axes}, 3, path(name))]


def expert(name, axes, *, x=2):
    held = Weight(path(name), {"E": 7, **axes}, 3, used={"E": x})
    return [held, Matmul(path(name), {"B·T·X": Routed(Tokens(), x), **axes}, 3, path(name))]


def records(mixture, stream=DECODER):
    return list(mixture.records(AT, 13, stream))


def changed(**fields):
    return SMALL.model_copy(update=fields)


def test_a_router_and_the_experts():
    assert records(SMALL) == [
        *linear("router", {"D": 13, "E": 7}),
        *expert("experts.gate", {"D": 13, "F": 11}),
        *expert("experts.up", {"D": 13, "F": 11}),
        *expert("experts.down", {"F": 11, "D": 13}),
    ]


def test_a_shared_expert_and_its_gate():
    shared = records(changed(shared=Dense(d_ff=5, bias=True), shared_gate=True))[len(records(SMALL)) :]
    assert shared == [
        *linear("shared.up", {"D": 13, "F": 5}),
        Weight(path("shared.up_bias"), {"F": 5}, 3),
        *linear("shared.down", {"F": 5, "D": 13}),
        Weight(path("shared.down_bias"), {"D": 13}, 3),
        *linear("shared_gate", {"D": 13, "one": 1}),
    ]


def test_experts_may_have_biases_of_which_a_token_uses_some():
    """gpt-oss: each expert has its own."""
    held = [r for r in records(changed(expert=Gated(d_ff=11, bias=True))) if r.path.endswith("_bias")]
    assert held == [
        Weight(path("experts.gate_bias"), {"E": 7, "F": 11}, 3, used={"E": 2}),
        Weight(path("experts.up_bias"), {"E": 7, "F": 11}, 3, used={"E": 2}),
        Weight(path("experts.down_bias"), {"E": 7, "D": 13}, 3, used={"E": 2}),
    ]
    assert [r.used_parameters for r in held] == [3 * 2 * 11, 3 * 2 * 11, 3 * 2 * 13]


def test_the_sum_of_all_may_be_normed():
    """A.X-K1: D gains."""
    assert records(changed(norm=RMSNorm()))[len(records(SMALL)) :] == [Weight(path("norm"), {"D": 13}, 3)]


@pytest.mark.parametrize("role", ["buffer", "frozen", "trainable"])
def test_a_correction_has_a_number_an_expert(role):
    [correction] = [r for r in records(changed(router=Router(correction=role))) if "correction" in r.path]
    assert correction == Weight(path("router_correction"), {"E": 7}, 3, role)


def test_a_router_may_have_a_bias():
    [bias] = [r for r in records(changed(router=Router(bias=True))) if r.path.endswith("_bias")]
    assert bias == Weight(path("router_bias"), {"E": 7}, 3)


def test_what_stands_around_a_router():
    """Gemma-4: a norm without gain of what it reads, D numbers, and one number for each expert."""
    router = Router(reads="residual", norm=RMSNorm(weight=False), input_scale=True, expert_scale=True)
    made = records(changed(router=router))
    expert_scale = Weight(path("router_expert_scale"), {"E": 7}, 3)
    product = linear("router", {"D": 13, "E": 7})
    assert made == [Weight(path("router_input_scale"), {"D": 13}, 3), *product, expert_scale, *records(SMALL)[2:]]
    gained = records(changed(router=Router(norm=RMSNorm())))
    assert gained == [Weight(path("router_norm"), {"D": 13}, 3), *records(SMALL)]
    assert records(changed(router=Router(reads="residual"))) == records(SMALL)


def test_a_network_in_front_of_a_router():
    """ZAYA1: 13 -> 5, a gain of 5, 5 -> 5 twice, 5 -> 7, with biases on all but the last; 5 more that are carried."""
    down, inner = {"D": 13, "W_router": 5}, {"W_router": 5, "W_router_out": 5}
    network = [
        *linear("router_down", down),
        Weight(path("router_down_bias"), {"W_router": 5}, 3),
        Weight(path("router_norm"), {"W_router": 5}, 3),
        *linear("router_inner1", inner),
        Weight(path("router_inner1_bias"), {"W_router_out": 5}, 3),
        *linear("router_inner2", inner),
        Weight(path("router_inner2_bias"), {"W_router_out": 5}, 3),
        *linear("router", {"W_router": 5, "E": 7}),
    ]
    made = records(changed(router=Router(network=RouterNetwork(width=5))))
    assert made == [*network, *records(SMALL)[2:]]
    carried = records(changed(router=Router(network=RouterNetwork(width=5, carried=True))))
    gain = Weight(path("router_carried_gain"), {"W_router": 5}, 3)
    assert carried == [*made[:3], gain, *made[3:]]


def test_the_norm_of_a_network_is_any():
    network = RouterNetwork(width=5, norm=LayerNorm())
    norms = [r.path for r in records(changed(router=Router(network=network))) if "norm" in r.path]
    assert norms == [path("router_norm"), path("router_norm_bias")]


def test_choices_that_are_no_experts():
    """Scores, their bias and their correction have two more; experts and their scales do not, nor what is chosen."""
    router = Router(bias=True, correction="buffer", expert_scale=True, skips=2)
    held = {r.path.rpartition("feed_forward.")[2]: r for r in records(changed(router=router)) if type(r) is Weight}
    assert held["router"].axes == {"D": 13, "choices": 9}
    assert held["router_bias"].axes == {"choices": 9}
    assert held["router_correction"] == Weight(path("router_correction"), {"choices": 9}, 3, "buffer")
    assert held["router_expert_scale"].axes == {"E": 7}
    assert held["experts.up"] == expert("experts.up", {"D": 13, "F": 11})[0]
    # every choice counts as an expert's: 9 scores in place of 7, and two experts for each token as before
    assert flops(changed(router=Router(skips=2)), new_tokens=11) == flops(SMALL, new_tokens=11) + 2 * 3 * 11 * 13 * 2


@pytest.mark.parametrize("router", [{"groups": 7, "groups_per_token": 2}, {"weigh": "inputs"}])
def test_choices_of_none_are_told_apart_from_all_experts_at_once(router):
    with pytest.raises(RuleError, match=r"^`skips` go with one group of experts, and `weigh: outputs`$"):
        changed(router=Router(skips=1, **router)).check(("feed_forward",), 13)
    changed(router=Router(**router)).check(("feed_forward",), 13)


@pytest.mark.parametrize("router", [{"norm": RMSNorm()}, {"input_scale": True}])
def test_a_network_has_the_only_norm(router):
    with pytest.raises(RuleError) as caught:
        changed(router=Router(network=RouterNetwork(width=5), **router)).check(("feed_forward",), 13)
    assert str(caught.value) == "a router with a `network` has the norm of that, and no `input_scale`"
    assert (caught.value.where, caught.value.hint) == (
        ("feed_forward", "router"),
        "write `norm` inside of the `network`",
    )
    changed(router=Router(**router)).check(("feed_forward",), 13)


def flops(mixture, **workload):
    return sum(r.flops(Workload(**workload)) for r in records(mixture) if type(r) is Matmul)


def test_only_the_chosen_experts_are_multiplied():
    # 3 layers, 5·11 tokens: the router 13·7 = 91, 2 experts of 3·13·11 = 429
    assert flops(SMALL, batch=5, new_tokens=11) == 2 * 3 * 55 * (91 + 2 * 429) == 313_170
    assert flops(changed(experts_per_token=7), batch=5, new_tokens=11) == 2 * 3 * 55 * (91 + 7 * 429)


@pytest.mark.parametrize(("counting", "experts"), [("attended", 2), ("rectangle", 7)])
def test_a_class_may_hand_every_expert_to_its_kernel(counting, experts):
    """`Llama4TextExperts` multiplies all, those not chosen with zeros."""
    handed = changed(dispatch="all")
    assert flops(handed, new_tokens=11, counting=counting) == 2 * 3 * 11 * (91 + experts * 429)
    assert flops(SMALL, new_tokens=11, counting=counting) == 2 * 3 * 11 * (91 + 2 * 429)


def test_an_encoder_of_a_pair_routes_its_own_rows():
    made = [r for r in records(SMALL, SOURCE) if type(r) is Matmul]
    assert [next(iter(r.axes)) for r in made] == ["B·M", "B·M·X", "B·M·X", "B·M·X"]
    assert made[1].axes["B·M·X"] == Routed(Memory(once=True), 2)


def test_mixtral():
    """arXiv 2401.04088, table 1: 8 experts of 14,336, of which 2: 1,409,286,144 a layer, 352,321,536 active."""
    mixtral = Mixture(experts=8, experts_per_token=2, expert=Gated(d_ff=14336))
    held = [r for r in mixtral.records(At("m"), 4096, DECODER) if type(r) is Weight]
    assert sum(r.parameters for r in held) == 8 * 3 * 4096 * 14336 + 8 * 4096
    assert sum(r.used_parameters for r in held) == 2 * 3 * 4096 * 14336 + 8 * 4096


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"experts_per_token": 8}, "8 of 7 experts: no more are there"),
        ({"shared_gate": True}, "`shared_gate` belongs to a `shared` expert"),
        ({"router": Router(groups=3)}, "experts 7 are no multiple of 3 groups"),
        ({"router": Router(groups=7)}, "2 experts of a token: its 1 groups have 1"),
    ],
)
def test_what_a_mixture_cannot_be(fields, message):
    with pytest.raises(RuleError) as caught:
        changed(**fields).check(("feed_forward",), 13)
    assert (str(caught.value), caught.value.where) == (message, ("feed_forward",))


@pytest.mark.parametrize("key", ["feed_forward", "feed_forward_beside"])
def test_layers_that_share_experts_are_refused(refusal, key):
    """A token passes the router once in each turn: how many experts it uses in all is not known."""
    layer = {"attention": {"heads": 6, "head_dim": 5}, "norms": "sandwich", "share_weights": True, "repeat": 3}
    error = refusal(layers=[{**layer, "feed_forward": {"d_ff": 37}, key: SMALL.model_dump()}])
    assert str(error).startswith("layers that share experts")
    assert error.hint == "write `share_weights: false`"


def test_no_more_groups_are_used_than_there_are():
    with pytest.raises(RuleError) as caught:
        changed(experts=6, router=Router(groups=2, groups_per_token=3)).check(("feed_forward",), 13)
    assert (str(caught.value), caught.value.where) == (
        "3 of 2 groups: no more are there",
        ("feed_forward", "router"),
    )


def test_experts_of_a_latent():
    """Nemotron-3: 13 -> 5 and back around routed experts of 5 x 11, three matrices each; router and shared read 13."""
    mixture = changed(latent_dim=5, shared=Dense(d_ff=3))
    held = {r.path.rpartition("feed_forward.")[2]: r for r in mixture.records(AT, 13, DECODER) if type(r) is Weight}
    per_layer = {name: weight._replace(times=1).parameters for name, weight in held.items()}
    assert per_layer == {
        "router": 13 * 7,
        "latent_down": 13 * 5,
        "experts.gate": 7 * 5 * 11,
        "experts.up": 7 * 5 * 11,
        "experts.down": 7 * 11 * 5,
        "latent_up": 5 * 13,
        "shared.up": 13 * 3,
        "shared.down": 3 * 13,
    }
    biased = changed(latent_dim=5, latent_bias=True).records(AT, 13, DECODER)
    biases = {r.path.rpartition(".")[2]: r.axes for r in biased if type(r) is Weight and r.path.endswith("_bias")}
    assert biases == {"latent_down_bias": {"R": 5}, "latent_up_bias": {"D": 13}}
    rows = {
        r.path.rpartition("feed_forward.")[2]: r.flops(Workload())
        for r in mixture.records(AT, 13, DECODER)
        if type(r) is Matmul
    }
    assert rows["latent_down"] == 2 * AT.times * 13 * 5  # once a token, not once for each of its experts
    assert rows["experts.up"] == 2 * AT.times * 2 * 5 * 11


def test_a_bias_of_a_latent_needs_one():
    with pytest.raises(RuleError, match="`latent_bias` belongs to a `latent_dim`"):
        changed(latent_bias=True).check(("feed_forward",), 13)


def test_what_a_reader_is_told():
    assert changed(latent_dim=5).summary() == "2 of 7 experts (gated silu, 11 wide) on 5 numbers"
    assert SMALL.summary() == "2 of 7 experts (gated silu, 11 wide)"
    assert changed(shared=Dense(d_ff=5)).summary().endswith(", one shared (dense gelu, 5 wide)")
    router = Router(network=RouterNetwork(width=1024), skips=1)
    said = "2 of 7 experts or none (gated silu, 11 wide), routed by a network 1,024 wide"
    assert changed(router=router).summary() == said
    assert changed(router=Router(skips=3)).summary() == "2 of 7 experts or 3 choices of none (gated silu, 11 wide)"


@pytest.mark.parametrize("form", ["a word", "a mapping"])
def test_the_written_form_of_an_expert(made, form):
    expert = "gated" if form == "a word" else {"kind": "gated"}
    written = {"kind": "mixture", "experts": 7, "experts_per_token": 2}
    if form == "a word":
        layers = [{"feed_forward": {**written, "expert": {"d_ff": 11}, "shared": {"d_ff": 5}}}]
        mixture = made(layers=layers).decoder.layers[0].feed_forward
        assert (mixture.expert, mixture.shared) == (Dense(d_ff=11), Dense(d_ff=5))  # as of any feed-forward network
    else:
        layers = [{"feed_forward": {**written, "expert": {**expert, "d_ff": 11}}}]
        assert made(layers=layers).decoder.layers[0].feed_forward == SMALL


def test_choices_of_the_input_itself_are_refused_where_work_is_asked_for():
    """Of 8 experts 3 x 13 x 17 each and 5 identities, D -> 13 scores; 5 more first matrices 2 x 13 x 17, never used."""
    router = {"skips": 5, "skip_gives": "input"}
    some = {
        "kind": "mixture",
        "experts": 8,
        "experts_per_token": 3,
        "expert": {"kind": "gated", "d_ff": 17},
        "unused": 5,
    }
    layer = {"attention": {"heads": 1}, "feed_forward": {**some, "router": router}}
    arch = costcalc.load({"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": [layer]})
    count = costcalc.parameters(arch)
    assert count.total == 2 * 19 * 13 + 4 * 13 * 13 + 3 * 13 + 13 * 13 + 8 * 3 * 13 * 17 + 5 * 2 * 13 * 17
    assert count.total - count.active == 5 * 3 * 13 * 17 + 5 * 2 * 13 * 17
    assert arch.groups[0].block.feed_forward.summary().startswith("3 of 8 experts or 5 choices of the input itself")
    with pytest.raises(costcalc.CostcalcError, match="how many of a token's choices are experts"):
        costcalc.flops(arch, costcalc.Workload(new_tokens=11))
    with pytest.raises(costcalc.CostcalcError, match="how many of a token's choices are experts"):
        costcalc.experts(arch)


def test_what_skips_give_needs_some(refusal):
    some = {"kind": "mixture", "experts": 8, "experts_per_token": 3, "expert": {"d_ff": 17}}
    error = refusal(layers=[{"feed_forward": {**some, "router": {"skip_gives": "input"}}}])
    assert str(error) == "`skip_gives` says what `skips` give, and there are none"
