import pytest
from pydantic import ValidationError

from costcalc.architecture.attention import GroupedQuery
from costcalc.architecture.block import Block
from costcalc.architecture.component import RuleError
from costcalc.architecture.embedding import Embedding
from costcalc.architecture.feed_forward import Dense
from costcalc.architecture.head import VocabularyHead
from costcalc.architecture.norm import RMSNorm


@pytest.mark.parametrize("size", [1, 37, 37.0, 1e6, 5e5, 10**12, 1e12])
def test_a_size_is_a_whole_number_however_it_is_written(size):
    d_ff = Dense(d_ff=size).d_ff
    assert d_ff == size
    assert type(d_ff) is int


@pytest.mark.parametrize(
    "size",
    [0, -1, 0.5, 37.5, True, False, "37", None, [37], float("nan"), float("inf"), 10**12 + 1, 1e13, 10**400],
)
def test_what_is_no_size(size):
    with pytest.raises(ValidationError):
        Dense(d_ff=size)


@pytest.mark.parametrize("flag", [0, 1, "true", "no", None, 1.0])
def test_a_flag_is_true_or_false_and_nothing_like_it(flag):
    assert VocabularyHead(bias=True).bias is True
    with pytest.raises(ValidationError):
        VocabularyHead(bias=flag)


@pytest.mark.parametrize("name", ["local", "Local_2", "_x", "a-b", "a" * 60])
def test_a_name(name):
    assert Block(name=name, norm=RMSNorm(), feed_forward=Dense(d_ff=37)).name == name


@pytest.mark.parametrize("name", ["", "2", "-a", "a.b", "a b", "a\n", "é", "a" * 61, b"a", 7, True])
def test_what_is_no_name(name):
    """A name is part of a path, and may not be taken for a layer's index."""
    with pytest.raises(ValidationError):
        Block(name=name, norm=RMSNorm(), feed_forward=Dense(d_ff=37))


def test_a_component_is_frozen():
    with pytest.raises(ValidationError):
        Dense(d_ff=37).d_ff = 41


def test_a_typo_in_a_field_is_an_error():
    with pytest.raises(ValidationError, match="dff"):
        Dense(d_ff=37, dff=41)


def test_the_first_rule_that_does_not_hold_is_told_with_its_place_and_its_values():
    with pytest.raises(RuleError) as caught:
        # 6 is no multiple of 4, and 13 none of 6: the first is told
        GroupedQuery(heads=6, kv_heads=4).check(("decoder", "layers", 2, "attention"), d_model=13)
    assert str(caught.value) == "heads 6 is not a multiple of kv_heads 4"
    assert caught.value.where == ("decoder", "layers", 2, "attention")
    assert caught.value.hint == ""


def test_a_rule_may_name_the_models_width():
    with pytest.raises(RuleError, match=r"^d_model 13 is not a multiple of heads 6, and no head_dim is given$"):
        GroupedQuery(heads=6).check((), d_model=13)


def test_rules_that_hold_raise_nothing():
    GroupedQuery(heads=6, kv_heads=2).check((), d_model=30)
    Embedding(width=7, bias=True).check((), d_model=13)


def test_a_component_has_no_rules_and_derives_nothing_unless_it_says_so():
    assert list(Dense(d_ff=37).rules(13)) == []
    Dense(d_ff=37).check((), d_model=13)
    assert list(Dense(d_ff=37).derived(13)) == []


def test_a_rule_error_holds_where_and_what_to_write():
    error = RuleError("there are no layers", ("decoder",), "add one")
    assert (str(error), error.where, error.hint) == ("there are no layers", ("decoder",), "add one")
    assert isinstance(error, ValueError)
