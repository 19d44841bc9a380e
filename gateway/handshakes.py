"""Handshakes of a source, ready for the hot path: its settings, and the answers in ASGI's form.

`verifiers.handshake` decides; this module gives it the operator's settings, checked at start, and
counts what was answered. A source whose preset knows no handshake has none of this.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.config import HandshakeSection
from reconciler import logs
from reconciler.config import ConfigError, resolve_secret
from verifiers.handshake import Outcome, Settings, meet
from verifiers.handshake_rule import SETTINGS
from verifiers.keys import KeyRing
from verifiers.locate import Place
from verifiers.preset import Preset
from verifiers.request import RawRequest

_log = logs.get("handshakes")
_SECRETS = ("verify_token", "verification_token")
_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Handshake:
    """What a source answers beside events."""

    preset: Preset
    settings: Settings
    #: Methods beside POST that it answers.
    methods: frozenset[str]
    #: Headers that hand a secret over: never stored.
    secret_headers: frozenset[bytes]
    bare_refusals: bool

    def meet(self, request: RawRequest, keys: KeyRing, now: int) -> Outcome | None:
        """Return what is due to a request at `now` (unix seconds); `None` for no handshake."""
        return meet(request, self.preset, keys, self.settings, now)


def compiled(
    preset: Preset, section: HandshakeSection, folder: Path, where: str
) -> Handshake | None:
    """Return the handshake of a source; `ConfigError` names settings it lacks or does not know."""
    rules = preset.handshakes
    settings = _settings(preset, section, folder, f"{where}.handshake")
    if not rules:
        return None
    handed = [rule.challenge for rule in rules if rule.hands_over and rule.challenge]
    return Handshake(
        preset,
        settings,
        frozenset(rule.method for rule in rules) - {"POST"},
        frozenset(place.name for place in handed if place.place is Place.HEADER),
        any(rule.bare_refusals for rule in rules),
    )


def _settings(preset: Preset, section: HandshakeSection, folder: Path, where: str) -> Settings:
    needed = {name for rule in preset.handshakes for name in rule.settings}
    found: dict[str, tuple[str, ...]] = {}
    for name in SETTINGS:
        value = getattr(section, name)
        given = (value,) if isinstance(value, str) else tuple(value or ())
        if given and name not in needed:
            raise ConfigError(f"{where}.{name}: {preset.name} asks for no such thing")
        if name in needed and not given:
            raise ConfigError(
                f"{where}.{name}: is required: {preset.name} asks for it when the webhook is"
                " registered, and again later"
            )
        if given:
            found[name] = _resolved(name, given, folder, where)
    return found


def _resolved(name: str, given: tuple[str, ...], folder: Path, where: str) -> tuple[str, ...]:
    if name not in _SECRETS:
        return given
    try:
        return tuple(resolve_secret(reference, folder) for reference in given)
    except ConfigError as error:
        raise ConfigError(f"{where}.{name}: {error}") from None


class Tally:
    """Counts answered handshakes by source; logs at most one line a minute and source.

    Anybody can ask for an echo, so that a line for each would let anybody fill the log.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._counts: dict[str, int] = {}
        self._logged: dict[str, tuple[int, int]] = {}

    @property
    def counts(self) -> Mapping[str, int]:
        """How many were answered since the start."""
        return self._counts

    def note(self, source: str, method: str) -> None:
        """Count one."""
        count = self._counts[source] = self._counts.get(source, 0) + 1
        now = self._clock()
        logged_at, before = self._logged.get(source, (now - _MINUTE_MS, 0))
        if now - logged_at >= _MINUTE_MS:
            _log.info("handshake_answered", source=source, method=method, count=count - before)
            self._logged[source] = (now, count)
