#!lua flags=no-writes
-- Read the conflicts with an event.
-- ARGV: 1 name of the event id
-- Answer: {conflict id, 'number\nat\nevidence', ...}
local seq = redis.call('HGET', at('id'), ARGV[1])
return seq and redis.call('HGETALL', at('conflict', seq)) or {}
