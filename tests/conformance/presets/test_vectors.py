"""Every preset against its vectors."""

import pytest

from tests.support.vectors import files, ring, sample, vectors
from verifiers.preset import load_preset, preset_names
from verifiers.vectors import Vector, failures
from verifiers.verdict import Reason, Rejected, State, Verified
from verifiers.verify import verify

ALL = list(vectors())
ACCEPTED = [vector for vector in ALL if vector.accept]


# Token schemes whose tokens say when they end, or must be fresh.
_EXPIRING = {"atlassian-connect", "livekit", "messagebird", "monday", "plaid", "vonage"}

# Where a part of the secret names the key or the application, that part is what is wrong.
_ABOUT_THE_KEY = (
    Reason.SIGNATURE_MISMATCH,
    Reason.SIGNATURE_MALFORMED,
    Reason.KEY_UNKNOWN,
    Reason.CONTENT_MISMATCH,
)


def _is_stamped(vector: Vector) -> bool:
    """Tell whether the request says when it was signed, and is judged by that."""
    rule = vector.preset().timestamp
    verdict = verify(vector.request, vector.preset(), vector.keys(), vector.now)
    stamped = isinstance(verdict, Verified) and verdict.timestamp is not None
    return rule is not None and rule.judged and stamped


def _id(vector: Vector) -> str:
    return f"{vector.slug}/{vector.name}"


@pytest.mark.parametrize("vector", ALL, ids=_id)
def test_a_vector_gets_its_verdict(vector: Vector) -> None:
    """What the provider's own library accepts is accepted, what it refuses is refused (F01, F02)."""
    assert list(failures([vector])) == []


@pytest.mark.parametrize("vector", ACCEPTED, ids=_id)
def test_an_accepted_vector_passes_every_check(vector: Vector) -> None:
    """The list of checks of an accepted request is the preset's whole list, all passed."""
    preset = vector.preset()
    verdict = verify(vector.request, preset, vector.keys(), vector.now)

    assert isinstance(verdict, Verified)
    assert [(c, State.PASSED, None) for c in preset.checks] == list(verdict.checks(preset))


@pytest.mark.parametrize("vector", [v for v in ALL if not v.accept], ids=_id)
def test_a_refused_vector_says_where_it_stopped(vector: Vector) -> None:
    """The reason of every refusal belongs to a check that the preset makes."""
    preset = vector.preset()
    verdict = verify(vector.request, preset, vector.keys(), vector.now)

    assert isinstance(verdict, Rejected)
    assert [line.reason for line in verdict.checks(preset) if line.reason] == [verdict.reason]


@pytest.mark.parametrize("vector", [v for v in ACCEPTED if not v.preset().unsigned], ids=_id)
def test_another_secret_refuses_the_vector(vector: Vector) -> None:
    """An accepted request is refused under a secret that the sender does not have."""
    preset = vector.preset()
    found = verify(vector.request, preset, ring(preset, sample(preset.name, 1)), vector.now)

    assert isinstance(found, Rejected)
    assert found.reason in _ABOUT_THE_KEY


@pytest.mark.parametrize("vector", [v for v in ACCEPTED if _is_stamped(v)], ids=_id)
@pytest.mark.parametrize(
    ("direction", "reason"),
    [(1, Reason.TIMESTAMP_TOO_OLD), (-1, Reason.TIMESTAMP_IN_FUTURE)],
)
def test_a_shifted_clock_refuses_the_vector(vector: Vector, direction: int, reason: Reason) -> None:
    """A capture is refused much later and much earlier, with the reason that says so (F20, F21)."""
    rule = vector.preset().timestamp
    assert rule is not None
    later = vector.now + direction * (rule.past_s + 86_400)

    assert Rejected(reason) == verify(vector.request, vector.preset(), vector.keys(), later)


@pytest.mark.parametrize("name", sorted(_EXPIRING))
def test_a_token_is_refused_when_its_time_is_over(name: str) -> None:
    """F20: tokens with a time of their own do not serve for ever."""
    for vector in ACCEPTED:
        if vector.slug == name:
            late = verify(vector.request, vector.preset(), vector.keys(), vector.now + 86_400)

            assert Rejected(Reason.TIMESTAMP_TOO_OLD) == late


def test_every_preset_has_vectors() -> None:
    """A preset without a vector of its own is not shipped."""
    proved = {load_preset(file.stem).name for file in files()}
    others = [load_preset(name).otherwise for name in proved]
    proved |= {other.name for other in others if other is not None}  # in the file of the first

    assert set(preset_names()) == proved


def test_vector_files_are_not_empty() -> None:
    """Every file is read, with accepted and refused requests in each."""
    kinds = {(vector.slug, vector.accept) for vector in ALL}

    assert {(file.stem, accept) for file in files() for accept in (True, False)} == kinds
