#!lua
-- Take the most overdue key documents of some sources.
-- ARGV: 1 now, 2 how many at most, 3 for how long (ms), 4... sources
-- Answer: for each {source, url, fence, etag, fetched (both: empty or nil for none), failures}
expect(#ARGV >= 3 and tonumber(ARGV[1]) and tonumber(ARGV[2]) and tonumber(ARGV[3]), 'arguments')
local now, taken = instant(ARGV[1]), {}
local ends = int(tonumber(now) + tonumber(ARGV[3]))
local due = due_keys(now, {unpack(ARGV, 4)})
for i = 1, math.min(#due, tonumber(ARGV[2])) do
  local source, url = due[i][1], due[i][2]
  local record = at('key_document', source, url)
  local fence = redis.call('HINCRBY', record, 'fence', 1)
  write_keys(source, url, ends, ends)
  local told = redis.call('HMGET', record, 'etag', 'fetched', 'failures')
  taken[i] = {source, url, fence, told[1], told[2], told[3]}
end
return taken
