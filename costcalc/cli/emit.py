"""Reports to standard output or to a file, in the format that was asked for. Nothing else prints an answer."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from pathlib import Path

from costcalc.cli.tell import shown_in, silence
from costcalc.errors import CostcalcError
from costcalc.report import SUFFIXES, Report, Screen, known_format, render

SMALLEST_WIDTH = 40


def emit(report: Report, *, form: str | None, as_json: bool, output: str | None, default: str = "table") -> None:
    """Write the report; `form` beats the suffix of `output`, which beats `default`."""
    chosen = checked(form, as_json, output, default)
    deliver(render(report, chosen, _terminal() if output in (None, "-") else Screen()), output)


def deliver(text: str, output: str | None) -> None:
    """Write a text to standard output, or to the file that `output` names."""
    if output is None or output == "-":
        write(text)
    else:
        write_file(text, output)


def checked(form: str | None, as_json: bool, output: str | None, default: str = "table") -> str:
    """The format that the options ask for; what cannot be written is refused, so a long command calls this first."""
    chosen = _chosen_format(form, as_json, output, default)
    if output is None or output == "-":
        _terminal()
    elif not output:
        raise CostcalcError("--output has no name", hint="--output report.json")
    elif not _folder(output).is_dir():
        raise _unwritable(output, os.strerror(errno.ENOENT))
    elif output.endswith(("/", os.sep)) or os.path.isdir(output):  # noqa: PTH112 - Path raises on a long name
        raise _unwritable(output, os.strerror(errno.EISDIR))
    return chosen


def _folder(output: str) -> Path:
    try:
        return Path(output).resolve().parent
    except (OSError, ValueError, RuntimeError):  # RuntimeError: a link to itself, before Python 3.13
        return Path()


def _unwritable(output: str, reason: str) -> CostcalcError:
    hint = "give a file in a folder you may write to"
    return CostcalcError(f"cannot be written: {reason}", where=output, hint=hint)


def _chosen_format(form: str | None, as_json: bool, output: str | None, default: str) -> str:
    if as_json and form is not None and form.lower() != "json":
        raise CostcalcError(f"--json and --format {form} exclude each other", hint="give one of the two")
    if as_json:
        return "json"
    if form is not None:
        return known_format(form)
    return SUFFIXES.get(Path(output).suffix.lower(), default) if output else default


def _terminal() -> Screen:
    """What standard output can show; a width only where it is a terminal, so that a pipe gets whole lines."""
    stream = sys.stdout
    if stream is None:
        raise CostcalcError("closed", where="standard output", hint="give --output FILE")
    is_terminal = stream.isatty()
    width = None
    if is_terminal:
        width = max(_columns(), SMALLEST_WIDTH)
    colour = bool(os.environ.get("FORCE_COLOR")) or (is_terminal and os.environ.get("TERM") != "dumb")
    if os.environ.get("NO_COLOR"):
        colour = False
    try:
        "█▏".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return Screen(width, colour, unicode=False)
    return Screen(width, colour)


def _columns() -> int:
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return 80


def write(text: str) -> None:
    """Text to standard output, in characters that its encoding has; a reader that has gone away is no error."""
    try:
        sys.stdout.write(shown_in(text, sys.stdout))
        sys.stdout.flush()
    except OSError as error:
        silence(sys.stdout)
        if isinstance(error, BrokenPipeError):
            return  # as in `costcalc presets | head -1`
        reason = f"cannot be written: {error.strerror}"
        raise CostcalcError(reason, where="standard output", hint="make room, or give --output FILE") from None


def write_file(text: str, output: str) -> None:
    """The file whole or not at all: a temporary one beside it is renamed over it."""
    path = Path(output)
    try:
        if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
            _write_into(path, text)
            return
        target = path.resolve()
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "Permission denied")
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            Path(temporary).chmod(_mode_for(target))
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a link to itself, before Python 3.13
        raise _unwritable(output, getattr(error, "strerror", None) or "not a path") from None


def _write_into(path: Path, text: str) -> None:
    """Into a device or a pipe; a pipe that nobody reads is refused, not waited for."""
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)


def _mode_for(target: Path) -> int:
    """The permissions that the file has, or that a new one would get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
