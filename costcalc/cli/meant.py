"""What was probably meant by a command or an option that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

from costcalc.errors import nearest, shown

COMMAND_SYNONYMS = {
    "show": "info describe summary overview card model",
    "params": "size count",
    "flops": "compute prefill decode",
    "kv": "cache memory kvcache kv-cache",
    "compare": "diff versus vs side-by-side",
    "attention": "quadratic scores",
    "weights": "quant quantise quantize quantization",
    "fits": "capacity serve serving concurrency users",
    "explain": "formula formulas math latex why",
    "verify": "check test validate",
    "presets": "list ls",
    "schema": "keys format yaml json-schema",
    "--version": "version",
    "--help": "help usage man",
}
OPTION_SYNONYMS = {
    "--context": ("--seq-len",),
    "--ctx": ("--seq-len",),
    "--length": ("--seq-len", "--context"),
    "--tokens": ("--seq-len", "--context"),
    "--seq-len": ("--context",),
    "--seqlen": ("--context",),
    "--precision": ("--dtype",),
    "--quant": ("--dtype",),
    "--quantization": ("--dtype",),
    "--file": ("--output",),
    "-f": ("--format",),
    "-j": ("--json",),
}


def command_hint(word: str, commands: Iterable[str]) -> str:
    """What to type instead of `costcalc WORD`."""
    known, folded = list(commands), word.lower().replace("_", "-")
    for name, synonyms in COMMAND_SYNONYMS.items():
        if folded in synonyms.split() and (name in known or name.startswith("-")):
            return f"did you mean costcalc {name}?"
    close = nearest(word, known)
    if close:
        return f"did you mean costcalc {close[0]}?"
    return f"costcalc show {shown(word)[1:-1]}" if _is_model(word) else f"costcalc has: {', '.join(known)}"


def option_hint(word: str, possible: Iterable[str], known: Iterable[str]) -> str | None:
    """What to type instead of an option that a command does not have; `possible` are those of similar letters."""
    same = [name for name in OPTION_SYNONYMS.get(word.lower(), ()) if name in known]
    near = [*same, *possible]
    return f"did you mean {near[0]}?" if near else None


def _is_model(word: str) -> bool:
    from costcalc.sources.files import is_file  # noqa: PLC0415 - only an error needs it
    from costcalc.sources.presets import preset_file  # noqa: PLC0415

    return preset_file(word) is not None or is_file(word)
