//! State across machines: a bus over which programs tell each other of refusals, and limits that
//! many machines share.
//!
//! - An [`Agent`] joins a limiter to a [`Bus`]: when its provider refuses a request, the others
//!   reduce the key and pause too, before they earn a refusal of their own. Each keeps its own
//!   buckets.
//! - [`Shared`] keeps the buckets themselves in Redis or Valkey, for all machines together: N of
//!   them take one limit, exactly or by leases.
//!
//! It knows nothing of configuration files; `config` makes both out of one.

mod bus;
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
