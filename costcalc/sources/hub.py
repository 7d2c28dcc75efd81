"""The config.json of a repository on a model hub: from the local cache or the hub itself, never code, never weights.

The library `huggingface_hub` does it (the `hub` extra), so that HF_HOME, HF_TOKEN, HF_HUB_OFFLINE and its other
settings mean what they mean everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from costcalc.errors import CostcalcError, shown

EXAMPLE = "write hf:OWNER/NAME, such as hf:Qwen/Qwen3-8B"
INSTALL = "pip install 'costcalc[hub]'"
NAME = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")
LONGEST_NAME = 96
PATIENCE_SECONDS = 5


def parsed(word: str) -> tuple[str, str | None]:
    """The repository, and the revision behind an @, of what was written behind `hf:`."""
    repository, at, revision = word.partition("@")
    is_name = NAME.fullmatch(repository, 0) is not None and len(repository) <= LONGEST_NAME
    if not is_name or "--" in repository or ".." in repository or bool(at) != bool(revision):
        what = f"no repository can be called {shown(word if is_name else repository)}"
        raise CostcalcError(what, where=f"hf:{shown(word)[1:-1]}", hint=EXAMPLE)
    return repository, revision or None


def config_file(repository: str, revision: str | None = None) -> str:
    """The path of the repository's config.json in the local cache, fetched into it where it is not there.

    Raises `CostcalcError` with the exact reason: nothing of that name, gated, offline, no config.json in it.
    """
    try:
        library = import_module("huggingface_hub")
        errors = import_module("huggingface_hub.errors")
    except ImportError:
        what = "the library huggingface_hub, which fetches it, is not installed"
        raise CostcalcError(what, where=f"hf:{repository}", hint=INSTALL) from None
    _be_quiet()
    try:
        path: str = library.hf_hub_download(repository, "config.json", revision=revision, etag_timeout=PATIENCE_SECONDS)
    except Exception as error:
        raise _told(repository, revision, error, errors) from None
    return path


def _be_quiet() -> None:
    """No bars and no warnings of its own: what went wrong is told once, by us."""
    tools = import_module("huggingface_hub.utils")
    tools.disable_progress_bars()
    tools.logging.set_verbosity_error()


def _told(repository: str, revision: str | None, error: Exception, errors: Any) -> CostcalcError:
    """The reason, from the narrowest class of the library's errors to the widest."""
    for name, what, hint in _reasons(repository, revision):
        kind = getattr(errors, name, None)
        if kind is not None and isinstance(error, kind):
            return CostcalcError(what, where=f"hf:{repository}", hint=hint)
    reason = " ".join(str(error).split())[:160] or type(error).__name__
    hint = "give its config.json as a file instead"
    return CostcalcError(f"cannot be fetched: {reason}", where=f"hf:{repository}", hint=hint)


def _reasons(repository: str, revision: str | None) -> Iterator[tuple[str, str, str]]:
    """Error of the library, what it means, and what to do."""
    token, at = "set HF_TOKEN to a token of an account that may read it", f"@{revision}" if revision else ""
    offline = bool(import_module("huggingface_hub.constants").HF_HUB_OFFLINE)
    why = "HF_HUB_OFFLINE is set" if offline else "the hub cannot be reached"
    first = "unset HF_HUB_OFFLINE" if offline else f"fetch {repository} where there is a network and set HF_HOME"
    missing = (
        f"its config.json{at} is not in the local cache, and {why}",
        f"{first}, or give its config.json as a file",
    )
    none = ("it has no config.json", "give a checkpoint or a GGUF file that you have")
    yield "GatedRepoError", "gated: its owner grants access by hand", f"ask for access on its page, then {token}"
    yield "DisabledRepoError", "disabled by the hub", "give a config.json from elsewhere"
    yield "RepositoryNotFoundError", "no such repository, or a private one", f"check the name; {token} if it is private"
    yield "RevisionNotFoundError", f"no revision is called {shown(revision)}", f"correct {at}, or leave it out"
    yield "RemoteEntryNotFoundError", *none
    yield "OfflineModeIsEnabled", *missing
    yield "LocalEntryNotFoundError", *missing
    yield "EntryNotFoundError", *none
    yield "HFValidationError", "no repository can be called so", EXAMPLE
