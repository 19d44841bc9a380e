#!lua
-- Store a token and its journal entry; the same token again changes nothing.
-- ARGV: 1 now, 2 token id, 3 digest, 4 row, 5 journal entry
-- Answer: 1, or 0 if it is known
expect(#ARGV == 5 and tonumber(ARGV[1]), 'arguments')
local now, id = instant(ARGV[1]), ARGV[2]
if redis.call('EXISTS', at('token', id)) == 1 then return 0 end
redis.call('HSET', at('token', id), 'row', ARGV[4], 'at', now, 'revoked', '')
redis.call('HSET', at('tokens', 'digest'), ARGV[3], id)
redis.call('RPUSH', at('tokens'), id)
journal(now, ARGV[5])
return 1
