"""From a secret as the provider shows it to key material: prefixes, parts, forms.

An unusable secret is a `SecretError`; its message says why and never holds the secret.
"""

import binascii
import hashlib
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

from verifiers.preset import Preset, SecretForm
from verifiers.schemes import Prepared


class SecretError(Exception):
    """A secret cannot be used; the message says why and never holds the secret."""


class Secret(NamedTuple):
    """A secret, read. `prepared` is None where it holds parameters only and no key.

    Shown by its id alone: a repr must not hold key material.
    """

    key_id: str
    form: SecretForm
    material: bytes = b""
    prepared: Prepared | None = None
    name: str | None = None
    parts: Mapping[str, bytes] = {}
    not_before: int | None = None
    not_after: int | None = None

    def __repr__(self) -> str:
        return f"Secret({self.key_id!r})"


def read_secret(preset: Preset, text: str, *, allow_short: bool) -> list[Secret]:
    """Return what the secret is a key for, in each form that its prefix calls for."""
    if not text:
        raise SecretError("is empty")
    if text != text.strip() and "-----END" not in text:
        raise SecretError("has white space or a line break at its beginning or end")
    forms, prefix = _forms_of(preset, text)
    bare = text[len(prefix) :]
    if not bare:
        raise SecretError("holds nothing after its prefix")
    found: list[Secret] = []
    for form in forms:
        private = bool(prefix) and prefix == form.private_prefix
        whole = text if form.prefix_kept else bare
        found += _read(preset, form, whole, private=private, allow_short=allow_short)
    return found


def _forms_of(preset: Preset, text: str) -> tuple[list[SecretForm], str]:
    """Return the forms whose prefix the secret has, else the first, whose prefix it may lack.

    Several forms with one prefix are several ways to use one secret.
    """
    for form in preset.secrets:
        for prefix in (form.private_prefix, form.prefix):
            if prefix and text.startswith(prefix):
                both = (form.private_prefix, form.prefix)
                return [f for f in preset.secrets if (f.private_prefix, f.prefix) == both], prefix
    first = preset.secrets[0]
    return [f for f in preset.secrets if f.prefix == first.prefix], ""


def _read(
    preset: Preset, form: SecretForm, text: str, *, private: bool, allow_short: bool
) -> list[Secret]:
    parts, key = _parts(preset, form, text)
    if key is None:
        return [Secret("", form, parts=parts)]
    if form.form == "public-key" or (form.algorithm.is_public and key.startswith("-----BEGIN")):
        try:
            read = form.algorithm.prepare_all(key)
        except (ValueError, RecursionError):
            raise SecretError(f"is no {form.algorithm.name} key") from None
        material = key.encode("utf-8", "replace")
        return [Secret("", form, material, prepared, name, parts) for name, prepared in read]
    material = _material(form, key)
    if len(material) < (1 if allow_short else form.bytes_min):
        raise SecretError(f"is too short: {form.bytes_min} bytes or more are needed")
    try:
        prepared = form.algorithm.prepare(material, private)
    except ValueError:
        raise SecretError(f"is no {form.algorithm.name} key") from None
    return [Secret("", form, material, prepared, None, parts)]


def _parts(preset: Preset, form: SecretForm, text: str) -> tuple[Mapping[str, bytes], str | None]:
    """Return the named parts, and the key; None where the key is one that is published."""
    if not form.parts:
        return {}, text
    names = form.parts
    texts = text.split(form.separator, len(names) - 1)
    without_key = preset.published is not None and len(texts) == len(names) - 1
    if (len(texts) != len(names) and not without_key) or not all(texts):
        sign = repr(form.separator)
        raise SecretError(f"must be {' and '.join(names)}, with {sign} between")
    parts = {name: part.encode() for name, part in zip(names, texts, strict=False)}
    return parts, None if without_key else texts[-1]


def _der(pem: str) -> bytes:
    """Return the certificate within a PEM, undecoded: only its fingerprint is wanted."""
    lines = pem.strip().splitlines()
    return binascii.a2b_base64("".join(lines[1:-1]), strict_mode=True)


def _material(form: SecretForm, text: str) -> bytes:
    try:
        if form.form == "utf8":
            return text.encode()
        if form.form == "nfkd":
            return unicodedata.normalize("NFKD", text).encode()
        if form.form == "sha1-of-utf8":
            return hashlib.sha1(text.encode(), usedforsecurity=False).digest()
        if form.form == "fingerprint" and text.startswith("-----BEGIN CERTIFICATE-----"):
            return hashlib.sha256(_der(text)).digest()
        if form.form in ("hex", "fingerprint"):
            return binascii.unhexlify(text)
        return binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except ValueError:
        raise SecretError(f"is not {form.form}") from None
