"""A block that layers share, against its formula; who holds its weights, and what each layer has of its own."""

import numpy as np
import pytest

import costcalc
from costcalc.inventory import Workload
from costcalc.reference import Arena, Request, Tape, alibi_slopes, forward, rms_norm
from costcalc.reference.shared_block import shared_block
from costcalc.reference.sight import Sight
from costcalc.verification.faults import compare

# B=2, T=11, D=12; N=3 heads of 8 (2·12 together), F=17, adapters of rank 5 and 7.
RNG = np.random.default_rng(0)
X, EMBEDDINGS = RNG.normal(size=(2, 2, 11, 12)).astype(np.float32)
GIVEN = {
    **{f"attention.{name}": RNG.normal(size=(24, 24)) / 5 for name in "qkv"},
    "attention.output": RNG.normal(size=(24, 12)) / 5,
    "feed_forward.gate": RNG.normal(size=(12, 17)) / 3,
    "feed_forward.up": RNG.normal(size=(12, 17)) / 3,
    "feed_forward.down": RNG.normal(size=(17, 12)) / 4,
    "attention_norm": RNG.normal(size=24),
    "feed_forward_norm": RNG.normal(size=12),
    "linear": RNG.normal(size=(12, 12)) / 3,
    **{f"adapters.{name}_down": RNG.normal(size=(24, 5)) / 5 for name in "qkv"},
    **{f"adapters.{name}_up": RNG.normal(size=(5, 24)) / 2 for name in "qkv"},
    "adapters.gate_up_down": RNG.normal(size=(12, 7)) / 3,
    "adapters.gate_up_up": RNG.normal(size=(7, 34)) / 3,
}
GIVEN = {f"shared_block.{name}": values for name, values in GIVEN.items()}
OWN = ("linear", "adapters")
MIXER = {"kind": "mamba2", "heads": 3, "head_dim": 5, "d_state": 7, "chunk": 4}
BOTH = {"attention_adapter_rank": 5, "feed_forward_adapter_rank": 7}


def shared(**changes):
    attention = {"heads": 3, "head_dim": 8, "scale": 0.5}
    return {"attention": attention, "feed_forward": {"kind": "gated", "d_ff": 17}, **changes}


def load(*blocks, **top):
    layers = [{"mixer": MIXER, **block} for block in blocks]
    norm = {"kind": "rmsnorm", "eps": 0.3}
    return costcalc.load({"vocab_size": 19, "d_model": 12, "norm": norm, "layers": layers, **top})


def layer(**changes):
    """The fields of one layer as they are dumped."""
    return load({"shared_block": shared(**changes)}).model_dump()["decoder"]["layers"][0]


def written_out(some, slopes=(0, 0, 0)):
    """In float64: attention of the joined, then a network, one behind the other; no sums with what came in."""

    def w(name):
        return GIVEN[f"shared_block.{name}"]

    def low_rank(x, name):
        return x @ w(f"adapters.{name}_down") @ w(f"adapters.{name}_up")

    out = np.zeros((2, 11, 12))
    for b in range(2):
        joined = np.concatenate([X[b], EMBEDDINGS[b]], axis=-1).astype(float)
        joined = rms_norm(joined, eps=0.3) * w("attention_norm")
        more = bool(some["attention_adapter_rank"])
        q, k, v = (joined @ w(f"attention.{name}") + more * low_rank(joined, name) for name in "qkv")
        mixed = np.zeros((11, 24))
        for t in range(11):
            for slope, head in zip(slopes, (slice(0, 8), slice(8, 16), slice(16, 24)), strict=True):
                weights = np.exp(0.5 * k[: t + 1, head] @ q[t, head] + slope * np.arange(-t, 1))
                mixed[t, head] = weights @ v[: t + 1, head] / weights.sum()
        y = rms_norm(mixed @ w("attention.output"), eps=0.3) * w("feed_forward_norm")
        added = bool(some["feed_forward_adapter_rank"]) * low_rank(y, "gate_up")
        gate, up = y @ w("feed_forward.gate") + added[:, :17], y @ w("feed_forward.up") + added[:, 17:]
        out[b] = gate / (1 + np.exp(-gate)) * up @ w("feed_forward.down") @ w("linear")
    return out


def passed(here, some, parts=(11,)):
    request, out = Request(), []
    for part in np.split(np.arange(11), np.cumsum(parts)[:-1]):
        here.tape.parameters.clear()
        sight = Sight(request.past, True, request, embeddings=EMBEDDINGS[:, part])
        out.append(shared_block(some, X[:, part], here, sight=sight))
        request.past += len(part)
    return np.concatenate(out, axis=1), request


@pytest.mark.parametrize("parts", [(11,), (7, 1, 1, 2), (1,) * 11])
@pytest.mark.parametrize("ranks", [{}, BOTH, {"attention_adapter_rank": 5}, {"feed_forward_adapter_rank": 7}])
def test_the_block_is_its_formula(place, ranks, parts):
    some = layer(**ranks)
    y, request = passed(place(GIVEN), some, parts)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, written_out(some["shared_block"]), rtol=1e-4, atol=1e-5)
    assert {path: held.shape for path, held in request.arrays.items()} == {
        "here.shared_block.attention.k_cache": (2, 3, 11, 8),
        "here.shared_block.attention.v_cache": (2, 3, 11, 8),
    }
    assert request.states == frozenset()


def test_positions_of_the_layer_act_in_its_attention(place):
    some = {**layer(), "positions": {"kind": "alibi", "max_bias": 8.0, "slope_scale": 1.0}}
    y, _ = passed(place(GIVEN), some, (7, 4))
    np.testing.assert_allclose(y, written_out(some["shared_block"], alibi_slopes(3)), rtol=1e-4, atol=1e-5)


def test_what_it_records(place):
    """Of 22 rows: 3·24·24 and 24·12, 3·12·17, 12·12; adapters 3·24·5·2, 12·7 + 7·34; 66 pairs of two texts and 24."""
    here = place(GIVEN)
    passed(here, layer(**BOTH))
    sizes = {path: values.size for path, values in GIVEN.items()}
    assert here.tape.parameters == {f"here.{path}": (size, "trainable") for path, size in sizes.items()}
    products = {f"here.{path}": 2 * 22 * size for path, size in sizes.items() if "norm" not in path}
    cores = {f"here.shared_block.attention.{name}": 2 * 2 * 66 * 24 for name in ("scores", "values")}
    assert here.tape.flops() == {**products, **cores}
    assert sum(products.values()) == 44 * (1728 + 288 + 612 + 144 + 720 + 84 + 238)


def test_without_embeddings_there_is_nothing_to_join(place):
    with pytest.raises(ValueError, match="joins its input with the embeddings, and is given none"):
        shared_block(layer(), X, place(GIVEN), sight=Sight())


A, B = {"shared_block": shared(**BOTH, weights="a")}, {"shared_block": shared(**BOTH, weights="b")}
TEXT = RNG.integers(0, 19, (2, 11))
ARENA = Arena(4096, deviation=12**-0.5)


def recorded(arch, **how):
    tape = Tape(ARENA)
    y = forward(arch.model_dump(), TEXT, tape=tape, **how)
    return y, tape


def test_the_first_of_equal_layers_holds_the_weights():
    """Layers 1, 3 and 5 share one set, layers 2 and 4 another; the projection and the adapters are each layer's."""
    names = {"a": {"name": "one", **A}, "b": {"name": "two", **B}, "-": {"name": "plain"}}
    arch = load(*(names[letter] for letter in "-ababa"))
    _, tape = recorded(arch)
    block = [path.removeprefix("shared_block.") for path in GIVEN]
    for index in range(6):
        held = {path.removeprefix(f"decoder.layers.{index}.shared_block.") for path in tape.parameters}
        held &= set(block)
        own = {name for name in block if name.startswith(OWN)}
        assert held == {0: set(), 1: set(block), 2: set(block)}.get(index, own)
    of = {path: path.replace(".5.", ".1.") for path in tape.products if ".5.shared_block.attention." in path}
    of = {path: lent for path, lent in of.items() if not path.endswith(("scores", "values"))}
    assert len(of) == 4
    assert {path: tape.of[path] for path in of} == of
    assert tape.of["decoder.layers.5.shared_block.linear"] == "decoder.layers.5.shared_block.linear"
    assert len([path for path in tape.cached if path.endswith("shared_block.attention.k_cache")]) == 5


@pytest.mark.parametrize("blocks", [(A, A, A), (A, {"repeat": 2, **A}), ({"repeat": 3, **A},)])
def test_layers_are_equal_however_often_they_were_written(blocks):
    named = tuple({"name": "hybrid", **block} for block in blocks)
    _, tape = recorded(load(*named))
    assert [path for path in tape.parameters if path.endswith("attention.q")] == [
        "decoder.layers.0.shared_block.attention.q"
    ]
    assert len([path for path in tape.parameters if path.endswith("adapters.q_up")]) == 3


def test_weights_of_another_name_are_others():
    _, tape = recorded(load({"name": "one", **A}, {"name": "two", **B}))
    assert len([path for path in tape.parameters if path.endswith("attention.q")]) == 2


PHASES = [Workload(batch=2, new_tokens=7), Workload(batch=2, new_tokens=1, past_tokens=7)]
CASES = {
    "alternating": ({"name": "one", **A}, {"name": "two", **B}, {"name": "one", **A}, {"name": "plain"}),
    "without adapters": ({"name": "one", "repeat": 2, "shared_block": shared()},),
    "grouped": ({"name": "one", "repeat": 2, "shared_block": shared(attention={"heads": 4, "kv_heads": 2})},),
    "biased": ({"repeat": 2, "shared_block": shared(attention={"heads": 4, "bias": True, "out_bias": True})},),
    "dense": ({"repeat": 2, "shared_block": shared(feed_forward={"kind": "dense", "d_ff": 17})},),
}


@pytest.mark.parametrize("blocks", CASES.values(), ids=CASES)
def test_what_is_stated_is_what_is_recorded(blocks):
    arch, request = load(*blocks, positions={"kind": "rope"}), Request()
    fields = arch.model_dump()
    for workload in PHASES:
        tape = Tape(ARENA)
        tokens = TEXT[:, request.past : request.past + workload.new_tokens]
        forward(fields, tokens, tape=tape, request=request)
        _, faults = compare(arch.inventory, workload, tape, phase="pass")
        assert faults == []


@pytest.mark.parametrize("parts", [(1,) * 11, (7, 1, 1, 2)])
def test_a_whole_model_gives_the_same_in_any_pieces(parts):
    """The embeddings that layers join are those of their own tokens."""
    arch = load({"name": "one", **A}, {"name": "plain"}, {"name": "one", **A})
    whole, _ = recorded(arch)
    request, out = Request(), []
    for part in np.split(TEXT, np.cumsum(parts)[:-1], axis=1):
        out.append(forward(arch.model_dump(), part, tape=Tape(ARENA), request=request))
    np.testing.assert_allclose(np.concatenate(out, axis=1), whole, rtol=1e-4, atol=1e-5)


def test_the_mixer_reads_what_the_block_gives_beside_the_stream(place, monkeypatch):
    """x + mixer(norm(x + block)); the stream itself does not take the block's output."""
    from costcalc.reference import block as module

    seen = []

    def double(fields, x, at, *, sight, norm_of):
        seen.append(x)
        return 2 * x

    monkeypatch.setattr(module, "mixer", double)
    monkeypatch.setattr(module, "shared_block", lambda fields, x, at, *, sight: 3 * x)
    some = layer()
    y = module.block(some, X, place({"mixer_norm": np.full(12, 5.0)}), sight=Sight())
    read = rms_norm(4 * X, eps=0.3) * 5
    np.testing.assert_allclose(seen[0], read, rtol=1e-5)
    np.testing.assert_allclose(y, X + 2 * read, rtol=1e-5)
