"""What verification can say: the closed lists of checks, reasons and flags.

`Reason` and `Flag` are public: the same slugs stand in the store, the API, logs, metrics and
pages. They may be added to, never renamed.
"""

from enum import StrEnum


class Check(StrEnum):
    """The checks, in the order in which they are made."""

    BODY_DECODABLE = "body_decodable"
    SIGNATURE_PRESENT = "signature_present"
    HEADERS_PRESENT = "headers_present"
    BODY_PRESENT = "body_present"
    SIGNATURE_READABLE = "signature_readable"
    TIMESTAMP_READABLE = "timestamp_readable"
    ID_READABLE = "id_readable"
    CONTENT_PRESENT = "content_present"
    KEY_KNOWN = "key_known"
    SIGNATURE_MATCHES = "signature_matches"
    KEY_VALID = "key_valid"
    CONTENT_AGREES = "content_agrees"
    TIMESTAMP_FRESH = "timestamp_fresh"


class Reason(StrEnum):
    """Why a request is refused."""

    BODY_UNDECODABLE = "body_undecodable"  # signed decoded, and its coding is broken or unknown
    SIGNATURE_MISSING = "signature_missing"
    SIGNATURE_REPEATED = "signature_repeated"
    HEADER_MISSING = "header_missing"
    HEADER_REPEATED = "header_repeated"
    BODY_EMPTY = "body_empty"
    SIGNATURE_MALFORMED = "signature_malformed"
    TIMESTAMP_MISSING = "timestamp_missing"
    TIMESTAMP_REPEATED = "timestamp_repeated"
    TIMESTAMP_MALFORMED = "timestamp_malformed"
    ID_MISSING = "id_missing"
    ID_REPEATED = "id_repeated"
    ID_MALFORMED = "id_malformed"
    CONTENT_MISSING = "content_missing"  # something that is signed is not there
    KEY_UNKNOWN = "key_unknown"  # the request names a key that we do not hold
    KEY_URL_UNTRUSTED = "key_url_untrusted"  # it says to fetch its key from elsewhere
    SIGNATURE_MISMATCH = "signature_mismatch"
    KEY_EXPIRED = "key_expired"
    KEY_NOT_YET_VALID = "key_not_yet_valid"
    CONTENT_MISMATCH = "content_mismatch"  # what is signed speaks of another request
    TIMESTAMP_TOO_OLD = "timestamp_too_old"
    TIMESTAMP_IN_FUTURE = "timestamp_in_future"


class Flag(StrEnum):
    """What is remarkable about an accepted request."""

    ID_MISSING = "id_missing"  # the preset names an id; the request has none
    ID_UNUSABLE = "id_unusable"  # present, but not printable ASCII of 1 to 255 characters
    AMBIGUOUS_JSON = "ambiguous_json"  # a key stands twice, exactly or but for its case
    BODY_UNREADABLE = "body_unreadable"  # wanted from the body, which is not (bounded) JSON
    UNSIGNED = "unsigned"  # the provider signs nothing: only the status read says what is true


FAILS: dict[Reason, Check] = {
    Reason.SIGNATURE_MISSING: Check.SIGNATURE_PRESENT,
    Reason.SIGNATURE_REPEATED: Check.SIGNATURE_PRESENT,
    Reason.HEADER_MISSING: Check.HEADERS_PRESENT,
    Reason.HEADER_REPEATED: Check.HEADERS_PRESENT,
    Reason.BODY_EMPTY: Check.BODY_PRESENT,
    Reason.BODY_UNDECODABLE: Check.BODY_DECODABLE,
    Reason.SIGNATURE_MALFORMED: Check.SIGNATURE_READABLE,
    Reason.TIMESTAMP_MISSING: Check.TIMESTAMP_READABLE,
    Reason.TIMESTAMP_REPEATED: Check.TIMESTAMP_READABLE,
    Reason.TIMESTAMP_MALFORMED: Check.TIMESTAMP_READABLE,
    Reason.ID_MISSING: Check.ID_READABLE,
    Reason.ID_REPEATED: Check.ID_READABLE,
    Reason.ID_MALFORMED: Check.ID_READABLE,
    Reason.CONTENT_MISSING: Check.CONTENT_PRESENT,
    Reason.KEY_UNKNOWN: Check.KEY_KNOWN,
    Reason.KEY_URL_UNTRUSTED: Check.KEY_KNOWN,
    Reason.SIGNATURE_MISMATCH: Check.SIGNATURE_MATCHES,
    Reason.KEY_EXPIRED: Check.KEY_VALID,
    Reason.KEY_NOT_YET_VALID: Check.KEY_VALID,
    Reason.CONTENT_MISMATCH: Check.CONTENT_AGREES,
    Reason.TIMESTAMP_TOO_OLD: Check.TIMESTAMP_FRESH,
    Reason.TIMESTAMP_IN_FUTURE: Check.TIMESTAMP_FRESH,
}
