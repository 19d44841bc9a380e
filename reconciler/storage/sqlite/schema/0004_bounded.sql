-- Old events go, with everything of theirs; bodies move to files.

-- Bodies that stand in a file named by their SHA-256 digest, no longer in event or event_body.
CREATE TABLE moved_body (
    event_id TEXT PRIMARY KEY NOT NULL REFERENCES event (event_id),
    digest   BLOB NOT NULL
) STRICT;

CREATE INDEX moved_body_by_digest ON moved_body (digest);

-- Of an event only `seen` and `operation_id` change, and its body moves.
DROP TRIGGER event_stands;
CREATE TRIGGER event_stands BEFORE UPDATE OF
    seq, event_id, project, mode, source, key, content_digest, provider_event_id, event_type,
    key_id, signed_at, received_at, flags, url, headers, body_bytes, profile, remote_job_id,
    client_reference, remember_until_at
ON event BEGIN SELECT RAISE(ABORT, 'an event is never changed'); END;
CREATE TRIGGER event_body_moves BEFORE UPDATE OF body ON event
WHEN NEW.body IS NOT NULL
    OR NOT EXISTS (SELECT 1 FROM moved_body WHERE event_id = OLD.event_id)
BEGIN SELECT RAISE(ABORT, 'an event is never changed'); END;

-- Evidence goes with its event, never alone.
DROP TRIGGER conflict_stays;
CREATE TRIGGER conflict_stays BEFORE DELETE ON conflict
WHEN EXISTS (SELECT 1 FROM event WHERE event_id = OLD.event_id)
BEGIN SELECT RAISE(ABORT, 'evidence is never deleted'); END;
CREATE TRIGGER event_goes AFTER DELETE ON event BEGIN
    DELETE FROM event_body WHERE event_id = OLD.event_id;
    DELETE FROM moved_body WHERE event_id = OLD.event_id;
    DELETE FROM conflict WHERE event_id = OLD.event_id;
END;
