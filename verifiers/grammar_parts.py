"""The tables of a preset that stand on their own: layout, secrets, published keys, answer."""

import re

from verifiers.layout import Kind, Layout
from verifiers.locate import Locator, Place, parse_locator
from verifiers.preset import KEY_NAME, Ack, Preset, Published, SecretForm
from verifiers.reason import Check
from verifiers.schemes import ALGORITHMS
from verifiers.table import Table

FORMS = ("utf8", "nfkd", "base64", "hex", "sha1-of-utf8", "fingerprint", "public-key")
FORMATS = ("jwks", "certificate", "pem", "pem-json", "x509-json")
PLACES_OF_FIELDS = frozenset(
    {Place.HEADER, Place.QUERY, Place.FORM, Place.PARAM, Place.BODY, Place.CLAIM, Place.ITEM}
)

_DEFAULTS = {Kind.LIST: (" ", ","), Kind.PAIRS: (",", "=")}


def read_layout(table: Table) -> Layout:
    """Return the layout of [signature]."""
    kind = Kind(table.word("layout", list(Kind), Kind.BARE))
    separator, equals = _DEFAULTS.get(kind, (",", "="))
    prefix = table.text("prefix", "").encode()
    if kind is Kind.BARE:
        for key in ("separator", "equals", "spaces", "first"):
            if key in table:
                raise table.error(key, "a bare signature stands alone")
        return Layout(kind, prefix)
    layout = Layout(
        kind,
        prefix,
        table.text("separator", separator).encode(),
        table.text("equals", equals).encode(),
        table.text("first", "t").encode() if kind is Kind.POSITIONAL else b"",
        table.truth("spaces", default=False),
    )
    if not layout.separator or not layout.equals:
        raise table.error("separator", "must not be empty")
    return layout


_LABELLED = (Kind.PAIRS, Kind.LIST, Kind.JSON_BASE64)


def read_secret(table: Table, layout: Layout, scheme: str) -> SecretForm:
    """Return one [[secret]]."""
    labelled = layout.kind in _LABELLED or scheme != "signature"
    algorithm = ALGORITHMS[table.word("algorithm", ALGORITHMS)]
    parts = table.texts("parts")
    if len(set(parts)) != len(parts):
        raise table.error("parts", "must name each part once")
    version = table.text("version", None if labelled and scheme in ("signature", "jwt") else "")
    version_part = ""
    if match := re.fullmatch(r"\{key:([^{}]+)\}", version):
        version, version_part = "", match[1]
        if version_part not in parts:
            raise table.error("version", f"{version_part!r} is no part of the secret")
    if not labelled and (version or version_part):
        raise table.error("version", "a bare signature has no version")
    public = "public-key" if algorithm.is_public and algorithm.name != "ed25519" else None
    form = SecretForm(
        algorithm,
        version.encode(),
        table.word("form", FORMS, public),
        table.text("prefix", ""),
        table.truth("prefix_kept", default=False),
        table.text("private_prefix", ""),
        table.number("bytes_min", 16),
        version_part,
        parts,
        table.text("separator", ":"),
        _needs(table),
    )
    if form.form == "public-key" and not algorithm.is_public:
        raise table.error("form", f"{algorithm.name} has no public key")
    table.done()
    return form


def _needs(table: Table) -> tuple[bytes, bytes] | None:
    """Return header and text of `needs = "header:NAME"`, `holding = "TEXT"`."""
    text = table.text("needs", "")
    if not text:
        return None
    place = table.convert("needs", parse_locator, text)
    if place.place is not Place.HEADER:
        raise table.error("needs", "must name a header")
    return place.name, table.text("holding").encode()


def read_published(top: Table) -> Published | None:
    """Return [keys], or None for a preset whose keys are the operator's."""
    if "keys" not in top:
        return None
    table = top.table("keys")
    url = table.text("url", "")
    named = table.text("url_from", "")
    url_from: Locator | None = table.convert("url_from", parse_locator, named) if named else None
    pattern = re.compile(re.escape(url))
    if url_from is not None:
        pattern = table.convert("url_pattern", _url_pattern, table.text("url_pattern"))
    if bool(url) == bool(named):
        raise table.error("url", "give either url or url_from")
    if url and not url.startswith("https://"):
        raise table.error("url", "must be https")
    published = Published(table.word("format", FORMATS), url, url_from, pattern)
    table.done()
    return published


def _url_pattern(text: str) -> re.Pattern[str]:
    """Return the compiled pattern: https, an exact host of word characters, dots escaped."""
    if not text.startswith("https://"):
        raise ValueError("must begin with https://")
    host = text.removeprefix("https://").partition("/")[0]
    if re.search(r"(?<!\\)\.", host):
        raise ValueError(r"a dot in the host stands for any character: write \.")
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"is no pattern: {error}") from None


def read_ack(top: Table) -> Ack:
    """Return [ack]."""
    table = top.table("ack")
    deadline_s = table.number("deadline_s", 0)
    ack = Ack(
        table.number("status", 200),
        table.text("body", "").encode(),
        table.text("content_type", "") or None,
        deadline_s or None,
    )
    if not 200 <= ack.status < 300:  # noqa: PLR2004  # success, or the provider sends it again
        raise table.error("status", "must be a success, 200 to 299")
    table.done()
    return ack


def _names_key(preset: Preset) -> bool:
    """Whether requests say which key they are signed with."""
    return KEY_NAME in (*preset.slots.values(), *(slot for slot, _ in preset.labelled))


def checks_made(preset: Preset) -> tuple[Check, ...]:
    """Return the checks of a preset, in their order: a scheme of its own makes them all."""
    if preset.unsigned:
        return (Check.BODY_PRESENT,) if preset.body_required else ()
    rule, own = preset.timestamp, preset.read is not None
    made = {
        Check.BODY_DECODABLE: preset.decoded,
        Check.HEADERS_PRESENT: bool(preset.required),
        Check.BODY_PRESENT: preset.body_required,
        Check.TIMESTAMP_READABLE: own or rule is not None,
        Check.ID_READABLE: bool(preset.event_id) and preset.event_id[0].place is Place.HEADER,
        Check.CONTENT_PRESENT: own or bool(preset.derived or preset.labelled),
        Check.KEY_KNOWN: own or preset.published is not None or _names_key(preset),
        Check.CONTENT_AGREES: own or bool(preset.matches),
        Check.TIMESTAMP_FRESH: own or (rule is not None and rule.judged),
    }
    others = () if preset.otherwise is None else preset.otherwise.checks
    return tuple(check for check in Check if made.get(check, True) or check in others)
