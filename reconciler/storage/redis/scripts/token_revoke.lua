#!lua
-- Revoke a token, once, with its journal entry.
-- ARGV: 1 now, 2 token id, 3 journal entry
-- Answer: {row, created at, revoked at}, or nil
expect(#ARGV == 3 and tonumber(ARGV[1]), 'arguments')
local now, record = instant(ARGV[1]), at('token', ARGV[2])
local token = redis.call('HMGET', record, 'row', 'at', 'revoked')
if not token[1] then return false end
if token[3] == '' then
  redis.call('HSET', record, 'revoked', now)
  journal(now, ARGV[3])
  token[3] = now
end
return token
