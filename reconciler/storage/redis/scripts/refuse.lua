#!lua
-- Count refusals, and keep the first few of each group whole; or nothing, if a count has changed.
-- ARGV: 1 how many groups, then for each: group, minute, expected (empty: new), counted;
--       then refusal id and row of each that is kept
-- Answer: {} when done, else for each group what stands there or nil
local groups = tonumber(ARGV[1])
expect(groups and #ARGV >= 1 + 4 * groups and (#ARGV - 1) % 2 == 0, 'arguments')
local stands, changed = {}, false
for g = 0, groups - 1 do
  local counted = redis.call('HGET', at('refused'), ARGV[2 + 4 * g])
  stands[g + 1] = counted
  changed = changed or (counted or '') ~= ARGV[4 + 4 * g]
end
if changed then return stands end
for g = 0, groups - 1 do
  local group, minute = ARGV[2 + 4 * g], ARGV[3 + 4 * g]
  redis.call('HSET', at('refused'), group, ARGV[5 + 4 * g])
  redis.call('ZADD', at('refused', 'minute'), minute, group)
  redis.call('ZADD', at('refused', 'unsealed'), minute, group)
end
for i = 2 + 4 * groups, #ARGV, 2 do
  if redis.call('HSETNX', at('refusal'), ARGV[i], ARGV[i + 1]) == 1 then
    redis.call('ZADD', at('refusals'), 0, ARGV[i])
  end
end
return {}
