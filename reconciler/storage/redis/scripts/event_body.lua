#!lua flags=no-writes
-- Read an event's body.
-- ARGV: 1 name of the event id
-- Answer: the bytes, or nil
local seq = redis.call('HGET', at('id'), ARGV[1])
local found = seq and redis.call('XRANGE', at('body'), '0-' .. seq, '0-' .. seq)[1]
return found and found[2][2]
