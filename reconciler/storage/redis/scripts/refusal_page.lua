#!lua flags=no-writes
-- Read kept refusals, newest first.
-- ARGV: 1 before (empty: from the newest), 2 how many
-- Answer: {refusal id, row}, ...; fewer than asked for are the last ones
expect(#ARGV == 2, 'arguments')
local from = ARGV[1] == '' and '+' or '(' .. ARGV[1]
local page = {}
for i, id in ipairs(redis.call('ZREVRANGEBYLEX', at('refusals'), from, '-', 'LIMIT', 0, ARGV[2])) do
  page[i] = {id, redis.call('HGET', at('refusal'), id)}
end
return page
