use std::fs;
use std::time::Duration;

/// A boot of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Boot {
    /// The id of the boot: a different one each time that a machine starts.
    pub id: u128,
    /// The time since the boot, including the time during which the machine was suspended.
    pub uptime: Duration,
}

impl Boot {
    /// Creates the boot of a machine that has been running for `uptime`.
    pub fn new(id: u128, uptime: Duration) -> Self {
        Self { id, uptime }
    }

    /// Reads the boot on Linux: `/proc/sys/kernel/random/boot_id` is a UUID, and `/proc/uptime` starts with
    /// seconds and hundredths (proc(5)).
    pub(super) fn read() -> Option<Self> {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let id = u128::from_str_radix(&id.trim().replace('-', ""), 16).ok()?;
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let (seconds, hundredths) = uptime.split_whitespace().next()?.split_once('.')?;
        let nanos =
            format!("{hundredths:0<9.9}").parse().ok().filter(|&nanos| nanos < 1_000_000_000)?;
        Some(Self { id, uptime: Duration::new(seconds.parse().ok()?, nanos) })
    }

    /// Returns the boot with a later uptime.
    pub(super) fn after(self, more: Duration) -> Self {
        Self { uptime: self.uptime.saturating_add(more), ..self }
    }
}
