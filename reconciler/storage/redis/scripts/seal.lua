#!lua
-- Write a journal entry for each count that stands as it was told.
-- ARGV: 1 now, then for each: group, counted as told, journal entry
-- Answer: how many
expect(tonumber(ARGV[1]) and (#ARGV - 1) % 3 == 0, 'arguments')
local now, sealed = instant(ARGV[1]), 0
for i = 2, #ARGV, 3 do
  local is_unsealed = redis.call('ZSCORE', at('refused', 'unsealed'), ARGV[i])
  if is_unsealed and redis.call('HGET', at('refused'), ARGV[i]) == ARGV[i + 1] then
    redis.call('ZREM', at('refused', 'unsealed'), ARGV[i])
    journal(now, ARGV[i + 2])
    sealed = sealed + 1
  end
end
return sealed
