"""The ceiling: uvicorn with uvloop and httptools, and an application that reads the body.

python bench/noop.py PORT
"""

import sys
from typing import Any

import uvicorn


async def app(_scope: Any, receive: Any, send: Any) -> None:
    """Read the whole body, answer 204."""
    more = True
    while more:
        more = (await receive()).get("more_body", False)
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


if __name__ == "__main__":
    uvicorn.run(
        app,
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
    )
