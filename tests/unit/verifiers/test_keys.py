"""Keys are judged at start-up."""

import base64

import pytest

from tests.support.vectors import NOW, OTHER_SECRET, PRIVATE_KEY, SECRET
from verifiers.keys import SecretError, build_key_ring, shared_keys
from verifiers.preset import load_preset


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("standard-webhooks", "", "is empty"),
        ("standard-webhooks", "whsec_", "nothing after its prefix"),
        ("standard-webhooks", "whpk_", "nothing after its prefix"),
        ("standard-webhooks", "whsk_", "nothing after its prefix"),
        ("standard-webhooks", "whsec_QUJD", "too short"),
        ("standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "not base64"),
        ("standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw!!!!", "not base64"),
        ("standard-webhooks", "whsec_clé-secrète-de-longueur", "not base64"),
        ("standard-webhooks", "whpk_" + "QUFB" * 8, "no ed25519 key"),
        ("standard-webhooks", "whsk_" + "QUFB" * 11, "no ed25519 key"),
        ("stripe", "whsec_", "nothing after its prefix"),
        ("stripe", "", "is empty"),
        ("github", "", "is empty"),
        ("github", "brief", "too short"),
        ("github", "a secret with a line break\n", "white space"),
        ("shopify", "hush", "too short"),
        ("slack", " 8f742231b10e8888abcd99yyyzzz85a5", "white space"),
        ("timestamp-body", "whsec_\ud800_lone_surrogate", "is not utf8"),
    ],
)
def test_an_unusable_secret_stops_the_start(name: str, text: str, message: str) -> None:
    """F08, SC-06: empty, prefix-only, undecodable and short secrets are refused, never used."""
    with pytest.raises(SecretError, match=message) as error:
        build_key_ring(load_preset(name), [("main", text, None, None)])

    assert "'main'" in str(error.value)
    assert not text or text.strip() not in str(error.value)


def test_a_source_without_keys_stops_the_start() -> None:
    """F08: no key at all is refused; it would verify nothing."""
    with pytest.raises(SecretError, match="no key"):
        build_key_ring(load_preset("github"), [])


def test_secrets_stay_out_of_reprs() -> None:
    """F11: neither a key nor a ring shows its material."""
    ring = build_key_ring(load_preset("github"), [("main", SECRET, None, None)])

    assert SECRET not in repr(ring) + repr(ring.keys[0]) + str(ring.keys[0].prepared)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([("a", SECRET, None, None), ("a", SECRET, None, None)], "same id"),
        ([("a", SECRET, 10, 9)], "not_before is after not_after"),
        ([(str(i), SECRET, None, None) for i in range(5)], "more than 4"),
        ([(str(i), SECRET, 100 + i, 200) for i in range(5)], "more than 4"),
    ],
)
def test_a_ring_that_cannot_work_stops_the_start(
    entries: list[tuple[str, str, int | None, int | None]], message: str
) -> None:
    """SC-12: ids are unique, periods are periods, and at most four keys are live at once."""
    with pytest.raises(SecretError, match=message):
        build_key_ring(load_preset("github"), entries)


def test_many_keys_in_turn_are_fine() -> None:
    """A long rotation history is no obstacle as long as four are live at once."""
    entries = [(str(i), SECRET, i * 100, i * 100 + 99) for i in range(1, 20)]
    ring = build_key_ring(load_preset("github"), entries)

    assert [k.id for k in ring.live(555)] == ["5"]
    assert [k.id for k in ring.others(5000)] == ["19", "18", "17", "16"]


def test_validity_includes_both_ends() -> None:
    """A key is live from its first second to its last."""
    (key,) = build_key_ring(load_preset("github"), [("a", SECRET, NOW, NOW + 9)]).keys

    assert [key.is_live(NOW + at) for at in (-1, 0, 9, 10)] == [False, True, True, False]


def test_a_private_key_may_come_with_its_public_half() -> None:
    """Seed alone and seed with public key are the same private key; another half is refused."""
    preset = load_preset("standard-webhooks")
    seed = base64.b64decode(PRIVATE_KEY[5:])
    public = build_key_ring(preset, [("a", PRIVATE_KEY, None, None)]).keys[0].prepared._public  # type: ignore[attr-defined]
    whole = "whsk_" + base64.b64encode(seed + public.public_bytes_raw()).decode()
    wrong = "whsk_" + base64.b64encode(seed + bytes(32)).decode()

    assert build_key_ring(preset, [("a", whole, None, None)]).sizes == {b"v1a": frozenset({64})}
    with pytest.raises(SecretError, match="no ed25519 key"):
        build_key_ring(preset, [("a", wrong, None, None)])


def test_a_key_of_two_sources_is_seen() -> None:
    """SC-04: sources that share a key are named, so that the start can refuse them."""
    preset = load_preset("github")
    rings = {
        name: build_key_ring(preset, [("k", secret, None, None)])
        for name, secret in (("a", SECRET), ("b", OTHER_SECRET), ("c", SECRET))
    }

    assert shared_keys(rings) == [("a", "c")]
