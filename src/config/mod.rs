//! The configuration: one file of YAML, the environment and flags over it, and values that are valid.
//!
//! What comes out of here needs no more checking: a [`Config`] holds quotas, profiles and lengths of
//! time. What can't be used is refused with its line, its column and the way to it, all problems at
//! once ([`ConfigError`]). [`Limiter::from_config`](crate::Limiter::from_config) is all that most
//! programs need; [`load`] tells where each value came from, [`schema`] is for editors, and
//! [`Reloading`] keeps a limiter at what its file says.
//!
//! It composes what the rooms before it do, and does nothing of theirs itself: it knows no algorithm,
//! no provider, no store and no server from inside. Other crates read sections of their own out of the
//! same file: see [`section`].
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tollgate::config::Config;
//!
//! let config = Config::parse(include_str!("example.yaml"))?;
//! assert_eq!(config.quotas.len(), 5);
//! let limiter = config.builder().build()?;
//! let layer = config.layer(&limiter);
//! # let _ = layer;
//! # Ok(())
//! # }
//! ```
//!
//! # An example
//!
//! ```yaml
#![doc = include_str!("example.yaml")]
//! ```
//!
//! # What goes over what
//!
//! The built-in quotas of the providers; over them the file; over that the environment; over that a
//! command's flags. `TOLLGATE_STORE__FLUSH=2s` gives `store.flush`, `TOLLGATE_QUOTAS='{gpt-4o: {rpm:
//! 5}}'` the whole of `quotas`, in place of what the file says there. Variables whose first part is no
//! section are none of it, nor are empty ones. The file is the one that was asked for, else the one that `TOLLGATE_CONFIG`
//! names, else `$XDG_CONFIG_HOME/tollgate/config.yaml` (`~/.config/...`) if it is there.
//!
//! # The file
//!
//! One document of YAML 1.2, up to 8 MiB, in UTF-8. `no` and `1_000` are texts there; anchors and
//! aliases can be used, merge keys (`<<`) and tags can't. A section that says nothing (`quotas:`) is as
//! good as left out. A file that says nothing at all is refused, since it may be one that is being
//! written, and so is one under which nothing would be limited, at the start and later. URLs that hold
//! passwords are shown without them, everywhere.
//!
#![doc = include_str!("reference.md")]

mod applied;
mod apply;
mod backend;
mod build;
mod check;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod config;
mod error;
mod fields;
mod join;
mod json;
mod load;
mod open;
mod read;
mod reloading;
mod schema;
pub mod section;
mod tree;
mod value;
mod watch;
mod watched;

pub use applied::Applied;
pub use config::Config;
pub use error::{ConfigError, Problem};
pub use fields::{Address, Mode, OnFailure};
pub use load::{LoadOptions, Loaded, Override, check, load};
pub use open::OpenError;
pub use reloading::{Reload, Reloading, ReloadingStatus};
pub use schema::{schema, schema_with};
pub use tree::{Origin, Position};
pub use value::{
    Bus, BusPlace, Cluster, ConfiguredQuota, Keys, Retry, Storage, StoragePlace, Waiting,
};
pub use watch::Watch;
pub use watched::Watched;
