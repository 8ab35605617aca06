mod agent;
#[cfg(any(feature = "redis", feature = "nats"))]
mod error;
mod local;
mod member;
mod message;
#[cfg(feature = "nats")]
mod nats;
mod port;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "redis", feature = "nats"))]
mod remote;
mod status;
mod topics;

pub use agent::{Agent, AgentStatus, NoAgentId};
#[cfg(any(feature = "redis", feature = "nats"))]
pub use error::BusError;
pub use local::Local;
#[cfg(feature = "nats")]
pub use nats::Nats;
pub use port::{Bus, Receiver};
#[cfg(feature = "redis")]
pub use redis::Redis;
pub use status::BusStatus;
