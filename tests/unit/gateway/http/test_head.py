"""The judgement over heads, as a pure function."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.http.head import head_bytes, judge_head
from gateway.http.refusal import Refusal

HOST = (b"host", b"h")


@pytest.mark.parametrize(
    ("version", "target", "fields", "expected"),
    [
        ("1.1", b"/", [HOST], False),
        ("1.0", b"/", [], False),
        ("1.0", b"/", [HOST], False),
        ("1.1", b"/", [HOST, (b"expect", b"100-Continue")], True),
        ("1.0", b"/", [HOST, (b"expect", b"100-continue")], False),
        ("1.1", b"/", [HOST, (b"expect", b"something")], False),
        ("1.1", b"/", [HOST, (b"transfer-encoding", b"CHUNKED")], False),
        ("1.1", b"/", [HOST, (b"connection", b"close")], False),
        ("1.1", b"/", [(b"host", b"[::1]:80")], False),
        ("1.1", b"/", [(b"host", b"")], False),
        ("1.2", b"/", [HOST], Refusal.VERSION),
        ("2.0", b"/", [HOST], Refusal.VERSION),
        ("0.0", b"/", [], Refusal.VERSION),
        ("1.1", b"*", [HOST], Refusal.TARGET),
        ("1.1", b"http://h/", [HOST], Refusal.TARGET),
        ("1.1", b"/#", [HOST], Refusal.TARGET),
        ("1.1", b"/", [], Refusal.HOST),
        ("1.1", b"/", [HOST, HOST], Refusal.HOST),
        ("1.0", b"/", [HOST, HOST], Refusal.HOST),
        ("1.1", b"/", [(b"host", b"a b")], Refusal.HOST),
        ("1.1", b"/", [(b"host", b"a\xe9")], Refusal.HOST),
        (
            "1.1",
            b"/",
            [HOST, (b"transfer-encoding", b"identity, chunked")],
            Refusal.TRANSFER_ENCODING,
        ),
        ("1.0", b"/", [HOST, (b"transfer-encoding", b"chunked")], Refusal.TRANSFER_ENCODING),
        ("1.1", b"/", [HOST, (b"upgrade", b"h2c")], Refusal.UPGRADE),
        ("1.1", b"/", [HOST, (b"connection", b"close, UPGRADE")], Refusal.UPGRADE),
    ],
)
def test_head_is_judged(
    version: str, target: bytes, fields: list[tuple[bytes, bytes]], expected: Refusal | bool
) -> None:
    """Each rule refuses for its own reason, and lawful heads pass."""
    assert expected is judge_head(version, target, fields)


@given(
    st.text(max_size=4),
    st.binary(min_size=1, max_size=20),
    st.lists(st.tuples(st.sampled_from([b"host", b"connection", b"expect", b"x"]), st.binary())),
)
def test_judgement_is_total(version: str, target: bytes, fields: list[tuple[bytes, bytes]]) -> None:
    """Any head is judged; none raises."""
    assert isinstance(judge_head(version, target, fields), Refusal | bool)


def test_head_bytes_count_what_is_on_the_wire() -> None:
    """A field costs its name, its value, a colon, a space and the line end."""
    assert 1 + len(b"a: bc\r\n") == head_bytes(b"/", [(b"a", b"bc")])


def test_answers_of_one_status_are_the_same_bytes() -> None:
    """A refused sender does not learn which rule it met."""
    answers = {(refusal.status, refusal.answer) for refusal in Refusal}

    assert len({refusal.status for refusal in Refusal}) == len(answers)


def test_answers_are_small_and_close_the_connection() -> None:
    """A refusal costs next to nothing and says that it is the end."""
    for refusal in Refusal:
        assert b"\r\nconnection: close\r\n" in refusal.answer
        assert len(refusal.answer) < 200
