#!lua flags=no-writes
-- Read counts of refusals.
-- ARGV: 1 list ('minute' or 'unsealed'), 2 least minute, 3 greatest minute, as ZRANGEBYSCORE's
-- Answer: {group, counted}, ...
expect(#ARGV == 3, 'arguments')
local counts = {}
for i, group in ipairs(redis.call('ZRANGEBYSCORE', at('refused', ARGV[1]), ARGV[2], ARGV[3])) do
  counts[i] = {group, redis.call('HGET', at('refused'), group)}
end
return counts
