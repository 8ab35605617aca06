//! Coordination between processes and machines.
//!
//! - An [`Agent`] connects a limiter to a [`Bus`]. When the provider refuses a request of one
//!   process, the other processes reduce their capacity for that key and pause as well, before the
//!   provider refuses their requests too. Each process keeps its own buckets.
//! - [`Shared`] keeps the buckets themselves in Redis or Valkey, so that all processes draw from
//!   one limit, exactly or by leases.
//!
//! This module does not read configuration files; the `config` module creates both from one.

mod bus;
#[cfg(any(feature = "redis", feature = "nats"))]
mod cause;
#[cfg(feature = "redis")]
mod dial;
#[cfg(any(feature = "redis", feature = "yaml"))]
mod on_failure;
#[cfg(feature = "redis")]
mod shared;
#[cfg(any(feature = "redis", feature = "yaml"))]
mod sharing_mode;
#[cfg(any(feature = "redis", feature = "nats"))]
mod tls;
#[cfg(any(feature = "redis", feature = "nats"))]
mod worker;

#[cfg(any(feature = "redis", feature = "nats"))]
pub use bus::BusError;
#[cfg(feature = "nats")]
pub use bus::NatsBus;
#[cfg(feature = "redis")]
pub use bus::RedisBus;
pub use bus::{Agent, AgentStatus, Bus, BusStatus, LocalBus, MessageHandler, NoAgentId};
#[cfg(any(feature = "redis", feature = "yaml"))]
pub use on_failure::OnFailure;
#[cfg(feature = "redis")]
pub use shared::{Shared, SharedBuilder, SharedError, SharedStatus};
#[cfg(any(feature = "redis", feature = "yaml"))]
pub use sharing_mode::SharingMode;
#[cfg(any(feature = "redis", feature = "nats"))]
pub use tls::{Tls, TlsError};
