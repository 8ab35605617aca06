//! The only owner of locks, clock, queue and wake-ups.
//!
//! A [`Limiter`] keeps the buckets of every key, and hands out [`Permit`]s: reservations with an
//! owner, which are settled exactly once. Who doesn't get one at once waits in the key's queue, in
//! order of arrival; only the first in the queue holds a timer.
//!
//! Three handles hold the rest of its methods: [`Limiter::quotas`] sets, removes and reads quotas,
//! [`Limiter::feedback`] takes the answers of providers and messages of other programs, and
//! [`Limiter::state`] serves stores, metrics and status pages.
//!
//! The limiter learns from its provider: a refusal cools a key down for all requests, and
//! [reduces](Reduction) it until it has recovered ([`Feedback::rate_limited`]). A response that states
//! less remaining quota than expected shows that another client uses the account, and lowers the
//! remaining quota here ([`Permit::observe`]). Limits that are not set are taken from headers
//! ([`Feedback::learn`]), and recorded outputs show the output to expect
//! ([`Feedback::expected_output`]).
//!
//! It doesn't know what an HTTP request is ([`middleware`](crate::middleware) does), how a provider
//! counts ([`provider`](crate::provider)), or where state is kept across restarts and machines: a
//! store takes a [`snapshot`](State::snapshot), a shared quota is a [`Backend`], a bus listens to
//! [`Event`]s.
//!
//! ```
//! use tollgate::limiter::Limiter;
//! use tollgate::quota::{Cost, Quota};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpm(500).tpm(30_000)).build()?;
//!
//! let permit = limiter.acquire("gpt-4o", &Cost::new().tokens(1_200)).await?;
//! // ... send the request; the response says that it took 900 tokens ...
//! permit.settle(&Cost::new().tokens(900));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acquire;
mod arena;
mod attached;
mod backend;
mod builder;
mod busiest;
mod capacity;
mod changes;
mod clock;
mod cool_down;
mod decision;
mod default_limits;
mod error;
mod event;
mod exchange;
mod feedback;
mod gate;
mod handle;
#[cfg(feature = "tower")]
mod hold;
mod key_budget;
mod ledger;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod limiter;
mod line;
mod logged;
mod manage;
mod missing_feature;
mod named_quota;
mod outputs;
mod pattern;
mod permit;
mod place;
mod plan;
mod quotas;
mod quotas_handle;
mod reduced;
mod reduction;
mod refusal;
mod regex_name;
mod request;
mod room;
mod rows;
mod scopes;
mod settings;
mod shard;
mod sheet;
mod slot;
mod snapshot;
mod state;
mod stats;
mod sync;
mod ticket;
mod totals;
mod trace;
mod update;
mod waiting;
#[cfg(feature = "regex")]
mod whole;
#[cfg(not(feature = "regex"))]
#[path = "no_whole.rs"]
mod whole;

pub use acquire::Acquire;
pub use attached::{Attached, WeakLimiter};
pub use backend::{
    Backend, BackendStatus, Closing, Ending, Reservation, Reserved, Reserving, Unmet,
};
pub use builder::{Builder, UnknownKey};
pub use busiest::Busiest;
pub use capacity::WaitForCapacity;
pub use changes::{BucketChanges, KeyChanges};
pub use clock::{Boot, Clock, ManualClock, Sleep, SystemClock, TokioClock};
pub use cool_down::CoolDown;
pub use decision::{Code, Decision};
pub use default_limits::DefaultLimits;
pub use error::{AcquireError, BuildError, MissingLimit, Refused};
pub use event::{Event, Metadata};
pub use exchange::Exchange;
pub use feedback::Feedback;
pub use gate::Gate;
pub use handle::KeyHandle;
#[cfg(feature = "tower")]
pub(crate) use hold::Hold;
pub use key_budget::KeyBudget;
pub use limiter::Limiter;
pub use missing_feature::MissingFeature;
pub use named_quota::{NamedQuota, QuotaOrigin};
pub use permit::Permit;
pub use quotas_handle::Quotas;
pub use reduction::Reduction;
pub use refusal::RateLimited;
/// What [`Builder::quota_regex`] takes.
#[cfg(feature = "regex")]
pub use regex::Regex;
pub use snapshot::{BucketSnapshot, KeySnapshot};
pub use state::State;
pub use stats::{KeyStats, LimitStats};
pub use ticket::Ticket;
pub use totals::Totals;
pub use update::{CapacityUpdate, Ignored};
