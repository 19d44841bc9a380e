#!lua
-- Write state, history, observation, journal and next due time, and end the lease; or nothing.
-- ARGV: 1 now, 2 operation id, 3 lease id, 4 fence, 5 hints at the claim, 6 version decided on,
--       7 row, 8 version, 9 state, 10 the state has an effect (1/0), 11 due (empty: not),
--       12 not before, 13 name by job, 14 name by reference, 15 job, 16 reference for the lists
--       (13-16 empty without), 17 observation (empty without), 18 how many lines,
--       19... lines, then journal entries
-- Answer: 'committed' | 'lost' | 'stale'
local lines = tonumber(ARGV[18])
expect(#ARGV >= 18 and tonumber(ARGV[1]) and tonumber(ARGV[12]) and lines, 'arguments')
expect(#ARGV >= 18 + lines, 'lines')
local now, id = instant(ARGV[1]), ARGV[2]
local record = record_of(id)
if not holds(id, ARGV[3], ARGV[4]) then return 'lost' end
local stands = redis.call('HMGET', record, 'version', 'hints', 'state')
if stands[1] ~= ARGV[6] then return 'stale' end

local hinted = tonumber(stands[2]) > tonumber(ARGV[5])
local due = tonumber(ARGV[11])
if hinted and ARGV[10] == '1' then due = math.min(due or math.huge, tonumber(ARGV[12])) end
redis.call('HSET', record, 'row', ARGV[7], 'version', ARGV[8], 'state', ARGV[9],
  'effect', ARGV[10], 'due', due and int(due) or '', 'not_before', ARGV[12],
  'lease', '', 'worker', '', 'until', '')
if not hinted then redis.call('HSET', record, 'by', 'schedule') end
redis.call('ZREM', at('held'), id)
if due then redis.call('ZADD', at('due'), int(due), id) else redis.call('ZREM', at('due'), id) end
if stands[3] ~= ARGV[9] then
  redis.call('ZREM', at('operations', 'state', stands[3]), id)
  redis.call('ZADD', at('operations', 'state', ARGV[9]), 0, id)
end
if ARGV[15] ~= '' then redis.call('ZADD', at('operations', 'job'), 0, ARGV[15] .. id) end
if ARGV[16] ~= '' then redis.call('ZADD', at('operations', 'reference'), 0, ARGV[16] .. id) end
claim_name(id, ARGV[13])
claim_name(id, ARGV[14])
for i = 19, 18 + lines do redis.call('RPUSH', at('operation', id, 'history'), ARGV[i]) end
if ARGV[17] ~= '' then redis.call('RPUSH', at('operation', id, 'reads'), ARGV[17]) end
for i = 19 + lines, #ARGV do journal(now, ARGV[i]) end
redis.call('PUBLISH', at('news'), id)
return 'committed'
