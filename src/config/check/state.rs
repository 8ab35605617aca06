use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Check;
use super::urls::{NATS, REDIS, SHARED};
use crate::config::Address;
use crate::config::fields::{BusFields, ClusterFields, StoreFields};
use crate::config::tree::Steps;
use crate::config::value::{Bus, BusPlace, Cluster, Storage, StoragePlace};

impl Check<'_> {
    pub(super) fn store(&mut self, fields: StoreFields) -> Option<Storage> {
        let root = Steps::to(["store"]);
        let flush = fields.flush.0;
        self.within(
            &root.key("flush"),
            flush,
            Duration::from_millis(10),
            Duration::from_secs(3_600),
        );
        let place = match (fields.sqlite, fields.yaml) {
            (Some(path), None) => StoragePlace::Sqlite(self.path(&root.key("sqlite"), &path)?),
            (None, Some(path)) => StoragePlace::Yaml(self.path(&root.key("yaml"), &path)?),
            (Some(_), Some(_)) => {
                self.wrong(&root.key("yaml"), "a second store, beside sqlite; keep one");
                return None;
            }
            (None, None) => {
                self.wrong(&root, "says no file: give `sqlite` or `yaml`");
                return None;
            }
        };
        Some(Storage { place, flush })
    }

    /// A path of the file: relative to its folder.
    fn path(&mut self, steps: &Steps, path: &Path) -> Option<PathBuf> {
        let problem = if path.as_os_str().is_empty() {
            "must be the path of a file"
        } else if path.starts_with("~") {
            "~ is not replaced by the home folder; write the whole path"
        } else {
            return Some(self.folder.join(path));
        };
        self.wrong(steps, problem);
        None
    }

    pub(super) fn bus(&mut self, fields: BusFields) -> Option<Bus> {
        let root = Steps::to(["bus"]);
        let place = match (fields.nats, fields.redis) {
            (Some(url), None) => {
                self.scheme(&root.key("nats"), &url, NATS);
                BusPlace::Nats(url)
            }
            (None, Some(url)) => {
                self.scheme(&root.key("redis"), &url, REDIS);
                BusPlace::Redis(url)
            }
            (Some(_), Some(_)) => {
                self.wrong(&root.key("redis"), "a second bus, beside nats; keep one");
                return None;
            }
            (None, None) => {
                self.wrong(&root, "says no server: give `nats` or `redis`");
                return None;
            }
        };
        if let Some(id) = &fields.agent_id {
            self.name(&root.key("agent_id"), id);
        }
        Some(Bus { place, agent_id: fields.agent_id })
    }

    pub(super) fn cluster(&mut self, fields: ClusterFields) -> Option<Cluster> {
        let root = Steps::to(["cluster"]);
        self.shared_url(&root.key("redis"), &fields.redis);
        self.name(&root.key("account"), &fields.account);
        let [milli, second] = [Duration::from_millis(1), Duration::from_secs(1)];
        let (timeout, lease, ttl) = (fields.timeout.0, fields.lease.0, fields.reservation_ttl.0);
        self.within(&root.key("timeout"), timeout, milli, 60 * second);
        self.within(&root.key("lease"), lease, 100 * milli, 60 * second);
        self.within(&root.key("reservation_ttl"), ttl, second, 3_600 * second);
        let ClusterFields { redis, account, mode, on_failure, spread, .. } = fields;
        Some(Cluster {
            redis,
            account,
            mode,
            on_failure,
            timeout,
            spread,
            lease,
            reservation_ttl: ttl,
        })
    }

    /// Where shared limits lie: with Sentinels goes the name of what they watch.
    fn shared_url(&mut self, steps: &Steps, url: &Address) {
        self.scheme(steps, url, SHARED);
        if url.scheme() == "redis-sentinel" && url.path().trim_matches('/').is_empty() {
            let what = "must end with the name of the master that the Sentinels watch, as \
                        redis-sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster";
            self.wrong(steps, what);
        }
    }

    /// A name by which machines know each other or what they share.
    fn name(&mut self, steps: &Steps, name: &str) {
        if name.is_empty() {
            self.wrong(steps, "must not be empty");
        } else if name.len() > LONGEST_NAME {
            self.wrong(steps, format!("must be at most {LONGEST_NAME} bytes long"));
        }
    }
}

/// It stands in every message, and in the name of every key.
const LONGEST_NAME: usize = 128;
