"""docs/yaml.md: its examples load, its schema is what editors need, and its second part is what the program prints.

python tests/test_yaml_page.py writes that part again.
"""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import costcalc
from costcalc.cli.main import run
from costcalc.cli.schema import _section
from costcalc.sources.key_pages import key_pages
from costcalc.sources.presets import preset_file, preset_names
from costcalc.sources.yaml_text import read_yaml

PAGE = Path(__file__).resolve().parent.parent / "docs" / "yaml.md"
BEGIN, END = "<!-- generated: costcalc schema --format markdown -->\n", "<!-- end of generated -->\n"
TEXT = PAGE.read_text("utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


def generated() -> str:
    return "\n".join(map(_section, key_pages()))


def test_the_tables_of_keys_are_what_the_program_prints(capsys):
    assert run(["schema", "--format", "markdown"]) == 0
    printed = capsys.readouterr().out
    between = TEXT.partition(BEGIN)[2].partition(END)[0]
    assert between.strip() == printed.strip(), "write it again: python tests/test_yaml_page.py"


def test_the_page_has_its_examples():
    assert len(EXAMPLES) >= 5
    assert TEXT.count(BEGIN) == TEXT.count(END) == 1


@pytest.mark.parametrize("text", EXAMPLES, ids=[text.partition("\n")[0] for text in EXAMPLES])
def test_each_example_loads_but_the_typo(tmp_path, text):
    path = tmp_path / "model.yaml"
    path.write_text(text, "utf-8")
    if text.startswith("# typo"):
        with pytest.raises(costcalc.CostcalcError, match=r"unknown key `head`"):
            costcalc.load(path)
    else:
        assert costcalc.parameters(costcalc.load(path)).total > 1_000_000


def test_what_the_page_says_of_defaults_is_so(tmp_path):
    """The last layer has no feed-forward, and 4 key/value heads of 64 in the place of 16."""
    path = tmp_path / "model.yaml"
    path.write_text(next(text for text in EXAMPLES if text.startswith("# defaults")), "utf-8")
    entry, last = costcalc.load(path).decoder.layers
    assert (entry.repeat, entry.attention.heads, entry.attention.kv_heads, entry.feed_forward.d_ff) == (
        11,
        16,
        None,
        2816,
    )
    assert (last.attention.heads, last.attention.head_dim, last.attention.kv_heads) == (16, 64, 4)
    assert last.feed_forward is None
    assert last.positions.theta == 500_000


def test_editors_get_a_schema_that_takes_the_presets_and_refuses_typos(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command, name = re.search(r"`costcalc (schema --output (\S+))`", TEXT).groups()
    assert run(command.split()) == 0
    validator = Draft202012Validator(json.loads(Path(name).read_text("utf-8")))
    example = next(text for text in EXAMPLES if text.startswith("# yaml-language-server"))
    assert example.partition("\n")[0] == f"# yaml-language-server: $schema={name}"
    texts = [preset_file(preset).read_text("utf-8") for preset in preset_names()]
    for text in [*texts, *EXAMPLES]:
        assert validator.is_valid(read_yaml(text, "").data) == (not text.startswith("# typo"))
    for key in ("vocab_size", "heads", "d_ff", "feed_forward"):
        assert not validator.is_valid(read_yaml(example.replace(key, f"{key}s"), "").data)


if __name__ == "__main__":
    before, _, rest = TEXT.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{generated()}\n{END}{rest.partition(END)[2]}", "utf-8")
