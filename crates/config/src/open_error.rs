use std::fmt;
use std::io;

use paceline_cluster::{BusError, NoAgentId, SharedError};
use paceline_limiter::limiter::BuildError;
use paceline_store::StoreError;

use crate::error::ConfigError;

/// An error while creating a limiter from a configuration.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The configuration is invalid.
    Config(ConfigError),
    /// The limiter can't be built.
    Build(BuildError),
    /// The store can't be opened.
    Store(StoreError),
    /// The bus can't be opened.
    Bus(BusError),
    /// The name on the bus is invalid.
    AgentId(NoAgentId),
    /// The shared limits can't be opened.
    Shared(SharedError),
    /// There is no provider and no quota, and unknown keys are allowed.
    NoLimits,
    /// The file can't be watched.
    Watch(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Build(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::Bus(error) => write!(f, "bus: {error}"),
            Self::AgentId(error) => write!(f, "bus.agent_id: {error}"),
            Self::Shared(error) => write!(f, "cluster.redis: {error}"),
            Self::NoLimits => f.write_str(NO_LIMITS),
            Self::Watch(error) => write!(f, "can't watch the configuration file: {error}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Build(error) => Some(error),
            Self::Store(error) => Some(error),
            Self::NoLimits => None,
            Self::Bus(error) => Some(error),
            Self::AgentId(error) => Some(error),
            Self::Shared(error) => Some(error),
            Self::Watch(error) => Some(error),
        }
    }
}

impl From<ConfigError> for OpenError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<BuildError> for OpenError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<BusError> for OpenError {
    fn from(error: BusError) -> Self {
        Self::Bus(error)
    }
}

impl From<NoAgentId> for OpenError {
    fn from(error: NoAgentId) -> Self {
        Self::AgentId(error)
    }
}

impl From<SharedError> for OpenError {
    fn from(error: SharedError) -> Self {
        Self::Shared(error)
    }
}

/// The error for a configuration that doesn't limit anything.
pub(super) const NO_LIMITS: &str =
    "the configuration limits nothing; set `providers`, `quotas` or `unknown_key`";
