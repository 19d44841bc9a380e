"""A client process: `volley.py PORT COUNT FILE` sends the request in FILE on COUNT connections.

It connects, says `ready`, waits for a line, sends everything at once, and prints the answers'
statuses as JSON.
"""

import json
import sys
from pathlib import Path

from tests.support.wire import Connection


def main() -> None:
    """Do it."""
    port, count, data = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]).read_bytes()
    connections = [Connection(port) for _ in range(count)]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for connection in connections:
        connection.send(data)
    answers = [connection.answer() for connection in connections]
    sys.stdout.write(json.dumps([answer.status for answer in answers]))


if __name__ == "__main__":
    main()
