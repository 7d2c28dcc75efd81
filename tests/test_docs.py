"""What the documentation shows is what the commands print."""

import re
from pathlib import Path

import pytest

import costcalc
from costcalc.cli.main import run

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONSOLE = [
    (page.name, command, shown)
    for page in PAGES
    for command, shown in re.findall(r"```console\n\$ costcalc ([^\n]*)\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
]
EXIT_CODE = re.compile(r"\$ echo \$\?\n(\d+)\n$")
"""The end of a block whose command fails: it shows standard error as well, and the exit code."""
FILES = {
    (page.name, file): text
    for page in PAGES
    for text, file in re.findall(r"```yaml\n(# (\w+\.yaml)\n.*?)```", page.read_text("utf-8"), re.DOTALL)
}
"""Examples that name their file in the first line; the commands of their page find them."""
README = (ROOT / "README.md").read_text("utf-8")


def test_the_readme_shows_three_answers() -> None:
    assert len([page for page, _, _ in CONSOLE if page == "README.md"]) >= 3


def without_measures(text: str) -> str:
    """What `verify` measures depends on the order of sums, and so on the machine."""
    return re.sub(r"\b\d\.\de-\d\d(?=  )", "#.#e-##", text)


@pytest.mark.parametrize(("page", "command", "shown"), CONSOLE, ids=[command for _, command, _ in CONSOLE])
def test_shown_output_is_real(
    page: str,
    command: str,
    shown: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for (of, file), text in FILES.items():
        if of == page:
            (tmp_path / file).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    code = EXIT_CODE.search(shown)
    assert run(command.split()) == (int(code[1]) if code else 0)
    printed = capsys.readouterr()
    assert without_measures(printed.out + printed.err) == without_measures(EXIT_CODE.sub("", shown))


def test_a_page_shows_an_error() -> None:
    assert any(EXIT_CODE.search(shown) for _, _, shown in CONSOLE)


def test_listed_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line `costcalc ...` of a plain code block of every page, with the README's own YAML as my.yaml."""
    yaml = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert yaml is not None
    (tmp_path / "my.yaml").write_text(yaml[1], "utf-8")
    monkeypatch.chdir(tmp_path)
    texts = (re.sub(r"^```\w+\n.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.M) for page in PAGES)
    blocks = [block for text in texts for block in re.findall(r"^```\n(.*?)^```$", text, re.DOTALL | re.M)]
    lines = [line for block in blocks for line in re.findall(r"^costcalc ([^#\n]*)", block, re.MULTILINE)]
    assert len(lines) >= 12
    for line in lines:
        assert run(line.split()) == 0, line


def test_python_example_gives_its_comments() -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code is not None
    model = costcalc.load("8b")
    for expression, said in re.findall(r"^(costcalc\.[^#\n]*?)\s+# (\d+)$", code[1], re.MULTILINE):
        assert eval(expression, {"costcalc": costcalc, "model": model}) == int(said), expression
    assert len(re.findall(r"# \d+$", code[1], re.MULTILINE)) == 3
