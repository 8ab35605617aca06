use alloc::sync::Arc;
use core::num::NonZeroU64;

use super::grid::Grid;
use super::{Calendar, Dimension, Share, Window};

/// An amount of one dimension per window, or at once for [`Dimension::Concurrency`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    dimension: Dimension,
    amount: NonZeroU64,
    window: Window,
    counting: Counting,
    debt: bool,
    /// What the limit holds that this is a part of.
    whole: Option<NonZeroU64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Counting {
    /// As the provider's profile says.
    Profile,
    Algorithm(Algorithm),
    Calendar(Calendar),
}

impl Limit {
    /// `amount` of `dimension` in every `window`. A zero amount is no limit at all: `None`.
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

    /// `amount` of `dimension` in every day, week or month of a calendar, whatever the provider's
    /// profile says. A zero amount is no limit at all: `None`.
    ///
    /// Its [`window`](Self::window) is the nominal length of the [`Period`](super::Period), so that
    /// it takes the place of any other limit per day, week or month.
    pub fn on_calendar(dimension: Dimension, amount: u64, calendar: &Calendar) -> Option<Self> {
        let limit = Self::new(dimension, amount, calendar.window())?;
        Some(Self { counting: Counting::Calendar(calendar.clone()), ..limit })
    }

    /// The same limit, counted by this algorithm whatever the provider's profile says; no longer on
    /// a calendar.
    #[must_use]
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Self {
        self.counting = Counting::Algorithm(algorithm);
        self
    }

    /// The same limit, but a request that is larger than it can ever hold isn't refused for good: it
    /// waits until nothing is used or held, and then takes all that it costs.
    ///
    /// A token bucket is below empty after that, until all of it has refilled; a window counts it
    /// whole, and forgets it as it forgets everything else. For a provider, or a server of one's
    /// own, that does the same; most refuse such a request for ever.
    #[must_use]
    pub fn with_debt(mut self) -> Self {
        self.debt = true;
        self
    }

    /// The same limit of another amount, its burst in proportion. A request above it that the whole
    /// limit can hold waits until nothing is used.
    pub(crate) fn lowered(self, amount: NonZeroU64) -> Self {
        let (part, whole) = (u128::from(amount.get()), u128::from(self.amount.get()));
        let burst = |burst: NonZeroU64| {
            let part = u64::try_from(u128::from(burst.get()) * part / whole).ok();
            part.and_then(NonZeroU64::new).unwrap_or(NonZeroU64::MIN)
        };
        self.part(amount, burst)
    }

    /// This share of the limit, and of its algorithm's burst: rounded down, but at least 1.
    ///
    /// A request that is larger than the share, but not than the whole limit, waits until nothing of
    /// the share is used or held, and then takes all that it costs: as with [debt](Self::with_debt), a
    /// token bucket refills from below empty, and a window forgets it when it ends. Where several
    /// programs have shares of a window, such requests of all of them may go above the whole limit.
    #[must_use]
    pub fn with_share(self, share: Share) -> Self {
        if share == Share::WHOLE {
            return self;
        }
        let amount = share.of(self.amount);
        self.part(amount, |burst| share.of(burst))
    }

    fn part(self, amount: NonZeroU64, part: impl Fn(NonZeroU64) -> NonZeroU64) -> Self {
        let whole = self.whole.or(self.burst()).unwrap_or(self.amount);
        let mut limit = Self { amount, whole: Some(whole), ..self };
        if let Counting::Algorithm(Algorithm::TokenBucket { burst: Some(burst) }) =
            &mut limit.counting
        {
            *burst = part(*burst);
        }
        limit
    }

    fn burst(&self) -> Option<NonZeroU64> {
        match self.algorithm() {
            Some(Algorithm::TokenBucket { burst }) => burst,
            _ => None,
        }
    }

    /// What is counted.
    pub fn dimension(&self) -> &Dimension {
        &self.dimension
    }

    /// How much is allowed per window.
    pub fn amount(&self) -> u64 {
        self.amount.get()
    }

    /// The window; the nominal one of a calendar. Without meaning for [`Dimension::Concurrency`].
    pub fn window(&self) -> Window {
        self.window
    }

    /// The algorithm, where the limit names one; `None` on a calendar.
    pub fn algorithm(&self) -> Option<Algorithm> {
        match self.counting {
            Counting::Algorithm(algorithm) => Some(algorithm),
            _ => None,
        }
    }

    /// The calendar, where the limit is on one.
    pub fn calendar(&self) -> Option<&Calendar> {
        match &self.counting {
            Counting::Calendar(calendar) => Some(calendar),
            _ => None,
        }
    }

    /// Whether a request above the limit is let in when nothing is used.
    pub fn has_debt(&self) -> bool {
        self.debt
    }

    /// What the limit holds that this is a part of, if it is one.
    pub(crate) fn whole(&self) -> Option<u64> {
        self.whole.map(NonZeroU64::get)
    }

    /// Whether the profile may say how it is counted.
    pub(super) fn is_open(&self) -> bool {
        self.counting == Counting::Profile
    }

    /// Where its windows start and end, if that is known beforehand; `algorithm` is the one that it
    /// is counted by.
    pub(crate) fn grid(&self, algorithm: Algorithm) -> Option<Arc<Grid>> {
        match (&self.counting, algorithm) {
            (Counting::Calendar(calendar), _) => Some(calendar.grid().clone()),
            (_, Algorithm::ClockWindow) => Some(Grid::every(self.window).into()),
            _ => None,
        }
    }
}

/// How a limit is counted over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Refills all the time at amount / window. What OpenAI, Anthropic and Groq do.
    TokenBucket {
        /// What a full bucket holds; the limit's whole amount where it is `None`.
        burst: Option<NonZeroU64>,
    },
    /// Never more than the amount in any window of that length: safe against a provider of the same
    /// amount and window, whatever its own algorithm.
    SlidingWindow,
    /// Starts at the first use, and again at the first use after its end.
    FixedWindow,
    /// Starts at every multiple of its length since the Unix epoch, UTC: with every minute, hour or
    /// day of a clock. For days elsewhere, weeks and months see [`Limit::on_calendar`].
    ClockWindow,
}

impl Algorithm {
    /// A token bucket that holds the limit's whole amount.
    pub const TOKEN_BUCKET: Self = Self::TokenBucket { burst: None };
}
