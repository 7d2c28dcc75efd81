from __future__ import annotations

import re

import pytest

from costcalc.errors import CostcalcError
from costcalc.sources.origin import Origin
from costcalc.sources.validation import dotted, validated

TEXT = """\
name: tiny
vocab_size: 19
d_model: 13
norm: rmsnorm
positions: {kind: rope, theta: 1e4}
tie_embeddings: true
decoder:
  block:
    attention: {heads: 6, kv_heads: 2, head_dim: 10}
    feed_forward: {kind: gated, d_ff: 37}
  layers:
    - repeat: 3
      pattern:
        - {name: local, attention: {window: 7}}
        - name: global
          feed_forward: {activation: relu}
    - {repeat: 2, name: local, attention: {window: 7}}
"""
SHORT = """\
vocab_size: 19
d_model: 12
norm: layernorm
layers:
  - attention: {heads: 6}
"""
FIRST, SECOND = "decoder.layers[0].pattern[0]", "decoder.layers[0].pattern[1]"
WHOLE = "a whole number from 1 to 1,000,000,000,000"


def _place(text: str, needle: str) -> str:
    before = text[: text.index(needle)]
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


@pytest.fixture
def changed(write, refusal):
    """The refusal of TEXT (or of another text) with one piece replaced; `at` is the piece whose place it names."""

    def _changed(old: str, new: str, at: str, text: str = TEXT) -> CostcalcError:
        assert text.count(old) >= 1
        edited = text.replace(old, new, 1)
        path = write(edited)
        error = refusal(path)
        assert error.where == f"{path}:{_place(edited, at)}"
        return error

    return _changed


@pytest.mark.parametrize("text", [TEXT, SHORT])
def test_the_texts_below_are_sound_before_they_are_changed(write, text):
    from costcalc.sources import load

    assert load(write(text)).decoder.depth == (8 if text is TEXT else 1)


# -------------------------------------------------------------------------------------------------- unknown, missing


@pytest.mark.parametrize(
    ("old", "new", "at", "home", "hint"),
    [
        ("d_model", "d_modle", "d_modle", "the top level", "did you mean `d_model`?"),
        ("vocab_size", "vocabSize", "vocabSize", "the top level", "did you mean `vocab_size`?"),
        ("tie_embeddings", "tie-embeddings", "tie-emb", "the top level", "did you mean `tie_embeddings`?"),
        ("decoder:", "Decoder:", "Decoder", "the top level", "did you mean `decoder`?"),
        ("  block:", "  blok:", "blok", "decoder", "did you mean `block`?"),
        ("kv_heads", "kvheads", "kvheads", f"{FIRST}.attention", "did you mean `kv_heads`?"),
        ("d_ff", "dff", "dff", f"{FIRST}.feed_forward", "did you mean `d_ff`?"),
        ("window: 7}}", "windows: 7}}", "windows", f"{FIRST}.attention", "did you mean `window`?"),
        ("pattern:", "patern:", "patern", "decoder.layers[0]", "did you mean `pattern`?"),
        ("theta", "thetta", "thetta", "decoder.positions", "did you mean `theta`?"),
        (
            "d_model: 13",
            "d_model: 13\nheads: 6",
            "heads: 6\n",
            "the top level",
            "did you mean `head`? `heads` belongs in attention or mixer",
        ),
        ("d_model: 13", "d_model: 13\nd_ff: 37", "d_ff: 37\n", "the top level", "`d_ff` belongs in feed_forward"),
        (
            "d_model: 13",
            "d_model: 13\nattention: {}",
            "attention: {}",
            "the top level",
            "`attention` belongs in a layer or shared_block",
        ),
        (
            "name: global",
            "name: global\n          window: 7",
            "window: 7\n",
            SECOND,
            "`window` belongs in attention",
        ),
        (
            "repeat: 3",
            "repeat: 3\n      attention: {}",
            "attention: {}",
            "decoder.layers[0]",
            "`attention` belongs in a layer or shared_block",
        ),
        (
            "d_model: 13",
            "d_model: 13\nembedding: {dim: 5}",
            "dim: 5",
            "embedding",
            "known keys: width, bias, project, scale, token_types, norm, affine, neighbours, tables, own_rows",
        ),
        ("d_model: 13", "d_model: 13\nhead: {biass: true}", "biass", "head", "did you mean `bias`?"),
    ],
)
def test_an_unknown_key_names_the_nearest_right_one(changed, old, new, at, home, hint):
    error = changed(old, new, at)
    key = re.match(r"\s*([\w-]+)", at)[1]
    assert re.match(rf"unknown key `{key}[\w-]*` in {re.escape(home)}( \(and \d+ more\))?$", error.what)
    assert error.hint == hint


@pytest.mark.parametrize(
    ("old", "new", "what", "hint"),
    [
        ("vocab_size: 19\n", "", "`vocab_size` is missing", "add `vocab_size:` to the top level"),
        ("d_model: 13\n", "", "`d_model` is missing", "add `d_model:` to the top level"),
        ("norm: rmsnorm\n", "", "`decoder.norm` is missing (and 3 more)", "add `norm:` to decoder"),
        ("heads: 6, ", "", f"`{FIRST}.attention.heads` is missing (and 2 more)", f"add `heads:` to {FIRST}.attention"),
        (
            ", d_ff: 37",
            "",
            f"`{FIRST}.feed_forward.d_ff` is missing (and 2 more)",
            f"add `d_ff:` to {FIRST}.feed_forward",
        ),
        (
            "{kind: rope, theta: 1e4}",
            "learned",
            "`decoder.positions.length` is missing (and 3 more)",
            "add `length:` to decoder.positions",
        ),
    ],
)
def test_a_missing_key_says_where_to_add_it(write, refusal, old, new, what, hint):
    error = refusal(write(TEXT.replace(old, new, 1)))
    assert (error.what, error.hint) == (what, hint)


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        (", d_ff: 37", "", "feed_forward"),  # the mapping in `block:` that lacks it
        ("{kind: rope, theta: 1e4}", "learned", "positions: learned"),
    ],
)
def test_a_missing_key_has_the_place_of_the_mapping_that_lacks_it(changed, old, new, at):
    changed(old, new, at)


def test_no_layers(write, refusal):
    error = refusal(write("vocab_size: 19\nd_model: 12\nnorm: layernorm\n"))
    assert error.what == "no layers"
    assert error.hint == "add `layers:` with at least one layer: `- repeat: 12`"


@pytest.mark.parametrize(
    ("old", "new", "at", "what", "hint"),
    [
        (
            "{kind: rope, theta: 1e4}",
            "rotary",
            "positions",
            "unknown kind 'rotary' of decoder.positions",
            "did you mean `rope`?",
        ),
        ("kind: rope", "kind: Rope", "kind: Rope", "unknown kind 'Rope' of decoder.positions", "did you mean `rope`?"),
        (
            "norm: rmsnorm",
            "norm: rms_norm",
            "norm",
            "unknown kind 'rms_norm' of decoder.norm",
            "did you mean `rmsnorm`?",
        ),
        (
            "kind: gated",
            "kind: swiglu",
            "kind: swiglu",
            f"unknown kind 'swiglu' of {FIRST}.feed_forward",
            "did you mean `gated`?",
        ),
        (
            "heads: 6",
            "kind: latents, heads: 6",
            "kind: latents",
            f"unknown kind 'latents' of {FIRST}.attention",
            "did you mean `latent`?",
        ),
        (
            "heads: 6",
            "qk_norm: perhead, heads: 6",
            "qk_norm",
            f"unknown kind 'perhead' of {FIRST}.attention.qk_norm",
            "did you mean `per_head`?",
        ),
        (
            "norm: rmsnorm",
            "norm: {weight: false}",
            "norm",
            "decoder.norm does not say its kind",
            "write `kind:` with one of: layernorm, rmsnorm",
        ),
        (
            "name: global",
            "name: global\n          norms: prenorm",
            "norms",
            f"unknown value 'prenorm' of {SECOND}.norms",
            "did you mean `pre`?",
        ),
        (
            "name: global",
            "name: global\n          parallel: true",
            "parallel",
            f"unknown value true of {SECOND}.parallel",
            "one of: false, one_norm, two_norms",
        ),
        (
            "name: global",
            "name: global\n          parallel: 0",
            "parallel",
            f"unknown value '0' of {SECOND}.parallel",
            "one of: false, one_norm, two_norms",
        ),
        (
            "name: global",
            "name: global\n          parallel: off",
            "parallel",
            f"unknown value 'off' of {SECOND}.parallel",
            "one of: false, one_norm, two_norms",
        ),
        (
            "activation: relu",
            "activation: swiglu",
            "activation",
            f"unknown value 'swiglu' of {SECOND}.feed_forward.activation",
            "did you mean `silu`?",
        ),
    ],
)
def test_an_unknown_kind_or_word(changed, old, new, at, what, hint):
    error = changed(old, new, at)
    assert re.sub(r" \(and \d+ more\)$", "", error.what) == what
    assert error.hint == hint


# ------------------------------------------------------------------------------------------------------- wrong values


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ("true", "true"),
        ('"32"', "'32'"),
        ("0", "0"),
        ("-1", "-1"),
        ("2.5", "2.5"),
        ("1_000_000_000_001", "1000000000001"),
        ("1e13", "10000000000000"),
        ("9" * 400, "a number of about 400 digits"),
        ("1e400", "inf"),
        (".nan", "nan"),
        ("-.inf", "-inf"),
        ("null", "nothing"),
        ("", "nothing"),
        ("no", "'no'"),
        ("010", "'010'"),
        ("4,096", "'4,096'"),
        ("8k", "'8k'"),
        ("[13]", "a list"),
        ("{a: 13}", "a mapping"),
    ],
)
@pytest.mark.parametrize(
    ("key", "old"),
    [
        ("d_model", "d_model: 13"),
        (f"{FIRST}.attention.heads", "heads: 6"),
        ("decoder.layers[0].repeat", "repeat: 3"),
    ],
)
def test_a_size_that_is_no_size(changed, key, old, value, got):
    if key.endswith("heads") and value == "4,096":
        return  # in a flow mapping the comma ends the value
    name = old.partition(":")[0]
    error = changed(old, f"{name}: {value}", name)
    assert re.sub(r" \(and \d+ more\)$", "", error.what) == f"{key} must be {WHOLE}, got {got}"
    assert error.hint == f"write digits only, such as `{name}: 32`"


@pytest.mark.parametrize("value", ["1", "13", "1e6", "5e5", "1_000", "13.0", "1_000_000_000_000"])
def test_sizes_that_are_fine(value):
    data = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": [{"feed_forward": {"d_ff": float(value)}}]}
    arch = validated(data, Origin("x"))
    d_ff = arch.decoder.layers[0].feed_forward.d_ff
    assert d_ff == float(value)
    assert type(d_ff) is int


@pytest.mark.parametrize(
    ("value", "got"),
    [("no", "'no'"), ("0", "0"), ("1", "1"), ('"true"', "'true'"), ("null", "nothing"), ("[]", "a list")],
)
def test_a_flag_that_is_no_flag(changed, value, got):
    error = changed("tie_embeddings: true", f"tie_embeddings: {value}", "tie_embeddings")
    assert error.what == f"tie_embeddings must be true or false, got {got}"
    assert error.hint == "write `tie_embeddings: true` or `tie_embeddings: false`"


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ("0", "0"),
        ("-1.5", "-1.5"),
        ("1e30", "1e+30"),
        ("x", "'x'"),
        (".nan", "nan"),
        (".inf", "inf"),
        ("true", "true"),
        ("null", "nothing"),
    ],
)
def test_a_theta_that_is_no_theta(changed, value, got):
    error = changed("theta: 1e4", f"theta: {value}", "theta")
    assert error.what == f"decoder.positions.theta must be a number above 0 and below 1e30, got {got} (and 3 more)"
    assert error.hint == "write a number, such as `theta: 10000.0`"


@pytest.mark.parametrize(
    ("old", "new", "at", "what", "hint"),
    [
        ("name: tiny", "name: 5", "name", "name must be a short text, got 5", "write a text of at most 300 characters"),
        ("name: tiny", 'name: "a\\nb"', "name", "name: must be one line of printable text", "change name"),
        ("name: tiny", 'name: ""', "name", "name: must be one line of printable text", "change name"),
        (
            "name: tiny",
            f"name: {'a' * 301}",
            "name",
            f"name must be a short text, got '{'a' * 36}...",
            "write a text of at most 300 characters",
        ),
        (
            "name: global",
            "name: a.b",
            "name: a.b",
            f"{SECOND}.name must be a word of letters, digits, - and _, got 'a.b'",
            "write a short name, such as `name: local`",
        ),
        (
            "name: global",
            "name: 0a",
            "name: 0a",
            f"{SECOND}.name must be a word of letters, digits, - and _, got '0a'",
            "write a short name, such as `name: local`",
        ),
        (
            "- name: global\n          feed_forward: {activation: relu}",
            "- global",
            "global",
            f"{SECOND} must be a mapping of keys, got 'global'",
            "write `key: value` lines below it",
        ),
        (
            "norm: rmsnorm",
            "norm: 5",
            "norm",
            "decoder.norm must be a mapping of keys, got 5 (and 3 more)",
            "write `key: value` lines below it",
        ),
        (
            "norm: rmsnorm",
            "norm: [rmsnorm]",
            "norm",
            "decoder.norm must be a mapping of keys, got a list (and 3 more)",
            "write `key: value` lines below it",
        ),
        (
            "tie_embeddings: true",
            "head: [1]",
            "head",
            "head must be a mapping or a kind, got a list",
            "write `head: none`, `head: {bias: true}`, or `head: {kind: classifier, labels: 2}`",
        ),
        (
            "tie_embeddings: true",
            "final_norm: 1",
            "final_norm",
            "decoder.final_norm must be true or false, got 1",
            "write `final_norm: true` or `final_norm: false`",
        ),
        (
            "d_model: 13",
            "d_model: 13\npublished_parameters: 1.2.3B",
            "published",
            "published_parameters: must be a whole number, or a figure as printed, such as \"174.6B\", got '1.2.3B'",
            "change published_parameters",
        ),
        (
            "d_model: 13",
            "d_model: 13\npublished_parameters: true",
            "published",
            'published_parameters: must be a whole number, or a figure as printed, such as "174.6B", got true',
            "change published_parameters",
        ),
    ],
)
def test_a_value_of_another_type(changed, old, new, at, what, hint):
    error = changed(old, new, at)
    assert (error.what, error.hint) == (what, hint)


@pytest.mark.parametrize("value", ["", "7", "rope", "{heads: 6}", "true"])
def test_layers_that_are_no_list(changed, value):
    error = changed("layers:\n  - attention: {heads: 6}", f"layers: {value}", "layers", SHORT)
    assert error.what.startswith("decoder.layers must be a list, got ")
    assert error.hint == "write a list: each item after `- `"


# -------------------------------------------------------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("old", "new", "at", "what"),
    [
        ("heads: 6", "heads: 5", "attention: {window", f"{FIRST}.attention: heads 5 is not a multiple of kv_heads 2"),
        (
            "{window: 7}",
            "{window: 7, kv_heads: 4}",
            "attention: {window",
            f"{FIRST}.attention: heads 6 is not a multiple of kv_heads 4",
        ),
        (
            ", head_dim: 10",
            "",
            "attention: {window",
            f"{FIRST}.attention: d_model 13 is not a multiple of heads 6, and no head_dim is given",
        ),
        ("theta: 1e4", "rotary_dim: 3", "{name: local", f"{FIRST}: rotary_dim 3 is odd: RoPE rotates pairs"),
        ("theta: 1e4", "rotary_dim: 12", "{name: local", f"{FIRST}: rotary_dim 12 is more than head_dim 10"),
        (
            "{kind: rope, theta: 1e4}",
            "{kind: sinusoidal, stored: frozen}",
            "positions",
            "decoder.positions: a stored table of sinusoids needs its `length`",
        ),
        (
            "d_model: 13",
            "d_model: 13\nembedding: {bias: true}",
            "embedding",
            "embedding: `bias` belongs to a projection, which needs a `width`",
        ),
        (
            "name: global",
            "name: global\n          norms: post\n          parallel: one_norm",
            "name: global",
            f"{SECOND}: `parallel` goes with `norms: pre`, not with post",
        ),
        (
            "name: global",
            "name: global\n          attention: null\n          parallel: one_norm",
            "name: global",
            f"{SECOND}: `parallel` needs both `attention` and `feed_forward`",
        ),
    ],
)
def test_a_rule_between_fields(changed, old, new, at, what):
    error = changed(old, new, at if at != "name: global" else "name: global\n")
    assert error.what == what
    assert error.hint.startswith("change ")


def test_a_layer_without_any_sublayer(changed):
    error = changed(
        "    - {repeat: 2,", "    - {attention: null, feed_forward: null}\n    - {repeat: 2,", "{attention: null"
    )
    assert error.what == "decoder.layers[1]: a layer needs `attention`, `mixer` or `feed_forward`"


def test_added_positions_belong_on_the_stack(changed):
    error = changed(
        "name: global", "name: global\n          positions: {kind: learned, length: 11}", "positions: {kind: learned"
    )
    assert error.what == f"{SECOND}.positions: learned positions are added once, below all layers"
    assert error.hint == "write them on the stack, not on a layer"


def test_two_different_layers_of_one_name(changed):
    error = changed("name: global", "name: local", "layers:")
    assert error.what == "decoder.layers: two different layers are both named 'local'"
    assert error.hint == "give each its own `name:`"


def test_layers_in_two_places(changed):
    error = changed("decoder:", "layers: []\ndecoder:", "layers: []")
    assert error.what == "layers: short for `decoder: {layers: ...}`, which is there too"
    assert error.hint == "write one of the two"


def test_an_encoder_without_layers(changed):
    error = changed("decoder:", "encoder: {}\ndecoder:", "encoder")
    assert error.what == "encoder.layers must be a list, got nothing"


def test_defaults_that_are_no_mapping(changed):
    block = (
        "  block:\n    attention: {heads: 6, kv_heads: 2, head_dim: 10}\n    feed_forward: {kind: gated, d_ff: 37}\n"
    )
    error = changed(block, "  block: [7]\n", "block")
    assert error.what == "decoder.block: must be a mapping of defaults for the layers"


# ---------------------------------------------------------------------------------------------------- sizes of a stack


@pytest.mark.parametrize("repeat", ["1" + "0" * 21, "1e21", "1_000_000_000_001"])
def test_a_repeat_beyond_any_model(changed, repeat):
    error = changed("- attention", f"- repeat: {repeat}\n    attention", "repeat", SHORT)
    assert error.what.startswith(f"decoder.layers[0].repeat must be {WHOLE}, got 1")


@pytest.mark.parametrize(
    "layers",
    [
        "[{repeat: 100001, attention: {heads: 6}}]",
        "[{repeat: 1000000000000, attention: {heads: 6}}]",
        "[{repeat: 1000000, pattern: [{repeat: 1000000, pattern: [{repeat: 1000000, attention: {heads: 6}}]}]}]",
        "[{repeat: 50000, attention: {heads: 6}}, {repeat: 50001, attention: {heads: 3}}]",
    ],
)
def test_more_layers_than_a_layout_may_list(changed, layers):
    """Also at the top level, where `decoder` is not written."""
    old = "\n  - attention: {heads: 6}\n"
    error = changed(old, f" {layers}\n", "layers", SHORT)
    assert error.what == "decoder.layers: the layers add up to more than 100,000"


def test_exactly_as_many_layers_as_a_layout_may_list():
    layers = [{"repeat": 1000, "pattern": [{"repeat": 100, "attention": {"heads": 6}}]}]
    data = {"vocab_size": 19, "d_model": 12, "norm": "rmsnorm", "layers": layers}
    assert validated(data, Origin("x")).decoder.depth == 100_000


@pytest.mark.parametrize(
    ("layers", "what"),
    [
        ("[]", "decoder.layers: there are no layers"),
        ("[{repeat: 3, pattern: []}]", "decoder.layers[0]: the pattern has no layers"),
        ("[{attention: {heads: 6}}, {pattern: []}]", "decoder.layers[1]: the pattern has no layers"),
        ("[{pattern: [{pattern: []}]}]", f"{FIRST}: the pattern has no layers"),
    ],
)
def test_no_layers_at_all(write, refusal, layers, what):
    error = refusal(write(SHORT.replace("\n  - attention: {heads: 6}\n", f" {layers}\n")))
    assert error.what == what


# ------------------------------------------------------------------------------------------------------------- places


PLACES = [
    "decoder: []",
    "vocab_size: 19",
    "vocab_size: 19\nd_model: 12\nnorm: layernorm\n",
    "vocab_size: 19\nd_model: 12\nnorm: layernorm\nlayers: []\n",
    "vocab_size: 19\nd_model: 12\nlayers: [{attention: {heads: 6}}]\n",
    "vocab_size: 19\nd_model: 12\nnorm: layernorm\nlayers: [{repeat: 1e6, attention: {heads: 6}}]\n",
    "d_model: 12\nnorm: layernorm\nlayers: [{attention: {heads: 6}}]\n",
    "vocab_size: 19\nd_model: 13\nnorm: layernorm\nblock: {attention: {heads: 6}}\nlayers: [{}]\n",
    "vocab_size: 19\nd_model: 13\nnorm: layernorm\nlayers: [7, {}]\n",
]


@pytest.mark.parametrize("text", PLACES)
def test_every_error_of_a_yaml_file_names_file_line_and_column(write, refusal, text):
    path = write(text)
    assert re.fullmatch(re.escape(path) + r":\d+:\d+", refusal(path).where)


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        ("kv_heads: 2", "kv_heads: x", "kv_heads"),  # from `block:` of the stack, inside a flow mapping
        ("theta: 1e4", "theta: x", "theta"),  # from the top level, two levels down
        ("activation: relu", "activation: x", "activation"),  # a list item inside a pattern
        ("{repeat: 2,", "{repeat: 0,", "repeat: 0"),  # the second item of a list
        ("  block:\n", "  block:\n    norms: x\n", "norms"),
        ("    attention: {heads: 6,", "    attention:\n      {heads: x,", "heads: x"),
    ],
)
def test_the_place_of_a_default_is_where_it_was_written(changed, old, new, at):
    changed(old, new, at)


def test_the_place_of_a_default_in_a_block_at_the_top_level(changed):
    text = SHORT.replace("layers:\n", "block: {feed_forward: {d_ff: x}}\nlayers:\n")
    changed("x", "x", "d_ff", text)


def test_places_through_aliases_and_merges(changed):
    block = "attention: {heads: 6, kv_heads: 2, head_dim: 10}"
    # The anchor's own text where it is the first to be wrong ...
    changed(block, "attention: &a {heads: 6, kv_heads: x, head_dim: 10}", "kv_heads: x")
    # ... and where the alias stands when what it brings is wrong only there.
    changed(
        "feed_forward: {activation: relu}",
        "feed_forward: *f",
        "feed_forward: *f",
        TEXT.replace(
            "{name: local, attention: {window: 7}}", "{name: local, attention: {window: 7, qk_norm: &f per_head}}"
        ),
    )
    changed("- name: global", "- <<: {windw: 7}\n          name: global", "<<: {windw")


def test_a_mapping_has_no_lines(refusal):
    assert refusal({"vocab_size": "x"}).where == "the mapping"


def test_json_errors_name_the_file(write, refusal):
    path = write('{"vocab_size": 19, "d_modle": 13}', "model.json")
    error = refusal(path)
    assert error.where == f"{path}:1:20"
    assert error.excerpt == (1, '{"vocab_size": 19, "d_modle": 13}', 20, 9)


# ---------------------------------------------------------------------------------------------------------- the pieces


def test_dotted():
    assert dotted(("decoder", "layers", 0, "pattern", 12, "attention")) == "decoder.layers[0].pattern[12].attention"
    assert dotted(()) == ""
    assert dotted(("a\nb",)) == "a\\nb"


def test_the_most_urgent_problem_is_told_first(refusal):
    """A wrong kind before the keys that it makes unknown, a typo before the key that it makes missing."""
    layer = {"feed_forward": {"kind": "gatd", "dff": 37}}
    data = {"vocab_size": "x", "d_model": 13, "norm": "rmsnorm", "layers": [layer]}
    assert refusal(data).what == "unknown kind 'gatd' of decoder.layers[0].feed_forward (and 1 more)"
    layer["feed_forward"]["kind"] = "gated"
    assert refusal(data).what == "unknown key `dff` in decoder.layers[0].feed_forward (and 2 more)"
    layer["feed_forward"] = {"kind": "gated"}
    assert refusal(data).what == f"vocab_size must be {WHOLE}, got 'x' (and 1 more)"
    data["vocab_size"] = 19
    assert refusal(data).what == "`decoder.layers[0].feed_forward.d_ff` is missing"


def test_urgency_beats_the_order_in_which_things_are_found(refusal):
    layer = {"attention": {"hads": 6}, "feed_forward": {"kind": "gatd"}}
    data = {"vocab_size": 19, "d_model": 12, "norm": "rmsnorm", "layers": [layer]}
    assert refusal(data).what.startswith("unknown kind 'gatd'")
    del data["vocab_size"], layer["feed_forward"]["kind"]
    assert refusal(data).what.startswith("unknown key `hads`")
    layer["attention"]["kind"] = "latents"
    assert refusal(data).what.startswith("unknown kind 'latents'")
    layer["attention"] = {"heads": "x"}
    assert refusal(data).what.startswith("decoder.layers[0].attention.heads must be ")


def test_how_many_more_problems_there_are(refusal):
    data = {"vocab_size": 0, "d_model": 0, "norm": "rmsnorm", "layers": [{"feed_forward": {"d_ff": 0}}]}
    assert refusal(data).what == f"vocab_size must be {WHOLE}, got 0 (and 2 more)"


@pytest.mark.parametrize("depth", [100, 300, 2_000])
def test_patterns_nested_without_end(refusal, depth):
    entry = {"attention": {"heads": "x"}}
    for _ in range(depth):
        entry = {"pattern": [entry]}
    refusal({"vocab_size": 19, "d_model": 12, "norm": "rmsnorm", "layers": [entry]})


def test_a_mapping_that_holds_itself(refusal):
    data = {"vocab_size": 19, "d_model": 12, "norm": "rmsnorm"}
    data["decoder"] = data
    refusal(data)
    layers = [{"pattern": []}]
    layers[0]["pattern"] = layers
    error = refusal({"vocab_size": 19, "d_model": 12, "norm": "rmsnorm", "layers": layers})
    assert (error.what, error.hint) == ("more than 50,000 values", "use `repeat:` for equal layers")


def test_fifty_thousand_values_and_one_more():
    # 50,000 = the mapping, its three sizes and its list, a layer of 3 values, and a list of 49,992.
    data = {"vocab_size": 19, "d_model": 12, "norm": "rmsnorm", "layers": [{"attention": {"heads": 6}}]}
    for spare, what in ((49_991, "unknown key `spare`"), (49_992, "more than 50,000 values")):
        with pytest.raises(CostcalcError) as caught:
            validated({**data, "spare": [7] * spare}, Origin("x"))
        assert caught.value.what.startswith(what)


def test_keys_that_are_no_text(refusal):
    error = refusal(
        {"vocab_size": 19, "d_model": 12, "norm": "rmsnorm", "layers": [{"feed_forward": {"d_ff": 5, 3: 1}}]}
    )
    assert "feed_forward" in error.what


def test_a_head_of_no_kind_there_is(changed):
    error = changed("d_model: 13", "d_model: 13\nhead: {kind: words}", "kind: words")
    assert error.what == "unknown kind 'words' of head"
    assert error.hint == "one of: vocabulary, classifier, none"
