"""Instants as the demo provider writes them."""

import datetime as dt


def rfc3339(at: int) -> str:
    """Return an instant (milliseconds since the epoch) as RFC 3339 in UTC."""
    moment = dt.datetime.fromtimestamp(at / 1000, dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
