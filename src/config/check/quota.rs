#[cfg(not(feature = "regex"))]
use std::convert::Infallible as Regex;

#[cfg(feature = "regex")]
use regex::Regex;

use super::Check;
use crate::config::fields::QuotaFields;
use crate::config::tree::Steps;
use crate::config::value::{ConfiguredQuota, Keys};
#[cfg(not(feature = "regex"))]
use crate::limiter::MissingFeature;
use crate::quota::Quota;

impl Check<'_> {
    pub(super) fn quotas(&mut self, quotas: &[(String, QuotaFields)]) -> Vec<ConfiguredQuota> {
        let root = Steps::to(["quotas"]);
        let named = quotas.iter().filter_map(|(name, fields)| {
            let steps = root.key(name);
            let keys = self.keys(&steps, name, fields)?;
            Some(ConfiguredQuota { keys, quota: self.quota(&steps, fields) })
        });
        named.collect()
    }

    fn keys(&mut self, steps: &Steps, name: &str, fields: &QuotaFields) -> Option<Keys> {
        if name.is_empty() {
            self.wrong_name(steps, "the name of a key must not be empty");
            return None;
        }
        if fields.regex {
            let regex = regex(name).map_err(|what| self.wrong_name(steps, what));
            return regex.ok().map(|_| Keys::Matching(name.to_owned()));
        }
        if name.starts_with("regex:") {
            self.wrong_name(steps, "write the expression alone, and `regex: true` into its quota");
            return None;
        }
        if fields.shared && !name.contains(['*', '?']) {
            let what = "is for a glob or a regular expression; this is one key's own already";
            self.wrong(&steps.key("shared"), what);
        }
        Some(Keys::Named(name.to_owned()))
    }

    pub(super) fn quota(&mut self, steps: &Steps, fields: &QuotaFields) -> Quota {
        let mut quota = Quota::new();
        for (name, amount) in fields.short_forms() {
            quota = with_short(quota, name, amount.unwrap_or(0));
        }
        if fields.limits.len() > MOST_LIMITS {
            self.wrong(&steps.key("limits"), format!("must be at most {MOST_LIMITS} limits"));
            return quota;
        }
        let mut said: Vec<(String, u64)> = quota
            .limits()
            .iter()
            .map(|limit| (limit.dimension().to_string(), limit.window().as_nanos()))
            .collect();
        for (at, fields) in fields.limits.iter().enumerate() {
            let steps = self.item(&steps.key("limits"), at);
            let Some(limit) = self.limit(&steps, fields) else { continue };
            let this = (limit.dimension().to_string(), limit.window().as_nanos());
            if said.contains(&this) {
                self.wrong(&steps, "a second limit of this dimension and window; keep one");
            }
            said.push(this);
            quota = quota.limit(limit);
        }
        if let Some(name) = fields.algorithm {
            quota = quota.with_algorithm(name);
        }
        if fields.shared {
            quota = quota.shared();
        }
        if let Some(margin) = &fields.margin {
            quota = quota.with_margin(self.margin(&steps.key("margin"), margin));
        }
        match fields.share {
            Some(share) => quota.with_share(self.share(&steps.key("share"), share)),
            None => quota,
        }
    }
}

/// Compiles a regular expression of bounded size.
///
/// # Errors
/// A message that says what is wrong with the pattern.
#[cfg(feature = "regex")]
pub fn regex(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| {
        // The last line says it; those before draw an arrow.
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default().trim();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        format!("not a regular expression: {reason}")
    })
}

/// Compiles a regular expression of bounded size.
///
/// # Errors
/// That the feature `regex` is missing.
#[cfg(not(feature = "regex"))]
pub fn regex(_: &str) -> Result<Regex, String> {
    let what = "a regular expression".to_owned();
    Err(MissingFeature { what, feature: "regex" }.to_string())
}

/// Each is looked at for every request.
const MOST_LIMITS: usize = 64;

fn with_short(quota: Quota, name: &str, amount: u64) -> Quota {
    match name {
        "rpm" => quota.rpm(amount),
        "tpm" => quota.tpm(amount),
        "rpd" => quota.rpd(amount),
        "tpd" => quota.tpd(amount),
        "itpm" => quota.itpm(amount),
        "otpm" => quota.otpm(amount),
        _ => quota.concurrency(amount),
    }
}
