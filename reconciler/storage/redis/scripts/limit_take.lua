#!lua
-- Take one call of a provider's pace, or say how long to wait. The rule is told in domain/pace.py.
-- ARGV: 1 now, 2 name, 3 interval (us; 0: no pace, only a pause counts), 4 burst,
--       5 longest pause (ms), 6 how far apart turns may be (us)
-- Answer: milliseconds to wait, 0: the call may be made
expect(#ARGV == 6 and tonumber(ARGV[1]) and tonumber(ARGV[3]) and tonumber(ARGV[4]), 'arguments')
expect(tonumber(ARGV[5]) and tonumber(ARGV[6]), 'bounds')
local now, interval, burst = tonumber(instant(ARGV[1])) * 1000, tonumber(ARGV[3]), tonumber(ARGV[4])
local record = at('limit', ARGV[2])
local stored = redis.call('HMGET', record, 'full', 'turn', 'paused')
local paused = math.min(tonumber(stored[3] or '0'), now + tonumber(ARGV[5]) * 1000)
if interval == 0 then return math.ceil(math.max(0, paused - now) / 1000) end

local whole = burst * interval
local full = math.min(math.max(tonumber(stored[1] or '0'), now), now + whole)
local soonest = math.max(full - whole + interval, paused)
if soonest <= now then
  redis.call('HSET', record, 'full', int(full + interval))
  return 0
end
local turn = tonumber(stored[2] or '0')
if turn < soonest or turn > soonest + tonumber(ARGV[6]) then turn = soonest end
redis.call('HSET', record, 'turn', int(turn + interval))
return math.ceil((turn - now) / 1000)
