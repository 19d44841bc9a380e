"""The intake against bare uvicorn, in the same run.

Three arms take turns: bare uvicorn (`noop.py`), the gateway as `vouchback serve` starts it
(verification, dedup, journal, fsync before every answer, SQLite FULL), and bare uvicorn again as
the control. Every request to the gateway is a new event of 1 KB with its own signature
(timestamp-body). Figures are medians over the rounds; only the ratio of one run means something,
and only if the control's is between 0.80 and 1.25.

    python bench/intake.py [--rounds 5] [--seconds 4] [--connections 64] [--ids ordered|random]

Needs wrk (Debian's package of that name).
"""

import argparse
import base64
import hashlib
import hmac
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
SECRET = "bench-secret-of-the-intake-0123456789"  # noqa: S105  # signs nothing but this bench
PRESET = "standard-webhooks"
THREADS = 2
CONTROL_RANGE = (0.80, 1.25)


def main() -> int:
    """Run the arms, print a table, write JSON; 1 if by the control the run does not count."""
    options = _options()
    if shutil.which("wrk") is None:
        print("wrk is missing: apt-get install wrk", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rounds = [_round(folder, index, options) for index in range(options.rounds)]
    result = _summary(rounds, options)
    _show(result)
    target = HERE / "results" / f"intake-{time.strftime('%Y%m%d-%H%M%S')}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {target.relative_to(HERE.parent)}", file=sys.stderr)
    return 0 if CONTROL_RANGE[0] <= result["control_ratio"] <= CONTROL_RANGE[1] else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--ids", choices=("ordered", "random"), default="ordered")
    return parser.parse_args()


def _round(folder: Path, index: int, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Measure the three arms once, one after the other."""
    requests = folder / "requests"
    write_requests(requests, options)
    figures = {}
    for arm in ("bare", "gateway", "control"):
        with _server(arm, folder / f"{index}-{arm}") as (port, pid):
            figures[arm] = load(port, pid, requests, options)
            print(f"round {index + 1} {arm:8} {figures[arm]['rate']:9.0f}/s", file=sys.stderr)
    return figures


def write_requests(target: Path, options: argparse.Namespace, prefix: str = "msg") -> None:
    """Prepare more signed requests than an arm can take in its time."""
    key = SECRET.encode()
    filler = "x" * 900
    ids = [f"{number:012d}" for number in range(options.seconds * 20_000)]
    if options.ids == "random":
        random.shuffle(ids)
    with target.open("wb") as out:
        for event_id in ids:
            body = json.dumps({"type": "job.done", "data": {"job_id": event_id, "x": filler}})
            stamp = str(int(time.time()))
            name = f"{prefix}_{event_id}"
            content = f"{name}.{stamp}.{body}".encode()
            mac = hmac.new(key, content, hashlib.sha256).digest()
            raw = request(name, stamp, mac, body.encode())
            out.write(b"%08d%b" % (len(raw), raw))


def request(name: str, stamp: str, mac: bytes, body: bytes) -> bytes:
    """Return a signed request as bytes."""
    signature = base64.b64encode(mac).decode()
    head = (
        "POST /in/bench HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"User-Agent: bench\r\nwebhook-id: {name}\r\nwebhook-timestamp: {stamp}\r\n"
        f"webhook-signature: v1,{signature}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@contextmanager
def _server(arm: str, folder: Path) -> Iterator[tuple[int, int]]:
    if arm == "gateway":
        with serving(folder) as found:
            yield found
        return
    port = free_port()
    with _running(["python", str(HERE / "noop.py"), str(port)], port) as pid:
        yield port, pid


@contextmanager
def serving(folder: Path, more: str = "", role: Sequence[str] = ()) -> Iterator[tuple[int, int]]:
    """Run a gateway of its own folder; gives its port and process. `more` is configuration."""
    folder.mkdir()
    port = free_port()
    command = ["vouchback", "--config", str(_config(folder, port, more)), "serve", *role]
    with _running(command, port) as pid:
        yield port, pid


@contextmanager
def _running(command: list[str], port: int) -> Iterator[int]:
    environ = {name: text for name, text in os.environ.items() if "VOUCHBACK" not in name}
    environ["BENCH_SECRET"] = written(SECRET)
    program = str(Path(sys.executable).parent / command[0])
    process = subprocess.Popen([program, *command[1:]], env=environ, stderr=subprocess.DEVNULL)
    try:
        await_port(port)
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


def written(secret: str) -> str:
    """Return a secret as Standard Webhooks writes it."""
    return "whsec_" + base64.b64encode(secret.encode()).decode()


def _config(folder: Path, port: int, more: str) -> Path:
    file = folder / "vouchback.toml"
    file.write_text(
        f'[public]\nlisten = "127.0.0.1:{port}"\n'
        f'[internal]\nlisten = "127.0.0.1:{free_port()}"\n'
        f'[sources.bench]\npreset = "{PRESET}"\n'
        'keys = [{ id = "k1", secret = "env:BENCH_SECRET" }]\n' + more
    )
    return file


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def await_port(port: int) -> None:
    """Wait until somebody listens."""
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit("the server did not start; start it by hand to see why")


def load(port: int, pid: int, requests: Path, options: argparse.Namespace) -> dict[str, float]:
    """Send the requests of a file for some seconds and return what was measured."""
    command = [
        "wrk", f"-t{THREADS}", f"-c{options.connections}", f"-d{options.seconds}s",
        "-s", str(HERE / "requests.lua"), f"http://127.0.0.1:{port}/in/bench",
        "--", str(requests), str(THREADS),
    ]  # fmt: skip
    before = _cpu_s(pid)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout.strip().splitlines()[-1])
    if told["not_2xx"] or told["socket_errors"]:
        raise SystemExit(f"not every request was acknowledged: {told}")
    return {
        "requests": told["requests"],
        "rate": told["requests"] / told["us"] * 1e6,
        "cpu_us": (_cpu_s(pid) - before) / told["requests"] * 1e6,
        "p50_ms": told["p50_us"] / 1000,
        "p99_ms": told["p99_us"] / 1000,
    }


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fdatasync_ms() -> float:
    """Return the median time that this disk takes to keep 4 KB."""
    times = []
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(200):
            file.write(b"x" * 4096)
            file.flush()
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def _summary(rounds: list[dict[str, dict[str, float]]], options: argparse.Namespace) -> dict:
    arms = {
        arm: {
            figure: statistics.median(r[arm][figure] for r in rounds) for figure in rounds[0][arm]
        }
        for arm in rounds[0]
    }
    return {
        "options": vars(options),
        "machine": {"cores": os.cpu_count(), "fdatasync_ms": fdatasync_ms()},
        "arms": arms,
        "ratio": statistics.median(r["gateway"]["rate"] / r["bare"]["rate"] for r in rounds),
        "control_ratio": statistics.median(
            r["control"]["rate"] / r["bare"]["rate"] for r in rounds
        ),
        "rounds": rounds,
    }


def _show(result: dict) -> None:
    machine = result["machine"]
    print(f"{machine['cores']} cores, fdatasync {machine['fdatasync_ms']:.2f} ms (median)")
    print(f"{'arm':10}{'requests/s':>12}{'CPU µs':>9}{'p50 ms':>9}{'p99 ms':>9}")
    for arm, figures in result["arms"].items():
        print(
            f"{arm:10}{figures['rate']:12.0f}{figures['cpu_us']:9.0f}"
            f"{figures['p50_ms']:9.1f}{figures['p99_ms']:9.1f}"
        )
    print(f"gateway / bare uvicorn {result['ratio']:.2f}   control {result['control_ratio']:.2f}")


if __name__ == "__main__":
    raise SystemExit(main())
