#!lua flags=no-writes
-- Tell whether any key document of some sources is due.
-- ARGV: 1 now, 2... sources
-- Answer: 1 or 0
expect(#ARGV >= 1 and tonumber(ARGV[1]), 'arguments')
return #due_keys(instant(ARGV[1]), {unpack(ARGV, 2)}) > 0 and 1 or 0
