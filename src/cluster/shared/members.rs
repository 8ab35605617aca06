//! The live processes of an account, in the store, and their reports to a store that has lost its data.

use redis::Cmd;

use super::failure::Failure;
use super::link::Link;

/// What a process knows before a heartbeat.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// The number that identifies the process.
    pub(super) process: u64,
    /// The generation of the store's data that this process has used; 0 if it has not been connected.
    pub(super) generation: u64,
    /// The generation to which it has reported its usage.
    pub(super) reported_to: u64,
    /// The number of processes that it knows, itself included.
    pub(super) members: u64,
    /// The last change of the server's clock forward that states can still need: the time after it, and its
    /// amount; zeros if there is none.
    pub(super) jump: (u64, u64),
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heartbeat {
    /// The server's time, in microseconds.
    pub(super) time: u64,
    /// The time at which the server got its first heartbeat: another one means that it has lost its data.
    pub(super) generation: u64,
    /// False while processes that used the lost data have not reported their usage, for at most a second.
    pub(super) is_complete: bool,
    /// The number of live processes.
    pub(super) members: u64,
    /// The number of them before this one, in an order that all agree on.
    pub(super) rank: u64,
    /// The last change of the server's clock forward that any process has noticed.
    pub(super) jump: (u64, u64),
}

impl Heartbeat {
    /// Records this process as alive.
    ///
    /// The heartbeat is a write, so it fails on a store that does not accept writes.
    pub(super) async fn send(
        link: &mut Link,
        [members, reports]: [&[u8]; 2],
        known: Known,
    ) -> Result<Self, Failure> {
        let mut command = redis::cmd("EVAL");
        command.arg(HEARTBEAT).arg(2).arg(members).arg(reports);
        command.arg(name(known.process)).arg(EXPIRY_MICROS);
        command.arg(known.generation).arg(known.reported_to).arg(known.members);
        command.arg(known.jump.0).arg(known.jump.1);
        let (time, generation, is_complete, members, rank, at, by) = link.query(&command).await?;
        Ok(Self { time, generation, is_complete, members, rank, jump: (at, by) })
    }
}

/// Returns the command that removes this process from the set.
pub(super) fn leave(members: &[u8], process: u64) -> Cmd {
    let mut command = redis::cmd("ZREM");
    command.arg(members).arg(name(process));
    command
}

fn name(process: u64) -> String {
    format!("{process:016x}")
}

/// Each process writes the server's time to a sorted set, from which expired entries are removed. The first
/// heartbeat starts a generation of the data. A process that has used another one states how many processes
/// it knew, and then that it has reported its usage. Processes notice a change of the clock at different
/// times, within two seconds.
const HEARTBEAT: &str = "\
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local known, reported_to, knew = ARGV[3], ARGV[4], tonumber(ARGV[5])
redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - ARGV[2]))
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%.0f', now + ARGV[2]), '+inf')
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ARGV[2] / 1000))
redis.call('HSETNX', KEYS[2], 'generation', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[2], 900000)
local state = redis.call('HMGET', KEYS[2], 'generation', 'expected', 'reported', 'jump_at', 'jump_by')
local jump_at, jump_by = tonumber(state[4] or 0), tonumber(state[5] or 0)
if ARGV[6] ~= '0' and math.abs(ARGV[6] - jump_at) > 2000000 then
  jump_at, jump_by = tonumber(ARGV[6]), tonumber(ARGV[7])
  redis.call('HSET', KEYS[2], 'jump_at', ARGV[6], 'jump_by', ARGV[7])
end
local generation, expected, reported = state[1], tonumber(state[2] or 0), tonumber(state[3] or 0)
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
return {now, tonumber(generation), is_complete and 1 or 0, #members, rank, jump_at, jump_by}";

/// A process counts as dead after three and a half missed heartbeats.
const EXPIRY_MICROS: u64 = 3_500_000;
