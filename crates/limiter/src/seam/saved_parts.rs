use std::num::NonZeroU64;
use std::time::Duration;

use crate::quota::limit::Counting;
use crate::quota::{Dimension, Limit, Margin, Quota, Share, Window};

/// The parts of a [`Limit`], for its saved forms.
#[derive(Debug, Clone)]
pub struct LimitParts {
    /// The dimension.
    pub dimension: Dimension,
    /// The amount per window.
    pub amount: NonZeroU64,
    /// The window.
    pub window: Window,
    /// How it counts.
    pub counting: Counting,
    /// Whether a request above the amount waits for all of it and leaves a debt.
    pub debt: bool,
    /// The whole amount, if the limit is a share of it.
    pub whole: Option<NonZeroU64>,
}

/// Returns the parts of a limit.
pub fn limit_parts(limit: &Limit) -> LimitParts {
    let Limit { dimension, amount, window, counting, debt, whole } = limit.clone();
    LimitParts { dimension, amount, window, counting, debt, whole }
}

/// Returns the limit of parts that are those of one.
pub fn limit_of(parts: LimitParts) -> Limit {
    let LimitParts { dimension, amount, window, counting, debt, whole } = parts;
    Limit { dimension, amount, window, counting, debt, whole }
}

/// The parts of a [`Quota`], for its saved forms.
#[derive(Debug, Clone)]
pub struct QuotaParts {
    /// The limits.
    pub limits: Vec<Limit>,
    /// Whether all keys of the quota share its buckets.
    pub shared: bool,
    /// The margin, if it has its own.
    pub margin: Option<Margin>,
    /// The weight of its keys as flows.
    pub weight: Option<u32>,
    /// The part of the account's windows to which its requests are held.
    pub utilization: Option<Share>,
    /// The longest wait of its requests.
    pub max_wait: Option<Duration>,
}

/// Returns the parts of a quota.
pub fn quota_parts(quota: &Quota) -> QuotaParts {
    let Quota { limits, shared, margin, weight, utilization, max_wait } = quota.clone();
    QuotaParts { limits, shared, margin, weight, utilization, max_wait }
}

/// Returns the quota of these parts. Of two limits of the same dimension and window, the last applies.
pub fn quota_of(parts: QuotaParts) -> Quota {
    let QuotaParts { limits, shared, margin, weight, utilization, max_wait } = parts;
    let Quota { limits, .. } = limits.into_iter().fold(Quota::new(), Quota::limit);
    Quota { limits, shared, margin, weight, utilization, max_wait }
}
