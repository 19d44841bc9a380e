"""The preset grammar is closed."""

import copy
import tomllib
from typing import Any

import pytest

from verifiers.preset import PresetError, load_preset, parse_preset, preset_names
from verifiers.verdict import Check

TEXT = """\
name = "mine"
signed = "{id}.{timestamp}.{body}"
retry_horizon_s = 3600

[signature]
from = "header:x-sig"
layout = "pairs"
encoding = "hex"

[secret]
version = "v1"
algorithm = "hmac-sha256"
form = "utf8"

[timestamp]
from = "signature:t"

[event]
id = "header:x-id"
"""


def table() -> dict[str, Any]:
    """Return a private preset as a configuration gives it."""
    return copy.deepcopy(tomllib.loads(TEXT))


def test_the_seven_presets_load() -> None:
    """Every built-in preset is within its own grammar and has documentation or says it is ours."""
    names = preset_names()

    assert set(names) >= {
        "github",
        "shopify",
        "slack",
        "standard-webhooks",
        "stripe",
        "svix",
        "timestamp-body",
    }
    assert names == tuple(load_preset(name).name for name in names)
    assert all(load_preset(name).docs or name == "timestamp-body" for name in names)


def test_v1a_is_the_same_preset() -> None:
    """The key's form decides between v1 and v1a, so there is one preset for both."""
    assert load_preset("standard-webhooks") is load_preset("standard-webhooks-v1a")


def test_an_unknown_preset_is_suggested() -> None:
    """A misspelt name names the nearest known one."""
    with pytest.raises(PresetError, match="did you mean 'stripe'"):
        load_preset("strpe")


def test_a_private_scheme_has_the_same_grammar() -> None:
    """The tables of a built-in preset describe a user's own scheme."""
    preset = parse_preset(table(), "config.toml", TEXT)

    assert (preset.name, preset.proof, preset.id_signed) == ("mine", "documented", True)
    assert preset.checks == (
        Check.SIGNATURE_PRESENT,
        Check.SIGNATURE_READABLE,
        Check.TIMESTAMP_READABLE,
        Check.ID_READABLE,
        Check.SIGNATURE_MATCHES,
        Check.KEY_VALID,
        Check.TIMESTAMP_FRESH,
    )


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("colour", "red", "colour: unknown key"),
        ("signature.fom", "x", r"signature.fom: unknown key; did you mean 'from'"),
        ("signature.layout", "list of pairs", r"config.toml:7: signature.layout: .* unknown"),
        ("signature.encoding", "base46", "did you mean 'base64'"),
        ("signature.from", "item:/sig", "cannot stand here"),
        ("signature.from", [], "is required"),
        ("signature.from", 3, "a text or a list"),
        ("signature.from", ["header:x-sig", 3], "a text or a list"),
        ("signature", "header:x-sig", "must be a table"),
        ("secret", [3], "a table or an array of tables"),
        ("timestamp.from", [], "is required"),
        ("signature.layout", "bare", "cannot stand here"),
        ("signature.separator", "", "must not be empty"),
        ("scheme", "jws", "unknown"),
        ("like", "strpe", "did you mean 'stripe'"),
        ("otherwise", "strpe", "did you mean 'stripe'"),
        ("secret.parts", ["a", "a"], "once"),
        ("secret.version", "{key:a}", "is no part"),
        ("secret.needs", "body:/a", "must name a header"),
        ("secret.algorithm", "sha256", "needs {secret}"),
        ("secret.form", "public-key", "has no public key"),
        ("timestamp.tolerance", "forever", "unknown"),
        ("keys", {"format": "jwks", "url": "http://a.test"}, "must be https"),
        ("keys", {"format": "jwks"}, "either url or url_from"),
        (
            "keys",
            {"format": "pem", "url_from": "header:x-u", "url_pattern": "https://a.b/x"},
            "stands for any character",
        ),
        ("match", {"at": "signature:t", "is": "x"}, "cannot stand here"),
        ("match", {"at": "header:x", "is": "{nope}"}, "unknown field"),
        ("secret.algorithm", "hmac-sha265", "did you mean 'hmac-sha256'"),
        ("secret.algorithm", "hmac-md4", "unknown"),
        ("secret.form", "base32", "unknown"),
        ("secret.bytes_min", -1, "0 or more"),
        ("secret.bytes_min", True, "whole number"),
        ("timestamp.tolerance_s", "300", "whole number"),
        ("timestamp.unit", "us", "unknown"),
        ("timestamp.from", "header:x-id", None),
        ("timestamp.retry_restamps", "yes", "true or false"),
        ("event.id", "header:x-sig", "already in use"),
        ("event.id", "body:/id", "needs event.id in a header"),
        ("event.id", ["body:/a", "body:/b"], "headers only"),
        ("event.id", "X-Id", "does not start with"),
        ("signed", "{timestamp}{id}{body}", "touches another field"),
        ("signed", "{body", "a brace stands alone"),
        ("signed", "{uri}.{body}", "unknown field {uri}"),
        ("signed", "constant", "no field"),
        ("signed", "{body|sha3}", "unknown transform"),
        ("signed", "{fields}", "need one of"),
        ("signed", "[{body}", "a bracket stands alone"),
        ("signed", "{body}]", "a bracket stands alone"),
        ("signed", "[a[{body}]]", "within another"),
        ("signed", "{body}{body}", "stands twice"),
        ("signed", "", "names no field"),
        ("ack", {"status": 500}, "success"),
        ("required", {"headers": [{"names": ["X-Big"]}]}, "lower case"),
        ("secret", [], "is required"),
        ("retry_horizon_s", None, "is required"),
    ],
)
def test_anything_outside_the_grammar_is_refused(
    path: str, value: Any, message: str | None
) -> None:
    """A wrong key or word stops the start; the message says where and what would be right."""
    broken = table()
    *parents, key = path.split(".")
    inner = broken
    for parent in parents:
        inner = inner[parent]
    if value is None:
        del inner[key]
    else:
        inner[key] = value
    if path == "timestamp.from":
        broken["event"]["id"] = "header:x-id"

    with pytest.raises(PresetError, match=message or "already in use"):
        parse_preset(broken, "config.toml", TEXT)


def test_a_timestamp_that_is_signed_must_be_found_somewhere() -> None:
    """A template cannot name what the preset does not say how to read."""
    broken = table()
    del broken["timestamp"]

    with pytest.raises(PresetError, match="needs a table"):
        parse_preset(broken, "config.toml")


def test_the_line_is_named() -> None:
    """An error in a file names the line of the key."""
    text = TEXT.replace('form = "utf8"', 'form = "utf7"')

    with pytest.raises(PresetError, match=r"^config.toml:13: secret.form: 'utf7' is unknown"):
        parse_preset(tomllib.loads(text), "config.toml", text)


def test_presets_say_where_their_facts_are_from() -> None:
    """Every preset names the page of the provider, but for the one that is ours."""
    for name in preset_names():
        preset = load_preset(name)

        assert preset.docs.startswith("https://") or name == "timestamp-body"


def test_a_table_within_a_file_is_named_with_its_path() -> None:
    """A private scheme inside a configuration names its full key and its line."""
    text = """\
[schemes.mine]
name = "mine"
signed = "{body}"
retry_horizon_s = 1
colour = "red"
[schemes.mine.signature]
from = "header:x-sig"
layout = "bare"
encoding = "hex"
[schemes.mine.secret]
algorithm = "hmac-sha256"
form = "utf8"
"""
    scheme = tomllib.loads(text)["schemes"]["mine"]

    with pytest.raises(PresetError, match=r"^c.toml:5: schemes.mine.colour: unknown key"):
        parse_preset(scheme, "c.toml", text, "schemes.mine")


def test_a_bare_signature_has_no_version() -> None:
    """Where one signature stands alone, a version would never be looked at."""
    broken = table()
    broken["signature"]["layout"] = "bare"
    broken["timestamp"]["from"] = "header:x-time"

    with pytest.raises(PresetError, match="a bare signature has no version"):
        parse_preset(broken, "config.toml", TEXT)


def test_a_preset_without_an_id_has_no_signed_one() -> None:
    """A scheme may name no id at all: its key is the digest."""
    plain = table()
    del plain["event"]
    plain["signed"] = "{timestamp}.{body}"
    preset = parse_preset(plain, "config.toml", TEXT)

    assert (preset.event_id, preset.id_signed, preset.body_signed) == ((), False, True)
    assert Check.ID_READABLE not in preset.checks
