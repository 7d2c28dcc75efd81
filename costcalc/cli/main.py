"""`costcalc`: finds the command, runs it, and turns whatever goes wrong into two short lines and an exit code.

0 fine; 1 the answer is no; 2 the input is wrong; 3 our bug. Commands are loaded when they are asked for.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from importlib import import_module
from textwrap import fill
from typing import Any

import typer
import typer.core
import typer.main

from costcalc.cli.meant import command_hint, option_hint
from costcalc.cli.options import Debug, Version
from costcalc.cli.tell import shown_on_stderr, silence, tell
from costcalc.errors import CostcalcError, Excerpt, shown

COMMANDS = {
    "show": "One page: what the model is, its parameters, FLOPs per token, attention share, KV cache, and what was "
    "derived.",
    "params": "Parameters: totals, and by component, layer or tensor.",
    "flops": "Forward FLOPs of a prefill, a decode step (--seq-len 1 --past-tokens N) or a batch, and training FLOPs.",
    "kv": "KV-cache memory at a context, and what the next token adds.",
    "compare": "Models side by side, with ratios to one; of two models also what each difference costs on its own.",
    "attention": "The quadratic part: the attention core by context, its share, and where it overtakes the weights.",
    "train": "Training FLOPs by every convention, each with its ratio to the exact count.",
    "experts": "Mixtures of experts: total and active parameters, and the distinct experts that a batch is expected to "
    "read.",
    "weights": "Bytes of the weights by dtype and quantisation format, with true bits a weight.",
    "fits": "How many conversations fit into a memory: a ledger that may go negative; exit code 1 if none does.",
    "explain": "Any number of any report: its formula, the numbers put in, each term, the source.",
    "verify": "Run each layer in full width in NumPy and compare, path by path, with what is counted.",
    "import": "A config.json as YAML: the same architecture, every number equal, to change and compare.",
    "models": "The model types of config.json that are read, how exactly, and those that are refused and why.",
    "presets": "The bundled models: name, aliases, parameters, context, source.",
    "schema": "JSON Schema of a YAML file, for editors; --format table lists the keys for people.",
}
"""Each command, mostly a module of that name here, and the first sentence of its help: the root page imports none."""
MODULES = {"import": "imported", "models": "model_types"}
"""Modules of commands that cannot be called so: a word of the language, and what all commands read."""
LONGEST_LINE = 500
STOPPED = 130
"""The exit code of a command that was interrupted, by the shells' convention."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
SETTINGS = {"help_option_names": ["-h", "--help"]}
PLAIN: Any = {"rich_markup_mode": None, "pretty_exceptions_enable": False}
"""Help pages are plain text: to draw boxes around them, loading rich takes longer than all the rest."""
WHOLE_WORDS: Any = {"break_on_hyphens": False, "break_long_words": False}


class LazyGroup(typer.core.TyperGroup):
    """The group of all commands; each command's module is imported when that command is looked up."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the help page."""
        del ctx
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The table of the help page, from what is written above."""
        del ctx
        indent = " " * (max(map(len, COMMANDS)) + 4)
        with formatter.section("Commands"):
            for name, line in COMMANDS.items():
                begin = f"  {name}".ljust(len(indent))
                lines = fill(line, formatter.width, initial_indent=begin, subsequent_indent=indent, **WHOLE_WORDS)
                formatter.write(f"{lines}\n")

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name; an unknown one is refused with the nearest."""
        if cmd_name not in COMMANDS:
            if ctx.resilient_parsing:  # a shell is completing a word
                return None
            raise CostcalcError(f"no command is called {shown(cmd_name)}", hint=command_hint(cmd_name, COMMANDS))
        command = typer.Typer(add_completion=False, **PLAIN)
        command.command(cmd_name, context_settings=SETTINGS)(
            import_module(f"costcalc.cli.{MODULES.get(cmd_name, cmd_name)}").run
        )
        return typer.main.get_command(command)


app = typer.Typer(
    cls=LazyGroup,
    context_settings=SETTINGS,
    **PLAIN,
    epilog="MODEL is a preset or alias (8b), a path to a YAML file, a config.json or its folder, "
    "hf:OWNER/NAME, or - for standard input.",
)


@app.callback(invoke_without_command=True)
def root(context: typer.Context, version: Version = False, debug: Debug = False) -> None:
    """What does this transformer cost? Exact parameters, FLOPs and KV-cache memory."""
    del version, debug
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: list[str]) -> int:
    """Run one command line; the exit code."""
    for name in ("COLUMNS", "TERMINAL_WIDTH"):  # rich takes them on trust
        if not re.fullmatch(r"[1-9]\d{0,3}", os.environ.get(name, "1"), re.ASCII):
            del os.environ[name]
    words = arguments or ["--help"]
    try:
        result = typer.main.get_command(app).main(args=words, prog_name="costcalc", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        result = STOPPED
    except SystemExit:
        return 0  # the framework's way to say that the reader of a help page has gone
    except Exception as error:
        return _failed(error, arguments)
    if result == STOPPED:  # some versions of the framework give this number in place of the exception
        tell("\ncostcalc: stopped")
    return result if isinstance(result, int) else 0


def _failed(error: Exception, arguments: list[str]) -> int:
    """Say what went wrong; the exit code, 2 for the input and 3 for our bug."""
    if isinstance(error, CostcalcError):
        return complain(str(error), error.hint, error.excerpt)
    if hasattr(error, "format_message"):  # a usage error of typer
        return complain(_usage(error), _usage_hint(error, arguments))
    if isinstance(error, OSError) and error.filename is None and error.errno in NO_ROOM:  # of a help page
        silence(sys.stdout)
        return complain(f"standard output: cannot be written: {error.strerror}", "make room on the disk")
    if "--debug" in arguments:
        raise error
    reason = " ".join(str(error).split())[:200]
    tell(f"costcalc: internal error: {type(error).__name__}: {reason} (--debug shows where)")
    return 3


def complain(what: str, hint: str, excerpt: Excerpt | None = None) -> int:
    """On standard error: what and where, the line that it is about, then what to type. The exit code."""
    seen = [] if excerpt is None else str(excerpt._replace(line=shown_on_stderr(excerpt.line))).split("\n")
    for line in (f"error: {what}", *seen, f" hint: {hint}" if hint else ""):
        if line:
            printable = "".join(c if c.isprintable() else "?" for c in line)
            tell(printable if len(printable) <= LONGEST_LINE else f"{printable[: LONGEST_LINE - 3]}...")
    return 2


def _usage(error: Any) -> str:
    """What was wrong with the words of the command line, without the suggestion, which is the hint."""
    message = " ".join(str(error.format_message()).split())
    return re.sub(r" \(Possible options?:.*\)$|\.? Did you mean .*$", "", message).rstrip(".")


def _usage_hint(error: Any, arguments: list[str]) -> str:
    command = next((word for word in arguments if word in COMMANDS), None)
    page = f"costcalc {command} --help" if command else "costcalc --help"
    if not hasattr(error, "possibilities"):
        return page
    known = [name for parameter in error.ctx.command.get_params(error.ctx) for name in parameter.opts]
    return option_hint(error.option_name, error.possibilities or (), known) or page
