//! State in a YAML file: for one process, and for people to read.
//!
//! ```yaml
//! version: 1
//! written_at: 2026-02-20T14:32:01.123456789Z
//! boot:                          # the machine's last start, by the clock of who wrote this
//!   id: 3c1ed9f66c5f4a499b1c0f2c1a6f7d11
//!   at: 2026-02-19T07:00:12.500000000Z
//! quotas:                        # by name: a key, a glob, or `regex:` and a regular expression
//!   gpt-4o:
//!     origin: set                # configured, set or learned
//!     shared: false              # one set of buckets for all that the name matches
//!     limits:
//!     - dimension: tokens        # requests, tokens, input_tokens, output_tokens, concurrency, custom:NAME
//!       limit: 30000
//!       window: 1m               # with a zone: day, week or month
//!       algorithm: token_bucket  # sliding_window, fixed_window, clock_window; absent: the provider's
//!       burst: 500               # of a token bucket; absent: the limit
//!     - dimension: requests
//!       limit: 1000
//!       window: day
//!       zone: America/Los_Angeles
//!       debt: true               # lets in what is above the limit when nothing is used
//! keys:                          # what was used of each key
//!   gpt-4o:
//!     cooling:                   # its provider refused it
//!       noted_at: 2026-02-20T14:31:59.000000000Z
//!       until: 2026-02-20T14:32:29.000000000Z
//!     buckets:
//!     - dimension: tokens
//!       window: 1m
//!       held: 800                # by requests in flight
//!       taken:                   # when, and how much
//!         2026-02-20T14:31:40.987654321Z: 1500
//!         2026-02-20T14:32:01.123456789Z: 200
//! ...
//! ```
//!
//! Times are in UTC, to the nanosecond. Entries that lie within 1/256 of a window are one, of the
//! latest of their times; those that no window counts any more are left out. The last line is the
//! mark with which YAML ends a document: a file without it was cut short, and is refused.
//!
//! All of it is written each time, which suits some hundreds of keys; for more, and for several
//! processes, there is the SQLite store.
//!
//! ```
//! use tollgate::limiter::{BucketChanges, KeyChanges};
//! use tollgate::quota::{Dimension, Window};
//! use tollgate::store::{Store, Yaml};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("state.yaml");
//! # let now = 1_771_597_921_123_456_789;
//! let mut store = Yaml::new(&path);
//! store.open(now)?;
//! let mut changes = KeyChanges::new("gpt-4o");
//! changes.buckets.push(BucketChanges::new(Dimension::Tokens, Window::MINUTE, vec![(now, 1500)], 0));
//! store.sync(&[changes], None, now)?;
//! assert!(std::fs::read_to_string(&path)?.contains("2026-02-20T14:32:01.123456789Z: 1500"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bucket;
mod document;
mod file;
mod key;
mod lock;
mod quota;
mod start;
mod text;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod yaml;

pub use yaml::Yaml;
