"""The wheel: built, unpacked somewhere else and used from there, as if nobody had ever seen this checkout."""

import ast
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

import costcalc
from costcalc.sources.presets import presets_folder

ROOT = pathlib.Path(__file__).resolve().parents[1]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
DEPENDENCIES = {"typer": "typer", "rich": "rich", "pydantic": "pydantic", "pyyaml": "yaml", "numpy": "numpy"}
"""What is declared, and what it is called where it is imported."""
EXTRAS = {
    "checkpoints": {"gguf": "gguf", "safetensors": "safetensors"},
    "hub": {"huggingface-hub": "huggingface_hub"},
}
"""The same of each extra that a user may ask for."""


def requirements(name="dependencies"):
    """name -> lowest version, as pyproject.toml declares them (Python 3.10 has no tomllib)."""
    block = re.search(rf"^{name} = \[\n(.*?)^\]", PYPROJECT, re.MULTILINE | re.DOTALL)[1]
    return dict(re.fullmatch(r'"([a-z0-9-]+)>=([0-9.]+)",', line.strip()).groups() for line in block.splitlines())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built in the checkout and written elsewhere."""
    folder = tmp_path_factory.mktemp("wheel")
    before = {path.name for path in ROOT.iterdir()}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert {path.name for path in ROOT.iterdir()} == before
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def elsewhere(installed, tmp_path_factory):
    """Run Python with the unpacked wheel first on the path, in an empty folder, with an empty home."""
    home = tmp_path_factory.mktemp("home")

    def call(*arguments):
        environment = {**os.environ, "PYTHONPATH": str(installed), "HOME": str(home)}
        return subprocess.run(
            [sys.executable, *arguments], cwd=home, env=environment, check=True, capture_output=True, text=True
        ).stdout

    return call


def test_a_preset_loads_from_the_wheel(elsewhere, installed):
    program = (
        "import costcalc, costcalc.sources.presets as p;"
        "print(costcalc.__file__, p.presets_folder(), len(p.preset_names()), sep='\\n');"
        "print(costcalc.parameters(costcalc.load('8b')).total)"
    )
    file, presets, count, total = elsewhere("-c", program).splitlines()
    assert pathlib.Path(file) == installed / "costcalc" / "__init__.py"
    assert pathlib.Path(presets) == installed / "costcalc" / "presets"
    assert int(count) == len(list((ROOT / "presets" / "models").glob("*.yaml")))
    assert total == "8030261248"


def test_the_command_line_runs_from_the_wheel(elsewhere):
    """A config.json too: the classes' defaults are data files."""
    program = (
        "import io, sys, costcalc.cli.main as m;"
        'sys.stdin = io.TextIOWrapper(io.BytesIO(b\'{"model_type": "gpt2"}\'));'
        "m.run(['--version']); sys.exit(m.run(['params', '-', '--format', 'csv']))"
    )
    text = elsewhere("-c", program)
    assert text.startswith(f"costcalc {costcalc.__version__}\n")
    assert "total,parameters,124439808" in text


def test_the_checkout_finds_the_presets_beside_the_package():
    assert presets_folder() == pathlib.Path(costcalc.__file__).resolve().parents[1] / "presets"


def test_the_wheel_holds_all_of_the_package(names):
    package = ROOT / "costcalc"
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {path.relative_to(ROOT).as_posix() for path in files} <= names
    presets = {f"costcalc/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "presets").rglob("*.yaml")}
    assert presets <= names
    assert "costcalc/presets/aliases.yaml" in names


def test_the_wheel_holds_the_type_marker_and_the_defaults(names):
    assert "costcalc/py.typed" in names
    defaults = [name for name in names if re.fullmatch(r"costcalc/sources/huggingface/defaults/\w+\.json", name)]
    assert len(defaults) >= 6


def test_the_wheel_holds_nothing_else(names):
    assert {name.partition("/")[0] for name in names} == {"costcalc", f"costcalc-{costcalc.__version__}.dist-info"}
    assert not [name for name in names if "test" in name or name.endswith(".pyc")]


def test_the_metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        info = f"costcalc-{costcalc.__version__}.dist-info"
        metadata = archive.read(f"{info}/METADATA").decode()
        assert "costcalc = costcalc.__main__:main" in archive.read(f"{info}/entry_points.txt").decode()
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.10\n" in metadata
    needed = re.findall(r"^Requires-Dist: ([a-z0-9]+)[^;\n]*$", metadata, re.MULTILINE)
    assert sorted(needed) == sorted(DEPENDENCIES)


def test_the_dependencies_are_five():
    assert requirements().keys() == DEPENDENCIES.keys()


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_extras(extra):
    assert requirements(extra).keys() == EXTRAS[extra].keys()


def test_each_lower_bound_is_the_version_that_is_tried():
    lowest = (ROOT / "tests" / "lowest.txt").read_text(encoding="utf-8")
    tried = dict(re.findall(r"^([a-z0-9-]+)==([0-9.]+)$", lowest, re.MULTILINE))
    bounds = {name: bound for block in ("dependencies", *EXTRAS) for name, bound in requirements(block).items()}
    assert tried.keys() == bounds.keys()
    for name, bound in bounds.items():
        assert f"{tried[name]}.".startswith(f"{bound}."), name


def test_the_version_is_said_once():
    assert re.search(r'^version = "(.+)"$', PYPROJECT, re.MULTILINE)[1] == costcalc.__version__


def test_the_package_imports_only_what_it_declares():
    """pydantic_core is pydantic's own other half: each pydantic pins its version."""
    extras = {module for extra in EXTRAS.values() for module in extra.values()}
    allowed = {*sys.stdlib_module_names, *DEPENDENCIES.values(), *extras, "pydantic_core", "costcalc"}
    for path in (ROOT / "costcalc").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) else []
            assert {module.partition(".")[0] for module in modules} <= allowed, path.name
            assert not [module for module in modules if module.startswith("typer._")], f"{path.name}: private module"
