use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::process;
use std::sync::Arc;

use paceline_cluster::{Agent, Bus, NatsBus, RedisBus};
use paceline_limiter::limiter::Limiter;

use crate::config::Config;
use crate::open_error::OpenError;
use crate::value::{BusConfig, BusServer, TlsConfig};

impl Config {
    /// Joins a limiter to the bus of this configuration, if there is one. Until it is dropped, the limiter
    /// announces refusals of its provider, and applies those that other agents announce.
    ///
    /// # Errors
    /// Returns [`OpenError`] if the system can't start a thread. An unreachable server is not an error: the limiter
    /// works without the bus until the server responds.
    pub fn join(&self, limiter: &Limiter) -> Result<Option<Agent>, OpenError> {
        self.bus.as_ref().map(|bus| bus.join(limiter)).transpose()
    }
}

impl BusConfig {
    /// Joins a limiter to this bus.
    ///
    /// # Errors
    /// Returns [`OpenError`] in the cases of [`Config::join`].
    pub fn join(&self, limiter: &Limiter) -> Result<Agent, OpenError> {
        let id = self.agent_id.clone().unwrap_or_else(unique_name);
        let bus = self.server.connect(&self.tls)?;
        Ok(Agent::join(limiter, bus, id)?)
    }
}

impl BusServer {
    fn connect(&self, tls: &TlsConfig) -> Result<Arc<dyn Bus>, OpenError> {
        match self {
            Self::Nats(url) => {
                Ok(Arc::new(NatsBus::connect_with_tls(url.expose(), &tls.certificates())?))
            }
            Self::Redis(url) => {
                Ok(Arc::new(RedisBus::connect_with_tls(url.expose(), tls.certificates())?))
            }
        }
    }
}

/// Returns a unique name: the host name and the process ID, for readability, and a random number, since
/// containers can share both.
fn unique_name() -> String {
    // Every `RandomState` has a random seed.
    let random = RandomState::new().build_hasher().finish();
    format!("{}-{}-{random:016x}", host(), process::id())
}

fn host() -> String {
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"];
    let from_file = files.into_iter().find_map(|path| fs::read_to_string(path).ok());
    let from_environment =
        || ["HOSTNAME", "COMPUTERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let name = from_file.or_else(from_environment).unwrap_or_default();
    let is_allowed = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let name: String = name.trim().chars().filter(is_allowed).take(MAX_HOST_LENGTH).collect();
    if name.is_empty() { "host".to_owned() } else { name }
}

/// The maximum length of a DNS label, in bytes.
const MAX_HOST_LENGTH: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_names_differ_and_contain_process_id() {
        let names = [unique_name(), unique_name()];
        assert_ne!(names[0], names[1]);
        assert!(names[0].contains(&format!("-{}-", process::id())) && names[0].len() < 128);
    }
}
