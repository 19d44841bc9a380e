-- The ledger. Instants are milliseconds since the epoch.
--
-- Columns of type ANY hold texts that a provider chose: TEXT, or BLOB (UTF-8 with the surrogates
-- passed through) where the text is not Unicode. TEXT and BLOB never compare equal, so two
-- different texts are never one key.

CREATE TABLE event (
    seq               INTEGER PRIMARY KEY,
    event_id          TEXT NOT NULL UNIQUE,
    project           TEXT NOT NULL,
    mode              TEXT NOT NULL,
    source            TEXT NOT NULL,
    key               ANY NOT NULL,
    content_digest    BLOB NOT NULL,
    provider_event_id ANY,
    event_type        ANY,
    key_id            TEXT NOT NULL,
    signed_at         INTEGER,
    received_at       INTEGER NOT NULL,
    flags             TEXT NOT NULL,
    url               ANY NOT NULL,
    headers           ANY NOT NULL,
    body_bytes        INTEGER NOT NULL,
    profile           TEXT,
    remote_job_id     ANY,
    client_reference  ANY,
    operation_id      TEXT REFERENCES operation,
    seen              INTEGER NOT NULL DEFAULT 1,
    remember_until_at INTEGER NOT NULL,
    -- Last, so that a page of events reads no body. NULL: the body stands in event_body.
    body              BLOB,
    -- The dedup key as it is: hashing it would throw away the order of the providers' ids.
    UNIQUE (project, mode, source, key)
) STRICT;

CREATE INDEX event_of_scope ON event (project, mode, seq);
CREATE INDEX event_of_source ON event (source, seq);
CREATE INDEX event_of_type ON event (event_type, seq) WHERE event_type IS NOT NULL;
CREATE INDEX event_of_operation ON event (operation_id, seq) WHERE operation_id IS NOT NULL;
-- Parked: it names a job for which no operation is known. Queries repeat these terms.
CREATE INDEX event_parked ON event (seq)
    WHERE operation_id IS NULL AND profile IS NOT NULL
        AND (remote_job_id IS NOT NULL OR client_reference IS NOT NULL);
CREATE INDEX event_parked_by_job ON event (profile, remote_job_id)
    WHERE operation_id IS NULL AND remote_job_id IS NOT NULL;
CREATE INDEX event_parked_by_reference ON event (profile, client_reference)
    WHERE operation_id IS NULL AND client_reference IS NOT NULL;

-- Bodies too large for the event's row; files of the blob store will take their place.
CREATE TABLE event_body (
    event_id TEXT PRIMARY KEY NOT NULL REFERENCES event (event_id),
    body     BLOB NOT NULL
) STRICT;

CREATE TABLE conflict (
    seq            INTEGER PRIMARY KEY,
    conflict_id    TEXT NOT NULL UNIQUE,
    event_id       TEXT NOT NULL REFERENCES event (event_id),
    at             INTEGER NOT NULL,
    key_id         TEXT NOT NULL,
    content_digest BLOB NOT NULL,
    headers        ANY NOT NULL,
    body           BLOB NOT NULL
) STRICT;

CREATE INDEX conflict_of_event ON conflict (event_id, seq);

CREATE TABLE refusal (
    refusal_id  TEXT PRIMARY KEY NOT NULL,
    project     TEXT NOT NULL,
    mode        TEXT NOT NULL,
    source      ANY NOT NULL,
    reason      TEXT NOT NULL,
    at          INTEGER NOT NULL,
    peer        ANY NOT NULL,
    method      ANY NOT NULL,
    body_bytes  INTEGER NOT NULL,
    body_digest BLOB NOT NULL,
    headers     ANY NOT NULL
) STRICT;

CREATE TABLE refusal_count (
    project   TEXT NOT NULL,
    mode      TEXT NOT NULL,
    source    ANY NOT NULL,
    reason    TEXT NOT NULL,
    minute_at INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    -- SHA-256 of the digest before and what was refused.
    digest    BLOB NOT NULL,
    -- How many of them the journal tells.
    sealed    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (minute_at, project, mode, source, reason)
) STRICT, WITHOUT ROWID;

CREATE INDEX refusal_count_unsealed ON refusal_count (minute_at) WHERE sealed < count;

CREATE TABLE operation (
    operation_id        TEXT PRIMARY KEY NOT NULL,
    project             TEXT NOT NULL,
    mode                TEXT NOT NULL,
    profile             TEXT NOT NULL,
    state               TEXT NOT NULL,
    version             INTEGER NOT NULL,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    caller              ANY NOT NULL,
    trace_id            TEXT NOT NULL,
    request_fingerprint TEXT NOT NULL,
    idempotency_token   TEXT,
    client_reference    ANY,
    remote_job_id       ANY,
    create_deadline_at  INTEGER,
    result_deadline_at  INTEGER,
    cancel_deadline_at  INTEGER,
    collect_deadline_at INTEGER,
    remote_state        ANY,
    remote_updated_at   INTEGER,
    last_read_at        INTEGER,
    quiet_reads         INTEGER NOT NULL,
    unreadable_reads    INTEGER NOT NULL
) STRICT;

CREATE INDEX operation_in_state ON operation (state, operation_id);
CREATE INDEX operation_of_job ON operation (remote_job_id) WHERE remote_job_id IS NOT NULL;
CREATE INDEX operation_of_reference ON operation (client_reference)
    WHERE client_reference IS NOT NULL;

-- What events call an operation by: the provider's job id, our reference. One owner a name.
CREATE TABLE operation_name (
    project      TEXT NOT NULL,
    mode         TEXT NOT NULL,
    profile      TEXT NOT NULL,
    kind         TEXT NOT NULL CHECK (kind IN ('job', 'reference')),
    name         ANY NOT NULL,
    operation_id TEXT NOT NULL REFERENCES operation,
    PRIMARY KEY (project, mode, profile, kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE transition (
    seq           INTEGER PRIMARY KEY,
    operation_id  TEXT NOT NULL REFERENCES operation,
    at            INTEGER NOT NULL,
    actor         ANY NOT NULL,
    from_state    TEXT,
    to_state      TEXT NOT NULL,
    cause         ANY NOT NULL,
    reason        ANY NOT NULL,
    remote_job_id ANY
) STRICT;

CREATE INDEX transition_of_operation ON transition (operation_id, seq);

CREATE TABLE observation (
    seq            INTEGER PRIMARY KEY,
    operation_id   TEXT NOT NULL REFERENCES operation,
    observation_id TEXT NOT NULL UNIQUE,
    prompted_by    TEXT NOT NULL,
    meaning        TEXT NOT NULL,
    fetched_at     INTEGER NOT NULL,
    remote_state   ANY,
    remote_job_id  ANY,
    provider_at    INTEGER,
    http_status    INTEGER,
    body_digest    TEXT,
    not_before_at  INTEGER,
    detail         ANY,
    request_id     ANY,
    address        ANY
) STRICT;

CREATE INDEX observation_of_operation ON observation (operation_id, seq);

-- One narrow row an operation: claiming never touches the wide tables.
CREATE TABLE work (
    operation_id  TEXT PRIMARY KEY NOT NULL REFERENCES operation,
    -- When work is due; NULL: nothing is.
    due_at        INTEGER,
    -- No hint makes it due before this.
    not_before_at INTEGER,
    -- Whether the operation's state has any work at all: a hint may make it due.
    has_effect    INTEGER NOT NULL,
    hints         INTEGER NOT NULL DEFAULT 0,
    prompted_by   TEXT NOT NULL DEFAULT 'schedule',
    fence         INTEGER NOT NULL DEFAULT 0,
    -- The last three are NULL where nobody holds the work.
    lease_id      TEXT,
    worker        TEXT,
    until_at      INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX work_free ON work (due_at) WHERE until_at IS NULL AND due_at IS NOT NULL;
CREATE INDEX work_held ON work (until_at) WHERE until_at IS NOT NULL;

CREATE TABLE journal (
    "index" INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    entry   BLOB NOT NULL
) STRICT;

CREATE TABLE token (
    seq        INTEGER PRIMARY KEY,
    token_id   TEXT NOT NULL UNIQUE,
    project    TEXT NOT NULL,
    mode       TEXT NOT NULL,
    role       TEXT NOT NULL,
    label      ANY NOT NULL,
    digest     BLOB NOT NULL UNIQUE,
    created_by ANY NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;

-- What a probe writes to, and when each migration ran.
CREATE TABLE probe (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    at     INTEGER NOT NULL,
    -- Counts up: SQLite skips a write that changes nothing, and its sync with it.
    probes INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE TABLE migration (version INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;

-- What happened stays as it was written. Of an event only `seen` and `operation_id` change.

CREATE TRIGGER event_stands BEFORE UPDATE OF
    seq, event_id, project, mode, source, key, content_digest, provider_event_id, event_type,
    key_id, signed_at, received_at, flags, url, headers, body_bytes, profile, remote_job_id,
    client_reference, remember_until_at, body
ON event BEGIN SELECT RAISE(ABORT, 'an event is never changed'); END;

CREATE TRIGGER conflict_stands BEFORE UPDATE ON conflict
BEGIN SELECT RAISE(ABORT, 'evidence is never changed'); END;
CREATE TRIGGER conflict_stays BEFORE DELETE ON conflict
BEGIN SELECT RAISE(ABORT, 'evidence is never deleted'); END;

CREATE TRIGGER transition_stands BEFORE UPDATE ON transition
BEGIN SELECT RAISE(ABORT, 'history is never changed'); END;
CREATE TRIGGER transition_stays BEFORE DELETE ON transition
BEGIN SELECT RAISE(ABORT, 'history is never deleted'); END;

CREATE TRIGGER observation_stands BEFORE UPDATE ON observation
BEGIN SELECT RAISE(ABORT, 'an observation is never changed'); END;
CREATE TRIGGER observation_stays BEFORE DELETE ON observation
BEGIN SELECT RAISE(ABORT, 'an observation is never deleted'); END;

CREATE TRIGGER journal_stands BEFORE UPDATE ON journal
BEGIN SELECT RAISE(ABORT, 'the journal is never changed'); END;
CREATE TRIGGER journal_stays BEFORE DELETE ON journal
BEGIN SELECT RAISE(ABORT, 'the journal is never deleted'); END;
