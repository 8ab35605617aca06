-- Records a process as alive. KEYS: the set of live processes, the reports. ARGV: the process, the generation
-- of the data that it has used, the one to which it has reported its usage, the number of processes that it
-- knows, the last change of the clock. These are ten arguments of EVAL, the most that Redis reads before it
-- says that a password is missing.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
-- a process counts as dead after three and a half missed heartbeats
local expiry = 3500000
local known, reported_to, knew = ARGV[2], ARGV[3], tonumber(ARGV[4])
redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - expiry))
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%.0f', now + expiry), '+inf')
redis.call('PEXPIRE', KEYS[1], expiry / 1000)
-- the first heartbeat starts a generation of the data
redis.call('HSETNX', KEYS[2], 'generation', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[2], 900000)
local state = redis.call('HMGET', KEYS[2], 'generation', 'expected', 'reported', 'jump')
-- processes notice a change of the clock at different times, within two seconds
local jump_at, jump_by = string.match(state[4] or '0 0', '(%d+) (%d+)')
local at, by = string.match(ARGV[5], '(%d+) (%d+)')
if by ~= '0' and math.abs(at - jump_at) > 2000000 then
  jump_at, jump_by = at, by
  redis.call('HSET', KEYS[2], 'jump', ARGV[5])
end
local generation, expected, reported = state[1], tonumber(state[2] or 0), tonumber(state[3] or 0)
-- a process that has used lost data states how many it knew, and then that it has reported its usage
if known ~= '0' and known ~= generation then
  if knew > expected then
    expected = knew
    redis.call('HSET', KEYS[2], 'expected', knew)
  end
  if reported_to == generation and redis.call('HSETNX', KEYS[2], ARGV[1], 1) == 1 then
    reported = redis.call('HINCRBY', KEYS[2], 'reported', 1)
  end
end
local is_complete = reported >= expected or math.abs(now - generation) >= 1000000
local members, rank = redis.call('ZRANGE', KEYS[1], 0, -1), 0
for _, name in ipairs(members) do if name < ARGV[1] then rank = rank + 1 end end
return {now, tonumber(generation), is_complete and 1 or 0, #members, rank, tonumber(jump_at), tonumber(jump_by)}
