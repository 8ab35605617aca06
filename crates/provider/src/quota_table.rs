use std::fmt;

use paceline_limiter::Timestamp;
use serde::Serialize;

use crate::default_quota::DefaultQuota;
use crate::profile::Profile;

/// A table of providers and their built-in quotas, which displays as text and serializes.
///
/// Providers without built-in quotas are included, with the algorithm of their limits.
///
/// ```
/// use paceline_provider::{GEMINI, OPENROUTER, QuotaTable};
/// let text = QuotaTable::of(&[GEMINI, OPENROUTER]).to_string();
/// let free = text.lines().find(|line| line.contains("*/*:free")).expect("a row of OpenRouter's");
/// let cells: Vec<&str> = free.split_whitespace().collect();
/// assert_eq!(cells[..2], ["openrouter", "*/*:free"]);
/// assert!(text.ends_with("openrouter: an account that has bought less than 10 credits"));
/// ```
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct QuotaTable {
    providers: Vec<ProviderQuotas>,
}

impl QuotaTable {
    /// Returns the table of these providers, in this order.
    pub fn of(profiles: &[Profile]) -> Self {
        Self { providers: profiles.iter().map(ProviderQuotas::of).collect() }
    }

    /// Adds the age of each quota.
    #[must_use]
    pub fn with_ages(mut self, now: Timestamp) -> Self {
        let rows = self.providers.iter_mut().flat_map(|provider| &mut provider.quotas);
        rows.for_each(|row| row.age_days = row.quota.age_days(now));
        self
    }

    /// Returns a warning about the quotas that are older than 90 days, if there are any and the table
    /// has [ages](Self::with_ages).
    pub fn warning(&self) -> Option<String> {
        let is_old = |row: &&QuotaRow| row.age_days.is_some_and(|days| days > MAX_AGE_DAYS);
        let old_of = |provider: &ProviderQuotas| provider.quotas.iter().filter(is_old).count();
        let old: usize = self.providers.iter().map(old_of).sum();
        let all: usize = self.providers.iter().map(|provider| provider.quotas.len()).sum();
        let named = self.providers.iter().filter(|provider| old_of(provider) > 0);
        let named: Vec<_> = named.map(|provider| provider.provider).collect();
        (old > 0).then(|| {
            format!(
                "{old} of {all} built-in quotas are older than {MAX_AGE_DAYS} days ({}); check them at \
                 their sources, or set the quotas of your account",
                named.join(", ")
            )
        })
    }
}

/// The age in days above which a quota should be checked.
const MAX_AGE_DAYS: u64 = 90;

impl fmt::Display for QuotaTable {
    /// Writes aligned columns with one quota per line, then the tier of each provider; `-` means no limit.
    /// There is no trailing line feed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<Cells> = self.providers.iter().flat_map(ProviderQuotas::lines).collect();
        let widths = widths(&lines);
        write_line(f, &HEADINGS.map(str::to_owned), &widths)?;
        for line in &lines {
            f.write_str("\n")?;
            write_line(f, line, &widths)?;
        }
        let mut tiers = self.providers.iter().filter_map(ProviderQuotas::accounts).peekable();
        if tiers.peek().is_some() {
            f.write_str("\n")?;
        }
        tiers.try_for_each(|tier| write!(f, "\n{tier}"))
    }
}

/// One provider in the table.
#[derive(Debug, Clone, Serialize)]
struct ProviderQuotas {
    provider: &'static str,
    /// The profile that a custom one is like.
    #[serde(skip_serializing_if = "Option::is_none")]
    like: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_url: Option<&'static str>,
    /// The name in configuration.
    algorithm: &'static str,
    /// The accounts that have these quotas.
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<&'static str>,
    quotas: Vec<QuotaRow>,
}

/// One quota in the table.
#[derive(Debug, Clone, Serialize)]
struct QuotaRow {
    #[serde(flatten)]
    quota: DefaultQuota,
    #[serde(skip_serializing_if = "Option::is_none")]
    age_days: Option<u64>,
}

impl ProviderQuotas {
    fn of(profile: &Profile) -> Self {
        let row = |quota: &DefaultQuota| QuotaRow { quota: *quota, age_days: None };
        Self {
            provider: profile.name(),
            like: Some(profile.built_in().name()).filter(|_| *profile != profile.built_in()),
            base_url: profile.base_url(),
            algorithm: profile.algorithm().as_str(),
            tier: profile.defaults().map(|defaults| defaults.tier),
            quotas: profile.quotas().iter().map(row).collect(),
        }
    }

    fn lines(&self) -> Vec<Cells> {
        if self.quotas.is_empty() {
            return vec![self.line("none built in", Default::default(), ["", "", ""])];
        }
        self.quotas.iter().map(|row| self.quota(row)).collect()
    }

    fn quota(&self, QuotaRow { quota, age_days }: &QuotaRow) -> Cells {
        let sharing = if quota.amounts.shared { " (shared)" } else { "" };
        let amounts = quota.amounts.columns().map(amount);
        let as_of = match age_days {
            Some(days) => format!("{} ({days} days)", quota.as_of),
            None => quota.as_of.to_owned(),
        };
        let zone = quota.amounts.zone.unwrap_or_default();
        self.line(&format!("{}{sharing}", quota.pattern), amounts, [zone, &as_of, quota.source])
    }

    fn line(&self, models: &str, amounts: [String; 10], texts: [&str; 3]) -> Cells {
        let [concurrency, rps, rpm, tpm, itpm, otpm, rpd, tpd, images, inputs] = amounts;
        let [zone, as_of, source] = texts;
        let [provider, models, zone, algorithm, as_of, source] =
            [self.provider, models, zone, self.algorithm, as_of, source].map(str::to_owned);
        [
            provider,
            models,
            concurrency,
            rps,
            rpm,
            tpm,
            itpm,
            otpm,
            rpd,
            tpd,
            images,
            inputs,
            zone,
            algorithm,
            as_of,
            source,
        ]
    }

    fn accounts(&self) -> Option<String> {
        Some(format!("{}: {}", self.provider, self.tier?))
    }
}

/// The cells of a line.
type Cells = [String; HEADINGS.len()];

const HEADINGS: [&str; 16] = [
    "PROVIDER",
    "MODELS",
    "IN FLIGHT",
    "RPS",
    "RPM",
    "TPM",
    "ITPM",
    "OTPM",
    "RPD",
    "TPD",
    "IMAGES/MIN",
    "INPUTS/MIN",
    "UNTIL MIDNIGHT IN",
    "ALGORITHM",
    "AS OF",
    "SOURCE",
];

const NO_LIMIT: &str = "-";

/// Columns of numbers, which are right-aligned.
const AMOUNTS: core::ops::Range<usize> = 2..12;

/// Returns the width of each column; `None` for an empty one.
fn widths(lines: &[Cells]) -> [Option<usize>; HEADINGS.len()] {
    core::array::from_fn(|at| {
        let cells = lines.iter().map(|line| &*line[at]);
        let has_content = cells.clone().any(|cell| !matches!(cell, "" | NO_LIMIT));
        let widest = |longest: usize, cell: &str| cell.len().max(longest);
        has_content.then(|| cells.fold(HEADINGS[at].len(), widest))
    })
}

fn write_line(
    f: &mut fmt::Formatter<'_>,
    cells: &Cells,
    widths: &[Option<usize>; HEADINGS.len()],
) -> fmt::Result {
    let mut line = String::new();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let Some(width) = *width else { continue };
        if AMOUNTS.contains(&at) {
            line.push_str(&format!("{cell:>width$}  "));
        } else {
            line.push_str(&format!("{cell:<width$}  "));
        }
    }
    f.write_str(line.trim_end())
}

/// Formats an amount, with commas between thousands.
fn amount(amount: Option<u64>) -> String {
    let Some(amount) = amount else { return NO_LIMIT.to_owned() };
    let digits = amount.to_string();
    let comma = |at: usize| (at > 0 && (digits.len() - at).is_multiple_of(3)).then_some(',');
    digits
        .chars()
        .enumerate()
        .flat_map(|(at, digit)| comma(at).into_iter().chain([digit]))
        .collect()
}
