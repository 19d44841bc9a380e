#!lua flags=no-writes
-- Read events of a list, newest first.
-- ARGV: 1 list (empty: all), 2 'stream' or 'set', 3 before (empty: from the newest), 4 how many
-- Answer: as event_get, for each; fewer than asked for are the last ones
expect(#ARGV == 4, 'arguments')
local list, before, many = at('event'), ARGV[3], ARGV[4]
if ARGV[1] ~= '' then list = at(ARGV[1]) end
local seqs = {}
if ARGV[2] == 'set' then
  local from = before == '' and '+inf' or '(' .. before
  seqs = redis.call('ZREVRANGEBYSCORE', list, from, '-inf', 'LIMIT', 0, many)
else
  local from = before == '' and '+' or '(0-' .. before
  for i, entry in ipairs(redis.call('XREVRANGE', list, from, '-', 'COUNT', many)) do
    seqs[i] = string.sub(entry[1], 3)
  end
end
local page = {}
for i, seq in ipairs(seqs) do page[i] = event_of(seq) end
return page
