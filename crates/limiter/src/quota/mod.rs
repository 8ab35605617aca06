//! Values: dimensions, limits, quotas, and the cost of requests.
//!
//! Values are valid by construction: a [`Window`] is between a millisecond and 366 days, the amount of a
//! [`Limit`] is at least 1 (0 means that there is no limit), a [`Share`] is above 0 and at most 1, a
//! [`Margin`] is below 100 %, and the time zone of a [`Calendar`] exists.
//!
//! This module has no state and doesn't read the time; see [`engine`](crate::engine) and
//! [`limiter`](crate::limiter).
//!
//! ```
//! use paceline_limiter::quota::{Cost, Dimension, Quota};
//!
//! let quota = Quota::new().rpm(500).tpm(30_000).rpd(10_000);
//! assert_eq!(quota.limits().len(), 3);
//!
//! let cost = Cost::new().tokens(1_200);
//! assert_eq!(cost.amount(&Dimension::Requests), 1);
//! assert_eq!(cost.amount(&Dimension::Tokens), 1_200);
//! ```

#![deny(clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

mod algorithm;
mod calendar;
mod cost;
pub(crate) mod dimension;
pub(crate) mod grid;
mod key;
pub(crate) mod limit;
mod margin;
mod period;
#[expect(clippy::module_inception, reason = "the module is named after its main type")]
mod quota;
mod settle;
mod share;
mod token_kinds;
mod usage;
mod usd;
mod window;
mod zone;

pub use algorithm::Algorithm;
pub use calendar::Calendar;
pub use cost::Cost;
pub use dimension::Dimension;
pub use key::Key;
pub use limit::Limit;
pub use margin::{InvalidMargin, Margin};
pub use period::Period;
pub use quota::Quota;
pub use settle::SettleAt;
pub use share::{InvalidShare, Share};
pub use usage::Usage;
pub use usd::{Usd, UsdError};
pub use window::{InvalidWindow, Window};
pub use zone::UnknownZone;

pub(crate) use cost::CustomAmount;
pub(crate) use dimension::USD;
pub(crate) use grid::Grid;
pub(crate) use token_kinds::{TokenKinds, UncountedKinds};
