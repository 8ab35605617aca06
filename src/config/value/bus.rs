use crate::config::Address;

/// Over which bus capacity updates are announced, and under which name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bus {
    /// Over which.
    pub place: BusPlace,
    /// The name of this program there; without one it is made up of the host's, the process's number
    /// and something random.
    pub agent_id: Option<String>,
}

/// Servers over which capacity updates go.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BusPlace {
    /// NATS.
    Nats(Address),
    /// Redis or Valkey.
    Redis(Address),
}
