use super::Check;
use crate::config::Address;
use crate::config::tree::Steps;

impl Check<'_> {
    /// Reports a URL whose scheme is none of these.
    pub fn scheme(&mut self, steps: &Steps, url: &Address, schemes: &[&str]) {
        if !schemes.contains(&url.scheme()) {
            let allowed = schemes.join(", ");
            self.wrong(steps, format!("must be a URL of scheme {allowed}, not {}", url.scheme()));
        }
    }
}

pub(super) const NATS: &[&str] = &["nats", "tls", "ws", "wss"];
pub(super) const REDIS: &[&str] = &["redis", "rediss"];
/// Of what keeps shared limits.
pub(super) const SHARED: &[&str] = &["redis", "rediss", "redis-cluster", "redis-sentinel"];
