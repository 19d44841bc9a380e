#!lua
-- Hold on longer, compared by fence and lease id, never by time.
-- ARGV: 1 now, 2 operation id, 3 lease id, 4 fence, 5 length (ms)
-- Answer: until, or nil if the lease was lost
expect(#ARGV == 5 and tonumber(ARGV[1]) and tonumber(ARGV[5]), 'arguments')
local id = ARGV[2]
if not holds(id, ARGV[3], ARGV[4]) then return false end
local ends = int(tonumber(instant(ARGV[1])) + tonumber(ARGV[5]))
redis.call('HSET', record_of(id), 'until', ends)
redis.call('ZADD', at('held'), ends, id)
return ends
