//! What a provider's refusal of a request says.

use core::fmt;
use core::time::Duration;

use serde::Serialize;

use crate::quota::Dimension;
use crate::timestamp::Timestamp;

/// A provider's refusal of a request, with all that its answer states.
///
/// Amounts are those of the limit that was reached. `Display` is one line in plain words, without the provider's.
///
/// ```
/// use std::time::Duration;
/// use paceline_limiter::limiter::{RateLimited, Refusal, RefusalKind};
/// use paceline_limiter::{Cost, Limiter, Quota};
///
/// let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpm(60)).build()?;
/// let mut refusal = Refusal::new(RefusalKind::Rate);
/// refusal.delay = Some(Duration::from_secs(20));
/// limiter.feedback().rate_limited("gpt-4o", &RateLimited::of(refusal));
/// assert!(limiter.try_acquire("gpt-4o", &Cost::new()).is_err());
/// # Ok::<(), paceline_limiter::limiter::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// What the refusal speaks of.
    pub kind: RefusalKind,
    /// Whose requests it concerns.
    pub scope: RefusalScope,
    /// The delay until a request may be accepted again; `None` if the answer states none, and for
    /// [`RefusalKind::Request`]. At most [`LONGEST`](Self::LONGEST).
    pub delay: Option<Duration>,
    /// The time at which requests are accepted again, if the answer states a time, or the provider resets its limits
    /// at a known one. `delay` is then the delay until it.
    pub until: Option<Timestamp>,
    /// The dimension of the limit, if the answer names it.
    pub dimension: Option<Dimension>,
    /// The length of the window of the limit, if the answer names it. An amount without one may be the size of the
    /// model's context.
    pub window: Option<Duration>,
    /// The amount that the limit allows.
    pub limit: Option<u64>,
    /// The amount in use.
    pub used: Option<u64>,
    /// The amount that the request needs.
    pub requested: Option<u64>,
    /// The HTTP status of the answer; that of its error code for one in the body of a success.
    pub status: Option<u16>,
    /// The provider's words, up to [`LONGEST_TEXT`](Self::LONGEST_TEXT) characters, which may hold parts of the prompt.
    pub text: Box<str>,
}

/// What a refusal speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalKind {
    /// Requests are sent too fast. The kind of a refusal that shows nothing else.
    Rate,
    /// The request itself: it can never be accepted, or not at its size.
    Request,
    /// The account or its key: no money, a spending limit, suspended, an invalid key.
    Account,
    /// A limit of an hour or longer is used up.
    Window,
    /// The provider is overloaded, for all clients.
    Capacity,
}

/// Whose requests a refusal concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalScope {
    /// The refused request alone.
    Request,
    /// The requests that count to the same limit; the answer doesn't say which these are.
    Key,
    /// The requests to the model.
    Model,
    /// All requests of the account.
    Account,
    /// All requests to the provider.
    Provider,
}

impl Refusal {
    /// The longest delay; a longer one is cut to it.
    pub const LONGEST: Duration = Duration::from_secs(366 * 86_400);

    /// The most characters of [`text`](Self::text).
    pub const LONGEST_TEXT: usize = 300;

    /// Creates a refusal of this kind, with its usual scope, that states nothing else.
    pub fn new(kind: RefusalKind) -> Self {
        let scope = match kind {
            RefusalKind::Rate | RefusalKind::Window => RefusalScope::Key,
            RefusalKind::Request => RefusalScope::Request,
            RefusalKind::Account => RefusalScope::Account,
            RefusalKind::Capacity => RefusalScope::Provider,
        };
        Self {
            kind,
            scope,
            delay: None,
            until: None,
            dimension: None,
            window: None,
            limit: None,
            used: None,
            requested: None,
            status: None,
            text: Box::default(),
        }
    }
}

impl RefusalKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Rate, Self::Request, Self::Account, Self::Window, Self::Capacity];

    /// Returns the name in JSON: `rate`, `request`, `account`, `window`, `capacity`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Request => "request",
            Self::Account => "account",
            Self::Window => "window",
            Self::Capacity => "capacity",
        }
    }

    /// Returns the kind with this [name](Self::as_str).
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns the reason in plain words, such as `a limit of an hour or longer is used up`.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Rate => "too many requests or tokens at once",
            Self::Request => "the request itself is refused",
            Self::Account => "the account is refused",
            Self::Window => "a limit of an hour or longer is used up",
            Self::Capacity => "the provider is overloaded",
        }
    }
}

impl RefusalScope {
    /// Returns the name in JSON: `request`, `key`, `model`, `account`, `provider`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Key => "key",
            Self::Model => "model",
            Self::Account => "account",
            Self::Provider => "provider",
        }
    }
}

impl fmt::Display for RefusalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rate => "too many requests at this rate",
            Self::Request => "this request can't be accepted at its size",
            Self::Account => "the account can't send requests",
            Self::Window => "the limit of a long window is used up",
            Self::Capacity => "the provider is overloaded",
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        let dimension = self.dimension.as_ref().map(Dimension::as_str);
        let amounts = [("limit", self.limit), ("used", self.used), ("requested", self.requested)];
        let amounts: Vec<String> = amounts
            .iter()
            .filter_map(|(name, amount)| Some(format!("{name} {}", (*amount)?)))
            .collect();
        let amounts = amounts.join(", ");
        match (dimension, amounts.as_str()) {
            (None, "") => {}
            (Some(dimension), "") => write!(f, " ({dimension})")?,
            (None, amounts) => write!(f, " ({amounts})")?,
            (Some(dimension), amounts) => write!(f, " ({dimension}: {amounts})")?,
        }
        match (self.until, self.delay) {
            (Some(until), _) => write!(f, "; until {until}"),
            (None, Some(delay)) => write!(f, "; retry after {}s", delay.as_secs_f64()),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Debug for Refusal {
    /// Leaves out the provider's words, which may hold parts of the prompt.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal")
            .field("kind", &self.kind)
            .field("scope", &self.scope)
            .field("delay", &self.delay)
            .field("until", &self.until)
            .field("dimension", &self.dimension)
            .field("window", &self.window)
            .field("limit", &self.limit)
            .field("used", &self.used)
            .field("requested", &self.requested)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
