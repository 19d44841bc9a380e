"""What a provider's answer means: profile + answer → observation.

Pure and total: any bytes give an observation. It never guesses: a word that the profile does not
list, an empty status, another status code, a page of HTML are *unreadable*, which is counted and
alarmed, and never "still running". The status code decides before the body is looked at, and an
answer about another job than the one we asked for is a contradiction whatever it says.
"""

import hashlib
from dataclasses import replace
from typing import Any

from reconciler.domain.ids import is_name
from reconciler.domain.observation import Meaning, Observation
from reconciler.domain.retry import retry_after_ms
from reconciler.providers.answer import Answer
from reconciler.providers.document import UnreadableError, at, instant, parse
from reconciler.providers.errors import EgressDeniedError, ProviderError
from reconciler.providers.job_api import Pointer, Profile

REMOTE_STATE_CHARACTERS_MAX = 200

_THROTTLING = frozenset({429, 503})
_REDIRECTS = range(300, 400)


def interpret(
    profile: Profile,
    answer: Answer,
    *,
    expected_job_id: str | None,
    now: int,
    age_ms: int,
    expected_reference: str | None = None,
) -> Observation:
    """Say what `answer` shows of the job. `age_ms` is the time since the create was accepted.

    A 404 within the profile's grace has the detail `within_grace`. Slugs of unreadable answers:
    `http_NNN`, `redirect`, a `body_fault`, `empty_body`, `html`, `not_json`, `duplicate_key`,
    `no_state`, `state_not_text`, `unknown_state`, `no_job_id`, `bad_job_id`; of contradictions:
    `other_job_id`, `other_reference`.
    """
    seen = Observation(
        meaning=Meaning.UNREADABLE,
        fetched_at=now,
        http_status=answer.status,
        body_digest=hashlib.sha256(answer.body).hexdigest(),
        request_id=_request_id(profile, answer),
        address=answer.address or None,
    )
    judged = _by_status(profile, answer, seen, now=now, age_ms=age_ms)
    if judged is not None:
        return judged
    if answer.body_fault is not None:
        return replace(seen, detail=answer.body_fault)
    try:
        document = parse(answer.body)
        return _read(profile, document, seen, expected_job_id, expected_reference)
    except UnreadableError as error:
        return replace(seen, detail=error.slug)


def observation_of(error: ProviderError, *, now: int) -> Observation:
    """Record a call that brought no answer; a refused one has the detail `egress_SLUG`."""
    denied = isinstance(error, EgressDeniedError)
    detail = f"egress_{error.slug}" if denied else error.slug
    return Observation(meaning=Meaning.UNREADABLE, fetched_at=now, detail=detail)


def _by_status(
    profile: Profile, answer: Answer, seen: Observation, *, now: int, age_ms: int
) -> Observation | None:
    """Judge by the status code alone; `None` when the body must be read."""
    code = answer.status
    if code in profile.status.accepted:
        return None
    if code in profile.status.not_found:
        in_grace = age_ms < profile.status.grace_ms
        detail = "within_grace" if in_grace else None
        return replace(seen, meaning=Meaning.NOT_FOUND, detail=detail)
    if code in _THROTTLING:
        wait_ms = retry_after_ms(answer.values("retry-after"), now)
        not_before_at = None if wait_ms is None else now + wait_ms
        return replace(
            seen, meaning=Meaning.THROTTLED, not_before_at=not_before_at, detail=f"http_{code}"
        )
    return replace(seen, detail="redirect" if code in _REDIRECTS else f"http_{code}")


def _read(
    profile: Profile,
    document: Any,
    seen: Observation,
    expected_job_id: str | None,
    expected_reference: str | None,
) -> Observation:
    """Read state, id and time from a parsed body; `UnreadableError` when they are not there."""
    job_id = _identifier(document, profile.status.job_id)
    reference = _identifier(document, profile.status.client_reference)
    seen = replace(seen, remote_job_id=job_id, provider_at=_provider_at(profile, document))
    if None not in {job_id, expected_job_id} and job_id != expected_job_id:
        return replace(seen, meaning=Meaning.CONTRADICTION, detail="other_job_id")
    if None not in {reference, expected_reference} and reference != expected_reference:
        return replace(seen, meaning=Meaning.CONTRADICTION, detail="other_reference")
    word = _state(profile, document)
    if job_id is None and profile.status.job_id is not None:
        raise UnreadableError("no_job_id")
    seen = replace(seen, remote_state=word[:REMOTE_STATE_CHARACTERS_MAX])
    meaning = profile.states.get(word)
    if meaning is None:
        return replace(seen, detail="unknown_state")
    return replace(seen, meaning=meaning)


def _state(profile: Profile, document: Any) -> str:
    word = _word(document, profile.status.state)
    if profile.status.outcome is not None and word in profile.status.outcome_when:
        return f"{word}/{_word(document, profile.status.outcome)}"
    return word


def _word(document: Any, pointer: Pointer) -> str:
    value = at(document, pointer)
    if value is None:
        raise UnreadableError("no_state")
    # Not printable: NUL, line breaks, terminal codes, lone surrogates. No store or log wants them.
    if not isinstance(value, str) or not value.isprintable():
        raise UnreadableError("state_not_text")
    return value


def _identifier(document: Any, pointer: Pointer | None) -> str | None:
    """Return an id as text; whole numbers are ids too, exact at any size."""
    value = None if pointer is None else at(document, pointer)
    if value is None:
        return None
    text = str(value) if type(value) is int else value
    if not isinstance(text, str) or not is_name(text):
        raise UnreadableError("bad_job_id")
    return text


def _provider_at(profile: Profile, document: Any) -> int | None:
    pointer = profile.status.updated_at
    return None if pointer is None else instant(at(document, pointer), profile.timestamps)


def _request_id(profile: Profile, answer: Answer) -> str | None:
    name = profile.status.request_id_header
    values = [] if name is None else answer.values(name)
    if len(values) != 1:
        return None
    text = values[0].decode("latin-1")
    return text if text.isascii() and text.isprintable() and 0 < len(text) <= 200 else None  # noqa: PLR2004
