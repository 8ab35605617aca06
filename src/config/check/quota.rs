#[cfg(not(feature = "regex"))]
use std::convert::Infallible as Regex;

#[cfg(feature = "regex")]
use regex::Regex;

use super::Check;
use crate::config::fields::QuotaFields;
use crate::config::tree::FieldPath;
use crate::config::value::{ConfiguredQuota, Keys};
#[cfg(not(feature = "regex"))]
use crate::limiter::MissingFeature;
use crate::quota::Quota;

impl Check<'_> {
    pub(super) fn quotas(&mut self, quotas: &[(String, QuotaFields)]) -> Vec<ConfiguredQuota> {
        let root = FieldPath::new(["quotas"]);
        let named = quotas.iter().filter_map(|(name, fields)| {
            let path = root.key(name);
            let keys = self.keys(&path, name, fields)?;
            Some(ConfiguredQuota { keys, quota: self.quota(&path, fields) })
        });
        named.collect()
    }

    fn keys(&mut self, path: &FieldPath, name: &str, fields: &QuotaFields) -> Option<Keys> {
        if name.is_empty() {
            self.report_name(path, "a key must not be empty");
            return None;
        }
        if fields.regex {
            let regex = regex(name).map_err(|message| self.report_name(path, message));
            return regex.ok().map(|_| Keys::Matching(name.to_owned()));
        }
        if name.starts_with("regex:") {
            self.report_name(
                path,
                "write the expression without `regex:`, and set `regex: true` in its quota",
            );
            return None;
        }
        if fields.shared && !name.contains(['*', '?']) {
            let message = "only allowed for a glob or a regular expression; remove it";
            self.report(&path.key("shared"), message);
        }
        Some(Keys::Named(name.to_owned()))
    }

    pub(super) fn quota(&mut self, path: &FieldPath, fields: &QuotaFields) -> Quota {
        let mut quota = Quota::new();
        for (name, amount) in fields.short_forms() {
            quota = with_short_form(quota, name, amount.unwrap_or(0));
        }
        quota = quota.usd_per_day(fields.usd_per_day.map_or(0, |amount| amount.usd().0));
        if fields.limits.len() > MAX_LIMITS {
            self.report(&path.key("limits"), format!("must have at most {MAX_LIMITS} limits"));
            return quota;
        }
        let mut seen: Vec<(String, u64)> = quota
            .limits()
            .iter()
            .map(|limit| (limit.dimension().to_string(), limit.window().as_nanos()))
            .collect();
        for (at, fields) in fields.limits.iter().enumerate() {
            let path = self.item(&path.key("limits"), at);
            let Some(limit) = self.limit(&path, fields) else { continue };
            let identity = (limit.dimension().to_string(), limit.window().as_nanos());
            if seen.contains(&identity) {
                self.report(&path, "duplicate limit of this dimension and window; remove one");
            }
            seen.push(identity);
            quota = quota.limit(limit);
        }
        if let Some(name) = fields.algorithm {
            quota = quota.with_algorithm(name);
        }
        if fields.shared {
            quota = quota.shared();
        }
        if let Some(margin) = &fields.margin {
            quota = quota.with_margin(self.margin(&path.key("margin"), margin));
        }
        if let Some(weight) = fields.weight {
            self.weight(&path.key("weight"), weight);
            quota = quota.with_weight(weight);
        }
        if let Some(part) = fields.utilization {
            quota = quota.with_utilization(self.share(&path.key("utilization"), part));
        }
        match fields.share {
            Some(share) => quota.with_share(self.share(&path.key("share"), share)),
            None => quota,
        }
    }
}

/// Compiles a regular expression of bounded size.
///
/// # Errors
/// Returns the reason if the pattern is invalid.
#[cfg(feature = "regex")]
pub fn regex(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| {
        // The last line is the reason; the lines before it show the position.
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default().trim();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        format!("invalid regular expression: {reason}")
    })
}

/// Compiles a regular expression of bounded size.
///
/// # Errors
/// Always returns an error, since the feature `regex` is missing.
#[cfg(not(feature = "regex"))]
pub fn regex(_: &str) -> Result<Regex, String> {
    let what = "a regular expression".to_owned();
    Err(MissingFeature { what, feature: "regex" }.to_string())
}

/// The maximum number of limits of a quota, each of which every request checks.
const MAX_LIMITS: usize = 64;

fn with_short_form(quota: Quota, name: &str, amount: u64) -> Quota {
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
