use redis::Cmd;

/// The set of who is alive on an account.
///
/// Each process puts itself down with the time, by the server's clock, and those are dropped that
/// haven't done so for a while. As it writes, it also tells whether the store can.
pub(super) fn heartbeat(name: &[u8], process: u64) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(HEARTBEAT).arg(1).arg(name).arg(format!("{process:016x}")).arg(EXPIRY_MICROS);
    command
}

/// Leaves it.
pub(super) fn leave(name: &[u8], process: u64) -> Cmd {
    let mut command = redis::cmd("ZREM");
    command.arg(name).arg(format!("{process:016x}"));
    command
}

/// Answers the server's time and how many there are.
const HEARTBEAT: &str = "\
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - ARGV[2]))
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%.0f', now + ARGV[2]), '+inf')
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ARGV[2] / 1000))
return {now, redis.call('ZCARD', KEYS[1])}";

/// Who hasn't been heard of for three beats and a half is gone.
const EXPIRY_MICROS: u64 = 3_500_000;
