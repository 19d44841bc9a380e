"""Canonical texts that some providers sign in place of what they send.

Pure functions over decoded pairs, a method and a URL, or a JSON body; each names its source.
"""

import hashlib
import json
import math
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_from_bytes

Pairs = list[tuple[bytes, bytes]]

_DEPTH_MAX = 100


# ---------------------------------------------------------------- JSON


def canonical_json(body: bytes) -> bytes | None:
    """Return the body in the form of RFC 8785; None where it is not JSON.

    Of a key that stands twice the last one counts, as with the readers that senders use. The
    body is still flagged as ambiguous, so nothing is taken out of it.
    """
    try:
        text = body.decode("utf-8-sig")
        return _canonical(json.loads(text), 0).encode("utf-8")
    except (ValueError, RecursionError, OverflowError):
        return None


def _canonical(value: Any, depth: int) -> str:
    if depth > _DEPTH_MAX:
        raise ValueError("too deep")
    if isinstance(value, dict):
        # RFC 8785, section 3.2.3: sorted by UTF-16 code units.
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        members = (f"{_text(key)}:{_canonical(value[key], depth + 1)}" for key in keys)
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_canonical(item, depth + 1) for item in value) + "]"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return _number(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    """Return the number as ECMAScript writes it (RFC 8785, section 3.2.2.3)."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("no JSON number")
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    digits, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = digits.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    figures = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(figures)
    figures = figures.rstrip("0") or "0"
    return sign + _placed(figures, point)


def _placed(figures: str, point: int) -> str:
    """Return the figures with the decimal point after the first `point` of them."""
    count = len(figures)
    if count <= point <= 21:  # noqa: PLR2004  # the limits of ECMAScript's Number::toString
        return figures + "0" * (point - count)
    if 0 < point <= 21:  # noqa: PLR2004
        return figures[:point] + "." + figures[point:]
    if -6 < point <= 0:  # noqa: PLR2004
        return "0." + "0" * -point + figures
    mantissa = figures[0] + ("." + figures[1:] if count > 1 else "")
    return f"{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"


# ---------------------------------------------------------------- fields


def concatenated(pairs: Pairs) -> bytes:
    """Return names and values side by side, sorted, equal pairs once (Twilio, Mandrill)."""
    return b"".join(name + value for name, value in sorted(set(pairs)))


def ampersand(pairs: Pairs) -> bytes:
    """Return `name=value` joined by `&`, sorted by name (Alipay)."""
    return b"&".join(b"%b=%b" % pair for pair in sorted(pairs))


def underscored(pairs: Pairs) -> bytes:
    """Return `&name=value`, sorted, `&` and `=` in values replaced by `_` (Vonage SMS)."""
    clean = bytes.maketrans(b"&=", b"__")
    return b"".join(b"&%b=%b" % (name, value.translate(clean)) for name, value in sorted(pairs))


def php_serialized(pairs: Pairs) -> bytes:
    """Return PHP's serialize() of the fields as texts, sorted by name (Paddle Classic).

    The counts are of bytes. Of a name that stands twice PHP keeps the last.
    """
    fields = sorted(dict(pairs).items())
    inner = b"".join(
        b's:%d:"%b";s:%d:"%b";' % (len(name), name, len(value), value) for name, value in fields
    )
    return b"a:%d:{%b}" % (len(fields), inner)


PAIRS: dict[str, Callable[[Pairs], bytes]] = {
    "concatenated": concatenated,
    "ampersand": ampersand,
    "underscored": underscored,
    "php-serialized": php_serialized,
}


# ---------------------------------------------------------------- requests


def query_string_hash(method: str, path: bytes, query: Pairs) -> bytes:
    """Return the input of Atlassian Connect's `qsh` claim, hashed, as hex."""
    groups: dict[str, list[str]] = {}
    for name, value in query:
        if name != b"jwt":
            groups.setdefault(_quoted(name), []).append(_quoted(value))
    text = "&".join(f"{name}={','.join(sorted(groups[name]))}" for name in sorted(groups))
    clean = path.rstrip(b"/").replace(b"&", b"%26") or b"/"
    whole = b"%b&%b&%b" % (method.upper().encode(), clean, text.encode())
    return hashlib.sha256(whole).hexdigest().encode()


def contentful_path(path: bytes, query: bytes) -> bytes:
    """Return the path as Contentful signs it: the query escaped whole, then all of it again."""
    whole = path.decode("utf-8", "replace")
    if query:
        whole += "?" + quote_from_bytes(query, safe="!'()*-._~")
    return quote(whole, safe="!#$&'()*+,/:;=?@-._~").encode()


def plivo_v3(url: bytes, query: Pairs, form: Pairs) -> bytes:
    """Return the URL with sorted query and sorted fields, as Plivo's version 3 joins them."""
    base = url.partition(b"?")[0]
    sorted_query = b"&".join(b"%b=%b" % pair for pair in sorted(query))
    if not form:
        return base + (b"?" + sorted_query if sorted_query else b"")
    glue = b"." if sorted_query else b""
    fields = b"".join(name + value for name, value in sorted(form))
    return b"%b?%b%b%b" % (base, sorted_query, glue, fields)


def header_lines(names: bytes, values: dict[bytes, bytes]) -> bytes | None:
    """Return `name:value` joined by `;`, sorted, for a comma-separated list of header names.

    None when one of them is not there (Contentful).
    """
    wanted = sorted({name.strip().lower() for name in names.split(b",") if name.strip()})
    if not all(name in values for name in wanted):
        return None
    return b";".join(b"%b:%b" % (name, values[name]) for name in wanted)


def _quoted(raw: bytes) -> str:
    return quote_from_bytes(raw, safe="-._~")
