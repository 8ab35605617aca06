//! Values: what is counted, how much of it is allowed, and what a request takes.
//!
//! An invalid value cannot be made: a [`Window`] is between a millisecond and 366 days, a [`Limit`]
//! is never zero (a zero is "no limit" and is left out of a [`Quota`]), a [`Share`] is above 0 and
//! at most 1, and a [`Calendar`] is of a time zone that exists.
//!
//! Only the making of a [`Calendar`] knows time zones; the value is the boundaries of its windows.
//! Nothing here keeps state or reads time; that is [`engine`](crate::engine) and
//! [`limiter`](crate::limiter).
//!
//! ```
//! use tollgate::quota::{Cost, Dimension, Quota};
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
mod dimension;
mod grid;
mod limit;
mod margin;
mod period;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod quota;
mod settle;
mod share;
mod token_kinds;
mod usage;
mod window;
mod zone;

pub use algorithm::Algorithm;
pub use calendar::Calendar;
pub use cost::Cost;
pub use dimension::Dimension;
pub use limit::Limit;
pub use margin::{InvalidMargin, Margin};
pub use period::Period;
pub use quota::Quota;
pub use settle::SettleAt;
pub use share::{InvalidShare, Share};
pub use usage::Usage;
pub use window::{InvalidWindow, Window};
pub use zone::UnknownZone;

pub(crate) use grid::Grid;
pub(crate) use token_kinds::{TokenKinds, UncountedKinds};
