"""The scripts: one file a method, which says its arguments and its answer at the top.

A file is a shebang line with the script's flags, then its text. `prelude.lua` stands before each.
All keys start with the ledger's base, KEYS[1], and lie in one slot.
"""

import hashlib
from dataclasses import dataclass
from importlib import resources

from reconciler.storage.redis.connection import Command

_FOLDER = resources.files("reconciler.storage.redis") / "scripts"


@dataclass(frozen=True, slots=True)
class Script:
    """A script, and how it is called."""

    name: str
    text: bytes
    sha: bytes

    def call(self, base: bytes, *arguments: bytes | int) -> Command:
        """Return the command that runs it, if the server knows it already."""
        return (b"EVALSHA", self.sha, 1, base, *arguments)

    def whole(self, command: Command) -> Command:
        """Return the command that tells the server the text, too."""
        return (b"EVAL", self.text, *command[2:])


def load(name: str) -> Script:
    """Read a script's file."""
    shebang, _, body = (_FOLDER / f"{name}.lua").read_text("utf-8").partition("\n")
    prelude = (_FOLDER / "prelude.lua").read_text("utf-8")
    text = f"{shebang}\n{prelude}\n{body}".encode()
    # A name, not a secret: the protocol wants SHA-1.
    return Script(name, text, hashlib.sha1(text, usedforsecurity=False).hexdigest().encode())
