import pytest

from costcalc.errors import CostcalcError, Excerpt, nearest, shown


def test_an_error_holds_what_where_and_hint_and_prints_the_first_two():
    error = CostcalcError("heads is missing", where="my.yaml:3:5", hint="add `heads:`")
    assert (error.what, error.where, error.hint) == ("heads is missing", "my.yaml:3:5", "add `heads:`")
    assert str(error) == "my.yaml:3:5: heads is missing"


def test_an_error_without_a_place_prints_what_is_wrong_alone():
    error = CostcalcError("heads is missing")
    assert (str(error), error.where, error.hint) == ("heads is missing", "", "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 1}, "a mapping"),
        ([1, 2], "a list"),
        ((1, 2), "a list"),
        (None, "nothing"),
        (True, "true"),
        (False, "false"),
        (32, "32"),
        (-7, "-7"),
        (0.5, "0.5"),
        (float("nan"), "nan"),
        ("heads", "'heads'"),
        ("two\nlines\x1b[31m", r"'two\nlines\x1b[31m'"),
        ("wide \N{CJK UNIFIED IDEOGRAPH-4E00}", "'wide \N{CJK UNIFIED IDEOGRAPH-4E00}'"),
    ],
)
def test_a_value_is_shown_on_one_line(value, text):
    assert shown(value) == text


def test_a_character_that_no_terminal_prints_is_replaced_even_where_repr_lets_it_pass():
    odd = type("Odd", (), {"__repr__": lambda self: "a\x07b\u2028c"})
    assert shown(odd()) == "a?b?c"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x" * 38, "'" + "x" * 38 + "'"),  # 38 letters and two quotes are 40 characters
        ("x" * 39, "'" + "x" * 36 + "..."),  # one more is cut, to 37 and three dots
        ("x" * 1000, "'" + "x" * 36 + "..."),
        (10**40 - 1, "9" * 40),
    ],
)
def test_a_long_value_is_shown_within_forty_characters(value, text):
    assert shown(value) == text
    assert len(text) <= 40


@pytest.mark.parametrize("digits", [41, 100, 401, 5_001])  # str() of more than 4,300 digits raises
@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_that_no_line_holds_is_shown_by_its_length(digits, sign):
    assert shown(sign * 3 * 10 ** (digits - 1)) == f"a number of about {digits:,} digits"


def test_the_smallest_number_that_is_shown_by_its_length():
    assert shown(10**40).startswith("a number of about 4")


def test_the_nearest_word_ignores_case_and_dashes_and_is_given_as_it_is_spelled():
    assert nearest("KV-Haeds", ["heads", "kv_heads", "d_ff"]) == ["kv_heads"]
    assert nearest("llama_3_8B", ["gpt2", "Llama-3-8b"]) == ["Llama-3-8b"]
    assert nearest("-a-b-", ["_a_b_"]) == ["_a_b_"]  # letter by letter, two of five are the same
    assert nearest("_a_b_", ["-a-b-"]) == ["-a-b-"]


def test_nothing_is_near_a_word_of_another_kind():
    assert nearest("banana", ["heads", "kv_heads", "d_ff"]) == []


def test_several_near_words_come_best_first_and_no_more_than_asked_for():
    known = ["llama-3-70b", "llama-3-8b", "gpt2"]
    assert nearest("llama-3-8", known) == ["llama-3-8b"]
    assert nearest("llama-3-8", known, count=3) == ["llama-3-8b", "llama-3-70b"]


def test_a_word_of_a_million_letters_is_compared_by_its_first_hundred():
    assert nearest("a" * 1_000_000, ["a" * 100]) == ["a" * 100]


@pytest.mark.parametrize(
    ("excerpt", "text", "carets"),
    [
        (Excerpt(7, "    attention: {head: 32}", 17, 4), "   7 |     attention: {head: 32}", " " * 16 + "^^^^"),
        (Excerpt(1, "\ta: [\t1", 5, 1), "   1 |  a: [ 1", "    ^"),
        (Excerpt(12, "模型: {名: 1}", 6, 1), "  12 | 模型: {名: 1}", " " * 7 + "^^"),
        (Excerpt(1, "e\u0301e\u0301: x", 6, 1), "   1 | e\u0301e\u0301: x", "   ^"),
        (Excerpt(1, "a\x1b[31m\x07\u202eb\ud800: 1", 11, 1), "   1 | a?[31m??b?: 1", " " * 10 + "^"),
        (Excerpt(1, "a: [1", 99, 1), "   1 | a: [1", "     ^"),
        (Excerpt(12345, "a: 1", 1, 1), "12345 | a: 1", "^"),
    ],
)
def test_an_excerpt_is_a_line_and_carets_below_the_place(excerpt, text, carets):
    first, second = str(excerpt).split("\n")
    assert first == text
    assert second == " " * text.index("|") + "| " + carets


@pytest.mark.parametrize("letter", ["x", "模", "\u0301"])
@pytest.mark.parametrize("length", [100, 10_000, 1_000_000])
@pytest.mark.parametrize("begin", [0.0, 0.01, 0.5, 1.0])
def test_a_long_line_is_cut_around_the_caret(letter, length, begin):
    column = int(length * begin)
    line = letter * column + "here" + letter * (length - column)
    text, carets = str(Excerpt(3, line, column + 1, 4)).split("\n")
    assert len(carets) <= 80
    assert len(text) <= 220  # characters that have no width count as well
    if letter != "\u0301":
        wide = {"x": 1, "模": 2}[letter]
        assert sum(wide if c == letter else 1 for c in text) <= 80
        at = carets.index("^")
        columns = "".join(c * (wide if c == letter else 1) for c in text)
        assert columns[at : at + 4] == "here"
        assert carets[at:] == "^^^^"
        assert text.endswith("...") == (begin < 1)
        assert text.startswith("   3 | ...") == (column * wide > 30)


def test_an_underline_ends_with_the_shown_line():
    line = "a" * 200
    text, carets = str(Excerpt(1, line, 1, 200)).split("\n")
    assert len(carets) <= len(text)
