use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Check;
use super::urls::{NATS, REDIS};
use crate::config::fields::{BusFields, ClusterFields, StoreFields};
use crate::config::tree::Steps;
use crate::config::value::{Bus, Cluster, Storage, StoragePlace};

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
        match (fields.nats, fields.redis) {
            (Some(url), None) => {
                self.scheme(&root.key("nats"), &url, NATS);
                Some(Bus::Nats(url))
            }
            (None, Some(url)) => {
                self.scheme(&root.key("redis"), &url, REDIS);
                Some(Bus::Redis(url))
            }
            (Some(_), Some(_)) => {
                self.wrong(&root.key("redis"), "a second bus, beside nats; keep one");
                None
            }
            (None, None) => {
                self.wrong(&root, "says no server: give `nats` or `redis`");
                None
            }
        }
    }

    pub(super) fn cluster(&mut self, fields: ClusterFields) -> Option<Cluster> {
        let root = Steps::to(["cluster"]);
        self.scheme(&root.key("redis"), &fields.redis, REDIS);
        if fields.account.is_empty() {
            self.wrong(&root.key("account"), "must not be empty");
        }
        let timeout = fields.timeout.0;
        let (least, most) = (Duration::from_millis(1), Duration::from_secs(60));
        self.within(&root.key("timeout"), timeout, least, most);
        let ClusterFields { redis, account, mode, on_failure, .. } = fields;
        Some(Cluster { redis, account, mode, on_failure, timeout })
    }
}
