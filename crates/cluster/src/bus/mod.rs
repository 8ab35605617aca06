//! A message bus over which limiters announce reductions and cool-downs to each other.
//!
//! [`Bus`] is the interface; [`LocalBus`], [`RedisBus`] and [`NatsBus`] implement it. An [`Agent`]
//! connects a limiter to a bus.

mod agent;
#[expect(clippy::module_inception, reason = "the trait that this module is named after")]
mod bus;
#[cfg(any(feature = "redis", feature = "nats"))]
mod error;
mod local;
mod member;
mod message;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "redis", feature = "nats"))]
mod remote;
mod status;
mod subscriptions;

pub use agent::{Agent, NoAgentId};
pub use bus::{Bus, MessageHandler};
#[cfg(any(feature = "redis", feature = "nats"))]
pub use error::BusError;
pub use local::LocalBus;
#[cfg(feature = "nats")]
pub use nats::NatsBus;
#[cfg(feature = "redis")]
pub use redis::RedisBus;
pub use status::{AgentStatus, BusStatus};
