"""How many mistakes the tests catch: one change of the source at a time, and a list of what survives them.

    python tests/bench/mutants.py [FOLDER ...] [--sample N] [--only TEXT] [--tests PATH ...]

What is changed is in `mutations.py`; FOLDER is costcalc/architecture unless others are given. Each change is made in a
private copy of the project; the tests that mirror the changed file run first, then the others, until one fails. A
survivor is a missing test, or a change that nobody can see: those stand in `explained_mutants.txt` with the reason.
Exit code 0 when every survivor is explained, 1 otherwise.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue

import pytest
from mutations import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
EXPLAINED = Path(__file__).with_name("explained_mutants.txt")
COPIED = ("costcalc", "tests", "presets", "docs", "README.md", "CHANGELOG.md", "LICENSE", "Makefile", "pyproject.toml")
ROOMS = ("architecture", "inventory", "calculators", "sources", "reference", "verification")
TESTS = [f"tests/{room}" for room in ROOMS]
"""The quick ones first: a survivor runs them all."""
SLOW = "tests/verification/test_verification_run.py::test_presets_in_real_width"
"""Left out: others run the same code on small models."""
MEMORY_BYTES = 6 << 30
"""What one run of the tests may take: a mutant may ask for any amount."""
PROCESSES = multiprocessing.get_context("forkserver")
PRELOADED = [
    *("_pytest.helpconfig", "_pytest.junitxml", "_pytest.unittest", "pytest", "pdb", "numpy.random", "numpy.testing"),
    *("pydantic.fields", "pydantic.main", "pydantic.type_adapter", "yaml", "typer", "rich.table", "jsonschema"),
]
"""What runs import and no mutant changes: most of the time that a run would take."""


def run_tests(folder: Path, tests: list[str], log: Path, *, is_first: bool) -> None:
    """In a process of its own: pytest in a copy of the project, until a test fails; its code is the exit code."""
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    # Only the first run writes byte code: it is told from its source by size and second, and mutants are quicker.
    sys.dont_write_bytecode = not is_first
    with log.open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--deselect", SLOW, *tests])
    imported = Path(sys.modules["costcalc"].__file__ or "")
    if folder not in imported.parents:
        sys.exit(f"not the copy was tested, but {imported}")
    sys.exit(code)


class Project:
    """A copy of the project, of which one file at a time is a mutant."""

    def __init__(self, folder: Path, tests: list[str], *, timeout: float | None) -> None:
        self.folder, self.tests = folder, tests
        self.timeout: float | None = None
        self.log = folder.with_suffix(".log")
        for name in COPIED:
            source, copied = ROOT / name, folder / name
            if source.is_dir():
                shutil.copytree(source, copied, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, copied)
        start = time.monotonic()
        if self.run(tests, is_first=True) != 0:
            sys.exit(f"{self.log.read_text()}\nthe tests fail before anything is changed")
        self.timeout = 5 * (time.monotonic() - start) if timeout is None else timeout

    def run(self, tests: list[str], *, is_first: bool = False) -> int | None:
        """The exit code of pytest; None after too long a time."""
        process = PROCESSES.Process(
            target=run_tests, args=(self.folder, tests, self.log), kwargs={"is_first": is_first}
        )
        process.start()
        process.join(self.timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            return None
        return process.exitcode

    def outcome(self, mutant: Mutant) -> str:
        """'caught', 'timed out' or 'survived'."""
        path = self.folder / mutant.file
        original = path.read_text("utf-8")
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        path.write_text(mutant.source, "utf-8")
        try:
            for tests in self._stages(path):
                code = self.run(tests)
                if code != 0:
                    return "timed out" if code is None else "caught"
        finally:
            path.write_text(original, "utf-8")
        return "survived"

    def _stages(self, path: Path) -> list[list[str]]:
        """The tests that mirror a file, or else those of its room; then all."""
        room = self.folder / "tests" / path.parent.relative_to(self.folder / "costcalc")
        near = sorted(str(test) for test in room.glob(f"test_*{path.stem}.py")) or [str(room)] * room.is_dir()
        return [near, [*near, *self.tests]] if near else [self.tests]


def try_all(
    chosen: list[Mutant], tests: list[str], *, jobs: int, timeout: float | None
) -> Iterator[tuple[Mutant, str]]:
    """Each mutant with what became of it, in their order."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        copies = [Path(folder).resolve() / str(job) for job in range(jobs)]
        free: SimpleQueue[Project] = SimpleQueue()
        for project in pool.map(lambda copied: Project(copied, tests, timeout=timeout), copies):
            free.put(project)

        def attempt(mutant: Mutant) -> tuple[Mutant, str]:
            project = free.get()
            try:
                return mutant, project.outcome(mutant)
            finally:
                free.put(project)

        yield from pool.map(attempt, chosen)


def explained() -> dict[str, str]:
    """file  change -> reason; the reason is a paragraph of `#` lines above the changes that it is good for."""
    reasons: dict[str, str] = {}
    for paragraph in EXPLAINED.read_text("utf-8").split("\n\n"):
        lines = paragraph.splitlines()
        reason = " ".join(line.removeprefix("# ") for line in lines if line.startswith("#"))
        reasons.update({line: reason for line in lines if reason and not line.startswith("#")})
    return reasons


def found_in(folders: list[str]) -> list[Mutant]:
    """Every mutant of these folders (or files), in the order of files and lines."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")) or [ROOT / folder]]
    return [m for path in paths for m in mutants(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))]


def told(mutant: Mutant, *, line: bool = False) -> str:
    """In one line: as it stands in the list of explained ones, or with its place."""
    return f"{mutant.file}{f':{mutant.line}' if line else ''}  {mutant.change}"


def table(outcomes: list[tuple[Mutant, str]]) -> Iterator[str]:
    """How many mutants each file had, and what became of them."""
    counts = {file: Counter[str]() for file in dict.fromkeys(mutant.file for mutant, _ in outcomes)}
    for mutant, outcome in outcomes:
        counts[mutant.file][outcome] += 1
    counts["total"] = sum(counts.values(), Counter())
    columns = ("caught", "timed out", "explained", "survived")
    yield f"\n{'file':52} {'mutants':>9}" + "".join(f" {column:>9}" for column in columns)
    for file, count in counts.items():
        yield f"{file:52} {count.total():9}" + "".join(f" {count[column]:9}" for column in columns)


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", default=["costcalc/architecture"], help="what is changed")
    parser.add_argument(
        "--tests", nargs="+", default=[t for t in TESTS if (ROOT / t).exists()], help="what may catch it"
    )
    parser.add_argument("--jobs", type=natural, default=2)
    parser.add_argument("--timeout", type=float, help="seconds, five times what the unchanged tests take if not given")
    parser.add_argument("--sample", type=natural, help="so many of the mutants, at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="mutants whose line, as listed, has this text")
    asked = parser.parse_args()
    for path in (*asked.folders, *(test.partition("::")[0] for test in asked.tests)):
        if not (ROOT / path).exists():
            parser.error(f"{path} is not in the project")
    return asked


def natural(text: str) -> int:
    """A whole number of at least 1; ValueError else."""
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def chosen_of(everything: list[Mutant], asked: argparse.Namespace) -> list[Mutant]:
    """Those that were asked for, in their order."""
    fitting = [mutant for mutant in everything if asked.only in told(mutant, line=True)]
    if asked.sample is None or asked.sample >= len(fitting):
        return fitting
    return [fitting[n] for n in sorted(random.Random(asked.seed).sample(range(len(fitting)), asked.sample))]


def main() -> int:
    """Print the survivors as they are found, then the table."""
    asked, reasons, start = arguments(), explained(), time.monotonic()
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    PROCESSES.set_forkserver_preload(PRELOADED)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    everything = found_in(asked.folders)
    files, known = {mutant.file for mutant in everything}, {told(mutant) for mutant in everything}
    for line in reasons:
        if line.partition("  ")[0] in files and line not in known:
            print(f"explained, but there is no such mutant: {line}")
    chosen = chosen_of(everything, asked)
    if not chosen:
        sys.exit("no mutant is chosen")
    outcomes: list[tuple[Mutant, str]] = []
    for mutant, outcome in try_all(chosen, asked.tests, jobs=asked.jobs, timeout=asked.timeout):
        is_explained = told(mutant) in reasons
        if outcome == "survived" and not is_explained:
            print(told(mutant, line=True), flush=True)
        elif outcome != "survived" and is_explained:
            print(f"explained, but it was {outcome}: {told(mutant)}")
        outcomes.append((mutant, "explained" if outcome == "survived" and is_explained else outcome))
        if sys.stderr.isatty() or len(outcomes) % 50 == 0:
            end = "\r" if sys.stderr.isatty() else "\n"
            print(f"{len(outcomes)} of {len(chosen)}", end=end, file=sys.stderr, flush=True)
    print(*table(outcomes), f"{time.monotonic() - start:,.0f} s", sep="\n")
    return any(outcome == "survived" for _, outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main())
