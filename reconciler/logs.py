"""Structured logs: one line an occurrence, stable event names, never a secret or a body.

JSON where nobody looks (a pipe, a file), a readable line on a terminal. Control characters in
values are escaped, so that a provider's text can neither forge a line nor colour a terminal. A log
that cannot be written is lost, silently: a full disk under it must not stop what is logged about.
"""

import contextlib
import logging
import re
import sys
from collections.abc import Mapping
from typing import Any, Literal

import structlog

Format = Literal["auto", "json", "console"]

#: C0, DEL, C1, and the characters that reorder or break lines on a terminal.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\u200e\u200f\ud800-\udfff]"
)
#: They log every URL at `info` and headers at `debug`.
_TALKATIVE = ("httpx", "httpcore")
_STDERR = 2


def setup(format_: Format, level: str) -> None:
    """Send all logs, those of libraries too, to stderr in one form."""
    terminal = sys.stderr is not None and sys.stderr.isatty()  # None: closed before the start
    json = format_ == "json" or (format_ == "auto" and not terminal)
    renderer: Any = (
        structlog.processors.JSONRenderer(default=repr)
        if json
        else structlog.dev.ConsoleRenderer(
            colors=terminal, exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.stdlib.add_log_level,
            structlog.processors.format_exc_info,
            _inert,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: _Lines(),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_Forward()], level=level.upper(), force=True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)


def get(part: str) -> Any:
    """Return the logger of a part of the product, e.g. `intake`."""
    return structlog.get_logger(part=part)


def inert(text: str) -> str:
    """Return `text` with everything that a terminal or a log reader could act on escaped."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _inert(_logger: Any, _method: str, line: Any) -> Any:
    trace = line.pop("exception", None)
    made = {key: _inert_value(value) for key, value in line.items()}
    if trace is not None:
        # Its lines stay lines; indented, none of them can pass for one of ours.
        made["exception"] = "\n".join(f"  {inert(part)}" for part in trace.split("\n"))
    return made


def _inert_value(value: Any) -> Any:
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, Mapping):
        return {inert(str(key)): _inert_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_inert_value(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float)) else inert(repr(value))


class _Lines:
    """Writes lines to stderr, past Python's buffer: what cannot be written is not kept either."""

    def msg(self, line: str) -> None:
        data = f"{line}\n".encode("utf-8", "backslashreplace")
        with contextlib.suppress(OSError), open(_STDERR, "wb", 0, closefd=False) as stderr:
            stderr.write(data)

    log = debug = info = warning = error = critical = msg


class _Forward(logging.Handler):
    """What libraries log, in our form."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            message = str(record.msg)  # its arguments do not fit: the library's mistake
        level = min(record.levelno // 10 * 10, logging.CRITICAL)  # libraries have levels between
        get(record.name).log(level, "library", message=message, exc_info=record.exc_info)
