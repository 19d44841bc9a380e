"""Where a ledger is."""

from dataclasses import replace

import pytest

from reconciler.storage.errors import LedgerError
from reconciler.storage.redis.address import Address, parse


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://db.example", Address("default", "db.example")),
        ("redis://db.example:7000/?ledger=shop", Address("shop", "db.example", 7000)),
        ("rediss://[::1]/?replicas=2", Address("default", "::1", tls=True, replicas=2)),
        ("redis://me@db.example/", Address("default", "db.example", user="me")),
        ("unix:///run/valkey.sock?ledger=a", Address("a", path="/run/valkey.sock")),
        (
            "redis://db.example/?ack_timeout_ms=200",
            Address("default", "db.example", ack_timeout_ms=200),
        ),
    ],
)
def test_parse(url: str, expected: Address) -> None:
    """A URL says server, ledger and gate."""
    assert expected == parse(url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://db.example", "must start with"),
        ("redis://db.example:port", "cannot be read"),
        ("redis://me:hunter2@db.example", "storage.password"),
        ("redis://db.example/0", "names a database"),
        ("redis://db.example/?ledger=A%7D", "a ledger's name"),
        ("redis://db.example/?ledger=", "cannot be read|a ledger's name"),
        ("redis://db.example/?replica=1", "unknown settings: replica"),
        ("redis://db.example/?replicas=-1", "replicas must be a number"),
        ("redis://db.example/?replicas=17", "replicas must be a number"),
        ("redis://db.example/?ack_timeout_ms=0", "ack_timeout_ms must be a number"),
    ],
)
def test_parse_refuses(url: str, reason: str) -> None:
    """A URL that is wrong is refused with what is wrong, never with the URL: it may hold a secret."""
    with pytest.raises(LedgerError, match=reason) as caught:
        parse(url)

    assert "hunter2" not in str(caught.value)


def test_password_is_not_shown() -> None:
    """A password stands in no text of an address."""
    address = replace(parse("redis://db.example"), password="hunter2")

    assert "hunter2" not in f"{address} {address!r}"


def test_base() -> None:
    """All keys of a ledger have one hash tag, so that a cluster keeps them on one server."""
    assert parse("redis://db.example/?ledger=shop").base == b"{vouchback:shop}"
