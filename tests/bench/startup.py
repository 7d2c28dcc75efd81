"""Cold start of the commands against a floor: a script that only imports what such a tool cannot do without.

    python tests/bench/startup.py [RUNS]

The floor imports typer, yaml, rich.console and rich.table, and defines and runs one typer command with one pydantic
model. Runs alternate, so that a slow moment of the machine falls on all alike; the ratio is of medians. Aims: 1.15 for
JSON, 1.30 for the table, 1.00 for help. This is a measurement, not a test: a busy machine must not fail a build.
"""

from __future__ import annotations

import compileall
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import costcalc

FLOOR = """
import typer, yaml
import rich.console, rich.table
from pydantic import BaseModel

class Model(BaseModel):
    width: int = 1

app = typer.Typer()

@app.command()
def main(width: int = 3) -> None:
    print(Model(width=width).width)

app()
"""
COMMANDS = {
    "params 8b --format json": 1.15,
    "params 8b": 1.30,
    "show 8b": 1.30,
    "flops 8b --seq-len 8k": 1.30,
    "kv 7b 8b --context 8k": 1.30,
    "compare gpt2 7b 8b": 1.30,
    "attention 8b": 1.30,
    "train 8b --tokens 15T": 1.30,
    "weights 8b": 1.30,
    "fits 8b --memory 80GiB": 1.30,
    "explain 8b kv_cache": 1.30,
    "presets": 1.30,
    "--help": 1.00,
    "kv --help": 1.00,
}


def seconds(command: list[str]) -> float:
    """Wall time of one run."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Print the median of each command and its ratio to the floor."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    program = Path(sysconfig.get_path("scripts")) / "costcalc"
    compileall.compile_dir(Path(costcalc.__file__).parent, quiet=1)  # an edited module would be compiled at every start
    with tempfile.TemporaryDirectory() as folder:
        floor = Path(folder) / "floor.py"
        floor.write_text(FLOOR)
        commands = {"floor": [sys.executable, str(floor)]}
        commands.update({words: [str(program), *words.split()] for words in COMMANDS})
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(runs):
            for name, command in commands.items():
                times[name].append(seconds(command))
    base = statistics.median(times["floor"])
    print(f"{'floor':28} {base * 1000:7.1f} ms   median of {runs}")
    for name, aim in COMMANDS.items():
        median = statistics.median(times[name])
        print(f"{name:28} {median * 1000:7.1f} ms   {median / base:5.2f} x   aim {aim:.2f}")


if __name__ == "__main__":
    main()
