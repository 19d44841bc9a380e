#!lua
-- Note that a document's keys verified a request, once.
-- ARGV: 1 now, 2 source, 3 url
-- Answer: nothing
expect(#ARGV == 3 and tonumber(ARGV[1]), 'arguments')
local now, source, url = instant(ARGV[1]), ARGV[2], ARGV[3]
local known = redis.call('HMGET', at('key_document', source, url), 'revision', 'proven')
if known[1] and not known[2] then write_keys(source, url, nil, nil, 'proven', now) end
