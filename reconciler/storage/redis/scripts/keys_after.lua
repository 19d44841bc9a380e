#!lua flags=no-writes
-- Read the key documents that changed after a revision, oldest change first.
-- ARGV: 1 revision
-- Answer: for each {source, url, fields in the order of their names below}
local found = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', at('keys', 'changed'), '(' .. ARGV[1], '+inf')) do
  local source, url = string.match(member, '^(%S+) (.*)$')
  found[#found + 1] = {source, url, redis.call('HMGET', at('key_document', source, url),
    'content', 'etag', 'fetched', 'valid', 'failures', 'failure', 'due', 'hold', 'proven', 'revision')}
end
return found
