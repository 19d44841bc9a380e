"""Gateways on one Valkey server against a client that does one command after another.

Four arms take turns on the same server, which is emptied in between: the naive way in one process
and in two, and one and two gateways as `vouchback serve --role gateway` starts them. The naive way
does for each event what looks like enough, waits for each answer, and waits for the disk (WAITAOF)
before the next event: SET NX of the key, the event, a journal entry, due work. It reads no HTTP and
verifies nothing, which is in its favour; the gateways get every event as a signed request of 1 KB.
Figures are medians over the rounds. Memory is what INFO says before and after an arm.

    python -m bench.nodes [--rounds 3] [--seconds 3] [--connections 64]

Needs wrk (Debian's package of that name).
"""

import argparse
import contextlib
import itertools
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench import intake
from tests.support import valkey

_BODY = b"x" * 960
_ROLE = ("--role", "gateway")

Figures = dict[str, float]


def main() -> int:
    """Run the arms, print a table, write JSON."""
    options = _options()
    if shutil.which("wrk") is None:
        print("wrk is missing: apt-get install wrk", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name, valkey.running(Path(name) / "valkey") as server:
        rounds = [_round(server, Path(name), n, options) for n in range(options.rounds)]
    result = _summary(rounds, options)
    _show(result)
    target = intake.HERE / "results" / f"nodes-{time.strftime('%Y%m%d-%H%M%S')}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {target.relative_to(intake.HERE.parent)}", file=sys.stderr)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    parser.set_defaults(ids="ordered")
    return parser.parse_args()


def _round(
    server: valkey.Server, folder: Path, index: int, options: argparse.Namespace
) -> dict[str, Figures]:
    """Measure the four arms once, one after the other."""
    figures = {}
    for arm, processes in itertools.product(("naive", "gateway"), (1, 2)):
        server.ask("FLUSHALL", "SYNC")
        own = folder / f"{index}-{arm}-{processes}"
        own.mkdir()
        before = _memory(server)
        measure = _naive if arm == "naive" else _gateways
        done = measure(server, own, processes, options)
        used = _memory(server) - before
        found = {"rate": done["rate"], "bytes_an_event": used / done["events"]}
        figures[f"{arm} x {processes}"] = found
        print(f"round {index + 1} {arm:8} x {processes} {done['rate']:9.0f}/s", file=sys.stderr)
    return figures


def _memory(server: valkey.Server) -> int:
    """Return the bytes that data takes, without connections' and the server's own buffers."""
    lines = server.ask("INFO", "memory").decode().splitlines()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(facts["used_memory"]) - int(facts["mem_clients_normal"])


# ---------------------------------------------------------------- the gateways


def _gateways(
    server: valkey.Server, folder: Path, processes: int, options: argparse.Namespace
) -> Figures:
    """Let each gateway have its own senders, all at once; the ledger is one."""
    storage = f'[storage]\nurl = "{server.url("bench")}"\nfolder = "data"\n'
    share = argparse.Namespace(**vars(options))
    share.connections = options.connections // processes
    with contextlib.ExitStack() as stack:
        ways = []
        for number in range(processes):
            requests = folder / f"requests-{number}"
            intake.write_requests(requests, share, f"msg{number}")
            port, pid = stack.enter_context(
                intake.serving(folder / f"node-{number}", storage, _ROLE)
            )
            ways.append((port, pid, requests, share))
        with ThreadPoolExecutor(processes) as pool:
            told = list(pool.map(lambda way: intake.load(*way), ways))
    return {
        "rate": sum(one["rate"] for one in told),
        "events": sum(one["requests"] for one in told),
    }


# ---------------------------------------------------------------- the naive way


def _naive(
    server: valkey.Server, _folder: Path, processes: int, options: argparse.Namespace
) -> Figures:
    with ProcessPoolExecutor(processes) as pool:
        ways = [(server.port, options.seconds, f"msg{number}") for number in range(processes)]
        counts = list(pool.map(_one_after_another, *zip(*ways, strict=True)))
    return {"rate": sum(counts) / options.seconds, "events": sum(counts)}


def _one_after_another(port: int, seconds: int, prefix: str) -> int:
    """Record events for some seconds and return how many."""
    count, end = 0, time.monotonic() + seconds
    with valkey.Client(port) as client:
        while time.monotonic() < end:
            event = f"{prefix}_{count:012d}"
            client.ask("SET", f"key:{event}", event, "NX", "EX", 2_592_000)
            client.ask("HSET", f"event:{event}", "body", _BODY, "at", time.time_ns())
            client.ask("RPUSH", "journal", f"accepted {event}")
            client.ask("ZADD", "due", time.time_ns(), event)
            assert client.ask("WAITAOF", 1, 0, 1_500)[0] == 1
            count += 1
    return count


# ---------------------------------------------------------------- the result


def _summary(rounds: list[dict[str, Figures]], options: argparse.Namespace) -> dict[str, Any]:
    arms = {
        arm: {name: statistics.median(one[arm][name] for one in rounds) for name in rounds[0][arm]}
        for arm in rounds[0]
    }
    return {
        "options": vars(options),
        "machine": {"cores": os.cpu_count(), "fdatasync_ms": intake.fdatasync_ms()},
        "arms": arms,
        "rounds": rounds,
    }


def _show(result: dict[str, Any]) -> None:
    machine, arms = result["machine"], result["arms"]
    print(f"{machine['cores']} cores, fdatasync {machine['fdatasync_ms']:.2f} ms (median)")
    print(f"{'arm':12}{'events/s':>10}{'bytes an event':>16}")
    for arm, figures in arms.items():
        print(f"{arm:12}{figures['rate']:10.0f}{figures['bytes_an_event']:16.0f}")
    for count in (1, 2):
        ratio = arms[f"gateway x {count}"]["rate"] / arms[f"naive x {count}"]["rate"]
        print(f"gateway x {count} / naive x {count}: {ratio:.2f}")


if __name__ == "__main__":
    raise SystemExit(main())
