"""A TCP forwarder on loopback: its target can be switched, and what goes through can be lost.

A cut link is a partition as machines see one: connections stay open, bytes go nowhere. After it
has healed those connections are closed, because a stream with a hole in it is worth nothing.
"""

import contextlib
import socket
import threading
from typing import Self

_CHUNK = 65_536


class Forwarder:
    """Listens on `port` and forwards to `target`, a port on loopback. A context manager."""

    def __init__(self, target: int) -> None:
        self.target = target
        self._cut = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        # Linux gives it to the connections that are accepted.
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        # Closing alone does not wake a thread that waits in `accept`.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._hang_up()

    def switch(self, target: int) -> None:
        """Forward to another port from now on; connections to the former one end."""
        self.target = target
        self._hang_up()

    def cut(self) -> None:
        """Lose every byte from now on, in both directions."""
        self._cut = True

    def heal(self) -> None:
        """Forward again, on new connections."""
        self._hang_up()
        self._cut = False

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            self._keep(here)
            # Through a cut nobody will ever answer.
            if not self._cut:
                self._join(here)

    def _join(self, here: socket.socket) -> None:
        try:
            there = socket.create_connection(("127.0.0.1", self.target), 5)
        except OSError:
            _close(here)
            return
        there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._keep(there)
        for ends in ((here, there), (there, here)):
            threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _keep(self, *connections: socket.socket) -> None:
        with self._lock:
            self._open.update(connections)

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            source.settimeout(None)
            while data := source.recv(_CHUNK):
                if not self._cut:
                    sink.sendall(data)
        for end in (source, sink):
            _close(end)
        with self._lock:
            self._open -= {source, sink}

    def _hang_up(self) -> None:
        with self._lock:
            ends, self._open = self._open, set()
        for end in ends:
            _close(end)


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
