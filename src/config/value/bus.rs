use crate::config::Address;

/// Over which bus capacity updates are announced.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bus {
    /// NATS.
    Nats(Address),
    /// Redis or Valkey.
    Redis(Address),
}
