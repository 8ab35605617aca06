//! Configuration from a YAML file, the environment and flags.
//!
//! Most programs need only [`open`]. A [`Config`] contains
//! valid values: quotas, profiles, durations. All errors of a configuration are reported together, with
//! line, column and path ([`ConfigError`]). [`load`] also returns the source of each value, [`schema`] is
//! for editors, and a [`Reloader`] applies changes of the file to a running limiter. Other crates add
//! sections of their own to the file: see [`section`].
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use paceline_config::Config;
//!
//! let config = Config::parse(include_str!("example.yaml"))?;
//! assert_eq!(config.quotas.len(), 6);
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
//! # Precedence
//!
//! From the lowest to the highest: the built-in quotas of the providers, the file, the environment, the
//! flags of a command. `PACELINE_STORE__FLUSH=2s` sets `store.flush`; `PACELINE_QUOTAS='{gpt-4o: {rpm:
//! 5}}'` replaces all `quotas` of the file. Empty variables are ignored, and so are variables whose first
//! part is not the name of a section. The path of the file is the one that was given, else
//! the value of `PACELINE_CONFIG`, else `$XDG_CONFIG_HOME/paceline/config.yaml` (`~/.config/...`) if it exists.
//!
//! # The file
//!
//! One document of YAML 1.2 in UTF-8, up to 8 MiB. `no` and `1_000` are strings; anchors and aliases are
//! supported, merge keys (`<<`) and tags are not. An empty section (`quotas:`) counts as missing. An empty
//! file is refused, since another program may be writing it. A configuration that doesn't limit anything is
//! refused too. Both apply at startup and after a change. Passwords in URLs are never displayed.
//!
#![doc = include_str!("reference.md")]
//!
//! # Forms of a limit
//!
//! A limit has four forms between the text of the file and its bucket:
//!
//! 1. a node of the YAML tree, untyped, with its position;
//! 2. `LimitFields`, the typed fields, from which the schema is generated;
//! 3. [`Limit`](paceline_limiter::quota::Limit), the valid value in a [`Quota`](paceline_limiter::Quota);
//! 4. [`Rule`](paceline_limiter::engine::Rule), the limit with its algorithm and margin resolved, by which the engine
//!    updates the [`Bucket`](paceline_limiter::engine::Bucket).

mod applied;
mod apply;
mod backend;
mod build;
mod bus;
mod check;
mod config;
mod error;
mod fields;
mod file_watcher;
mod json;
mod load;
mod open;
mod open_error;
mod read;
mod reloader;
mod schema;
pub mod section;
mod tree;
mod value;
mod watched_file;

pub use applied::Applied;
pub use build::RATE_PREFIX;
pub use config::Config;
pub use error::{ConfigError, Problem};
pub use fields::{SecretUrl, parse_duration};
pub use file_watcher::FileWatcher;
pub use load::{LoadOptions, Loaded, Override, check, load};
pub use open::{Opened, open};
pub use open_error::OpenError;
pub use reloader::{ReloadOutcome, ReloadStatus, Reloader};
pub use schema::{schema, schema_with};
pub use tree::{Origin, Position};
pub use value::{
    BusConfig, BusServer, ClusterConfig, ConfiguredQuota, Keys, RetryConfig, StoreConfig,
    StoreFile, TlsConfig, WaitingConfig,
};
pub use watched_file::WatchedFile;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/configuration.md")]
mod page {}
