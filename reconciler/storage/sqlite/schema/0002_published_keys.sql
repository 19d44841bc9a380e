-- The keys that providers publish: what was last fetched from each address that a source needs.

CREATE TABLE key_document (
    seq            INTEGER PRIMARY KEY,
    source         TEXT NOT NULL,
    url            TEXT NOT NULL,
    etag           TEXT,
    fetched_at     INTEGER,
    valid_until_at INTEGER,
    failures       INTEGER NOT NULL DEFAULT 0,
    failure        TEXT,
    -- When it is due; NULL: only when a request needs it.
    next_at        INTEGER,
    -- No request makes it due before this.
    not_before_at  INTEGER NOT NULL,
    proven_at      INTEGER,
    -- Grows with every change, over all rows. The greatest is never deleted, so none comes twice.
    revision       INTEGER NOT NULL,
    -- Grows with every claim.
    fence          INTEGER NOT NULL DEFAULT 0,
    content        BLOB,
    UNIQUE (source, url)
) STRICT;

CREATE INDEX key_document_due ON key_document (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX key_document_changed ON key_document (revision);
