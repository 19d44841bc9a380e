#!lua flags=no-writes
-- Read events, oldest first, each with the state of its operation.
-- ARGV: 1 after which number, 2 how many
-- Answer: {event as event_get, state or nil}, ...; fewer than asked for are the last ones
expect(#ARGV == 2, 'arguments')
local page = {}
for i, found in ipairs(redis.call('XRANGE', at('event'), '(0-' .. ARGV[1], '+', 'COUNT', ARGV[2])) do
  local event = event_of(string.sub(found[1], 3))
  local owner = event[3] or event[2][6]
  page[i] = {event, owner ~= '' and redis.call('HGET', record_of(owner), 'state')}
end
return page
