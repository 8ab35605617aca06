//! Plans: quotas prepared for the engine, and the lookup of the plan of a key.
//!
//! Pure values without locks or a clock. [`QuotaRegistry`] finds the quota of a key by name, glob or
//! regular expression; a [`Plan`] is shared by all keys of one quota.

mod carry;
mod default_limits;
#[cfg(feature = "regex")]
mod key_regex;
#[cfg(not(feature = "regex"))]
#[path = "no_key_regex.rs"]
mod key_regex;
mod missing_feature;
mod model_limits;
mod modes;
mod name_space;
mod named_quota;
mod pattern;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod plan;
mod provider;
mod quota_index;
mod quota_registry;
mod regex_name;
mod registered_quota;
mod spelling;
mod spending;
mod unknown_key;

pub use default_limits::DefaultLimits;
pub use missing_feature::MissingFeature;
pub use model_limits::ModelLimits;
pub use named_quota::{NamedQuota, QuotaOrigin};
pub(crate) use pattern::Pattern;
pub(crate) use plan::{Buckets, Plan, Rules, resize};
#[cfg(test)]
pub(crate) use provider::ChargedAtSend;
pub use provider::LimitRules;
pub(crate) use provider::Provider;
pub(crate) use quota_registry::{QuotaRegistry, ResolvedQuota};
#[cfg(feature = "regex")]
pub(crate) use regex_name::regex_name;
pub use unknown_key::UnknownKey;
