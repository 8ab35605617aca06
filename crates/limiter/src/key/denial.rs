use crate::answer::code::Code;
use crate::answer::error::{Need, Refused};
use crate::engine::{Shortfall, Wait};
use crate::plan::Plan;
use crate::quota::{Cost, Dimension, Key};
use crate::timestamp::Timestamp;

/// The reason why a key doesn't admit a request now.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Denial {
    /// A bucket of the key is short.
    Short(Shortfall),
    /// The rate learned from the provider's answers doesn't admit the request. A dimension is given by its
    /// column.
    Paced { column: Option<usize>, wait: Wait },
    /// The key cools down; the request fits at this time.
    CoolingDown(Wait),
    /// The provider refuses the account.
    Account,
    /// Other requests wait before this one.
    OthersWaiting(Wait),
    /// A backend refused the request without naming a bucket.
    Elsewhere(Wait),
    /// The backend is unreachable until this time.
    Away(Timestamp),
    /// The key is unknown, and unknown keys are refused.
    Unknown,
    /// No limit counts a dimension of the cost.
    Uncounted,
    /// The limiter is closed.
    Closed,
}

impl Denial {
    /// Returns the refusal of a request of this cost. `plan` is the plan that the key follows now, and
    /// `full_plan` that of its quota.
    #[cold]
    pub(crate) fn refused(
        self,
        key: &Key,
        plan: &Plan,
        full_plan: &Plan,
        cost: &Cost,
        now: Timestamp,
    ) -> Refused {
        let cost = &*plan.clip_guesses(cost);
        let (code, dimension, need) = match self {
            Self::OthersWaiting(_) => (Code::OthersWaiting, None, None),
            Self::CoolingDown(_) => (Code::CoolingDown, None, None),
            Self::Paced { column, .. } => {
                (Code::LearnedLimit, column.and_then(Dimension::of_column), None)
            }
            Self::Account => (Code::AccountRefused, None, None),
            Self::Unknown => (Code::UnknownModel, None, None),
            Self::Uncounted => {
                let dimension = plan.refused_dimension(cost, |_| false);
                (Code::of_uncounted(dimension.as_ref()), dimension, None)
            }
            Self::Closed => (Code::Closed, None, None),
            Self::Elsewhere(Wait::Never) => (Code::ExceedsCapacity, None, None),
            Self::Elsewhere(_) => (Code::LimitExceeded, None, None),
            Self::Away(_) => (Code::Unavailable, None, None),
            Self::Short(short) => match full_plan.rules.get(short.rule) {
                Some(rule) => {
                    let code = Code::of(rule.limit(), short.wait, || rule.can_admit(cost));
                    let is_too_large = code == Code::ExceedsCapacity;
                    let limit = if is_too_large { rule.max_amount() } else { rule.capacity() };
                    let need = Need { amount: cost.amount(rule.dimension()), limit };
                    (code, Some(rule.dimension().clone()), Some(need))
                }
                // The quota has changed since the backend decided.
                None => (Code::LimitExceeded, None, None),
            },
        };
        Refused { dimension, need, ..Refused::new(key, code, self.wait(), now) }
    }

    /// Returns the time at which the limits of the key admit the request, if it is known.
    pub(crate) fn fits_at(self) -> Option<Timestamp> {
        match (self, self.wait()) {
            (Self::Short(_) | Self::Paced { .. } | Self::CoolingDown(_), Wait::At(time)) => {
                Some(time)
            }
            _ => None,
        }
    }

    /// Returns the time at which the request fits.
    pub(crate) fn wait(self) -> Wait {
        match self {
            Self::Short(short) => short.wait,
            Self::Paced { wait, .. } => wait,
            Self::CoolingDown(wait) | Self::Elsewhere(wait) | Self::OthersWaiting(wait) => wait,
            Self::Away(until) => Wait::At(until),
            Self::Account | Self::Unknown | Self::Uncounted | Self::Closed => Wait::Never,
        }
    }
}
