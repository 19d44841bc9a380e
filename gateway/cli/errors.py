"""How a command ends when it does not end well: one line, what to do next, an honest exit code.

Nothing here shows a traceback. The table of foreign errors is looked up by name among the modules
that are already loaded, so that this module costs no import.
"""

import errno
import sys
from enum import IntEnum
from pathlib import Path
from typing import IO, Any

import click

from gateway.cli.output import inert


class Exit(IntEnum):
    """The exit codes of every command; the numbers from 64 on are those of sysexits.h."""

    OK = 0
    NEGATIVE = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    AUTH = 5
    UNREACHABLE = 69
    BUG = 70
    TIMED_OUT = 75
    CONFIGURATION = 78


class CommandError(click.ClickException):
    """A command that cannot do what it was asked; `hint` says what to do next."""

    def __init__(self, message: str, code: Exit, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # click has it as a class variable
        """The process's exit code."""
        return int(self.code)

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line and the hint on stderr, inert."""
        for line in self.message.splitlines() or [""]:
            click.echo(f"vouchback: {inert(line)}", file=file, err=file is None)
        for line in (self.hint or "").splitlines():
            click.echo(f"  try: {inert(line)}", file=file, err=file is None)


#: Errors of other layers that an operator can mend: where they are declared, and how they end.
_FOREIGN = (
    ("reconciler.config", "ConfigError", Exit.CONFIGURATION),
    ("verifiers.preset", "PresetError", Exit.CONFIGURATION),
    ("reconciler.providers.table", "ProfileError", Exit.CONFIGURATION),
    ("gateway.http.server", "ListenError", Exit.CONFIGURATION),
    ("reconciler.storage.errors", "LedgerError", Exit.CONFIGURATION),
    ("reconciler.storage.errors", "StorageUnavailableError", Exit.UNREACHABLE),
)


def translate(error: Exception) -> CommandError | None:
    """Return a foreign error as one of ours, or `None` if it is none that an operator can mend."""
    for module, name, code in _FOREIGN:
        known = getattr(sys.modules.get(module), name, None)
        if known is not None and isinstance(error, known):
            return CommandError(str(error), code)
    if isinstance(error, OSError) and error.filename is not None:
        return CommandError(f"{error.filename}: {error.strerror}", Exit.CONFIGURATION)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return CommandError("the output cannot be written: no space is left", Exit.NEGATIVE)
    return None


def bug(error: Exception) -> CommandError:
    """Return what to say about an error that nobody foresaw: where it was, in one line."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = ""
    if frame is not None:
        where = f" at {Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}"
    return CommandError(
        f"unexpected {type(error).__name__}{where}: {error}",
        Exit.BUG,
        "report this line, it is a mistake in vouchback",
    )
