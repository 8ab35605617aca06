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
        Some(Self { dimension, amount, window, counting: Counting::Profile, debt: false })
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

    /// The same limit of another amount, its burst in proportion: a request above it waits until
    /// nothing is used.
    pub(crate) fn lowered(mut self, amount: NonZeroU64) -> Self {
        if let Counting::Algorithm(Algorithm::TokenBucket { burst: Some(burst) }) =
            &mut self.counting
        {
            let part =
                u128::from(burst.get()) * u128::from(amount.get()) / u128::from(self.amount.get());
            let part = u64::try_from(part).ok().and_then(NonZeroU64::new);
            *burst = part.unwrap_or(NonZeroU64::MIN);
        }
        Self { amount, ..self }.with_debt()
    }

    /// This share of the limit, and of its algorithm's burst: rounded down, but at least 1.
    #[must_use]
    pub fn with_share(mut self, share: Share) -> Self {
        self.amount = share.of(self.amount);
        if let Counting::Algorithm(Algorithm::TokenBucket { burst: Some(burst) }) =
            &mut self.counting
        {
            *burst = share.of(*burst);
        }
        self
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
