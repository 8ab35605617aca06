use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Check;
use super::urls::{NATS, REDIS, SHARED};
use crate::SecretUrl;
use crate::fields::{BusFields, ClusterFields, StoreFields, TlsFields};
use crate::tree::FieldPath;
use crate::value::{BusConfig, BusServer, ClusterConfig, StoreConfig, StoreFile, TlsConfig};

impl Check<'_> {
    pub(super) fn store(&mut self, fields: StoreFields) -> Option<StoreConfig> {
        let root = FieldPath::new(["store"]);
        let flush = fields.flush.0;
        self.require_range(
            &root.key("flush"),
            flush,
            Duration::from_millis(10),
            Duration::from_secs(3_600),
        );
        let file = match (fields.sqlite, fields.yaml) {
            (Some(path), None) => StoreFile::Sqlite(self.path(&root.key("sqlite"), &path)?),
            (None, Some(path)) => StoreFile::Yaml(self.path(&root.key("yaml"), &path)?),
            (Some(_), Some(_)) => {
                self.report(&root.key("yaml"), "not allowed together with `sqlite`; remove one");
                return None;
            }
            (None, None) => {
                self.report(&root, "no file given; set `sqlite` or `yaml`");
                return None;
            }
        };
        Some(StoreConfig { file, flush })
    }

    /// Resolves a path of the file, which is relative to the directory of the file.
    pub(super) fn path(&mut self, field: &FieldPath, path: &Path) -> Option<PathBuf> {
        let problem = if path.as_os_str().is_empty() {
            "must be the path of a file"
        } else if path.starts_with("~") {
            "`~` is not expanded; write the full path"
        } else {
            return Some(self.folder.join(path));
        };
        self.report(field, problem);
        None
    }

    pub(super) fn bus(&mut self, fields: BusFields) -> Option<BusConfig> {
        let root = FieldPath::new(["bus"]);
        let tls = self.tls(&root, fields.tls.unwrap_or_default())?;
        let server = match (fields.nats, fields.redis) {
            (Some(url), None) => {
                self.scheme(&root.key("nats"), &url, NATS);
                BusServer::Nats(url)
            }
            (None, Some(url)) => {
                self.scheme(&root.key("redis"), &url, REDIS);
                BusServer::Redis(url)
            }
            (Some(_), Some(_)) => {
                self.report(&root.key("redis"), "not allowed together with `nats`; remove one");
                return None;
            }
            (None, None) => {
                self.report(&root, "no server given; set `nats` or `redis`");
                return None;
            }
        };
        if let Some(id) = &fields.agent_id {
            self.name(&root.key("agent_id"), id);
        }
        Some(BusConfig { server, tls, agent_id: fields.agent_id })
    }

    pub(super) fn cluster(&mut self, fields: ClusterFields) -> Option<ClusterConfig> {
        let root = FieldPath::new(["cluster"]);
        self.shared_url(&root.key("redis"), &fields.redis);
        self.name(&root.key("account"), &fields.account);
        let [milli, second] = [Duration::from_millis(1), Duration::from_secs(1)];
        let (timeout, lease, ttl) = (fields.timeout.0, fields.lease.0, fields.reservation_ttl.0);
        self.require_range(&root.key("timeout"), timeout, milli, 60 * second);
        self.require_range(&root.key("lease"), lease, 100 * milli, 60 * second);
        self.require_range(&root.key("reservation_ttl"), ttl, second, 3_600 * second);
        let ClusterFields { redis, tls, account, mode, on_failure, spread, .. } = fields;
        let tls = self.tls(&root, tls.unwrap_or_default())?;
        Some(ClusterConfig {
            redis,
            tls,
            account,
            mode,
            on_failure,
            timeout,
            spread,
            lease,
            reservation_ttl: ttl,
        })
    }

    fn tls(&mut self, section: &FieldPath, fields: TlsFields) -> Option<TlsConfig> {
        let root = section.key("tls");
        let mut file = |name: &str, path: Option<PathBuf>| match path {
            Some(path) => self.path(&root.key(name), &path).map(Some),
            None => Some(None),
        };
        let (ca, cert, key) =
            (file("ca", fields.ca)?, file("cert", fields.cert)?, file("key", fields.key)?);
        let client = match (cert, key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            (Some(_), None) => {
                self.report(&root, "`cert` needs the private key; set `key`");
                return None;
            }
            (None, Some(_)) => {
                self.report(&root, "`key` needs the certificate; set `cert`");
                return None;
            }
        };
        Some(TlsConfig { ca, client })
    }

    /// Checks the URL of shared limits. A URL of Sentinels must also name the master.
    fn shared_url(&mut self, field: &FieldPath, url: &SecretUrl) {
        self.scheme(field, url, SHARED);
        if url.scheme().ends_with("-sentinel") && url.path().trim_matches('/').is_empty() {
            let message = "must end with the name of the master, such as \
                        redis-sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster";
            self.report(field, message);
        }
    }

    /// Checks the name of an agent or of an account.
    fn name(&mut self, field: &FieldPath, name: &str) {
        if name.is_empty() {
            self.report(field, "must not be empty");
        } else if name.len() > MAX_NAME_LENGTH {
            self.report(field, format!("must be at most {MAX_NAME_LENGTH} bytes long"));
        }
    }
}

/// The maximum length of a name in bytes. Every bus message and every Redis key contains it.
const MAX_NAME_LENGTH: usize = 128;
