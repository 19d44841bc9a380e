"""An installation of the product in a folder, and its server as a process that can be killed.

Whatever the server says goes through a pipe into `log`. `Installation.close` asserts that no secret
that was used stands in it: each test that runs a server tests that as well.
"""

import contextlib
import copy
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Self

from tests.support.job_api import TOKEN
from tests.support.signing import Sender
from tests.support.waiting import until
from tests.support.wire import Answer, exchange, request

_ROOT = Path(__file__).parents[2]
_COMMAND = (sys.executable, "-c", "from gateway.cli import main; main()")
_ADDRESS = re.compile(r"^(public|internal) +http://127\.0\.0\.1:(\d+)", re.MULTILINE)
STARTED_S = 20.0

PROFILE = """
name = "{name}"
docs = "https://www.rfc-editor.org/rfc/rfc9110"
[auth]
header = "Authorization"
value = "Bearer {{secret}}"
[status]
url = "{{base_url}}/jobs/{{job_id}}"
url_by_reference = "{{base_url}}/by-reference/{{client_reference}}"
state = "/status"
job_id = "/id"
client_reference = "/reference"
updated_at = "/updated_at"
request_id_header = "X-Request-Id"
grace_s = 5
[states]
pending = ["queued"]
running = ["running"]
succeeded = ["succeeded"]
failed = ["failed"]
cancelled = ["cancelled"]
[poll]
{poll}
[deadlines]
result_s = 60
"""
#: How often a profile reads: `jobs` all the time, `patient` only when a hint makes it.
POLLS = {
    "jobs": "min_interval_s = 0.05\nbase_s = 0.1\ncap_s = 0.3",
    "patient": "min_interval_s = 0.3\nbase_s = 600\ncap_s = 600",
}

_HEAD = """
[storage]
{storage}
[public]
listen = "127.0.0.1:0"
[internal]
listen = "127.0.0.1:0"
[worker]
lease_ttl_s = 5
idle_s = 0.25
[log]
format = "json"
level = "info"
[egress]
allow = ["http://127.0.0.1/32:{port}"]
deadline_s = 1.0
response_bytes_max = 65536
[limits]
body_bytes_max = 20000
body_timeout_s = 1
header_timeout_s = 0.5
"""


#: A ledger in the installation's own folder.
SQLITE = "sqlite:data/ledger.db"


def _stored_at(url: str) -> str:
    own = "" if url == SQLITE else '\nfolder = "data"'
    return f'url = "{url}"{own}'


class Installation:
    """A folder with a configuration, secrets in files, and at most one server.

    On a shared ledger `node` gives it further servers.
    """

    def __init__(self, folder: Path, *, provider_port: int = 9, storage: str = SQLITE) -> None:
        self.folder = folder
        self.storage = storage
        self.role: str | None = None
        self.secrets: list[str] = []
        self.senders: dict[str, Sender] = {}
        self.log = ""
        self.process: subprocess.Popen[bytes] | None = None
        self.log_cut = threading.Event()
        self._reader: threading.Thread | None = None
        self.token_folder = folder / "data"
        self._sections = [_HEAD.format(port=provider_port, storage=_stored_at(storage))]
        self._base_url = f"http://127.0.0.1:{provider_port}"
        (folder / "secrets").mkdir(parents=True)
        self.keep_secret("provider", TOKEN)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # The configuration

    def keep_secret(self, name: str, text: str) -> str:
        """Write a secret to its file, remember it, and return the reference to it."""
        file = self.folder / "secrets" / name
        file.write_text(text)
        self.secrets.append(text)
        return f"file:{file}"

    def profile(self, name: str, extra: str = "", *, poll: str = "jobs") -> None:
        """Add a profile that asks the job API; `poll` is one of `POLLS`."""
        file = self.folder / f"{name}.toml"
        file.write_text(PROFILE.format(name=name, poll=POLLS[poll]))
        self._sections.append(
            f'[profiles.{name}]\nfile = "{file.name}"\nbase_url = "{self._base_url}"\n'
            f'secret = "file:{self.folder}/secrets/provider"\n{extra}'
        )

    def source(self, name: str, profile: str | None = None, extra: str = "") -> Sender:
        """Add a source of Standard Webhooks and return its sender."""
        sender = self.senders[name] = Sender(name)
        reference = self.keep_secret(name, sender.secret)
        asks = f'profile = "{profile}"\njob_id = "body:/data/job_id"\n' if profile else ""
        self.section(
            f'[sources.{name}]\npreset = "standard-webhooks"\n'
            f'keys = [{{ id = "k1", secret = "{reference}" }}]\n{asks}{extra}'
        )
        return sender

    def section(self, text: str) -> None:
        """Add a section as it is."""
        self._sections.append(text)

    def replace(self, old: str, new: str) -> None:
        """Change the configuration's text; `write` puts it in place."""
        assert any(old in section for section in self._sections), old
        self._sections = [section.replace(old, new) for section in self._sections]

    @property
    def config(self) -> Path:
        """The configuration's file."""
        return self.folder / "vouchback.toml"

    def write(self) -> None:
        """Write the configuration."""
        self.config.write_text("\n".join(self._sections))

    # The server

    def node(self, role: str | None = None) -> "Installation":
        """Return one more server of this installation: the same files, its own process and log."""
        node = copy.copy(self)
        node.role, node.process, node.log = role, None, ""
        node.log_cut, node._reader = threading.Event(), None
        return node

    def command(self, *arguments: str) -> list[str]:
        """Return a command line of the product with this configuration."""
        return [*_COMMAND, *arguments, "--config", str(self.config)]

    @property
    def environment(self) -> dict[str, str]:
        """What the product's processes see."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("VOUCHBACK_")}
        return {**kept, "PYTHONPATH": str(_ROOT), "PYTHONWARNINGS": "default"}

    def start(self) -> Self:
        """Write the configuration, start the server, and wait until it listens."""
        self.write()
        self._join()
        role = ("--role", self.role) if self.role else ()
        process = subprocess.Popen(
            self.command("serve", *role),
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=self.environment,
        )
        begins = len(self.log)
        self.process = process
        self._reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        self._reader.start()

        def listening() -> dict[str, int] | None:
            found = dict(_ADDRESS.findall(self.log, begins))
            assert process.poll() is None, self.log
            return {k: int(v) for k, v in found.items()} if len(found) == wanted else None

        wanted = 1 if self.role == "reconciler" else 2
        ports = until(listening, f"the server listens\n{self.log}", STARTED_S)
        self.public, self.internal = ports.get("public", 0), ports["internal"]
        return self

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        with process.stderr as pipe:
            while not self.log_cut.is_set():
                readable, _, _ = select.select([pipe], [], [], 0.05)
                if readable:
                    data = os.read(pipe.fileno(), 65_536)
                    if not data:
                        return
                    self.log += data.decode()

    def signal(self, number: int) -> None:
        """Send the server a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self, within_s: float = 30.0) -> int:
        """Wait for the server's end and return its exit code."""
        assert self.process is not None
        code = self.process.wait(within_s)
        self._join()
        return code

    def stop(self) -> int:
        """Stop the server as an operator does and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Take the server's life in the middle of whatever it does."""
        self.signal(signal.SIGKILL)
        self.wait()

    def _join(self) -> None:
        if self._reader is not None:
            self._reader.join(10)

    def close(self) -> None:
        """End the server and assert that it kept its secrets."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.wait()
        with contextlib.suppress(OSError):
            self.secrets.append((self.token_folder / "admin.token").read_text().strip())
        for secret in self.secrets:
            assert secret not in self.log, "a secret stands in the log"

    # What it can be asked

    def post(self, raw: bytes) -> Answer:
        """Send a request to the public listener."""
        return exchange(self.public, raw)

    def api(
        self, method: str, path: str, document: object = None, *, token: str | None = None
    ) -> Answer:
        """Call the API, as the first admin unless told otherwise."""
        bearer = self.admin if token is None else token
        body = b"" if document is None else json.dumps(document).encode()
        return exchange(
            self.internal, request(method, path, [("Authorization", f"Bearer {bearer}")], body)
        )

    def get(self, path: str) -> Any:
        """Return what the API says at a path that exists."""
        answer = self.api("GET", path)
        assert answer.status == 200, answer
        return answer.json()

    @property
    def admin(self) -> str:
        """The text of the ledger's first token."""
        return (self.token_folder / "admin.token").read_text().strip()

    def events(self, source: str) -> list[dict[str, Any]]:
        """Return all events of a source, newest first."""
        return self._all(f"/v1/events?source={source}&limit=200")

    def refusals(self, source: str) -> list[dict[str, Any]]:
        """Return the refused requests that are kept of a source, newest first."""
        return self._all(f"/v1/refusals?source={source}&limit=200")

    def _all(self, path: str) -> list[dict[str, Any]]:
        page = self.get(path)
        items: list[dict[str, Any]] = page["items"]
        while page["next"] is not None:
            page = self.get(f"{path}&before={page['next']}")
            items += page["items"]
        return items

    def body(self, event_id: str) -> bytes:
        """Return an event's body."""
        return self.api("GET", f"/v1/events/{event_id}/body").body

    def new_token(self, role: str, **fields: object) -> str:
        """Make a token and return its text."""
        answer = self.api("POST", "/v1/tokens", {"role": role, **fields})
        assert answer.status == 201, answer
        text: str = answer.json()["token"]
        self.secrets.append(text)
        return text

    def register(self, profile: str, **fields: str) -> dict[str, Any]:
        """Register an operation and return it."""
        answer = self.api("POST", "/v1/operations", {"profile": profile, **fields})
        assert answer.status == 201, answer
        found: dict[str, Any] = answer.json()
        return found

    def operation(self, operation_id: str) -> dict[str, Any]:
        """Return an operation."""
        found: dict[str, Any] = self.get(f"/v1/operations/{operation_id}")
        return found

    def history(self, operation_id: str) -> list[dict[str, Any]]:
        """Return an operation's history."""
        items: list[dict[str, Any]] = self.get(f"/v1/operations/{operation_id}/history")["items"]
        return items

    def observations(self, operation_id: str) -> list[dict[str, Any]]:
        """Return an operation's status reads."""
        path = f"/v1/operations/{operation_id}/observations"
        items: list[dict[str, Any]] = self.get(path)["items"]
        return items

    def ends(self, operation_id: str, within_s: float = 15.0) -> dict[str, Any]:
        """Wait until an operation has ended or needs a person, and return it."""

        def ended() -> dict[str, Any] | None:
            found = self.operation(operation_id)
            over = found["state"] in {"succeeded", "failed", "cancelled"} or found["attention"]
            return found if over else None

        return until(ended, f"operation {operation_id} ends", within_s)

    # Faults

    def limit_file_size(self, size: int | None) -> None:
        """Let the running server write no file beyond `size` bytes; `None` lifts the limit."""
        assert self.process is not None
        _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        soft = hard if size is None else size
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (soft, hard))

    def cut_log(self) -> None:
        """Close our end of the server's stderr: whatever it writes there fails from now on."""
        assert self.process is not None
        assert self.process.stderr is not None
        self.log_cut.set()
        self._join()

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of the product to its end."""
        return subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment,
            timeout=30,
            check=False,
        )
