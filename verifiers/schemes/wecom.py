"""WeCom (WeChat Work) and DingTalk: a hash over the sorted parts, and an encrypted message.

https://developer.work.weixin.qq.com/document/path/90968
https://open.dingtalk.com/document/orgapp/configure-event-subcription
The signature is SHA-1 over token, timestamp, nonce and ciphertext, sorted and put side by side.
The message is AES-256-CBC under the key that came with the token, padded to blocks of 32 bytes,
and ends with the id of the receiver, which must be ours: otherwise a message for another
application of the same platform would do.
"""

import binascii
import re
from dataclasses import replace

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from verifiers.claim import Claim, collect
from verifiers.encoding import Encoding, decode, equal
from verifiers.keys import Key, KeyRing
from verifiers.locate import Place, parse_locator
from verifiers.preset import Preset
from verifiers.reading import Reading
from verifiers.reason import Reason
from verifiers.timestamp import TimestampRule, Unit

_ENCRYPTED = re.compile(rb"<Encrypt>\s*(?:<!\[CDATA\[([^\]<>]*)\]\]>|([^<>]*))\s*</Encrypt>")
_CLOCK = TimestampRule((), Unit.SECONDS, 0, 0, retry_restamps=False)
_BLOCK = 32
# DingTalk calls the first one `signature` in older versions.
_SIGNATURE, _OLDER, _TIMESTAMP, _NONCE, _ECHO = (
    parse_locator(f"{Place.QUERY}:{name}")
    for name in ("msg_signature", "signature", "timestamp", "nonce", "echostr")
)


def read(reading: Reading, preset: Preset, keys: KeyRing) -> Claim | Reason:
    """Return what a callback claims; the parts of a key are token, AES key and receiver id."""
    given = reading.at(_SIGNATURE) or reading.at(_OLDER)
    if given is None:
        return Reason.SIGNATURE_MISSING
    raw = decode(Encoding.HEX, given)
    if raw is None or not keys.sizes or len(raw) not in keys.sizes[b""]:
        return Reason.SIGNATURE_MALFORMED
    stamp, nonce, ciphertext = reading.at(_TIMESTAMP), reading.at(_NONCE), _ciphertext(reading)
    unit = Unit.SECONDS if preset.timestamp is None else preset.timestamp.unit
    if stamp is None:
        return Reason.TIMESTAMP_MISSING
    at = replace(_CLOCK, unit=unit).parse(stamp)
    if at is None:
        return Reason.TIMESTAMP_MALFORMED
    if nonce is None or ciphertext is None:
        return Reason.CONTENT_MISSING
    found, _ = collect(reading, preset)
    values = (stamp, nonce, ciphertext)
    return Claim(
        [(b"", raw)],
        found,
        at,
        content_of=lambda key: b"".join(sorted((key.part("token") or b"", *values))),
        after=lambda key, _: None if _is_ours(key, ciphertext) else Reason.CONTENT_MISMATCH,
    )


def _ciphertext(reading: Reading) -> bytes | None:
    """Return the one encrypted text, of the body or of the request that verifies the URL."""
    if not reading.body:
        return reading.at(_ECHO)
    if reading.body.lstrip()[:1] == b"{":
        text = reading.document.at(("encrypt",))
        return None if text is None else text.encode("utf-8", "replace")
    texts = [match[1] or match[2] or b"" for match in _ENCRYPTED.finditer(reading.body)]
    return texts[0] if len(texts) == 1 else None


def _is_ours(key: Key, ciphertext: bytes) -> bool:
    raw = decode(Encoding.BASE64, ciphertext)
    secret = _aes_key(key.part("aes_key") or b"")
    if secret is None or raw is None or len(raw) % 16:
        return False
    decryptor = Cipher(AES(secret), CBC(secret[:16])).decryptor()
    plain = decryptor.update(raw) + decryptor.finalize()
    padding = plain[-1] if plain else 0
    if not 1 <= padding <= _BLOCK:
        return False
    plain = plain[16:-padding]  # sixteen random bytes come first, then the length
    end = 4 + int.from_bytes(plain[:4], "big")
    return equal(plain[end:], key.part("receiver_id") or b"")


def _aes_key(text: bytes) -> bytes | None:
    """Return the 32 bytes of 43 characters; the platform's own have stray bits in the last one."""
    try:
        key = binascii.a2b_base64(text + b"=")
    except ValueError:
        return None
    return key if len(key) == 32 else None  # noqa: PLR2004
