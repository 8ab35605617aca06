use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::quota::{Calendar, Dimension, Period, Quota, UnknownZone};

/// A quota that an account of a provider has by default, in its lowest paid tier.
///
/// The built-in ones are in `src/provider/quotas.json`, with the month and the source of each
/// provider's; [`QuotaTable`](super::QuotaTable) shows them. Their patterns match only models whose
/// numbers are known: `gpt-4o*` would include `gpt-4o-mini`, and `gemini-2.5-pro-preview*` a speech
/// model.
///
/// ```
/// use tollgate::provider::{DefaultQuota, Profile, Rules};
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
    /// The month in which the numbers were true, as `2026-02`.
    #[serde(skip)]
    pub as_of: &'static str,
    #[serde(rename = "limits")]
    pub(super) amounts: Amounts,
}

impl DefaultQuota {
    /// Returns a quota without limits, for the models that a pattern matches, with the month in which
    /// its numbers are true.
    pub const fn new(pattern: &'static str, as_of: &'static str) -> Self {
        Self { pattern, as_of, amounts: Amounts::NONE }
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
}

impl fmt::Debug for DefaultQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultQuota")
            .field("pattern", &self.pattern)
            .field("as_of", &self.as_of)
            .field("quota", &self.quota())
            .finish()
    }
}

/// The built-in quotas of one provider.
pub(super) struct Defaults {
    provider: &'static str,
    pub(super) origin: Origin,
    pub(super) quotas: Vec<DefaultQuota>,
}

/// The source of the built-in quotas of a provider.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Origin {
    pub(super) as_of: &'static str,
    pub(super) tier: &'static str,
    pub(super) source: &'static str,
}

impl Defaults {
    /// Returns the defaults of the provider of this name, if it has any.
    pub(super) fn of(provider: &str) -> Option<&'static Self> {
        DEFAULTS.iter().find(|defaults| defaults.provider == provider)
    }
}

impl From<Section> for Defaults {
    fn from(section: Section) -> Self {
        let Section { provider, as_of, tier, source, quotas } = section;
        let dated =
            |QuotaFields { pattern, limits }| DefaultQuota { pattern, as_of, amounts: limits };
        let quotas = quotas.into_iter().map(dated).collect();
        Self { provider, origin: Origin { as_of, tier, source }, quotas }
    }
}

/// The limits of one quota; an absent amount is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Amounts {
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
    /// The time zone at whose midnight the requests per day reset; without it a day is any 24 hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) zone: Option<&'static str>,
    /// True if all models that the pattern matches share these limits.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub(super) shared: bool,
}

impl Amounts {
    const NONE: Self =
        Self { rpm: None, tpm: None, itpm: None, otpm: None, rpd: None, zone: None, shared: false };

    fn quota(&self) -> Result<Quota, UnknownZone> {
        let amount = |amount: Option<u64>| amount.unwrap_or(0);
        let quota = Quota::new().rpm(amount(self.rpm)).tpm(amount(self.tpm));
        let quota = quota.itpm(amount(self.itpm)).otpm(amount(self.otpm));
        let quota = match self.zone {
            Some(zone) => {
                let day = Calendar::new(Period::Day, zone)?;
                quota.on_calendar(Dimension::Requests, amount(self.rpd), &day)
            }
            None => quota.rpd(amount(self.rpd)),
        };
        Ok(if self.shared { quota.shared() } else { quota })
    }
}

/// The quotas of a provider in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    provider: &'static str,
    as_of: &'static str,
    tier: &'static str,
    source: &'static str,
    quotas: Vec<QuotaFields>,
}

/// A quota in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotaFields {
    pattern: &'static str,
    limits: Amounts,
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

    use super::super::Profile;
    use super::*;

    #[test]
    fn section_names_are_distinct_built_in_profiles() {
        let names: HashSet<_> = DEFAULTS.iter().map(|defaults| defaults.provider).collect();
        assert_eq!(names.len(), DEFAULTS.len(), "a provider has two sections");
        for name in names {
            assert_eq!(Profile::named(name).map(|profile| profile.name()), Some(name));
        }
    }

    #[test]
    fn sections_state_month_tier_source_and_quotas() {
        for Defaults { provider, origin, quotas } in &*DEFAULTS {
            let Origin { as_of, tier, source } = origin;
            let (year, month) = as_of.split_once('-').expect(provider);
            assert!(year.len() == 4 && year.parse::<u16>().is_ok(), "{provider}: {as_of}");
            assert!(
                (1..=12).contains(&month.parse::<u8>().expect(provider)),
                "{provider}: {as_of}"
            );
            assert!(month.len() == 2 && !tier.is_empty() && !source.is_empty(), "{provider}");
            assert!(!quotas.is_empty(), "{provider}");
        }
    }

    #[test]
    fn patterns_are_distinct() {
        let mut seen = HashSet::new();
        for quota in DEFAULTS.iter().flat_map(|defaults| &defaults.quotas) {
            assert!(!quota.pattern.is_empty() && seen.insert(quota.pattern), "{}", quota.pattern);
        }
    }

    #[cfg(feature = "zones")]
    #[test]
    fn amounts_become_limits_of_the_quota() {
        for quota in DEFAULTS.iter().flat_map(|defaults| &defaults.quotas) {
            let Amounts { rpm, tpm, itpm, otpm, rpd, zone, shared } = quota.amounts;
            let stated: Vec<_> = [rpm, tpm, itpm, otpm, rpd].into_iter().flatten().collect();
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
