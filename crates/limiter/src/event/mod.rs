//! Events of a limiter, their channel, and their log lines.

mod channel;
mod cool_down;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod event;
mod exchange;
mod learned_update;
mod log;
mod rate_limited;
mod totals;
mod update;

pub(crate) use channel::{Events, Listener};
pub use cool_down::CoolDown;
pub use event::{Event, Metadata};
pub use exchange::Exchange;
pub use learned_update::LearnedUpdate;
pub(crate) use log::TARGET;
pub use rate_limited::Fault;
pub use rate_limited::RateLimited;
pub(crate) use totals::StripedTotals;
pub use totals::Totals;
pub use update::{CapacityUpdate, Ignored};
