//! The live processes of an account, in the store, and their reports to a store that has lost its data.

use redis::Cmd;

use super::failure::Failure;
use super::link::Link;
use super::server_clock::Jump;

/// The knowledge of a process before a heartbeat.
#[derive(Debug)]
pub(super) struct Known {
    /// The number that identifies the process.
    pub(super) process: u64,
    /// The generation of the store's data that this process has used; 0 if it has not been connected.
    pub(super) generation: u64,
    /// The number of its last heartbeat, among those of all processes.
    pub(super) heartbeat: u64,
    /// The generation to which it has reported its usage.
    pub(super) reported_to: u64,
    /// The number of processes that it knows, itself included.
    pub(super) members: u64,
    /// The changes of the server's clock that it has noticed.
    pub(super) jumps: Vec<Jump>,
}

/// The answer to a heartbeat.
#[derive(Debug)]
pub(super) struct Heartbeat {
    /// The server's time, in microseconds.
    pub(super) time: u64,
    /// The time at which this generation of the server's data began: another one means that it has lost data.
    pub(super) generation: u64,
    /// The number of this heartbeat, among those of all processes.
    pub(super) number: u64,
    /// False while processes that used the lost data have not reported their usage, for at most 1.5 seconds.
    pub(super) is_complete: bool,
    /// The number of live processes.
    pub(super) members: u64,
    /// The number of them before this one, in an order that all agree on.
    pub(super) rank: u64,
    /// The changes of the server's clock that another process has noticed.
    pub(super) jumps: Vec<Jump>,
}

impl Heartbeat {
    /// Records this process as alive.
    ///
    /// The heartbeat is a write, so it fails on a store that does not accept writes.
    pub(super) async fn send(
        link: &mut Link,
        [members, reports]: [&[u8]; 2],
        known: &Known,
    ) -> Result<Self, Failure> {
        let mut command = redis::cmd("EVAL");
        command.arg(HEARTBEAT).arg(2).arg(members).arg(reports).arg(name(known.process));
        command.arg(format!("{} {}", known.generation, known.heartbeat));
        command.arg(known.reported_to).arg(known.members).arg(encode(&known.jumps));
        let (time, generation, number, is_complete, members, rank, jumps): (
            _,
            _,
            _,
            _,
            _,
            _,
            String,
        ) = link.query(&command).await?;
        Ok(Self { time, generation, number, is_complete, members, rank, jumps: decode(&jumps) })
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

/// Encodes changes of the clock as a text that other processes decode.
fn encode(jumps: &[Jump]) -> String {
    let jumps: Vec<_> = jumps.iter().map(|Jump { at, by }| format!("{at}+{by}")).collect();
    jumps.join(" ")
}

fn decode(text: &str) -> Vec<Jump> {
    let jump = |text: &str| {
        let (at, by) = text.split_once('+')?;
        Some(Jump { at: at.parse().ok()?, by: by.parse().ok()? })
    };
    text.split(' ').filter_map(jump).collect()
}

const HEARTBEAT: &str = include_str!("heartbeat.lua");
