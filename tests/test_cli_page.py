"""docs/cli.md: its tables of options are the code's, every command has a section, and every section a command.

    python tests/test_cli_page.py

writes the tables anew, from the code, between their markers.
"""

import re
from pathlib import Path

import pytest
import typer.main

from costcalc.cli.main import COMMANDS, app

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
EVERYWHERE = ("--explain", "--format", "--json", "--output", "--version", "--debug", "--help")
"""Options that the page explains once."""
NO_FORMULA = ("presets", "models", "schema", "verify", "explain")
WITHOUT = {**{key: {"--explain"} for key in NO_FORMULA}, "import": {"--explain", "--format", "--json"}}
"""What has no formula to explain, or is the formula itself; and a YAML file has one format."""


def parameters_of(command):
    group = typer.main.get_command(app)
    context = typer.main.get_command(app).make_context("costcalc", [command], resilient_parsing=True)
    return group.get_command(context, command).params


def options_table(command):
    """A row for each argument and option of a command, but for those that all commands have."""
    rows = []
    for parameter in parameters_of(command):
        is_option = parameter.opts[0].startswith("-")
        name = ", ".join(parameter.opts) if is_option else parameter.metavar or parameter.name.upper()
        if set(parameter.opts) & set(EVERYWHERE):
            continue
        metavar = parameter.metavar if is_option and not getattr(parameter, "is_flag", False) else ""
        default = parameter.default if isinstance(parameter.default, str) else ""
        shown = [f"`{f'{name} {metavar}'.strip()}`", f"`{default}`" if default else "", parameter.help or ""]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in shown) + " |")
    return (
        "\n".join(["| option | default | what it is |", "|:--|:--|:--|", *rows]) if rows else "No options of its own."
    )


def section(command):
    return re.search(
        rf"^## {command}\n(.*?)<!-- options of {command} -->\n(.*?)\n<!-- end -->", PAGE.read_text("utf-8"), re.S | re.M
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_its_section_with_its_options(command):
    found = section(command)
    assert found is not None, f"docs/cli.md has no section `## {command}` with a table of options"
    assert found[2] == options_table(command), "python tests/test_cli_page.py writes the tables anew"
    assert COMMANDS[command].split(".")[0] in " ".join(found[1].split())


def test_every_section_with_options_is_a_command():
    assert re.findall(r"<!-- options of (\w+) -->", PAGE.read_text("utf-8")) == list(COMMANDS)


def test_options_of_all_commands_are_explained_once():
    text = PAGE.read_text("utf-8").partition("## show")[0]
    for name in EVERYWHERE:
        assert f"`{name}" in text or f"`-h`, `{name}" in text, name
    for command in COMMANDS:
        names = {name for parameter in parameters_of(command) for name in parameter.opts}
        assert set(EVERYWHERE) - {"--help"} - names == WITHOUT.get(command, set()), command


def write():
    text = PAGE.read_text("utf-8")
    made = {f"<!-- options of {command} -->\n": options_table(command) for command in COMMANDS}
    for begin, body in made.items():
        before, _, rest = text.partition(begin)
        end = "<!-- end -->"
        text = f"{before}{begin}{body}\n{end}{rest.partition(end)[2]}"
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    write()
