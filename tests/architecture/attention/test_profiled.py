"""Attention with profiles of distances: its records, Inkling-2's published sizes, and what it cannot be."""

import pytest

import costcalc
from costcalc.architecture.attention import Profiled
from costcalc.architecture.block import is_recurrent
from costcalc.architecture.places import DECODER, At
from costcalc.errors import CostcalcError
from costcalc.inventory import Cached, Context, Convolved, Matmul, Pairs, Sequences, Tokens, Weight

AT = At("decoder.layers.attention", times=3)
SIZES = {"heads": 6, "kv_heads": 2, "head_dim": 5, "profiles": 3, "reach": 7, "taps": 4}
SMALL = Profiled(**SIZES)
QUERIES, KEYS = {"N": 6, "H": 5}, {"K": 2, "H": 5}


def path(name):
    return f"{AT.path}.{name}"


def weight(name, axes):
    return Weight(path(name), axes, 3)


def product(name, axes):
    return Matmul(path(name), {"B·T": Tokens(), **axes}, 3, path(name))


def linear(name, axes):
    return [weight(name, axes), product(name, axes)]


def records(**changes):
    return list(SMALL.model_copy(update=changes).records(AT, 13, DECODER))


def conv(name):
    each = {"channels": 10, "taps": 4}
    scan = Matmul(path(f"{name}.conv"), {"B·T": Convolved(4), **each}, 3, path(f"{name}.conv"), "scan")
    return [
        weight(f"{name}.conv", each),
        scan,
        Cached(path(f"{name}.conv_state"), {"B": Sequences(), **each}, 3, "state"),
    ]


def by_token(name):
    each = {"channels": 10, "taps": 4}
    state = Cached(path(f"{name}.conv_state"), {"B": Sequences(), **each}, 3, "state")
    return [weight(f"{name}.static", each), *linear(f"{name}.dynamic", {"D": 13, "K": 2, "taps": 4}), state]


def core(name, window=None):
    return Matmul(path(name), {"B·P": Pairs(window), **QUERIES}, 3, None, name)


def test_every_record():
    assert records() == [
        *linear("q", {"D": 13, **QUERIES}),
        *linear("k", {"D": 13, **KEYS}),
        *conv("k_conv"),
        *linear("v", {"D": 13, **KEYS}),
        *conv("v_conv"),
        *linear("profiles", {"D": 13, "N": 6, "profiles": 3}),
        weight("bank", {"profiles": 3, "reach": 7}),
        product("bank", {"N": 6, "profiles": 3, "reach": 7}),
        core("scores"),
        core("values"),
        *(Cached(path(name), {"B·S": Context(), **KEYS}, 3) for name in ("k_cache", "v_cache")),
        *linear("output", {**QUERIES, "D": 13}),
    ]


def test_what_more_it_may_have():
    plain = records()
    assert [record for record in records(dynamic_taps=True) if record not in plain] == [
        *by_token("k_conv")[:3],
        *by_token("v_conv")[:3],
    ]
    limited = [weight("q_scale", QUERIES), weight("profiles_scale", {"N": 6, "profiles": 3})]
    assert [r for r in records(limit=2.0, profile_limit=1.0) if r not in plain] == limited
    assert [r for r in records(sinks=True) if r not in plain] == linear("sinks", {"D": 13, "N": 6})
    assert [r for r in records(output_gate=True) if r not in plain] == linear("gate", {"D": 13, **QUERIES})
    assert core("scores", 4) in records(window=4)


def written(*, positions="none", **changes):
    layer = {"repeat": 3, "attention": {"kind": "profiled", **SIZES, **changes}}
    return {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "positions": positions, "layers": [layer]}


def test_inkling_2():
    """A layer with a window of Inkling-2: 48 heads on 8 of 128, 16 profiles of 1,024 distances, width 4,608.

    Query, gate and output 3·4,608·6,144, keys and values 2·4,608·1,024, profiles 4,608·768 + 16·1,024, sinks 4,608·48;
    gains 6,144 + 768, convolutions 2·1,024·4. Held of a text: 2·1,024·4 numbers, and 2·1,024 for each of 1,024 tokens.
    """
    sizes = {"heads": 48, "kv_heads": 8, "head_dim": 128, "profiles": 16, "reach": 1_024, "window": 1_024}
    own = {"limit": 22.6, "profile_limit": 8.0, "sinks": True, "output_gate": True}
    arch = costcalc.load({**written(**sizes, **own), "d_model": 4_608, "head": "none"})
    total = 3 * 4_608 * 6_144 + 2 * 4_608 * 1_024 + 4_608 * 768 + 16_384 + 4_608 * 48 + 6_144 + 768 + 8_192
    assert costcalc.parameters(arch).non_embedding == 3 * (total + 4_608) + 4_608
    cache = costcalc.kv_cache(arch, 100_000)
    assert (cache.elements, cache.state_elements) == (3 * 2_048 * 1_024, 3 * 8_192)
    assert is_recurrent(arch.groups[0].block)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kv_heads": 4}, "heads 6 is not a multiple of kv_heads 4"),
        ({"limit": 2.0}, "`limit` and `profile_limit` go together"),
        ({"limit": 2.0, "profile_limit": 1.0, "head_norm": "rmsnorm"}, "`limit` stands in place of a `head_norm`"),
    ],
)
def test_what_cannot_be(changes, message):
    with pytest.raises(CostcalcError, match=message):
        costcalc.load(written(**changes))


def test_its_line():
    line = SMALL.model_copy(update={"window": 4, "sinks": True, "dynamic_taps": True}).summary(13)
    assert line == (
        "6 query heads on 2 key/value heads of 5, keys and values over 4 own taps of each token,"
        " 3 profiles of 7 distances, window 4, sinks"
    )
