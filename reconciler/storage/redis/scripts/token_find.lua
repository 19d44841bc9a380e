#!lua flags=no-writes
-- Read the token with a digest.
-- ARGV: 1 digest
-- Answer: {row, created at, revoked at or empty}, or nil
local id = redis.call('HGET', at('tokens', 'digest'), ARGV[1])
return id and redis.call('HMGET', at('token', id), 'row', 'at', 'revoked')
