-- What has been taken of each provider's pace. Instants here are microseconds since the epoch.

CREATE TABLE provider_limit (
    name            TEXT PRIMARY KEY NOT NULL,
    full_at_us      INTEGER NOT NULL,
    turn_us         INTEGER NOT NULL,
    paused_until_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
