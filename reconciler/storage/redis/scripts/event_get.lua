#!lua flags=no-writes
-- Read one event.
-- ARGV: 1 name of the event id
-- Answer: {seq, fields, attached to or nil, seen again or nil, kind}, or nil
local seq = redis.call('HGET', at('id'), ARGV[1])
return seq and event_of(seq)
