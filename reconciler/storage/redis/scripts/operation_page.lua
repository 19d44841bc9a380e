#!lua flags=no-writes
-- Read operations of lists, newest first.
-- ARGV: 1 before (empty: from the newest), 2 how many, 3... list, prefix of its members
-- Answer: {operation id, {row, due, not before}}, ...; fewer than asked for are the last ones
expect(#ARGV >= 4 and #ARGV % 2 == 0, 'arguments')
local ids, many = {}, tonumber(ARGV[2])
for i = 3, #ARGV, 2 do
  local prefix = ARGV[i + 1]
  local from = ARGV[1] == '' and '(' .. prefix .. '\255' or '(' .. prefix .. ARGV[1]
  local to = prefix == '' and '-' or '[' .. prefix
  for _, member in ipairs(redis.call('ZREVRANGEBYLEX', at(ARGV[i]), from, to, 'LIMIT', 0, many)) do
    ids[#ids + 1] = string.sub(member, #prefix + 1)
  end
end
table.sort(ids, function(a, b) return a > b end)
local page = {}
for i = 1, math.min(many, #ids) do page[i] = {ids[i], shown(ids[i])} end
return page
