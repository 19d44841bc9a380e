#!lua flags=allow-oom
-- Delete events, with all that leads to them; also when there is no memory left.
-- ARGV: for each: number, name of the event id, key, name by job, name by reference, operation, 3 lists
--       (each empty without one)
-- Answer: how many went; one that was attached to an operation meanwhile stays
expect(#ARGV % 9 == 0, 'arguments')

local function forget(i)
  local seq, entry = ARGV[i], '0-' .. ARGV[i]
  local gone = redis.call('XDEL', at('event'), entry)
  redis.call('XDEL', at('body'), entry)
  for list = i + 6, i + 8 do
    if ARGV[list] ~= '' then redis.call('XDEL', at('event', ARGV[list]), entry) end
  end
  -- The key may belong to a later event already.
  if redis.call('HGET', at('key'), ARGV[i + 2]) == seq then redis.call('HDEL', at('key'), ARGV[i + 2]) end
  if redis.call('HGET', at('id'), ARGV[i + 1]) == seq then redis.call('HDEL', at('id'), ARGV[i + 1]) end
  local digest = redis.call('HGET', at('moved'), seq)
  if digest then
    redis.call('HDEL', at('moved'), seq)
    if redis.call('HINCRBY', at('files'), digest, -1) < 1 then redis.call('HDEL', at('files'), digest) end
  end
  redis.call('HDEL', at('seen'), seq)
  redis.call('HDEL', at('owner'), seq)
  redis.call('DEL', at('conflict', seq))
  redis.call('ZREM', at('parked'), seq)
  for name = i + 3, i + 4 do
    if ARGV[name] ~= '' then redis.call('LREM', at('parked', ARGV[name]), 1, seq) end
  end
  if ARGV[i + 5] ~= '' then redis.call('ZREM', at('operation', ARGV[i + 5], 'events'), seq) end
  return gone
end

local went = 0
for i = 1, #ARGV, 9 do
  local owner = redis.call('HGET', at('owner'), ARGV[i])
  if not owner or owner == ARGV[i + 5] then went = went + forget(i) end
end
return went
