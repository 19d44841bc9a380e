#!lua flags=no-writes
-- Read all tokens, newest first.
-- ARGV: none
-- Answer: {row, created at, revoked at or empty}, ...
local page, ids = {}, redis.call('LRANGE', at('tokens'), 0, -1)
for i, id in ipairs(ids) do
  page[#ids - i + 1] = redis.call('HMGET', at('token', id), 'row', 'at', 'revoked')
end
return page
