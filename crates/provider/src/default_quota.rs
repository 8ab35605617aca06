use std::fmt;
use std::sync::LazyLock;

use jiff::civil::Date;
use paceline_limiter::Timestamp;
use paceline_limiter::quota::{Calendar, Dimension, Limit, Period, Quota, UnknownZone};
use serde::{Deserialize, Serialize};

use crate::date;
use crate::unit::Unit;

/// A quota that an account of a provider has by default, in its lowest paid tier.
///
/// The built-in ones are in `crates/provider/src/quotas.json`, each with its date and source;
/// [`QuotaTable`](crate::QuotaTable) shows them. Their patterns match only models whose
/// numbers are known: `gpt-4o*` would include `gpt-4o-mini`.
///
/// ```
/// use paceline_provider::{DefaultQuota, Profile, Rules};
///
/// const QUOTAS: &[DefaultQuota] = &[DefaultQuota::new("acme-large*", "2026-11").rpm(60).tpm(20_000)];
/// let acme = Profile::custom(Rules::new("acme").quotas(QUOTAS))?;
/// assert_eq!(acme.quotas()[0].quota()?.limits().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DefaultQuota {
    /// The models: a name or a glob (`*` any text, `?` one character).
    pub pattern: &'static str,
    /// The day or month in which the source had these numbers, as `2026-02-14` or `2026-02`.
    pub as_of: &'static str,
    /// The page that states the numbers; empty if unknown.
    pub source: &'static str,
    #[serde(rename = "limits")]
    pub(super) amounts: Amounts,
}

impl DefaultQuota {
    /// Returns a quota without limits, for the models that a pattern matches, with the day or month in
    /// which its source had these numbers.
    pub const fn new(pattern: &'static str, as_of: &'static str) -> Self {
        Self { pattern, as_of, source: "", amounts: Amounts::NONE }
    }

    /// Sets [`source`](Self#structfield.source).
    #[must_use]
    pub const fn source(self, source: &'static str) -> Self {
        Self { source, ..self }
    }

    /// Limits requests in flight.
    #[must_use]
    pub const fn concurrency(self, amount: u64) -> Self {
        Self { amounts: Amounts { concurrency: Some(amount), ..self.amounts }, ..self }
    }

    /// Limits requests per second.
    #[must_use]
    pub const fn rps(self, amount: u64) -> Self {
        Self { amounts: Amounts { rps: Some(amount), ..self.amounts }, ..self }
    }

    /// Limits requests per minute.
    #[must_use]
    pub const fn rpm(self, amount: u64) -> Self {
        Self { amounts: Amounts { rpm: Some(amount), ..self.amounts }, ..self }
    }

    /// Limits tokens per minute.
    #[must_use]
    pub const fn tpm(self, amount: u64) -> Self {
        Self { amounts: Amounts { tpm: Some(amount), ..self.amounts }, ..self }
    }

    /// Limits input tokens per minute.
    #[must_use]
    pub const fn itpm(self, amount: u64) -> Self {
        Self { amounts: Amounts { itpm: Some(amount), ..self.amounts }, ..self }
    }

    /// Limits output tokens per minute.
    #[must_use]
    pub const fn otpm(self, amount: u64) -> Self {
        Self { amounts: Amounts { otpm: Some(amount), ..self.amounts }, ..self }
    }

    /// Limits requests per day: within any 24 hours, unless a [zone](Self::zone) is set.
    #[must_use]
    pub const fn rpd(self, amount: u64) -> Self {
        Self { amounts: Amounts { rpd: Some(amount), ..self.amounts }, ..self }
    }

    /// Limits tokens per day: within any 24 hours.
    #[must_use]
    pub const fn tpd(self, amount: u64) -> Self {
        Self { amounts: Amounts { tpd: Some(amount), ..self.amounts }, ..self }
    }

    /// Limits [images](crate::Unit::Images) per minute.
    #[must_use]
    pub const fn images_per_minute(self, amount: u64) -> Self {
        Self { amounts: Amounts { images_per_minute: Some(amount), ..self.amounts }, ..self }
    }

    /// Limits [inputs](crate::Unit::Inputs) of embeddings per minute.
    #[must_use]
    pub const fn inputs_per_minute(self, amount: u64) -> Self {
        Self { amounts: Amounts { inputs_per_minute: Some(amount), ..self.amounts }, ..self }
    }

    /// Sets the time zone at whose midnight the requests per day reset: `America/Los_Angeles`.
    #[must_use]
    pub const fn zone(self, zone: &'static str) -> Self {
        Self { amounts: Amounts { zone: Some(zone), ..self.amounts }, ..self }
    }

    /// Makes all models that the pattern matches share one set of buckets.
    #[must_use]
    pub const fn shared(self) -> Self {
        Self { amounts: Amounts { shared: true, ..self.amounts }, ..self }
    }

    /// Returns the limits.
    ///
    /// # Errors
    /// [`UnknownZone`] if the time zone isn't known: without the feature `zones`, any but UTC.
    pub fn quota(&self) -> Result<Quota, UnknownZone> {
        self.amounts.quota()
    }

    /// Returns the number of days since [`as_of`](Self#structfield.as_of), or since the first day of its
    /// month; `None` if it isn't a date.
    ///
    /// ```
    /// use paceline_limiter::Timestamp;
    /// use paceline_provider::DefaultQuota;
    /// let now = Timestamp::from_nanos(1_700_000_000 * 1_000_000_000);
    /// assert_eq!(DefaultQuota::new("acme-large", "2023-11-04").age_days(now), Some(10));
    /// ```
    pub fn age_days(&self, now: Timestamp) -> Option<u64> {
        let date: Date = match self.as_of.len() {
            7 => format!("{}-01", self.as_of).parse().ok()?,
            _ => self.as_of.parse().ok()?,
        };
        let since_epoch = date.duration_since(date::EPOCH.date());
        let days = u64::try_from(since_epoch.as_hours() / 24).ok()?;
        Some((now.as_nanos() / NANOS_PER_DAY).saturating_sub(days))
    }
}

const NANOS_PER_DAY: u64 = 86_400 * 1_000_000_000;

impl fmt::Debug for DefaultQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultQuota")
            .field("pattern", &self.pattern)
            .field("as_of", &self.as_of)
            .field("source", &self.source)
            .field("quota", &self.quota())
            .finish()
    }
}

/// The built-in quotas of one provider.
pub(super) struct Defaults {
    provider: &'static str,
    /// The accounts that have them.
    pub(super) tier: &'static str,
    pub(super) quotas: Vec<DefaultQuota>,
}

impl Defaults {
    /// Returns the defaults of the provider of this name, if it has any.
    pub(super) fn of(provider: &str) -> Option<&'static Self> {
        DEFAULTS.iter().find(|defaults| defaults.provider == provider)
    }
}

impl From<Section> for Defaults {
    fn from(section: Section) -> Self {
        let Section { provider, tier, quotas } = section;
        let quotas = quotas.iter().flat_map(QuotaRow::quotas).collect();
        Self { provider, tier, quotas }
    }
}

/// The limits of one quota; an absent amount is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Amounts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) concurrency: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rpm: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tpm: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) itpm: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) otpm: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rpd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tpd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) images_per_minute: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inputs_per_minute: Option<u64>,
    /// The time zone at whose midnight the requests per day reset; without it a day is any 24 hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) zone: Option<&'static str>,
    /// True if all models that the pattern matches share these limits.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub(super) shared: bool,
}

impl Amounts {
    const NONE: Self = Self {
        concurrency: None,
        rps: None,
        rpm: None,
        tpm: None,
        itpm: None,
        otpm: None,
        rpd: None,
        tpd: None,
        images_per_minute: None,
        inputs_per_minute: None,
        zone: None,
        shared: false,
    };

    /// Returns the amounts in the order of the table's columns.
    pub(super) fn columns(&self) -> [Option<u64>; 10] {
        let Self { concurrency, rps, rpm, tpm, itpm, otpm, rpd, tpd, .. } = *self;
        let (images, inputs) = (self.images_per_minute, self.inputs_per_minute);
        [concurrency, rps, rpm, tpm, itpm, otpm, rpd, tpd, images, inputs]
    }

    fn quota(&self) -> Result<Quota, UnknownZone> {
        let amount = |amount: Option<u64>| amount.unwrap_or(0);
        let per_second = self.rps.and_then(|rps| Limit::per_second(Dimension::Requests, rps));
        let quota = Quota::new().concurrency(amount(self.concurrency)).limit(per_second);
        let quota = quota.rpm(amount(self.rpm)).tpm(amount(self.tpm));
        let quota = quota.itpm(amount(self.itpm)).otpm(amount(self.otpm));
        let quota = match self.zone {
            Some(zone) => {
                let day = Calendar::new(Period::Day, zone)?;
                quota.on_calendar(Dimension::Requests, amount(self.rpd), &day)
            }
            None => quota.rpd(amount(self.rpd)),
        };
        let per_minute = |unit: Unit, amount: Option<u64>| {
            amount.and_then(|amount| Limit::per_minute(unit.dimension(), amount))
        };
        let quota = quota
            .tpd(amount(self.tpd))
            .limit(per_minute(Unit::Images, self.images_per_minute))
            .limit(per_minute(Unit::Inputs, self.inputs_per_minute));
        Ok(if self.shared { quota.shared() } else { quota })
    }
}

/// The quotas of a provider in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    provider: &'static str,
    tier: &'static str,
    quotas: Vec<QuotaRow>,
}

/// A row of the file: the quota of each of its patterns.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotaRow {
    patterns: Vec<&'static str>,
    limits: Amounts,
    as_of: &'static str,
    source: &'static str,
}

impl QuotaRow {
    fn quotas(&self) -> impl Iterator<Item = DefaultQuota> {
        let Self { patterns, limits: amounts, as_of, source } = self;
        patterns.iter().map(|pattern| DefaultQuota { pattern, as_of, source, amounts: *amounts })
    }
}

/// Read once, when the first limiter is built.
static DEFAULTS: LazyLock<Vec<Defaults>> = LazyLock::new(|| {
    let sections: Vec<Section> =
        serde_json::from_str(include_str!("quotas.json")).expect("the embedded file is tested");
    sections.into_iter().map(Defaults::from).collect()
});

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::Profile;

    #[test]
    fn section_names_are_distinct_built_in_profiles() {
        let names: HashSet<_> = DEFAULTS.iter().map(|defaults| defaults.provider).collect();
        assert_eq!(names.len(), DEFAULTS.len(), "a provider has two sections");
        for name in names {
            assert_eq!(Profile::named(name).map(|profile| profile.name()), Some(name));
        }
    }

    #[test]
    fn rows_state_date_source_and_limits() {
        for Defaults { provider, tier, quotas } in &*DEFAULTS {
            assert!(!tier.is_empty() && !quotas.is_empty(), "{provider}");
            for quota in quotas {
                assert!(quota.age_days(Timestamp::UNIX_EPOCH) == Some(0), "{provider}: {quota:?}");
                assert!(!quota.source.is_empty(), "{provider}: {quota:?}");
                assert_ne!(
                    quota.amounts.columns(),
                    Amounts::NONE.columns(),
                    "{provider}: {quota:?}"
                );
            }
        }
    }

    #[test]
    fn age_counts_from_the_day_or_the_month() {
        // 2026-11-23, 13:00.
        let now = Timestamp::from_nanos(1_795_438_800 * 1_000_000_000);
        for (as_of, age) in [
            ("2026-11-23", Some(0)),
            ("2026-11-22", Some(1)),
            ("2026-08-25", Some(90)),
            ("2026-11", Some(22)),
            ("2027-01-01", Some(0)),
            ("2026-13", None),
            ("soon", None),
        ] {
            assert_eq!(DefaultQuota::new("m", as_of).age_days(now), age, "{as_of}");
        }
    }

    #[test]
    fn patterns_are_distinct() {
        let mut seen = HashSet::new();
        for quota in DEFAULTS.iter().flat_map(|defaults| &defaults.quotas) {
            assert!(!quota.pattern.is_empty() && seen.insert(quota.pattern), "{}", quota.pattern);
        }
    }

    #[test]
    fn amounts_become_limits_of_the_quota() {
        for quota in DEFAULTS.iter().flat_map(|defaults| &defaults.quotas) {
            let Amounts { rpd, zone, shared, .. } = quota.amounts;
            let stated: Vec<_> = quota.amounts.columns().into_iter().flatten().collect();
            let built = quota.quota().expect("the zone is known");
            let amounts: Vec<_> = built.limits().iter().map(|limit| limit.amount()).collect();
            assert_eq!(amounts, stated, "{}", quota.pattern);
            let calendar = built.limits().iter().find_map(|limit| limit.calendar());
            assert_eq!(calendar.map(Calendar::zone), zone, "{}", quota.pattern);
            assert_eq!(built.is_shared(), shared, "{}", quota.pattern);
            assert!(zone.is_none() || rpd.is_some(), "{}: a zone without a day", quota.pattern);
        }
    }
}
