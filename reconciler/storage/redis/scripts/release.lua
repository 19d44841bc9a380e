#!lua
-- Give work back undone; a hint since the claim keeps it due sooner.
-- ARGV: 1 now, 2 operation id, 3 lease id, 4 fence, 5 hints at the claim, 6 due
-- Answer: 1, or 0 if the lease was lost
expect(#ARGV == 6 and tonumber(ARGV[1]) and tonumber(ARGV[5]) and tonumber(ARGV[6]), 'arguments')
local id, due = ARGV[2], tonumber(ARGV[6])
if not holds(id, ARGV[3], ARGV[4]) then return 0 end
local record = record_of(id)
local work = redis.call('HMGET', record, 'hints', 'not_before')
if tonumber(work[1]) > tonumber(ARGV[5]) then
  due = math.min(due, math.max(tonumber(instant(ARGV[1])), tonumber(work[2]) or 0))
end
redis.call('HSET', record, 'lease', '', 'worker', '', 'until', '', 'due', int(due))
redis.call('ZREM', at('held'), id)
redis.call('ZADD', at('due'), int(due), id)
redis.call('PUBLISH', at('news'), id)
return 1
