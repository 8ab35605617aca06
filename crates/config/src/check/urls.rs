use super::Check;
use crate::SecretUrl;
use crate::tree::FieldPath;

impl Check<'_> {
    /// Reports a URL whose scheme is none of these.
    pub fn scheme(&mut self, path: &FieldPath, url: &SecretUrl, schemes: &[&str]) {
        if !schemes.contains(&url.scheme()) {
            let allowed = schemes.join(", ");
            self.report(
                path,
                format!("must be a URL with one of the schemes {allowed}, not {}", url.scheme()),
            );
        }
    }
}

pub(super) const NATS: &[&str] = &["nats", "tls", "ws", "wss"];
pub(super) const REDIS: &[&str] = &["redis", "rediss", "valkey", "valkeys", "unix"];
/// The schemes of servers for shared limits.
pub(super) const SHARED: &[&str] = &[
    "redis",
    "rediss",
    "redis-cluster",
    "rediss-cluster",
    "redis-sentinel",
    "rediss-sentinel",
    "valkey",
    "valkeys",
    "valkey-cluster",
    "valkeys-cluster",
    "valkey-sentinel",
    "valkeys-sentinel",
    "unix",
];
