"""What two platforms encrypt: messages that only the holder of a key can read.

Opening is total: what cannot be opened is None. It proves nothing about the sender; AES-CBC has no
integrity, so only a signature (WeCom) or a token within (Lark) does.
"""

import binascii
import hashlib
from collections.abc import Callable, Iterable

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from verifiers.document import Document, Readability
from verifiers.encoding import Encoding, decode, equal

_AES_BLOCK = 16
_WECOM_BLOCK = 32
_KEY_BYTES = 32


def open_lark(body: bytes, keys: Iterable[bytes]) -> bytes | None:
    """Return the JSON within `{"encrypt": "..."}`, under the first key that opens it.

    https://open.feishu.cn/document/server-docs/event-subscription-guide/event-subscription-configure-/encrypt-key-encryption-configuration-case
    AES-256-CBC, the key is SHA-256 of the encrypt key, the first block is the IV.
    """
    text = Document(body).at(("encrypt",))
    raw = None if text is None or not text.isascii() else decode(Encoding.BASE64, text.encode())
    if raw is None:
        return None
    for key in keys:
        plain = _opened(hashlib.sha256(key).digest(), raw[:_AES_BLOCK], raw[_AES_BLOCK:])
        plain = None if plain is None else _unpadded(plain, _AES_BLOCK)
        if plain is not None and Document(plain).state is Readability.READABLE:
            return plain
    return None


def open_wecom(part: Callable[[str], bytes | None], ciphertext: bytes) -> bytes | None:
    """Return the message for us under a key of parts `aes_key` and `receiver_id`.

    https://developer.work.weixin.qq.com/document/path/90968
    Sixteen random bytes, the length, the message, the receiver's id.
    """
    raw = decode(Encoding.BASE64, ciphertext)
    key = _wecom_key(part("aes_key") or b"")
    plain = None if raw is None or key is None else _opened(key, key[:_AES_BLOCK], raw)
    plain = None if plain is None else _unpadded(plain, _WECOM_BLOCK)
    if plain is None:
        return None
    rest = plain[_AES_BLOCK:]
    end = 4 + int.from_bytes(rest[:4], "big")
    return rest[4:end] if equal(rest[end:], part("receiver_id") or b"") else None


def _opened(key: bytes, first: bytes, raw: bytes) -> bytes | None:
    if len(first) != _AES_BLOCK or not raw or len(raw) % _AES_BLOCK:
        return None
    decryptor = Cipher(AES(key), CBC(first)).decryptor()
    return decryptor.update(raw) + decryptor.finalize()


def _unpadded(plain: bytes, block: int) -> bytes | None:
    padding = plain[-1]
    return plain[:-padding] if 1 <= padding <= block else None


def _wecom_key(text: bytes) -> bytes | None:
    """Return the 32 bytes of 43 characters; the platform's own have stray bits in the last one."""
    try:
        key = binascii.a2b_base64(text + b"=")
    except ValueError:
        return None
    return key if len(key) == _KEY_BYTES else None
