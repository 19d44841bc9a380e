-- Sends the prepared requests of a file, each once: every thread takes its own slice.
-- The file: 8 digits of length, then that many bytes, again and again.
local counter = 0
function setup(thread)
  thread:set("slice", counter)
  counter = counter + 1
end

function init(args)
  local file = assert(io.open(args[1], "rb"))
  local slices = tonumber(args[2])
  requests, position = {}, 0
  local index = 0
  while true do
    local length = file:read(8)
    if not length then break end
    local request = file:read(tonumber(length))
    if index % slices == slice then requests[#requests + 1] = request end
    index = index + 1
  end
  file:close()
end

function request()
  position = position % #requests + 1
  return requests[position]
end

function response(status)
  if status >= 300 then failed = (failed or 0) + 1 end
end

function done(summary, latency)
  io.write(string.format(
    '{"requests":%d,"us":%d,"not_2xx":%d,"socket_errors":%d,"p50_us":%d,"p99_us":%d}\n',
    summary.requests, summary.duration, summary.errors.status,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
