#!lua
-- Store an event, claim its key, write the journal and make the read due.
-- ARGV: 1 now, 2 event id, 3 key, 4 digest, 5 headers, 6 row, 7 body, 8 key is an id (1/0),
--       9 name by job, 10 name by reference (each empty without one), 11 journal entry,
--       12-14 scope, source, type (empty without one) for the lists,
--       15 conflict id, 16 evidence, 17 journal entry of a conflict (empty: not made yet),
--       18 kind: what many events have in common, stored once, 19 name of the event id
-- Answer: {'recorded', operation or nil} | {'duplicate', event id, seen} | {'conflict', event id}
--       | {'other', event id}: nothing was written, call again with 17
expect(#ARGV == 19 and tonumber(ARGV[1]), 'arguments')
local now, id = instant(ARGV[1]), ARGV[2]

local known = redis.call('HGET', at('key'), ARGV[3])
if known then
  local first = event_of(known)
  local fields = first[2]
  local first_id, digest = fields[2], fields[4]
  local owner = first[3] or (fields[6] ~= '' and fields[6])
  local work = work_of(owner)
  if digest == ARGV[4] then
    local again = redis.call('HINCRBY', at('seen'), known, 1)
    if ARGV[8] ~= '1' then hint(work, first_id, now) end
    return {'duplicate', first_id, again + 1}
  end
  if ARGV[17] == '' then return {'other', first_id} end
  local kept = at('conflict', known)
  local number = redis.call('HLEN', kept)
  if redis.call('HSETNX', kept, ARGV[15], number .. '\n' .. now .. '\n' .. ARGV[16]) == 1 then
    journal(now, ARGV[17])
  end
  hint(work, first_id, now)
  return {'conflict', first_id}
end

local owners = redis.call('HMGET', at('name'), ARGV[9], ARGV[10])
local owner = owners[1] or owners[2]
local work = work_of(owner)
local kind = redis.call('HGET', at('kind'), ARGV[18])
if not kind then
  kind = int(redis.call('HLEN', at('kind')) + 1)
  redis.call('HSET', at('kind'), ARGV[18], kind)
  redis.call('HSET', at('kinds'), kind, ARGV[18])
end
local stored = redis.call('XADD', at('event'), '0-*', 'id', id, 'digest', ARGV[4],
  'operation', owner or '', 'at', now, 'kind', kind, 'headers', ARGV[5], 'row', ARGV[6])
local seq = string.sub(stored, 3)
redis.call('XADD', at('body'), stored, 'body', ARGV[7])
redis.call('HSET', at('key'), ARGV[3], seq)
redis.call('HSET', at('id'), ARGV[19], seq)
for list = 12, 14 do
  if ARGV[list] ~= '' then redis.call('XADD', at('event', ARGV[list]), stored, 's', '') end
end
if owner then
  redis.call('ZADD', at('operation', owner, 'events'), seq, seq)
elseif ARGV[9] ~= '' or ARGV[10] ~= '' then
  redis.call('ZADD', at('parked'), seq, seq)
  for name = 9, 10 do
    if ARGV[name] ~= '' then redis.call('RPUSH', at('parked', ARGV[name]), seq) end
  end
end
journal(now, ARGV[11])
hint(work, id, now)
return {'recorded', owner}
