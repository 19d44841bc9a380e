"""What an examination found: one sentence a check, and how to mend what is wrong."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is: a failed check breaks a promise or keeps the product from working."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's outcome; `mend` is `None` where nothing is to be done or the text says it."""

    check: str
    level: Level
    text: str
    mend: str | None = None
