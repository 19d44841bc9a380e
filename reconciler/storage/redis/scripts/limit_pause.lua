#!lua
-- Let nobody ask a provider for a while; a longer pause stays.
-- ARGV: 1 now, 2 name, 3 how long (ms)
-- Answer: nothing
expect(#ARGV == 3 and tonumber(ARGV[1]) and tonumber(ARGV[3]), 'arguments')
local record = at('limit', ARGV[2])
local till = (tonumber(instant(ARGV[1])) + tonumber(ARGV[3])) * 1000
local stands = tonumber(redis.call('HGET', record, 'paused') or '0')
redis.call('HSET', record, 'paused', int(math.max(stands, till)))
