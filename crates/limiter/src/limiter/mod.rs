//! The limiter: admits requests within the quotas of their keys, and queues the others.
//!
//! A [`Limiter`] keeps the buckets of every key and grants [`Permit`]s: reservations with an owner, which
//! are settled exactly once. A request that isn't granted immediately waits in the queue of its key, in
//! order of arrival. Only the first request of a queue holds a timer.
//!
//! Three handles connect the limiter to other parts of a program. [`quotas`](Limiter::quotas) sets and
//! reads limits. [`feedback`](Limiter::feedback) reports the responses of a provider: a refusal starts a
//! cool-down and a [`Reduction`] of the key, and headers state limits that weren't set.
//! [`state`](Limiter::state) is for stores, metrics and status pages.
//!
//! HTTP requests are handled by the layer of `paceline`, and the ways in which providers count by its profiles, which
//! are [`LimitRules`]. A [`Backend`] shares quotas between processes, and a bus listens to
//! [`Event`]s.
//!
//! `docs/limiter.md` in the repository describes the files, the order of the locks and the places for
//! extensions.
//!
//! ```
//! use paceline_limiter::limiter::Limiter;
//! use paceline_limiter::quota::{Cost, Quota};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpm(500).tpm(30_000)).build()?;
//!
//! let permit = limiter.acquire("gpt-4o", &Cost::new().tokens(1_200)).await?;
//! // ... send the request; the response reports a usage of 900 tokens ...
//! permit.settle(&Cost::new().tokens(900));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acquire;
mod admission;
mod ask_hold;
mod ask_slot;
mod asked;
mod attached;
mod builder;
mod busiest;
mod capacity;
mod core;
mod decide;
pub(crate) mod denied_sample;
mod dirty;
mod entry;
mod feedback;
mod former_shares;
mod gate;
mod gate_of_backend;
mod handle;
mod key_budget;
mod key_reservation;
mod key_state;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod limiter;
mod limiter_gates;
mod long_wait;
mod outputs;
mod permit;
mod permit_details;
mod queue_place;
mod queued_request;
mod quota_wait;
mod quotas_handle;
mod record;
pub(crate) mod refusals;
mod remote_state;
mod request;
mod request_keys;
mod request_reports;
mod scopes;
mod secrets;
mod shared;
pub(crate) mod standing;
mod state;
mod table;
mod ticket;
mod wait_policy;

pub use crate::key::queue::{Priority, PriorityError};
pub use acquire::Acquire;
pub use attached::Attached;
pub use builder::Builder;
pub use busiest::Busiest;
pub use capacity::WaitForCapacity;
pub use feedback::Feedback;
pub use gate::Gate;
pub use handle::KeyHandle;
pub use key_budget::KeyBudget;
pub use limiter::{Limiter, WeakLimiter};
pub use permit::Permit;
pub use quotas_handle::Quotas;
/// The regular expression of [`Builder::quota_regex`].
#[cfg(feature = "regex")]
pub use regex::Regex;
pub use state::LimiterState;
pub use ticket::Ticket;
pub use wait_policy::WaitPolicy;

pub use crate::answer::code::Code;
pub use crate::answer::decision::Decision;
pub use crate::answer::error::{AcquireError, BuildError, Need, Refused};
pub use crate::answer::learned::{LearnedFrom, LearnedLimit};
pub use crate::answer::stats::{KeyStats, LimitStats, Outage};
pub use crate::answer::utilization::Utilization;
pub use crate::backend::{
    Backend, BackendStatus, Closing, Ending, Latency, Measured, Measurement, Rechecking,
    Refreshing, Reservation, ReserveError, Reserved, Reserving, Resetting,
};
pub use crate::clock::{Boot, Clock, ManualClock, Sleep, SystemClock, TokioClock};
pub use crate::event::{
    CapacityUpdate, CoolDown, Event, Exchange, Ignored, LearnedUpdate, Metadata, RateLimited,
    Totals,
};
pub use crate::key::adapt::Reduction;
pub use crate::key::changes::{BucketChanges, KeyChanges};
pub use crate::key::snapshot::{BucketSnapshot, KeySnapshot};
pub use crate::plan::{
    DefaultLimits, LimitRules, MissingFeature, ModelLimits, NamedQuota, QuotaOrigin, UnknownKey,
};
pub use crate::refusal::{Refusal, RefusalKind, RefusalScope};
pub use crate::stated::{LimitReading, LimitReadings, UtilizationReading};
