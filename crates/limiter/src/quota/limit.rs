use alloc::sync::Arc;
use core::num::NonZeroU64;

use super::grid::Grid;
use super::{Algorithm, Calendar, Dimension, Share, Usd, Window};

/// An amount of one dimension per window, or a number of requests in flight.
///
/// A limit has an amount of at least 1. The constructors return `None` for an amount of 0, which means
/// that there is no limit; [`Quota::limit`](super::Quota::limit) accepts that.
///
/// ```
/// use paceline_limiter::quota::{Dimension, Limit, Quota};
/// let quota = Quota::new()
///     .limit(Limit::per_second(Dimension::Requests, 10))
///     .limit(Limit::per_hour(Dimension::custom("images"), 500))
///     .limit(Limit::concurrent(8));
/// assert_eq!(quota.limits().len(), 3);
/// assert_eq!(Limit::per_second(Dimension::Requests, 0), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    // Every form of a limit destructures and constructs it with all fields, as that of a quota does.
    pub(crate) dimension: Dimension,
    pub(crate) amount: NonZeroU64,
    pub(crate) window: Window,
    pub(crate) counting: Counting,
    pub(crate) debt: bool,
    /// The capacity of the whole limit, if this is a part of it.
    pub(crate) whole: Option<NonZeroU64>,
}

/// How a limit counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counting {
    /// By the algorithm of the provider's profile.
    Profile,
    /// Only a token bucket has a burst.
    Algorithm {
        /// The algorithm.
        algorithm: Algorithm,
        /// The burst of a token bucket.
        burst: Option<NonZeroU64>,
    },
    /// By calendar periods.
    Calendar(Calendar),
}

impl Limit {
    /// Creates a limit of `amount` per `window`, or `None` if the amount is 0.
    ///
    /// In [`Dimension::usd`] the amount is in micro-dollars here, and wherever it is a plain number:
    /// [`usd`](Self::usd), [`usd_on_calendar`](Self::usd_on_calendar) and [`usd_total`](Self::usd_total) take a [`Usd`].
    pub fn new(dimension: Dimension, amount: u64, window: Window) -> Option<Self> {
        let amount = NonZeroU64::new(amount)?;
        Some(Self {
            dimension,
            amount,
            window,
            counting: Counting::Profile,
            debt: false,
            whole: None,
        })
    }

    /// Creates a limit of `amount` per second, or `None` if the amount is 0.
    pub fn per_second(dimension: Dimension, amount: u64) -> Option<Self> {
        Self::new(dimension, amount, Window::SECOND)
    }

    /// Creates a limit of `amount` per minute, or `None` if the amount is 0.
    pub fn per_minute(dimension: Dimension, amount: u64) -> Option<Self> {
        Self::new(dimension, amount, Window::MINUTE)
    }

    /// Creates a limit of `amount` per hour, or `None` if the amount is 0.
    pub fn per_hour(dimension: Dimension, amount: u64) -> Option<Self> {
        Self::new(dimension, amount, Window::HOUR)
    }

    /// Creates a limit of `amount` per 24 hours, or `None` if the amount is 0. For days that end at
    /// midnight see [`on_calendar`](Self::on_calendar).
    pub fn per_day(dimension: Dimension, amount: u64) -> Option<Self> {
        Self::new(dimension, amount, Window::DAY)
    }

    /// Creates a limit of money per `window`, or `None` if the amount is 0.
    ///
    /// ```
    /// use paceline_limiter::quota::{Limit, Quota, Usd, Window};
    /// // $10 in any hour.
    /// let quota = Quota::new().limit(Limit::usd(Usd::from_dollars(10), Window::HOUR));
    /// assert_eq!(quota.limits()[0].amount(), 10_000_000);
    /// ```
    pub fn usd(amount: Usd, window: Window) -> Option<Self> {
        Self::new(Dimension::usd(), amount.as_micros(), window)
    }

    /// Creates a limit of money per day, week or month of a calendar, or `None` if the amount is 0.
    ///
    /// ```
    /// use paceline_limiter::quota::{Calendar, Limit, Period, Quota, Usd};
    /// let weeks = Calendar::new(Period::Week, "UTC")?;
    /// let quota = Quota::new().limit(Limit::usd_on_calendar(Usd::from_dollars(50), &weeks));
    /// assert_eq!(quota.limits()[0].amount(), 50_000_000);
    /// # Ok::<(), paceline_limiter::quota::UnknownZone>(())
    /// ```
    pub fn usd_on_calendar(amount: Usd, calendar: &Calendar) -> Option<Self> {
        Self::on_calendar(Dimension::usd(), amount.as_micros(), calendar)
    }

    /// Creates a limit of money that never resets, or `None` if the amount is 0; see [`total`](Self::total).
    pub fn usd_total(amount: Usd) -> Option<Self> {
        Self::total(Dimension::usd(), amount.as_micros())
    }

    /// Creates a limit of `amount` that never resets, or `None` if the amount is 0.
    ///
    /// Its usage ends with the limiter unless a store keeps it, and
    /// [`Limiter::reset`](crate::Limiter::reset) clears it. A key of which a part is used is never dropped. If the limit is
    /// removed from a quota and set again later, it counts only what other limits of its dimension still know: raise it
    /// instead. A limiter with a [`Backend`](crate::limiter::Backend) has no such limits.
    ///
    /// ```
    /// use paceline_limiter::quota::{Dimension, Limit, Quota};
    /// let quota = Quota::new().limit(Limit::total(Dimension::custom("images"), 500));
    /// assert!(quota.limits()[0].window().is_endless());
    /// ```
    pub fn total(dimension: Dimension, amount: u64) -> Option<Self> {
        Self::new(dimension, amount, Window::ENDLESS)
    }

    /// Creates a limit of `requests` in flight, or `None` for 0.
    pub fn concurrent(requests: u64) -> Option<Self> {
        Self::new(Dimension::Concurrency, requests, Window::MINUTE)
    }

    /// Creates a limit of `amount` per day, week or month of a calendar, regardless of the provider's
    /// algorithm, or `None` if the amount is 0.
    ///
    /// Its [`window`](Self::window) is the nominal length of the [`Period`](super::Period), so it
    /// replaces any other limit per day, week or month in a quota.
    pub fn on_calendar(dimension: Dimension, amount: u64, calendar: &Calendar) -> Option<Self> {
        let limit = Self::new(dimension, amount, calendar.window())?;
        Some(Self { counting: Counting::Calendar(calendar.clone()), ..limit })
    }

    /// Sets the algorithm, regardless of the provider's. The limit is no longer on a calendar, and has
    /// no burst of its own. A [total](Self::total) has no algorithm, and money is never in a token bucket: it wouldn't
    /// come back all at once.
    #[must_use]
    pub fn with_algorithm(self, algorithm: Algorithm) -> Self {
        self.counting_by(algorithm, None)
    }

    /// Counts the limit as a token bucket with this capacity, regardless of the provider's algorithm.
    /// A burst of 0 sets the default capacity, which is the amount of the limit. A [total](Self::total) has no
    /// burst.
    ///
    /// ```
    /// use paceline_limiter::quota::{Dimension, Limit};
    /// let limit = Limit::per_second(Dimension::Requests, 10).map(|limit| limit.with_burst(50));
    /// assert_eq!(limit.and_then(|limit| limit.burst()), Some(50));
    /// ```
    #[must_use]
    pub fn with_burst(self, burst: u64) -> Self {
        self.counting_by(Algorithm::TokenBucket, NonZeroU64::new(burst))
    }

    fn counting_by(mut self, algorithm: Algorithm, burst: Option<NonZeroU64>) -> Self {
        let refills = algorithm == Algorithm::TokenBucket && self.dimension.is_usd();
        if !self.window.is_endless() && !refills {
            self.counting = Counting::Algorithm { algorithm, burst };
        }
        self
    }

    /// Admits a request that is larger than the limit's capacity once nothing is used or held, instead
    /// of refusing it permanently.
    ///
    /// A token bucket is then in debt until it has refilled; a window counts the request in full until the
    /// window ends. Use it for a provider or a server that does the same; most providers refuse such a
    /// request permanently. Money and [totals](Self::total) are never exceeded.
    #[must_use]
    pub fn with_debt(self) -> Self {
        Self { debt: true, ..self }
    }

    /// Returns the limit with another amount, and its burst in proportion. A request above it that fits
    /// the whole limit waits until nothing is used.
    pub(crate) fn lowered(self, amount: NonZeroU64) -> Self {
        let (part, whole) = (u128::from(amount.get()), u128::from(self.amount.get()));
        let burst = |burst: NonZeroU64| {
            let part = u64::try_from(u128::from(burst.get()) * part / whole).ok();
            part.and_then(NonZeroU64::new).unwrap_or(NonZeroU64::MIN)
        };
        self.part(amount, burst)
    }

    /// Reduces the limit and its burst to a share: rounded down, at least 1.
    ///
    /// A request that is larger than the share, but not than the whole limit, waits until nothing of
    /// the share is used or held, as with [debt](Self::with_debt). If several programs have shares of one
    /// window, such requests can together exceed the whole limit. Of money and of [totals](Self::total), no
    /// request gets more than the share.
    #[must_use]
    pub fn with_share(self, share: Share) -> Self {
        if share == Share::WHOLE {
            return self;
        }
        let amount = share.of(self.amount);
        self.part(amount, |burst| share.of(burst))
    }

    fn part(self, amount: NonZeroU64, part: impl Fn(NonZeroU64) -> NonZeroU64) -> Self {
        let whole = self.whole.or(self.own_burst()).unwrap_or(self.amount);
        let whole = (!self.is_budget()).then_some(whole);
        let mut limit = Self { amount, whole, ..self };
        if let Counting::Algorithm { burst: Some(burst), .. } = &mut limit.counting {
            *burst = part(*burst);
        }
        limit
    }

    /// Returns the dimension that is counted.
    pub fn dimension(&self) -> &Dimension {
        &self.dimension
    }

    /// Returns the amount per window, at least 1.
    pub fn amount(&self) -> u64 {
        self.amount.get()
    }

    /// Returns the window, which is the nominal one for a calendar. It has no meaning for
    /// [`Dimension::Concurrency`].
    pub fn window(&self) -> Window {
        self.window
    }

    /// Returns the algorithm, or `None` if the provider's applies or the limit is on a calendar.
    pub fn algorithm(&self) -> Option<Algorithm> {
        match self.counting {
            Counting::Algorithm { algorithm, .. } => Some(algorithm),
            _ => None,
        }
    }

    /// Returns the capacity of the token bucket, or `None` if it is the amount of the limit.
    pub fn burst(&self) -> Option<u64> {
        self.own_burst().map(NonZeroU64::get)
    }

    /// Returns the calendar of the limit, or `None` if it has none.
    pub fn calendar(&self) -> Option<&Calendar> {
        match &self.counting {
            Counting::Calendar(calendar) => Some(calendar),
            _ => None,
        }
    }

    /// Returns `true` if a request above the limit is admitted once nothing is used.
    pub fn has_debt(&self) -> bool {
        self.debt && !self.is_budget()
    }

    /// Returns `true` if nothing may exceed the limit, since what it counts doesn't come back by waiting a little.
    fn is_budget(&self) -> bool {
        self.dimension.is_usd() || self.window.is_endless()
    }

    /// Returns the capacity of the whole limit, if this is a part of it.
    pub(crate) fn whole(&self) -> Option<u64> {
        self.whole.map(NonZeroU64::get)
    }

    /// Returns `true` if the provider's profile determines the algorithm.
    pub(super) fn has_profile_algorithm(&self) -> bool {
        self.counting == Counting::Profile && !self.window.is_endless()
    }

    /// Returns the boundaries of the windows if they are known in advance. `algorithm` is the one that
    /// counts the limit.
    pub(crate) fn grid(&self, algorithm: Algorithm) -> Option<Arc<Grid>> {
        match (&self.counting, algorithm) {
            _ if self.window.is_endless() => Some(Grid::endless().into()),
            (Counting::Calendar(calendar), _) => Some(calendar.grid().clone()),
            (_, Algorithm::ClockWindow) => Some(Grid::every(self.window).into()),
            _ => None,
        }
    }

    fn own_burst(&self) -> Option<NonZeroU64> {
        match self.counting {
            Counting::Algorithm { burst, .. } => burst,
            _ => None,
        }
    }
}
