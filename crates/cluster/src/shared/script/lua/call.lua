-- paceline: decides atomically over all buckets of a call. Times are microseconds, and every number
-- is an integer below 2^53. KEYS: one hash per part. ARGV: the id, the encoded call.
local values, unpack, pack, sub = unpack, struct.unpack, struct.pack, string.sub
local id, packed = ARGV[1], ARGV[2]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local operation, flag, ttl, expected, generation, order, weight, starvation, count, pos =
  unpack('<ddddddddd', packed)
-- changes of the clock forward that the caller has noticed, with the time after each
local jumps = {}
for i = 1, count do
  local at, by
  at, by, pos = unpack('<dd', packed, pos)
  jumps[i] = { at = at, by = by }
end

-- Returns whether all tickets are to be checked: it is time, or the clock was set back, and a process of an older
-- version moved no tickets.
local function is_check_due(next_due)
  return now >= next_due or next_due > now + 1000000
end

-- tells the process of a waiting request that it should ask again; if the server's access rules
-- forbid that, the request asks again after some time
local function wake(waiting)
  local low, high = unpack('<I4I4', waiting)
  redis.pcall('PUBLISH', string.format('paceline:wake:%08x%08x', high, low), waiting)
end
