"""Every preset against its vectors."""

import pytest

from tests.support.vectors import files, vectors
from verifiers.keys import build_key_ring
from verifiers.preset import load_preset, preset_names
from verifiers.vectors import Vector, failures
from verifiers.verdict import Check, Reason, Rejected, State, Verified
from verifiers.verify import verify

ALL = list(vectors())
ACCEPTED = [vector for vector in ALL if vector.accept]


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


@pytest.mark.parametrize("vector", ACCEPTED, ids=_id)
def test_another_secret_refuses_the_vector(vector: Vector) -> None:
    """An accepted request is refused under a secret that the sender does not have."""
    preset = vector.preset()
    other = "whpk_" + "A" * 43 + "=" if vector.secret.startswith("whpk_") else "whsec_" + "QUFB" * 8
    keys = build_key_ring(preset, [("other", other, None, None)])

    assert Rejected(Reason.SIGNATURE_MISMATCH) == verify(vector.request, preset, keys, vector.now)


@pytest.mark.parametrize(
    "vector", [v for v in ACCEPTED if Check.TIMESTAMP_FRESH in v.preset().checks], ids=_id
)
@pytest.mark.parametrize(
    ("shift_s", "reason"),
    [(86_400, Reason.TIMESTAMP_TOO_OLD), (-86_400, Reason.TIMESTAMP_IN_FUTURE)],
)
def test_a_shifted_clock_refuses_the_vector(vector: Vector, shift_s: int, reason: Reason) -> None:
    """A capture is refused a day later and a day earlier, with the reason that says so (F20, F21)."""
    verdict = verify(vector.request, vector.preset(), vector.keys(), vector.now + shift_s)

    assert Rejected(reason) == verdict


def test_every_preset_has_vectors() -> None:
    """A preset without a vector of its own is not shipped."""
    proved = {load_preset(file.stem).name for file in files()}

    assert set(preset_names()) == proved


def test_vector_files_are_not_empty() -> None:
    """Every file is read, with accepted and refused requests in each."""
    kinds = {(vector.slug, vector.accept) for vector in ALL}

    assert {(file.stem, accept) for file in files() for accept in (True, False)} == kinds
