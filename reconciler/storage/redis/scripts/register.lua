#!lua
-- Store an operation, its names, its first line and its first work; attach parked events.
-- ARGV: 1 now, 2 operation id, 3 row, 4 version, 5 state, 6 the state has an effect (1/0),
--       7 work is due (1/0), 8 not before (empty without), 9 name by job, 10 name by reference,
--       11 job, 12 reference for the lists (9-12 empty without), 13 line, 14 journal entry
-- Answer: {'registered', {row, due, not before}, parked} | {'known', {row, due, not before}}
expect(#ARGV == 14 and tonumber(ARGV[1]), 'arguments')
local now, id = instant(ARGV[1]), ARGV[2]

local owners = redis.call('HMGET', at('name'), ARGV[9], ARGV[10])
local known = shown(owners[1] or owners[2] or id)
if known then return {'known', known} end

local due = ''
if ARGV[7] == '1' then due = now end
redis.call('HSET', record_of(id), 'row', ARGV[3], 'version', ARGV[4], 'state', ARGV[5],
  'effect', ARGV[6], 'due', due, 'not_before', ARGV[8], 'hints', 0, 'by', 'schedule',
  'fence', 0, 'lease', '', 'worker', '', 'until', '')
redis.call('RPUSH', at('operation', id, 'history'), ARGV[13])
redis.call('ZADD', at('operations'), 0, id)
redis.call('ZADD', at('operations', 'state', ARGV[5]), 0, id)
if ARGV[11] ~= '' then redis.call('ZADD', at('operations', 'job'), 0, ARGV[11] .. id) end
if ARGV[12] ~= '' then redis.call('ZADD', at('operations', 'reference'), 0, ARGV[12] .. id) end
local parked = claim_name(id, ARGV[9]) + claim_name(id, ARGV[10])
journal(now, ARGV[14])
if due ~= '' then
  redis.call('ZADD', at('due'), due, id)
  redis.call('PUBLISH', at('news'), id)
end
return {'registered', shown(id), parked}
