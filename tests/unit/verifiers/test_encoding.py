"""Canonical texts of bytes."""

import pytest

from verifiers.encoding import Encoding, decode, encode, equal


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        (Encoding.HEX, b"AB"),
        (Encoding.HEX, b"a"),
        (Encoding.HEX, b"a b c d"),
        (Encoding.HEX, b"0xab"),
        (Encoding.HEX, b"\xef\xbc\x91a"),
        (Encoding.BASE64, b"QR=="),
        (Encoding.BASE64, b"QQ="),
        (Encoding.BASE64, b"QQ"),
        (Encoding.BASE64, b"QQ==\n"),
        (Encoding.BASE64, b"QQ==QQ=="),
        (Encoding.BASE64, b"Q Q=="),
        (Encoding.BASE64, b"-_8="),
        (Encoding.BASE64, b"\xe9\xe9=="),
        (Encoding.HEX_UPPER, b"ab"),
        (Encoding.HEX_ANY_CASE, b"a b"),
        (Encoding.BASE64_UNPADDED, b"QQ=="),
        (Encoding.BASE64_UNPADDED, b"QR"),
        (Encoding.BASE64URL, b"-_8="),
        (Encoding.BASE64URL, b"+/8"),
        (Encoding.BASE64URL_PADDED, b"-_8"),
        (Encoding.TEXT, b""),
    ],
)
def test_other_spellings_are_not_decoded(encoding: Encoding, text: bytes) -> None:
    """SC-07, SC-10: junk, other alphabets, padding and stray bits are another text, so no text."""
    assert decode(encoding, text) is None


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("raw", [b"A", b"\x00\xff", bytes(range(256))])
def test_the_canonical_text_is_decoded(encoding: Encoding, raw: bytes) -> None:
    """What is written is read."""
    assert raw == decode(encoding, encode(encoding, raw))


def test_hex_of_either_case_is_read_where_a_preset_says_so() -> None:
    """Discord and Vonage: their own libraries take both, so the text is not the only one."""
    assert decode(Encoding.HEX_ANY_CASE, b"aB") == decode(Encoding.HEX_ANY_CASE, b"Ab") == b"\xab"


def test_equal_takes_any_bytes() -> None:
    """F04: bytes beyond ASCII and different lengths compare without an exception."""
    assert [equal(b"\xe9", b"\xe9"), equal(b"\xe9", b"\xe8"), equal(b"", b"a")] == [
        True,
        False,
        False,
    ]
