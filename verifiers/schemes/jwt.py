"""Signed tokens: JWS in its compact form (RFC 7515), claims of RFC 7519.

The algorithm is the preset's: `[[secret]]` tables name the ones that are taken, each tied to a
kind of key, and a token that names another, or none, is refused. A claim is compared with a
template over the request (`payload_hash = "{body|sha256|hex}"`), so a token for one request does
not serve for another. Nothing in the token chooses a key by URL or brings one along.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from verifiers.claim import Claim, collect, unmet
from verifiers.document import Document, Readability
from verifiers.encoding import Encoding, decode, encode, equal
from verifiers.keys import Key, KeyRing
from verifiers.preset import BODY, SIGNATURE, Content, Preset
from verifiers.reading import Reading
from verifiers.reason import Reason
from verifiers.table import Table

PAYLOADS = ("inside", "detached", "detached-raw")
_TOKEN_BYTES_MAX = 65_536
_INSTANT_DIGITS_MAX = 12


@dataclass(frozen=True, slots=True)
class TokenRule:
    """[token]. `claims` are (pointer, accepted contents); ages and leeway in seconds.

    `payload` says where the claims are: inside the token, or detached, the body being the payload.
    """

    payload: str
    claims: tuple[tuple[tuple[str, ...], tuple[Content, ...]], ...]
    required: tuple[str, ...]
    max_age_s: int | None
    leeway_s: int

    @property
    def words(self) -> frozenset[str]:
        """The fields of the request that the token covers."""
        if self.payload != "inside":
            return frozenset({"body"})
        found: set[str] = set()
        for _, contents in self.claims:
            found |= frozenset.intersection(*(c.template.covering for c in contents))
        return frozenset(found)


def read_rule(table: Table, content: Callable[[Table, str, str], Content]) -> TokenRule:
    """Return the rule of [token]; `content` compiles the template at a key of a table."""
    claims = table.table("claims")
    found = []
    for name in claims.keys():  # noqa: SIM118  # a table is no dict
        contents = tuple(content(claims, name, text) for text in claims.texts(name))
        pointer = tuple(name[1:].split("/")) if name.startswith("/") else (name,)
        found.append((pointer, contents))
    rule = TokenRule(
        table.word("payload", PAYLOADS, "inside"),
        tuple(found),
        table.texts("require"),
        table.number("max_age_s", 0) or None,
        table.number("leeway_s", 60),
    )
    table.done()
    return rule


def read(reading: Reading, preset: Preset, keys: KeyRing) -> Claim | Reason:
    """Return what the token of a request claims."""
    rule: TokenRule = preset.options
    found, repeated = collect(reading, preset)
    value = found[SIGNATURE]
    if value is None:
        return Reason.SIGNATURE_MISSING
    reason = unmet(reading, preset, found, repeated)
    if reason is not None:
        return reason
    token = token_parts(value, preset, rule, found[BODY] or b"")
    if token is None:
        return Reason.SIGNATURE_MALFORMED
    header, payload, signing, signature = token
    algorithm = (header.at(("alg",)) or "").encode()
    sizes = keys.sizes.get(algorithm)
    if sizes is None or (sizes and len(signature) not in sizes):
        return Reason.SIGNATURE_MALFORMED
    claims = Document(payload)
    if rule.payload == "inside" and claims.state is not Readability.READABLE:
        return Reason.SIGNATURE_MALFORMED
    instants = _instants(claims, rule)
    if instants is None:
        return Reason.TIMESTAMP_MALFORMED
    if any(name not in instants for name in rule.required):
        return Reason.TIMESTAMP_MISSING
    reading.claims = claims
    name = header.at(("kid",))
    return Claim(
        [(algorithm, signature)],
        found,
        instants.get("iat"),
        None if name is None else name.encode("utf-8", "replace"),
        [(signing, [(algorithm, signature)])],
        after=lambda _, now: _doubt(rule, reading, found, instants, now),
    )


def token_parts(
    value: bytes, preset: Preset, rule: TokenRule, body: bytes
) -> tuple[Document, bytes, bytes, bytes] | None:
    """Return header, payload, signing input and signature; None unless all is canonical."""
    prefix = preset.layout.prefix
    pieces = value[len(prefix) :].split(b".")
    if not value.startswith(prefix) or len(pieces) != 3 or len(value) > _TOKEN_BYTES_MAX:  # noqa: PLR2004
        return None
    first, middle, last = pieces
    if rule.payload != "inside":
        if middle:
            return None
        middle = encode(Encoding.BASE64URL, body) if rule.payload == "detached" else body
    header = Document(decode(Encoding.BASE64URL, first) or b"")
    signature = decode(Encoding.BASE64URL, last)
    payload = decode(Encoding.BASE64URL, middle) if rule.payload == "inside" else body
    if not signature or payload is None or header.state is not Readability.READABLE:
        return None
    # RFC 7515, section 4.1.11: an extension that must be understood, and is not.
    extensions = header.value(("crit",))
    if extensions is not None and (extensions != ["b64"] or rule.payload != "detached-raw"):
        return None
    return header, payload, first + b"." + middle, signature


def _instants(claims: Document, rule: TokenRule) -> dict[str, int] | None:
    """Return iat, nbf and exp in unix seconds; None when one is no number of seconds."""
    found = {}
    for name in ("iat", "nbf", "exp") if rule.payload == "inside" else ():
        value = claims.value((name,))
        if value is None:
            continue
        whole = value.partition(".")[0] if isinstance(value, str) else ""
        if not (whole.isascii() and whole.isdigit() and len(whole) <= _INSTANT_DIGITS_MAX):
            return None
        found[name] = int(whole)
    return found


def _doubt(
    rule: TokenRule,
    reading: Reading,
    found: list[bytes | None],
    instants: dict[str, int],
    now: int,
) -> Reason | None:
    """Return why a token with a right signature does not serve for this request, now."""
    reason = disagreement(rule, reading, found)
    if reason is not None:
        return reason
    iat, leeway_s = instants.get("iat"), rule.leeway_s
    too_old = rule.max_age_s is not None and iat is not None and now - iat > rule.max_age_s
    if too_old or now >= instants.get("exp", now + 1) + leeway_s:
        return Reason.TIMESTAMP_TOO_OLD
    early = max(instants.get("nbf", now), iat if iat is not None else now)
    return Reason.TIMESTAMP_IN_FUTURE if early > now + leeway_s else None


def disagreement(rule: TokenRule, reading: Reading, found: list[bytes | None]) -> Reason | None:
    """Return that a claim does not say what it must, or None."""
    agreed = all(_claims(reading, pointer, contents, found) for pointer, contents in rule.claims)
    return None if agreed else Reason.CONTENT_MISMATCH


def _claims(
    reading: Reading,
    pointer: tuple[str, ...],
    contents: tuple[Content, ...],
    found: list[bytes | None],
) -> bool:
    """Whether a claim says what it must: one of the contents, or nothing where that is empty."""
    given = reading.claims.value(pointer) if reading.claims is not None else None
    values = [_text(item) for item in (given if isinstance(given, list) else [given])]
    for content in contents:
        wanted = content.render(found) or b""
        if not wanted:
            if given is None:
                return True
            continue
        if any(value is not None and equal(value, wanted) for value in values):
            return True
    return False


def _text(value: Any) -> bytes | None:
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return value.encode("utf-8", "replace") if isinstance(value, str) else None


def claims_for(rule: TokenRule, found: list[bytes | None], now: int) -> dict[str, Any]:
    """Return claims that make a token serve for the request whose values are `found`."""
    claims: dict[str, Any] = {"iat": now, "exp": now + 60}
    for pointer, contents in rule.claims:
        value = contents[0].render(found)
        at = claims
        for token in pointer[:-1]:
            at = at.setdefault(token, {})
        if value:
            at[pointer[-1]] = value.decode("utf-8", "replace")
    return claims


def sign(key: Key, header: bytes, payload: bytes, rule: TokenRule) -> bytes:
    """Return a token; `header` and `payload` are JSON."""
    first, middle = encode(Encoding.BASE64URL, header), encode(Encoding.BASE64URL, payload)
    if rule.payload == "detached-raw":
        middle = payload
    signature = encode(Encoding.BASE64URL, key.prepared.sign(first + b"." + middle))
    shown = middle if rule.payload == "inside" else b""
    return b".".join((first, shown, signature))
