"""The floors of the house: who may import whom, read off the source; and what a start of costcalc does not load."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "costcalc"
GROUND = {"errors", "units", "dtypes", "expression"}
MAY_IMPORT = {
    # room -> the rooms below it whose modules it may import, beside its own
    "errors": set(),
    "units": {"errors"},
    "dtypes": {"errors"},
    "expression": set(),
    "reference": set(),  # the second implementation leans on nothing of ours
    "inventory": GROUND,
    "architecture": GROUND | {"inventory"},
    "sources": GROUND | {"inventory", "architecture"},
    "calculators": GROUND | {"inventory"},  # never architecture: wanting it means that a record lacks a field
    "verification": GROUND | {"reference", "inventory", "architecture"},
    "report": GROUND | {"inventory"},  # a renderer never sees a model
    "cli": GROUND | {"inventory", "architecture", "sources", "calculators", "verification", "report", "version"},
    "__main__": {"cli"},
}
LIBRARIES = {
    # room -> what it may import that Python does not bring along
    "architecture": {"pydantic"},
    "sources": {"pydantic", "pydantic_core", "yaml", "gguf", "safetensors"},
    "reference": {"numpy"},
    "verification": {"numpy"},
    "report": {"rich"},
    "cli": {"typer"},
}


def modules():
    """(room, file) of every module but the package's own front door, which is exempt."""
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        if parts != ("__init__",):
            yield parts[0], file


def imported_names(source, package):
    """Dotted names of all modules that `source` imports, wherever in it; strings that name a module count as well."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            up = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and re.fullmatch(r"costcalc(\.\w+)+\.?", str(node.value)):
            yield node.value


def room_of(name):
    """'costcalc.inventory.extents.Pairs' -> 'inventory'; the front door itself only has the version to give."""
    room = name.removeprefix("costcalc").lstrip(".").partition(".")[0]
    return {"": "the front door", "__version__": "version"}.get(room, room)


def refused_imports(room, source, package):
    """The imports of `source`, a module of `room`, that the floors do not allow."""
    ours = {name for name in imported_names(source, package) if name.split(".")[0] == "costcalc"}
    return sorted(name for name in ours if room_of(name) not in MAY_IMPORT[room] | {room})


def package_of(file):
    return ".".join(file.relative_to(ROOT).parent.parts)


@pytest.mark.parametrize(
    ("room", "file"), list(modules()), ids=lambda value: value.stem if isinstance(value, Path) else value
)
def test_a_module_imports_from_floors_below_its_own(room, file):
    assert room in MAY_IMPORT, f"{room} is a new room: give it a floor here and in docs/architecture.md"
    assert refused_imports(room, file.read_text(encoding="utf-8"), package_of(file)) == []


@pytest.mark.parametrize(
    ("room", "file"), list(modules()), ids=lambda value: value.stem if isinstance(value, Path) else value
)
def test_a_room_uses_its_own_libraries_only(room, file):
    """The records and the folds over them are plain Python; click comes with typer, but is not ours to import."""
    names = imported_names(file.read_text(encoding="utf-8"), package_of(file))
    others = {name.split(".")[0] for name in names} - {"costcalc"} - sys.stdlib_module_names
    assert others <= LIBRARIES.get(room, set())


@pytest.mark.parametrize(("room", "file"), [(room, file) for room, file in modules() if room != "cli"])
def test_only_the_command_line_prints(room, file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        assert not (isinstance(node, ast.Name) and node.id == "print")
        assert not (isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr"))


def test_the_rooms_that_are_allowed_are_the_rooms_that_exist():
    assert {room for room, _ in modules()} == set(MAY_IMPORT)


@pytest.mark.parametrize(
    ("room", "source", "refused"),
    [
        ("calculators", "from costcalc.architecture import Block", ["costcalc.architecture.Block"]),
        ("calculators", "import costcalc.sources", ["costcalc.sources"]),
        ("calculators", "from costcalc import sources", ["costcalc.sources"]),
        ("calculators", "from costcalc import load", ["costcalc.load"]),
        ("calculators", "def f():\n    from ..report import Report", ["costcalc.report.Report"]),
        ("calculators", "import costcalc", ["costcalc"]),
        ("calculators", "from .flops import flops", []),
        ("calculators", "from costcalc.inventory import Weight", []),
        ("calculators", "from costcalc import __version__", ["costcalc.__version__"]),
        ("inventory", "if TYPE_CHECKING:\n    import costcalc.calculators.flops as f", ["costcalc.calculators.flops"]),
        ("report", "import_module('costcalc.calculators.flops')", ["costcalc.calculators.flops"]),
        ("report", "import_module(f'costcalc.sources.{name}')", ["costcalc.sources."]),
        ("report", "import_module(f'costcalc.report.{name}')", []),
        ("reference", "from costcalc.errors import CostcalcError", ["costcalc.errors.CostcalcError"]),
        ("reference", "from costcalc.inventory import Workload", ["costcalc.inventory.Workload"]),
        ("calculators", "from costcalc.reference import forward", ["costcalc.reference.forward"]),
        ("units", "from costcalc.dtypes import DTYPES", ["costcalc.dtypes.DTYPES"]),
        ("errors", "from costcalc.units import human", ["costcalc.units.human"]),
        ("cli", "from costcalc import __version__", []),
    ],
)
def test_the_walk_finds_what_is_planted(room, source, refused):
    assert refused_imports(room, source, f"costcalc.{room}") == refused


def loaded_after(code):
    """The modules that a fresh Python has loaded after `code`, and what it printed."""
    code += "\nimport sys, json\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1])), done.stdout


def test_importing_costcalc_loads_neither_pydantic_nor_numpy_nor_yaml():
    loaded, _ = loaded_after("import costcalc")
    assert "costcalc" in loaded
    assert not loaded & {"pydantic", "pydantic_core", "numpy", "yaml", "typer", "rich", "costcalc.architecture"}


def test_one_json_answer_loads_neither_numpy_nor_rich_nor_an_importer():
    run = "from costcalc.cli.main import run\nassert run(['params', '8b', '--format', 'json']) == 0"
    loaded, printed = loaded_after(run)
    assert json.loads(printed)["total_parameters"] == 8_030_261_248
    assert "costcalc.cli.params" in loaded
    assert not loaded & {"numpy", "rich", "costcalc.sources.huggingface", "costcalc.cli.show", "costcalc.report.table"}


def test_the_program_looks_for_no_plugins_among_the_installed_packages():
    """Pydantic would, 30 ms long: here the search itself is an error."""
    _, printed = loaded_after(
        "import importlib.metadata, sys\n"
        "importlib.metadata.distributions = lambda *_, **__: sys.exit('searched')\n"
        "sys.argv = ['costcalc', 'params', 'gpt2', '--json']\n"
        "from costcalc.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0, end.code"
    )
    assert json.loads(printed)["total_parameters"] == 124_439_808


@pytest.mark.parametrize("words", [["kv", "--help"], ["explain", "--help"], ["kv", "8b", "--dtype", "bogus"]])
def test_a_help_page_and_a_wrong_option_load_no_architecture(words):
    loaded, _ = loaded_after(f"from costcalc.cli.main import run\nrun({words!r})")
    assert f"costcalc.cli.{words[0]}" in loaded
    assert not loaded & {"costcalc.architecture", "yaml", "rich"}


def test_only_a_verification_that_runs_loads_numpy():
    for words in (["--help"], ["verify", "--help"], ["verify", "8b", "--format", "jsn"]):
        loaded, _ = loaded_after(f"from costcalc.cli.main import run\nrun({words!r})")
        assert not loaded & {"numpy", "costcalc.reference", "costcalc.verification"}
    loaded, printed = loaded_after("from costcalc.cli.main import run\nassert run(['verify', 'gpt2', '--json']) == 0")
    assert json.loads(printed)["verified"] is True
    assert {"numpy", "costcalc.reference", "costcalc.verification"} <= loaded


def test_a_config_json_loads_its_own_lineage_only():
    small = {"model_type": "gpt2", "n_layer": 3, "n_embd": 12, "n_head": 4}
    loaded, _ = loaded_after(f"import costcalc\nprint(costcalc.load({small!r}).name)")
    assert "costcalc.sources.huggingface.gpt2" in loaded
    assert not loaded & {"numpy", "typer", "costcalc.sources.huggingface.llama", "costcalc.sources.huggingface.qwen"}
