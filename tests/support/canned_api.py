"""An API on loopback that says what a test puts, and the ways of running a command line."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from click.testing import Result

Run = Callable[..., Result]


@dataclass
class CannedApi:
    """Answers by method and path with its query; remembers what was asked."""

    url: str = ""
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def put(self, asked: str, document: object, status: int = 200) -> None:
        """Answer `GET /path` or `POST /path` with a JSON document."""
        self.answers[asked] = (status, json.dumps(document).encode())


@contextmanager
def canned_api() -> Iterator[CannedApi]:
    """Serve what the test puts, and 404 for everything else."""
    canned = CannedApi()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = f"{self.command} {self.path}"
            canned.asked.append((asked, dict(self.headers.items()), body))
            nothing = (404, b'{"title": "Not found", "detail": "there is no such event"}')
            status, answer = canned.answers.get(asked, nothing)
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = answer  # noqa: N815  # names of the standard library

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    canned.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield canned
    server.shutdown()
    thread.join()
    server.server_close()
