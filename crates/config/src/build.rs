use paceline::middleware::{Http, RateLimitLayer, Retries};
use paceline_limiter::limiter::{Builder, Limiter, QuotaOrigin, UnknownKey};
use paceline_limiter::seam;

use crate::config::Config;

/// The prefix of the keys that clients of `paceline serve` name in `/rate/{key}`. They have the quotas of the names after
/// it, in buckets of their own.
pub const RATE_PREFIX: &str = "rate/";

impl Config {
    /// Returns a builder of a limiter with these providers, quotas and policies, which keeps its buckets
    /// in this process. [`keep`](Self::keep), [`join`](Self::join) and [`backend`](Self::backend) add the
    /// store, the bus and the cluster; [`limiter`](Self::limiter) adds all of them.
    pub fn builder(&self) -> Builder {
        let mut builder = seam::name_space(Limiter::builder(), RATE_PREFIX)
            .unknown_key(self.unknown_key.clone())
            .max_waiting(self.waiting.max_waiting)
            .wait_policy(self.waiting.policy())
            .reduction(self.reduction)
            .margin(self.margin)
            .share(self.share);
        for provider in &self.providers {
            builder = builder.provider(*provider);
        }
        for configured in &self.quotas {
            builder = builder.quota(configured.keys.name(), configured.quota.clone());
        }
        builder
    }

    /// Returns a layer for a client, with the `waiting.max_wait`, the `retry.attempts` and the `prices` of the
    /// configuration. The prices follow those of configurations that are [applied](Self::apply) later.
    pub fn layer(&self, limiter: &Limiter) -> RateLimitLayer<Http, Http, Retries> {
        let layer = RateLimitLayer::new(limiter.clone()).prices(self.prices.clone());
        let layer = layer.retry(self.retry.attempts.get() - 1);
        match self.waiting.max_wait_or(None) {
            Some(wait) => layer.max_wait(wait),
            None => layer,
        }
    }

    /// Returns `true` if a limiter with this configuration wouldn't limit anything.
    pub(super) fn is_unlimited(&self, limiter: &Limiter) -> bool {
        let allows_all = self.providers.is_empty() && self.unknown_key == UnknownKey::Allow;
        let others = || {
            limiter.quotas().list().into_iter().any(|quota| quota.origin != QuotaOrigin::Configured)
        };
        allows_all && self.quotas.is_empty() && !others()
    }
}
