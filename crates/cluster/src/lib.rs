//! Coordination between processes and machines.
//!
//! - An [`Agent`] connects a limiter to a [`Bus`]. When the provider refuses a request of one
//!   process, the other processes reduce their capacity for that key and pause as well, before the
//!   provider refuses their requests too. Each process keeps its own buckets.
//! - [`Shared`] keeps the buckets themselves in Redis or Valkey, so that all processes draw from
//!   one limit, exactly or by leases.
//!
//! This package doesn't read configuration files.

mod bus;
#[cfg(any(feature = "redis", feature = "nats"))]
mod cause;
#[cfg(feature = "redis")]
mod dial;
mod on_failure;
#[cfg(feature = "redis")]
mod shared;
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
pub use on_failure::OnFailure;
#[cfg(feature = "redis")]
pub use shared::{Shared, SharedBuilder, SharedError, SharedStatus};
pub use sharing_mode::SharingMode;
#[cfg(any(feature = "redis", feature = "nats"))]
pub use tls::{Tls, TlsError};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
