from __future__ import annotations

import re

from costcalc.architecture import Architecture
from costcalc.sources.key_pages import _explained, key_pages
from costcalc.sources.schema import schema_rows, written_schema

PAGES = {page.name: page for page in key_pages()}


def test_every_component_and_key_has_its_place():
    listed = {f"{page.name}.{row.key}".removeprefix("Top level.") for page in PAGES.values() for row in page.rows}
    assert listed == {key for key, _, _ in schema_rows(written_schema()) if not key.endswith(".kind")}
    assert set(PAGES) == {"Top level", *Architecture.model_json_schema()["$defs"]}
    assert next(iter(PAGES)) == "Top level"


def test_every_component_says_what_it_is_and_how_it_is_written():
    for page in PAGES.values():
        assert page.about.endswith(".")
        assert page.written or page.name == "Top level"
    assert PAGES["Gated"].written == "feed_forward: {kind: gated, ...}"
    assert PAGES["Block"].written == "layers: [{...}, ...]"
    assert PAGES["VocabularyHead"].written == "head: {kind: vocabulary, ...}"


def test_rows():
    rows = {(page.name, row.key): row for page in PAGES.values() for row in page.rows}
    assert rows["GroupedQuery", "heads"].default == "required"
    assert rows["GroupedQuery", "heads"].takes == "whole number"
    assert rows["GroupedQuery", "kv_heads"].takes == "whole number, `null`"
    assert rows["GroupedQuery", "kv_heads"].meaning == "`null` means as many as heads"
    assert rows["GroupedQuery", "scale"].takes == "number, `null`"
    assert rows["GroupedQuery", "out_bias"].meaning == "on the output projection"
    assert rows["Block", "norms"].default == "`pre`"
    assert rows["Top level", "published_parameters"].takes == "whole number, text, `null`"
    assert rows["Top level", "embedding"].takes == "[Embedding](#embedding)"
    assert rows["Top level", "layers"].takes == "list of [Block](#block), [Pattern](#pattern)"
    assert rows["Top level", "tie_embeddings"].takes == "`true`, `false`"


def test_links_lead_to_pages():
    linked = {name for page in PAGES.values() for row in page.rows for name in re.findall(r"\[(\w+)\]", row.takes)}
    assert linked == set(PAGES) - {"Top level"}


def test_a_docstring_is_taken_apart():
    text = (
        "A thing of `w`.\n\nw: how wide it is,\nNone for all. b: with a bias; c: capped.\nWhen both, neither: see d.\n"
    )
    assert _explained(text, ["w", "b", "c", "d"]) == (
        "A thing of `w`. When both, neither: see d.",
        {"w": "how wide it is, `null` for all", "b": "with a bias", "c": "capped"},
    )
    assert _explained("", ["w"]) == ("", {})
