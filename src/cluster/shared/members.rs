//! The set of live processes of an account, in the store.

use redis::Cmd;

/// Returns the heartbeat command, which records this process as alive and counts the live
/// processes.
///
/// Each process writes the server's time to a sorted set, from which expired entries are removed.
/// The heartbeat is a write, so it fails on a store that does not accept writes.
pub(super) fn heartbeat(name: &[u8], process: u64) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(HEARTBEAT).arg(1).arg(name).arg(format!("{process:016x}")).arg(EXPIRY_MICROS);
    command
}

/// Returns the command that removes this process from the set.
pub(super) fn leave(name: &[u8], process: u64) -> Cmd {
    let mut command = redis::cmd("ZREM");
    command.arg(name).arg(format!("{process:016x}"));
    command
}

/// Returns the server's time, the number of live processes, and whether this process was among them.
const HEARTBEAT: &str = "\
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local known = redis.call('ZSCORE', KEYS[1], ARGV[1]) and 1 or 0
redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - ARGV[2]))
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%.0f', now + ARGV[2]), '+inf')
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ARGV[2] / 1000))
return {now, redis.call('ZCARD', KEYS[1]), known}";

/// A process counts as dead after three and a half missed heartbeats.
const EXPIRY_MICROS: u64 = 3_500_000;
