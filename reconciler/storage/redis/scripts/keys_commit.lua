#!lua
-- Write what a fetch found, if nobody claimed the document since.
-- ARGV: 1 now, 2 source, 3 url, 4 fence, 5 due in (ms, empty: not by itself), 6 held for (ms),
--       7 failure, or: 7 empty, 8 content (empty: as before), 9 etag, 10 valid for (ms)
-- Answer: 1, or 0 if it was claimed since
expect((#ARGV == 7 or #ARGV == 10) and tonumber(ARGV[1]) and tonumber(ARGV[6]), 'arguments')
local now, source, url = instant(ARGV[1]), ARGV[2], ARGV[3]
local record = at('key_document', source, url)
local known = redis.call('HMGET', record, 'fence', 'failures')
if known[1] ~= ARGV[4] then return 0 end
local function from_now(ms) return ms == '' and '' or int(tonumber(now) + tonumber(ms)) end
local due, hold = from_now(ARGV[5]), from_now(ARGV[6])
if ARGV[7] ~= '' then
  write_keys(source, url, due, hold, 'failure', ARGV[7], 'failures', int(known[2] + 1))
  return 1
end
if ARGV[8] ~= '' then redis.call('HSET', record, 'content', ARGV[8]) end
write_keys(source, url, due, hold, 'failure', '', 'failures', '0', 'etag', ARGV[9],
  'fetched', now, 'valid', from_now(ARGV[10]))
return 1
