"""An event loop whose time passes only when nobody has anything to do.

No thread and no clock: a sleep of a day costs nothing, and the same program runs the same way twice.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Puts the loop's time forward instead of waiting."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return at once; `timeout` is how long nothing happens."""
        assert timeout is not None, "everybody waits for somebody: the simulation stands still"
        self.loop.passed_s += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with a time of its own, in seconds from 0."""

    def __init__(self) -> None:
        selector = _Selector()
        selector.loop, self.passed_s = self, 0.0
        super().__init__(selector)
        # A worker that is killed leaves tasks whose exception nobody asks for.
        self.set_exception_handler(lambda _loop, _context: None)

    def time(self) -> float:
        """Return the virtual time."""
        return self.passed_s


def run(program: Coroutine[Any, Any, T]) -> T:
    """Run a program in virtual time; what it leaves behind is cancelled."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(program)
