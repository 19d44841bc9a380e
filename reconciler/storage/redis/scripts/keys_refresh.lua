#!lua
-- Make all key documents of a source due now.
-- ARGV: 1 now, 2 source
-- Answer: how many
expect(#ARGV == 2 and tonumber(ARGV[1]), 'arguments')
local now, source = instant(ARGV[1]), ARGV[2]
local all = redis.call('ZRANGE', at('keys', 'of', source), 0, -1)
for _, url in ipairs(all) do write_keys(source, url, now, now) end
return #all
