"""Structured logs: one line an occurrence, stable event names, never a secret or a body.

JSON where nobody looks (a pipe, a file), a readable line on a terminal. Control characters in
values are escaped, so that a provider's text can neither forge a line nor colour a terminal.
"""

import logging
import re
import sys
from typing import Any, Literal

import structlog

Format = Literal["auto", "json", "console"]

#: C0, DEL, C1, and the characters that reorder or break lines on a terminal.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\u200e\u200f\ud800-\udfff]"
)


def setup(format_: Format, level: str) -> None:
    """Send all logs, those of libraries too, to stderr in one form."""
    json = format_ == "json" or (format_ == "auto" and not sys.stderr.isatty())
    shared: list[Any] = [
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.add_log_level,
        _inert,
    ]
    renderer = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_Forward()], level=level.upper(), force=True)


def get(part: str) -> Any:
    """Return the logger of a part of the product, e.g. `intake`."""
    return structlog.get_logger(part=part)


def inert(text: str) -> str:
    """Return `text` with everything that a terminal or a log reader could act on escaped."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _inert(_logger: Any, _method: str, line: Any) -> Any:
    return {key: inert(value) if isinstance(value, str) else value for key, value in line.items()}


class _Forward(logging.Handler):
    """What libraries log, in our form."""

    def emit(self, record: logging.LogRecord) -> None:
        level = record.levelname.lower()
        get(record.name).log(
            logging.getLevelName(record.levelname),
            "library",
            level=level,
            message=record.getMessage(),
            exc_info=record.exc_info,
        )
