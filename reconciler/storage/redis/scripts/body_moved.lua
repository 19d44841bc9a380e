#!lua flags=allow-oom
-- Let a body go that a file holds; also when there is no memory left: more goes than comes.
-- ARGV: 1 name of the event id, 2 the file's digest
-- Answer: whether it went (1/0)
expect(#ARGV == 2 and #ARGV[2] == 32, 'arguments')
local seq = redis.call('HGET', at('id'), ARGV[1])
if not seq or redis.call('HEXISTS', at('moved'), seq) == 1 then return 0 end
redis.call('HSET', at('moved'), seq, ARGV[2])
redis.call('HINCRBY', at('files'), ARGV[2], 1)
redis.call('XDEL', at('body'), '0-' .. seq)
return 1
