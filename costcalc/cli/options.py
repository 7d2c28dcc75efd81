"""Arguments and options that commands share, and what they mean."""

from __future__ import annotations

from typing import Annotated

import typer

from costcalc import __version__
from costcalc.inventory.workload import COUNTINGS, LOGITS


def complete_model(incomplete: str) -> list[str]:
    """Presets and aliases that begin as typed so far."""
    from costcalc.sources.presets import preset_aliases, preset_names  # noqa: PLC0415

    return [name for name in [*preset_names(), *preset_aliases()] if name.startswith(incomplete)]


def complete_format(incomplete: str) -> list[str]:
    """Formats that begin as typed so far."""
    from costcalc.report import FORMATS  # noqa: PLC0415

    return [name for name in FORMATS if name.startswith(incomplete)]


def complete_dtype(incomplete: str) -> list[str]:
    """Dtypes that begin as typed so far."""
    from costcalc.dtypes import DTYPES  # noqa: PLC0415

    return [name for name in DTYPES if name.startswith(incomplete)]


def show_version(asked: bool) -> None:
    """Print the version and stop."""
    if asked:
        typer.echo(f"costcalc {__version__}")
        raise typer.Exit


Models = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL",
        help="A preset or alias (8b), a YAML file, a config.json or its folder (a path has a / or a .), "
        "hf:OWNER/NAME, or - for standard input.",
        autocompletion=complete_model,
        show_default=False,
    ),
]
ReadAs = Annotated[
    str | None,
    typer.Option("--as", metavar="TYPE", help="Read a config.json as this model type, whatever it says; names say so."),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="FORMAT", help="table, json, csv, markdown or latex.", autocompletion=complete_format
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to FILE (whole or not at all); its suffix picks a format."
    ),
]
TrainTokens = Annotated[
    str, typer.Option("--tokens", metavar="COUNT", help="Tokens trained on, such as 15T (15,000,000,000,000).")
]
Memory = Annotated[
    str | None, typer.Option("--memory", metavar="BYTES", help="Memory with its unit, such as 80GiB or 80GB.")
]
Reserve = Annotated[
    str, typer.Option("--reserve", metavar="BYTES", help="Memory kept free: activations, workspaces, the runtime.")
]
Weights = Annotated[
    str, typer.Option("--weights", metavar="FORMAT", help="bf16, fp8, q4_k_m, ... or bits such as 4.82bits.")
]
KVDtype = Annotated[
    str, typer.Option("--kv-dtype", metavar="DTYPE", help="The cache's dtype.", autocompletion=complete_dtype)
]
Blocks = Annotated[
    str | None,
    typer.Option("--blocks", metavar="N", help="The cache blocks that an engine logs, in place of --memory."),
]
Pool = Annotated[
    str | None,
    typer.Option("--pool", metavar="BYTES", help="The cache memory that an engine logs, in place of --memory."),
]
BlockSize = Annotated[str, typer.Option("--block-size", metavar="TOKENS", help="Tokens of a cache block.")]
WindowSlots = Annotated[
    str,
    typer.Option(
        "--window-slots",
        metavar="TOKENS|all",
        help="Tokens that an engine holds beyond a window, such as its batch; all: it ignores windows.",
    ),
]
Explain = Annotated[bool, typer.Option("--explain", help="Show how each number of the report comes about.")]
Version = Annotated[bool, typer.Option("--version", help="Show the version.", callback=show_version, is_eager=True)]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an internal error.")]
SeqLen = Annotated[
    str | None,
    typer.Option(
        "--seq-len",
        metavar="TOKENS",
        help="New tokens of each sequence (a decoder's), such as 8k (8,192); default: the model's context.",
    ),
]
MemoryTokens = Annotated[
    str | None,
    typer.Option(
        "--memory-tokens",
        metavar="TOKENS",
        help="Encoder tokens of each sequence, which an encoder-decoder cannot be without.",
    ),
]
Batch = Annotated[str, typer.Option("--batch", metavar="N", help="Sequences.")]
PastTokens = Annotated[str, typer.Option("--past-tokens", metavar="TOKENS", help="Tokens that are cached already.")]
Counting = Annotated[
    str,
    typer.Option(
        "--counting",
        metavar="|".join(COUNTINGS),
        help="Pairs that the mask allows, or the whole rectangle that a kernel is handed.",
        autocompletion=lambda: list(COUNTINGS),
    ),
]
Logits = Annotated[
    str,
    typer.Option(
        "--logits",
        metavar="|".join(LOGITS),
        help="The head for every new token, or for the last one only.",
        autocompletion=lambda: list(LOGITS),
    ),
]
Latent = Annotated[
    str | None,
    typer.Option(
        "--latent",
        metavar="expanded|absorbed",
        help="The form of latent attention; default: expanded without past tokens, absorbed with them.",
        autocompletion=lambda: ["expanded", "absorbed"],
    ),
]
Decompressed = Annotated[
    bool,
    typer.Option("--decompressed", help="Hold keys and values of every head where latent attention has a latent."),
]
NoWindows = Annotated[
    bool, typer.Option("--no-windows", help="Hold the whole context in every layer, as an engine without windows does.")
]
Context = Annotated[
    str | None,
    typer.Option("--context", metavar="TOKENS", help="Tokens held, such as 8k (8,192); default: the model's context."),
]
Dtype = Annotated[
    str, typer.Option("--dtype", metavar="DTYPE", help="bf16, fp8, q8_0, ...", autocompletion=complete_dtype)
]
