#!lua
-- Take the most overdue work that nobody holds.
-- ARGV: 1 now, 2 lease's length (ms), 3 worker, 4... lease ids
-- Answer: for each {operation id, lease id, fence, until, hints, prompted by, {row, due, not before}}
expect(#ARGV >= 3 and tonumber(ARGV[1]) and tonumber(ARGV[2]), 'arguments')
local now, wanted = instant(ARGV[1]), #ARGV - 3
if wanted == 0 then return {} end

local found = {}
local free = redis.call('ZRANGEBYSCORE', at('due'), '-inf', now, 'WITHSCORES', 'LIMIT', 0, wanted)
for i = 1, #free, 2 do found[#found + 1] = {id = free[i], due = tonumber(free[i + 1])} end
-- Leases that have ended: few, unless many workers died at once; then the oldest first.
local lapsed = redis.call('ZRANGEBYSCORE', at('held'), '-inf', now, 'LIMIT', 0, 1000 + wanted)
for _, id in ipairs(lapsed) do
  local due = tonumber(redis.call('HGET', record_of(id), 'due'))
  if due and due <= tonumber(now) then found[#found + 1] = {id = id, due = due} end
end
table.sort(found, function(a, b)
  if a.due ~= b.due then return a.due < b.due end
  return a.id < b.id
end)

local taken = {}
local ends = int(tonumber(now) + tonumber(ARGV[2]))
for i = 1, math.min(wanted, #found) do
  local id, lease = found[i].id, ARGV[3 + i]
  local record = record_of(id)
  local fence = redis.call('HINCRBY', record, 'fence', 1)
  redis.call('HSET', record, 'lease', lease, 'worker', ARGV[3], 'until', ends)
  redis.call('ZREM', at('due'), id)
  redis.call('ZADD', at('held'), ends, id)
  local told = redis.call('HMGET', record, 'hints', 'by')
  taken[i] = {id, lease, fence, ends, told[1], told[2], shown(id)}
end
return taken
