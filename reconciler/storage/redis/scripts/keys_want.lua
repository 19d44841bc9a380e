#!lua
-- Make a key document due, a new one in the place of another if need be.
-- ARGV: 1 now, 2 source, 3 url, 4 how many documents a source may have
-- Answer: nothing
expect(#ARGV == 4 and tonumber(ARGV[1]) and tonumber(ARGV[4]), 'arguments')
local now, source, url = instant(ARGV[1]), ARGV[2], ARGV[3]
local known = redis.call('HMGET', at('key_document', source, url), 'due', 'hold')
if known[2] then
  local soonest = int(math.max(tonumber(now), tonumber(known[2])))
  local due = tonumber(known[1])
  if not due or due > tonumber(soonest) then write_keys(source, url, soonest, known[2]) end
  return
end
local all = redis.call('ZRANGE', at('keys', 'of', source), 0, -1)
if #all >= tonumber(ARGV[4]) then
  local place
  for _, other in ipairs(all) do
    local held = redis.call('HMGET', at('key_document', source, other), 'hold', 'proven', 'valid')
    local over = (tonumber(held[3] or '') or 0) <= tonumber(now)
    if tonumber(held[1]) <= tonumber(now) and ((held[2] or '') == '' or over) then
      place = other
      break
    end
  end
  if not place then return end
  local member = source .. ' ' .. place
  redis.call('DEL', at('key_document', source, place))
  redis.call('ZREM', at('keys', 'of', source), place)
  redis.call('ZREM', at('keys', 'due'), member)
  redis.call('ZREM', at('keys', 'changed'), member)
end
write_keys(source, url, now, now, 'failures', '0', 'fence', '0')
redis.call('ZADD', at('keys', 'of', source), redis.call('GET', at('keys', 'revision')), url)
