use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::process;
use std::sync::Arc;

use super::config::Config;
use super::open::OpenError;
use super::value::{Bus, BusPlace};
use crate::cluster::{self, Agent};
use crate::limiter::Limiter;

impl Config {
    /// Joins a limiter to the bus of this configuration, if there is one: it tells the others there of
    /// its provider's refusals, and follows theirs, until it ends.
    ///
    /// # Errors
    /// [`OpenError`] if this program is built without the feature that the bus needs, or has no thread
    /// left. A server that can't be reached is none: the limiter goes on by itself, until it comes.
    pub fn join(&self, limiter: &Limiter) -> Result<Option<Agent>, OpenError> {
        self.bus.as_ref().map(|bus| bus.join(limiter)).transpose()
    }
}

impl Bus {
    /// Joins a limiter to it.
    ///
    /// # Errors
    /// As [`Config::join`].
    pub fn join(&self, limiter: &Limiter) -> Result<Agent, OpenError> {
        let id = self.agent_id.clone().unwrap_or_else(unique_name);
        let bus = self.place.connect()?;
        Ok(Agent::join(limiter, bus, id)?)
    }
}

impl BusPlace {
    fn connect(&self) -> Result<Arc<dyn cluster::Bus>, OpenError> {
        match self {
            #[cfg(feature = "nats")]
            Self::Nats(url) => Ok(Arc::new(cluster::NatsBus::connect(url.expose())?)),
            #[cfg(not(feature = "nats"))]
            Self::Nats(_) => Err(OpenError::NoFeature { path: "bus.nats", feature: "nats" }),
            #[cfg(feature = "redis")]
            Self::Redis(url) => Ok(Arc::new(cluster::RedisBus::connect(url.expose())?)),
            #[cfg(not(feature = "redis"))]
            Self::Redis(_) => Err(OpenError::NoFeature { path: "bus.redis", feature: "redis" }),
        }
    }
}

/// A name that nobody else has: the host's, for who reads it; the number of the process; and, since
/// containers share both, something random.
fn unique_name() -> String {
    // Each is seeded anew by the system.
    let random = RandomState::new().build_hasher().finish();
    format!("{}-{}-{random:016x}", host(), process::id())
}

fn host() -> String {
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"];
    let told = files.into_iter().find_map(|path| fs::read_to_string(path).ok());
    let named =
        || ["HOSTNAME", "COMPUTERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let name = told.or_else(named).unwrap_or_default();
    let plain = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let name: String = name.trim().chars().filter(plain).take(LONGEST_HOST).collect();
    if name.is_empty() { "host".to_owned() } else { name }
}

/// What DNS allows.
const LONGEST_HOST: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_another_and_says_which_process_it_is() {
        let names = [unique_name(), unique_name()];
        assert_ne!(names[0], names[1]);
        assert!(names[0].contains(&format!("-{}-", process::id())) && names[0].len() < 128);
    }
}
