"""Senders that keep a gateway busy and remember what was acknowledged to them."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

from tests.support.signing import Signed
from tests.support.wire import Closed, Connection


@dataclass(slots=True)
class Load:
    """Sends requests on some connections at once until told to stop. A context manager."""

    port: int
    make: Callable[[], Signed]
    connections: int = 4
    #: What the gateway answered, by request: 200 is an acknowledgement.
    answered: list[tuple[Signed, int]] = field(default_factory=list)
    #: Sent, but no answer came.
    unanswered: list[Signed] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: Sequence[threading.Thread] = ()

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._send) for _ in range(self.connections)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop sending and wait for the answers that are under way."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def acknowledged(self) -> list[Signed]:
        """Return the requests that were acknowledged."""
        return [signed for signed, status in list(self.answered) if status == 200]

    def _send(self) -> None:
        while not self._stop.is_set():
            try:
                with Connection(self.port) as connection:
                    while not self._stop.is_set():
                        self._one(connection)
            except OSError:
                return  # nobody listens any more
            except Closed:
                continue

    def _one(self, connection: Connection) -> None:
        signed = self.make()
        try:
            answer = connection.exchange(signed.raw())
        except (Closed, OSError) as error:
            self.unanswered.append(signed)
            raise Closed from error
        self.answered.append((signed, answer.status))
        if answer.header("connection") == "close":
            raise Closed
