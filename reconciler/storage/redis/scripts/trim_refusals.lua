#!lua flags=allow-oom
-- Delete the oldest kept refusals, some at a time; also when there is no memory left.
-- ARGV: 1 how many to keep, 2 how many to delete at most
-- Answer: how many went
expect(#ARGV == 2 and tonumber(ARGV[1]) and tonumber(ARGV[2]), 'arguments')
local many = math.min(redis.call('ZCARD', at('refusals')) - tonumber(ARGV[1]), tonumber(ARGV[2]))
if many <= 0 then return 0 end
for _, id in ipairs(redis.call('ZRANGE', at('refusals'), 0, many - 1)) do
  redis.call('HDEL', at('refusal'), id)
  redis.call('ZREM', at('refusals'), id)
end
return many
