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
        command.arg(name(known.process)).arg(known.generation).arg(known.reported_to);
        command.arg(known.members).arg(format!("{} {}", known.jump.0, known.jump.1));
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

const HEARTBEAT: &str = include_str!("heartbeat.lua");
