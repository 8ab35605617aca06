use std::time::Duration;

use paceline_limiter::limiter::{Regex, UnknownKey};
use paceline_limiter::quota::{Limit, Quota};
use paceline_limiter::seam::{self, QuotaParts};

use super::Check;
use crate::fields::{HumanDuration, LimitFields, QuotaFields, QuotaMode};
use crate::tree::FieldPath;
use crate::value::{ConfiguredQuota, Keys};

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
        let QuotaFields {
            rpm,
            tpm,
            rpd,
            tpd,
            itpm,
            otpm,
            usd_per_day,
            usd_per_month,
            usd_total,
            tokens_total,
            requests_total,
            concurrency,
            limits,
            algorithm,
            share,
            margin,
            weight,
            utilization,
            max_wait,
            mode,
            shared,
            regex: _, // Part of the keys.
        } = fields;
        let amount = |given: &Option<u64>| given.unwrap_or(0);
        let quota = Quota::new()
            .rpm(amount(rpm))
            .tpm(amount(tpm))
            .rpd(amount(rpd))
            .tpd(amount(tpd))
            .itpm(amount(itpm))
            .otpm(amount(otpm))
            .concurrency(amount(concurrency))
            .usd_per_day(usd_per_day.unwrap_or_default())
            .usd_per_month(usd_per_month.unwrap_or_default())
            .usd_total(usd_total.unwrap_or_default())
            .tokens_total(amount(tokens_total))
            .requests_total(amount(requests_total));
        let quota = self.with_limits(path, quota, limits);
        let quota = algorithm.iter().fold(quota, |quota, name| quota.with_algorithm(*name));
        let share = share.map(|share| self.share(&path.key("share"), share));
        let quota = share.into_iter().fold(quota, Quota::with_share);
        seam::quota_of(QuotaParts {
            limits: quota.limits().to_vec(),
            shared: *shared,
            margin: margin.as_ref().map(|margin| self.margin(&path.key("margin"), margin)),
            weight: weight.map(|weight| self.weight(&path.key("weight"), weight)),
            utilization: utilization.map(|part| self.share(&path.key("utilization"), part)),
            max_wait: self.longest_wait(path, *max_wait, *mode),
        })
    }

    /// Returns the longest wait of a quota. Reports a mode that contradicts it.
    fn longest_wait(
        &mut self,
        path: &FieldPath,
        max_wait: Option<HumanDuration>,
        mode: Option<QuotaMode>,
    ) -> Option<Duration> {
        let max_wait = max_wait.map(|HumanDuration(wait)| wait);
        let is_zero = max_wait.map(|wait| wait.is_zero());
        match (mode, is_zero) {
            (Some(QuotaMode::Reject), Some(false)) => {
                let message =
                    "`reject` waits for nothing, and `max_wait` is above 0s; remove one of them";
                self.report(&path.key("mode"), message);
            }
            (Some(QuotaMode::Wait), Some(true)) => {
                let message = "`wait` waits, and a `max_wait` of 0s doesn't; remove one of them";
                self.report(&path.key("mode"), message);
            }
            (Some(QuotaMode::Reject), _) => return Some(Duration::ZERO),
            (Some(QuotaMode::Wait) | None, _) => {}
        }
        max_wait
    }

    /// Reports the quotas with a limit that never resets, which limits shared between machines don't keep.
    pub(super) fn refuse_totals(&mut self, quotas: &[ConfiguredQuota], unknown_key: &UnknownKey) {
        let message = "a limit that never resets is not possible with `cluster`, whose server may come back empty; \
                       use `usd_per_month` or another window, or a `store` without `cluster`";
        for ConfiguredQuota { keys, .. } in quotas.iter().filter(|quota| quota.quota.has_total()) {
            let (Keys::Named(name) | Keys::Matching(name)) = keys;
            self.report(&FieldPath::new(["quotas", name]), message);
        }
        if matches!(unknown_key, UnknownKey::Quota(quota) if quota.has_total()) {
            self.report(&FieldPath::new(["unknown_key"]), message);
        }
    }

    /// Adds limits to a quota. Reports two of the same dimension and window.
    fn with_limits(&mut self, path: &FieldPath, mut quota: Quota, limits: &[LimitFields]) -> Quota {
        let path = path.key("limits");
        if limits.len() > MAX_LIMITS {
            self.report(&path, format!("must have at most {MAX_LIMITS} limits"));
            return quota;
        }
        let identity = |limit: &Limit| (limit.dimension().to_string(), limit.window());
        let mut seen: Vec<_> = quota.limits().iter().map(identity).collect();
        for (at, fields) in limits.iter().enumerate() {
            let path = self.item(&path, at);
            let Some(limit) = self.limit(&path, fields) else { continue };
            if seen.contains(&identity(&limit)) {
                self.report(&path, "duplicate limit of this dimension and window; remove one");
            }
            seen.push(identity(&limit));
            quota = quota.limit(limit);
        }
        quota
    }
}

/// Compiles a regular expression of bounded size.
///
/// # Errors
/// Returns the reason if the pattern is invalid.
pub fn regex(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| {
        // The last line is the reason; the lines before it show the position.
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default().trim();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        format!("invalid regular expression: {reason}")
    })
}

/// The maximum number of limits of a quota, each of which every request checks.
const MAX_LIMITS: usize = 64;
