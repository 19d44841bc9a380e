"""The list of checks is derived from the preset and the reason."""

import pytest

from verifiers.preset import load_preset, preset_names
from verifiers.reason import FAILS
from verifiers.verdict import Check, Checked, Reason, Rejected, State


def test_every_reason_belongs_to_a_check() -> None:
    """No reason is without the check that it fails, and no check without a reason."""
    assert set(FAILS) == set(Reason)
    assert set(FAILS.values()) == set(Check)


def test_reasons_and_flags_stand_in_the_order_of_the_checks() -> None:
    """Reasons are declared in the order in which they are met."""
    order = list(Check)
    places = [order.index(FAILS[reason]) for reason in Reason]

    assert places == sorted(places)


def test_a_refusal_shows_where_it_stopped() -> None:
    """Checks before the failed one are passed, those after it are not reached."""
    found = Rejected(Reason.TIMESTAMP_MALFORMED).checks(load_preset("slack"))

    assert found == (
        Checked(Check.SIGNATURE_PRESENT, State.PASSED),
        Checked(Check.SIGNATURE_READABLE, State.PASSED),
        Checked(Check.TIMESTAMP_READABLE, State.FAILED, Reason.TIMESTAMP_MALFORMED),
        Checked(Check.SIGNATURE_MATCHES, State.NOT_REACHED),
        Checked(Check.KEY_VALID, State.NOT_REACHED),
        Checked(Check.TIMESTAMP_FRESH, State.NOT_REACHED),
    )


@pytest.mark.parametrize("name", preset_names())
def test_presets_list_the_checks_that_they_make(name: str) -> None:
    """A preset without timestamp, id header or required headers does not list their checks."""
    preset = load_preset(name)

    own = preset.read is not None
    judged = preset.timestamp is not None and preset.timestamp.judged
    assert (Check.TIMESTAMP_FRESH in preset.checks) == (judged or own)
    assert (Check.HEADERS_PRESENT in preset.checks) == bool(preset.required)
    always = {Check.SIGNATURE_PRESENT, Check.SIGNATURE_MATCHES, Check.KEY_VALID}
    assert (always <= set(preset.checks)) is not preset.unsigned
