/// A run of the machine, and how long it had lasted at the time that a clock tells: what makes the
/// times of two clocks of one machine comparable when one of them was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// Tells this run of the machine from every other.
    pub id: String,
    /// How long it had lasted, in nanoseconds.
    pub uptime_ns: u64,
}

impl Boot {
    /// A run of the machine that had lasted so long.
    pub fn new(id: impl Into<String>, uptime_ns: u64) -> Self {
        Self { id: id.into(), uptime_ns }
    }
}
