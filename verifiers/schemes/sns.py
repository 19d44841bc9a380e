"""Amazon SNS: the message names its certificate, its signature version and what is signed.

https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html
Two lists of keys, each value on a line after its name; a `Subject` that is absent is left out.
Where the certificate stands is the message's word, so the preset pins that URL as a whole. The
signature covers every member that says something, so the body counts as signed.
"""

from verifiers.claim import Claim, collect, trusted, unmet
from verifiers.encoding import Encoding, decode
from verifiers.keys import KeyRing
from verifiers.preset import Preset
from verifiers.reading import Reading
from verifiers.reason import Reason
from verifiers.timestamp import TimestampRule, Unit

_NOTIFICATION = ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type")
_CONFIRMATION = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
_SIGNED = {
    "Notification": _NOTIFICATION,
    "SubscriptionConfirmation": _CONFIRMATION,
    "UnsubscribeConfirmation": _CONFIRMATION,
}
_CLOCK = TimestampRule((), Unit.RFC3339, 0, 0, retry_restamps=False)


def read(reading: Reading, preset: Preset, keys: KeyRing) -> Claim | Reason:
    """Return what a message claims."""
    text = reading.document.at
    found, repeated = collect(reading, preset)
    signature = text(("Signature",))
    if not signature:
        return Reason.SIGNATURE_MISSING
    reason = unmet(reading, preset, found, repeated)
    if reason is not None:
        return reason
    version = (text(("SignatureVersion",)) or "").encode()
    raw = decode(Encoding.BASE64, signature.encode("ascii", "replace"))
    names = _SIGNED.get(text(("Type",)) or "")
    if raw is None or names is None or version not in keys.sizes:
        return Reason.SIGNATURE_MALFORMED
    at = _CLOCK.parse((text(("Timestamp",)) or "").encode("ascii", "replace"))
    if at is None:
        return Reason.TIMESTAMP_MALFORMED
    url = (text(("SigningCertURL",)) or "").encode("utf-8", "replace")
    content = _content(reading, names)
    if content is None:
        return Reason.CONTENT_MISSING
    if preset.published is None or not trusted(reading, preset.published):
        return Reason.KEY_URL_UNTRUSTED
    signatures = [(version, raw)]
    return Claim(signatures, found, at, url, candidates=[(content, signatures)])


def _content(reading: Reading, names: tuple[str, ...]) -> bytes | None:
    lines = []
    for name in names:
        value = reading.document.at((name,))
        if value is None:
            if name == "Subject":
                continue
            return None
        lines.append(f"{name}\n{value}\n")
    return "".join(lines).encode("utf-8", "surrogatepass")
