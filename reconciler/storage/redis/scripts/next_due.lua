#!lua flags=no-writes
-- When work is due next or a lease on it ends.
-- ARGV: none
-- Answer: the instant, or nil
local due = redis.call('ZRANGE', at('due'), 0, 0, 'WITHSCORES')[2]
local ends = redis.call('ZRANGE', at('held'), 0, 0, 'WITHSCORES')[2]
if due and ends then return int(math.min(tonumber(due), tonumber(ends))) end
local either = due or ends
return either and int(tonumber(either))
