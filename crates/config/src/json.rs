use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

use paceline_limiter::quota::{Dimension, Limit, Period, Quota, Share, Usd, Window};
use paceline_limiter::seam::{self, Counting, LimitParts, QuotaParts};
use serde_json::{Value, json};

use crate::check::Check;
use crate::error::{ConfigError, Problem};
use crate::fields::{
    Amount, HumanDuration, LimitFields, MarginFields, QuotaFields, QuotaMode, WindowText,
};
use crate::read::read;
use crate::section::{Document, Sections};
use crate::tree::{FieldPath, Node, Origin};
use crate::value::ConfiguredQuota;

impl ConfiguredQuota {
    /// Parses a quota from JSON, with the same fields and errors as in `quotas` of the file.
    ///
    /// `name` is the name of the quota in the limiter: a key, a glob, or `regex:` and a regular
    /// expression. It replaces the field `regex`, which is not allowed.
    ///
    /// ```
    /// use serde_json::json;
    /// use paceline_config::ConfiguredQuota;
    ///
    /// let quota = ConfiguredQuota::parse_json("gpt-4o", &json!({"rpm": 500, "tpm": 30000}))?;
    /// assert_eq!(quota.to_json(), json!({"rpm": 500, "tpm": 30000}));
    ///
    /// let error = ConfiguredQuota::parse_json("gpt-4o", &json!({"rmp": 500})).unwrap_err();
    /// assert_eq!(error.problems[0].path, "quotas.gpt-4o.rmp");
    /// # Ok::<(), paceline_config::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ConfigError`] with the path of each invalid value.
    pub fn parse_json(name: &str, fields: &Value) -> Result<Self, ConfigError> {
        let origin = Origin::File { file: "request".into(), position: None };
        let (pattern, is_regex) = name.strip_prefix(REGEX).map_or((name, false), |p| (p, true));
        let path = FieldPath::new(["quotas", pattern]);
        let mut fields = fields.clone();
        if let Some(fields) = fields.as_object_mut() {
            if fields.contains_key("regex") {
                let message = "not allowed here; name the quota `regex:` and the expression";
                let problem = Problem::new(origin, &path.key("regex"), message);
                return Err(ConfigError::new(vec![problem]));
            }
            if is_regex {
                fields.insert("regex".to_owned(), true.into());
            }
        }
        let tree = Node::from_json(&json!({"quotas": {pattern: fields}}), &origin);
        let reading = read(&tree, |tree| Document::read(tree, &Sections::new()));
        let mut problems = reading.problems;
        let found = reading.value.and_then(|document| {
            let mut check = Check::new(&tree, &reading.removed, Path::new(""));
            let mut config = check.config(&document.fields);
            problems.extend(check.into_problems());
            config.quotas.pop()
        });
        match found {
            Some(quota) if problems.is_empty() => Ok(quota),
            _ => Err(ConfigError::new(problems)),
        }
    }

    /// Returns the quota as JSON that [`parse_json`](Self::parse_json) reads. Windows and the longest wait are in
    /// whole milliseconds.
    pub fn to_json(&self) -> Value {
        let fields = QuotaFields::from(&self.quota);
        serde_json::to_value(fields).expect("strings and numbers serialize to JSON")
    }
}

/// Returns the schema of the quotas that [`ConfiguredQuota::parse_json`] reads. Unlike the parser, it
/// allows the field `regex`.
pub fn quota_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<QuotaFields>()
}

impl From<&Quota> for QuotaFields {
    fn from(quota: &Quota) -> Self {
        let QuotaParts { limits, shared, margin, weight, utilization, max_wait } =
            &seam::quota_parts(quota);
        let mut fields = Self {
            shared: *shared,
            margin: margin.map(MarginFields::from),
            weight: *weight,
            utilization: utilization.map(Share::as_part),
            max_wait: max_wait.filter(|wait| !wait.is_zero()).map(HumanDuration::rounded_up),
            mode: max_wait.filter(Duration::is_zero).map(|_| QuotaMode::Reject),
            ..Self::default()
        };
        for limit in limits {
            let amount = limit.amount();
            if let Some(short) = fields.short_form_of_usd(limit) {
                *short = Some(Usd::from_micros(amount));
            } else if let Some(short) = fields.short_form_of(limit) {
                *short = Some(amount);
            } else {
                fields.limits.push(limit.into());
            }
        }
        fields
    }
}

impl QuotaFields {
    /// Returns the short form that is equivalent to a limit, if there is one.
    fn short_form_of(&mut self, limit: &Limit) -> Option<&mut Option<u64>> {
        if is_custom(limit) {
            return None;
        }
        Some(match (limit.dimension(), limit.window()) {
            (Dimension::Concurrency, _) => &mut self.concurrency,
            (Dimension::Requests, Window::MINUTE) => &mut self.rpm,
            (Dimension::Tokens, Window::MINUTE) => &mut self.tpm,
            (Dimension::InputTokens, Window::MINUTE) => &mut self.itpm,
            (Dimension::OutputTokens, Window::MINUTE) => &mut self.otpm,
            (Dimension::Requests, Window::DAY) => &mut self.rpd,
            (Dimension::Tokens, Window::DAY) => &mut self.tpd,
            (Dimension::Tokens, Window::ENDLESS) => &mut self.tokens_total,
            (Dimension::Requests, Window::ENDLESS) => &mut self.requests_total,
            _ => return None,
        })
    }

    /// Returns the short form that is equivalent to a limit on money, if there is one.
    fn short_form_of_usd(&mut self, limit: &Limit) -> Option<&mut Option<Usd>> {
        let total = Limit::total(Dimension::usd(), limit.amount());
        let on = |period| Limit::on_calendar(Dimension::usd(), limit.amount(), &seam::utc(period));
        match limit.dimension().is_usd().then_some(Some(limit.clone()))? {
            own if own == total => Some(&mut self.usd_total),
            own if own == on(Period::Day) => Some(&mut self.usd_per_day),
            own if own == on(Period::Month) => Some(&mut self.usd_per_month),
            _ => None,
        }
    }
}

/// Returns `true` if a limit has more than an amount and a window.
fn is_custom(limit: &Limit) -> bool {
    let LimitParts { counting, debt, whole, .. } = seam::limit_parts(limit);
    counting != Counting::Profile || debt || whole.is_some()
}

/// Returns an amount in the unit of the configuration.
fn amount_in_config(dimension: &Dimension, amount: u64) -> Amount {
    match dimension.is_usd() {
        true => Amount::of_usd(Usd::from_micros(amount)),
        false => Amount::Whole(amount),
    }
}

impl From<&Limit> for LimitFields {
    fn from(limit: &Limit) -> Self {
        let LimitParts { dimension, amount, window, counting, debt, whole } =
            &seam::limit_parts(limit);
        let amount_of = |amount: NonZeroU64| amount_in_config(dimension, amount.get());
        let length = WindowText::from(*window);
        let (window, algorithm, burst, zone) = match counting {
            _ if *dimension == Dimension::Concurrency => (None, None, None, None),
            Counting::Profile => (Some(length), None, None, None),
            Counting::Algorithm { algorithm, burst } => {
                (Some(length), Some(*algorithm), burst.map(amount_of), None)
            }
            Counting::Calendar(calendar) => {
                let period = WindowText::Calendar(calendar.period());
                (Some(period), None, None, Some(calendar.zone().to_owned()))
            }
        };
        Self {
            dimension: dimension.to_string(),
            limit: amount_of(*amount),
            window,
            algorithm,
            burst,
            zone,
            debt: *debt,
            whole: whole.map(amount_of),
        }
    }
}

/// The prefix of the names of regular expressions in the limiter.
const REGEX: &str = "regex:";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_round_trip(name: &str, fields: &Value) {
        let quota = ConfiguredQuota::parse_json(name, fields).unwrap();
        assert_eq!(quota.keys.name(), name);
        assert_eq!(&quota.to_json(), fields);
    }

    #[test]
    fn quota_as_json_parses_to_the_same_quota() {
        assert_round_trip(
            "gpt-4o",
            &json!({"rpm": 500, "tpm": 30000, "rpd": 9, "tpd": 8, "concurrency": 3}),
        );
        assert_round_trip("claude-*", &json!({"itpm": 5, "otpm": 6, "shared": true}));
        assert_round_trip("regex:user-.*", &json!({"rpm": 1}));
        assert_round_trip("a", &json!({}));
        assert_round_trip("b", &json!({"rpm": 1, "margin": {"percent": 0, "lag": "50ms"}}));
        assert_round_trip("c", &json!({"rpm": 1, "weight": 3, "utilization": 0.9}));
        assert_round_trip("c", &json!({"rpm": 1, "max_wait": "90s"}));
        assert_round_trip("c", &json!({"usd_per_day": 5, "mode": "reject"}));
        let part = json!({"dimension": "tokens", "limit": 500, "window": "1m", "whole": 1000});
        assert_round_trip("d", &json!({"limits": [part]}));
        let day = json!({"dimension": "requests", "limit": 9, "window": "day", "zone": "UTC"});
        let bucket = json!({"dimension": "images", "limit": 5, "window": "90s", "burst": 2,
            "algorithm": "token_bucket", "debt": true});
        assert_round_trip("a/b", &json!({"limits": [day, bucket]}));
        let ten_minutes = json!({"dimension": "usd", "limit": 2.5, "window": "10m"});
        assert_round_trip("a/b", &json!({"usd_per_day": 50, "limits": [ten_minutes]}));
        let images = json!({"dimension": "images", "limit": 5, "window": "total"});
        let month =
            json!({"dimension": "usd", "limit": 5, "window": "month", "zone": "Asia/Tokyo"});
        let totals = json!({"usd_per_month": 0.5, "usd_total": 20, "tokens_total": 7,
            "requests_total": 8, "limits": [images]});
        assert_round_trip("e", &totals);
        assert_round_trip("f", &json!({"limits": [month]}));
        let minute = json!({"dimension": "tokens", "limit": 5, "window": "1m",
            "algorithm": "fixed_window"});
        assert_round_trip(
            "a",
            &json!({"limits": [minute, {"dimension": "concurrency", "limit": 2, "debt": true}]}),
        );
    }

    #[test]
    fn invalid_json_has_the_errors_of_the_file() {
        let problem = |name: &str, fields: Value| {
            let error = ConfiguredQuota::parse_json(name, &fields).unwrap_err();
            let problem = &error.problems[0];
            format!("{}: {}", problem.path, problem.message)
        };
        let as_in_file = "quotas.a.rmp: unknown field \"rmp\" (did you mean `rpm`?); allowed: ";
        assert!(problem("a", json!({"rmp": 1})).starts_with(as_in_file));
        assert!(
            problem("a", json!({"rpm": -1})).starts_with("quotas.a.rpm: must be a whole number")
        );
        assert!(problem("a", json!([])).starts_with("quotas.a: must be a map of"));
        assert!(
            problem("a", json!({"regex": true})).starts_with("quotas.a.regex: not allowed here")
        );
        assert!(problem("regex:(", json!({})).contains("invalid regular expression"));
        assert!(
            problem("a", json!({"shared": true}))
                .starts_with("quotas.a.shared: only allowed for a glob")
        );
        assert!(problem("", json!({})).contains("must not be empty"));
    }
}
