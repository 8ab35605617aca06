//! Plans: quotas made ready for the engine, and which of them a key has.
//!
//! Pure: values, no locks and no clock. [`QuotaTable`] finds the quota of a key by name, glob or
//! regular expression; a [`Plan`] is shared by all keys of one quota.

mod default_limits;
mod missing_feature;
mod named_quota;
mod pattern;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod plan;
mod regex_name;
mod rows;
mod table;
mod unknown_key;
#[cfg(feature = "regex")]
mod whole;
#[cfg(not(feature = "regex"))]
#[path = "no_whole.rs"]
mod whole;

pub use default_limits::DefaultLimits;
pub use missing_feature::MissingFeature;
pub use named_quota::{NamedQuota, QuotaOrigin};
pub(crate) use pattern::Pattern;
pub(crate) use plan::{Buckets, Plan, Rules, resize};
#[cfg(feature = "regex")]
pub(crate) use regex_name::regex_name;
pub(crate) use table::{Home, QuotaTable};
pub use unknown_key::UnknownKey;
