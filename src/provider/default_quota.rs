use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::quota::{Calendar, Dimension, Period, Quota, UnknownZone};

/// A built-in quota: what the provider gives to an account of its lowest paid tier.
///
/// All of them stand in one file, `src/provider/quotas.json`, with the month and the source of each
/// provider's; [`QuotaTable`](super::QuotaTable) shows them. Patterns there are as narrow as the
/// numbers are known: `gpt-4o*` would take `gpt-4o-mini` in, `gemini-2.5-pro-preview*` a model that
/// speaks.
#[derive(Clone, Copy, Serialize)]
pub struct DefaultQuota {
    /// The models it is for: a name or a glob (`*` any text, `?` one character).
    pub pattern: &'static str,
    /// The month in which it was true, as `2026-02`.
    #[serde(skip)]
    pub as_of: &'static str,
    #[serde(rename = "limits")]
    pub(super) amounts: Amounts,
}

impl DefaultQuota {
    /// The limits.
    ///
    /// # Errors
    /// [`UnknownZone`] if its days end in a time zone that isn't known: without the feature `zones`
    /// that is any but UTC.
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

/// Where the built-in quotas of a provider come from.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Origin {
    pub(super) as_of: &'static str,
    pub(super) tier: &'static str,
    pub(super) source: &'static str,
}

impl Defaults {
    /// Those of the provider of this name, if it has any.
    pub(super) fn of(provider: &str) -> Option<&'static Self> {
        DEFAULTS.iter().find(|defaults| defaults.provider == provider)
    }
}

impl From<Section> for Defaults {
    fn from(section: Section) -> Self {
        let Section { provider, as_of, tier, source, quotas } = section;
        let dated = |Row { pattern, limits }| DefaultQuota { pattern, as_of, amounts: limits };
        let quotas = quotas.into_iter().map(dated).collect();
        Self { provider, origin: Origin { as_of, tier, source }, quotas }
    }
}

/// The limits of one row; what is absent is unlimited.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
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
    /// Where the requests' days end; those of any 24 hours without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) zone: Option<&'static str>,
    /// Whether all models that the pattern matches have these limits together.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub(super) shared: bool,
}

impl Amounts {
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

/// A provider in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    provider: &'static str,
    as_of: &'static str,
    tier: &'static str,
    source: &'static str,
    quotas: Vec<Row>,
}

/// A row in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
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
    fn every_section_is_of_a_profile_that_there_is_and_of_another_one() {
        let names: HashSet<_> = DEFAULTS.iter().map(|defaults| defaults.provider).collect();
        assert_eq!(names.len(), DEFAULTS.len(), "a provider stands there twice");
        for name in names {
            assert_eq!(Profile::named(name).map(|profile| profile.name()), Some(name));
        }
    }

    #[test]
    fn every_section_has_a_month_a_tier_a_source_and_rows() {
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
    fn no_pattern_is_there_twice() {
        let mut seen = HashSet::new();
        for quota in DEFAULTS.iter().flat_map(|defaults| &defaults.quotas) {
            assert!(!quota.pattern.is_empty() && seen.insert(quota.pattern), "{}", quota.pattern);
        }
    }

    #[cfg(feature = "zones")]
    #[test]
    fn every_amount_of_a_row_is_a_limit_of_its_quota() {
        for quota in DEFAULTS.iter().flat_map(|defaults| &defaults.quotas) {
            let Amounts { rpm, tpm, itpm, otpm, rpd, zone, shared } = quota.amounts;
            let stated: Vec<_> = [rpm, tpm, itpm, otpm, rpd].into_iter().flatten().collect();
            let built = quota.quota().expect("a zone that is known");
            let amounts: Vec<_> = built.limits().iter().map(|limit| limit.amount()).collect();
            assert_eq!(amounts, stated, "{}", quota.pattern);
            let calendar = built.limits().iter().find_map(|limit| limit.calendar());
            assert_eq!(calendar.map(Calendar::zone), zone, "{}", quota.pattern);
            assert_eq!(built.is_shared(), shared, "{}", quota.pattern);
            assert!(zone.is_none() || rpd.is_some(), "{}: a zone of no day", quota.pattern);
        }
    }
}
