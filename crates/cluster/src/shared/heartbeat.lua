-- Records a process as alive. KEYS: the set of live processes, the reports. ARGV: the process; the generation
-- of the data that it has used, and the number of its last heartbeat; the generation to which it has reported
-- its usage; the number of processes that it knows; the changes of the clock that it has noticed. These are ten
-- arguments of EVAL, the most that Redis reads before it says that a password is missing.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local time = string.format('%.0f', now)
local known, last = string.match(ARGV[2], '(%d+) (%d+)')
local reported_to, knew = ARGV[3], tonumber(ARGV[4])
-- a process counts as dead after three and a half missed heartbeats
local expiry = 3500000
redis.call('ZADD', KEYS[1], time, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - expiry))
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%.0f', now + expiry), '+inf')
redis.call('PEXPIRE', KEYS[1], expiry / 1000)
-- The first heartbeat starts a generation of the data. So does one that shows that heartbeats were lost, and the
-- first one in another run of the server, which may lack the last writes.
local info, number = redis.pcall('INFO', 'server'), redis.call('HINCRBY', KEYS[2], 'number', 1)
local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
local known_run = redis.call('HGET', KEYS[2], 'run') or run
if number <= tonumber(last) or known_run ~= run then
  redis.call('DEL', KEYS[2])
  number = math.max(number, tonumber(last) + 1)
  redis.call('HSET', KEYS[2], 'number', number)
end
redis.call('HSETNX', KEYS[2], 'run', run)
redis.call('HSETNX', KEYS[2], 'generation', time)
-- as long as states outlive their usage, in case the clock is set forward
redis.call('PEXPIRE', KEYS[2], 900000)
-- a process that has just started doesn't know of earlier changes
if known ~= '0' then redis.call('HSET', KEYS[2], 'jumps', ARGV[5]) end
local state = redis.call('HMGET', KEYS[2], 'generation', 'expected', 'reported', 'jumps')
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
-- processes send heartbeats every second
local is_complete = reported >= expected or math.abs(now - generation) >= 1500000
local members, rank = redis.call('ZRANGE', KEYS[1], 0, -1), 0
for _, name in ipairs(members) do if name < ARGV[1] then rank = rank + 1 end end
return {now, tonumber(generation), number, is_complete and 1 or 0, #members, rank, state[4] or ''}
