-- Stands before every script. KEYS[1] is the ledger's base; every key begins with it.
-- A script that fails midway keeps what it wrote: so it reads and checks first, and writes last.
local base = KEYS[1]

local function at(...) return base .. ':' .. table.concat({...}, ':') end

-- A number as the text that it was: tostring() would round it.
local function int(number) return string.format('%.0f', number) end

-- The instant of the step, in milliseconds: the caller's, or the server's for 0.
local function instant(given)
  if given ~= '0' then return given end
  local now = redis.call('TIME')
  return int(now[1] * 1000 + math.floor(now[2] / 1000))
end

local function expect(ok, what)
  if not ok then error({err = 'ERR vouchback: wrong ' .. what}) end
end

-- Number 0 is entry 0-1: the server counts up, so numbers have no gap.
local function journal(now, entry)
  redis.call('XADD', at('journal'), '0-*', 'at', now, 'entry', entry)
end

local function record_of(operation) return at('operation', operation) end

-- What a hint must know; read before anything is written. nil where the state has no work.
local function work_of(operation)
  if not operation then return nil end
  local work = redis.call('HMGET', record_of(operation), 'effect', 'due', 'not_before', 'lease')
  if work[1] ~= '1' then return nil end
  return {operation = operation, due = tonumber(work[2]), not_before = tonumber(work[3]),
          held = work[4] ~= ''}
end

-- Make work due as soon as the provider allows.
local function hint(work, event, now)
  if not work then return end
  local due = math.max(tonumber(now), work.not_before or 0)
  if work.due and work.due < due then due = work.due end
  local record = record_of(work.operation)
  redis.call('HSET', record, 'due', int(due), 'by', event)
  redis.call('HINCRBY', record, 'hints', 1)
  if not work.held then redis.call('ZADD', at('due'), int(due), work.operation) end
  redis.call('PUBLISH', at('news'), work.operation)
end

-- Give an operation a name and the events that were parked under it; how many there were.
local function claim_name(operation, name)
  if name == '' or redis.call('HSETNX', at('name'), name, operation) == 0 then return 0 end
  local attached = 0
  for _, seq in ipairs(redis.call('LRANGE', at('parked', name), 0, -1)) do
    if redis.call('ZREM', at('parked'), seq) == 1 then
      redis.call('HSET', at('owner'), seq, operation)
      redis.call('ZADD', at('operation', operation, 'events'), seq, seq)
      attached = attached + 1
    end
  end
  redis.call('DEL', at('parked', name))
  return attached
end

-- An operation as it is shown: its row, when it is due, and not before when.
local function shown(operation)
  local row = redis.call('HMGET', record_of(operation), 'row', 'due', 'not_before')
  if not row[1] then return false end
  return row
end

-- Whether a lease is still the operation's.
local function holds(operation, lease, fence)
  local held = redis.call('HMGET', record_of(operation), 'lease', 'fence')
  return held[1] == lease and held[2] == fence
end

-- One event: its number, its fields, what it was attached to, how often it came again, its kind.
local function event_of(seq)
  local found = redis.call('XRANGE', at('event'), '0-' .. seq, '0-' .. seq)[1]
  if not found then return false end
  local fields = found[2]
  return {seq, fields, redis.call('HGET', at('owner'), seq), redis.call('HGET', at('seen'), seq),
          redis.call('HGET', at('kinds'), fields[10])}
end

-- Write fields of a key document; when it is due (empty: not by itself) and how long it is held
-- unless they stay as they are.
local function write_keys(source, url, due, hold, ...)
  local record, member = at('key_document', source, url), source .. ' ' .. url
  local revision = redis.call('INCR', at('keys', 'revision'))
  redis.call('HSET', record, 'revision', revision, ...)
  redis.call('ZADD', at('keys', 'changed'), revision, member)
  if not due then return end
  redis.call('HSET', record, 'due', due, 'hold', hold)
  if due == '' then redis.call('ZREM', at('keys', 'due'), member)
  else redis.call('ZADD', at('keys', 'due'), due, member) end
end

-- The key documents of some sources that are due, the most overdue first.
local function due_keys(now, sources)
  local wanted, found = {}, {}
  for _, source in ipairs(sources) do wanted[source] = true end
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', at('keys', 'due'), '-inf', now)) do
    local source, url = string.match(member, '^(%S+) (.*)$')
    if wanted[source] then found[#found + 1] = {source, url} end
  end
  return found
end
