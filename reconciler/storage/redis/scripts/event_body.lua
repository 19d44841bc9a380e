#!lua flags=no-writes
-- Read an event's body.
-- ARGV: 1 name of the event id
-- Answer: the bytes, or {digest of the file that holds them}, or nil
local seq = redis.call('HGET', at('id'), ARGV[1])
if not seq then return nil end
local found = redis.call('XRANGE', at('body'), '0-' .. seq, '0-' .. seq)[1]
if found then return found[2][2] end
local digest = redis.call('HGET', at('moved'), seq)
return digest and {digest}
