use super::Check;
use crate::config::Address;
use crate::config::tree::Steps;

impl Check<'_> {
    /// Notes a URL that isn't of one of these schemes.
    pub(super) fn scheme(&mut self, steps: &Steps, url: &Address, schemes: &[&str]) {
        if !schemes.contains(&url.scheme()) {
            let allowed = schemes.join(", ");
            self.wrong(steps, format!("must be a URL of scheme {allowed}, not {}", url.scheme()));
        }
    }

    /// Notes a URL that says who asks, or for what.
    pub(super) fn bare_url(&mut self, steps: &Steps, url: &Address) {
        let text = url.expose();
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            self.wrong(steps, "must have no user name: clients send credentials of their own");
        } else if rest.contains(['?', '#']) {
            self.wrong(steps, "must have no query: that of a request is its client's");
        }
    }
}

pub(super) const HTTP: &[&str] = &["http", "https"];
pub(super) const NATS: &[&str] = &["nats", "tls", "ws", "wss"];
pub(super) const REDIS: &[&str] = &["redis", "rediss"];
/// Of what keeps shared limits.
pub(super) const SHARED: &[&str] = &["redis", "rediss", "redis-cluster", "redis-sentinel"];
