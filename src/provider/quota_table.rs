use std::fmt;

use serde::Serialize;

use super::default_quota::{Amounts, DefaultQuota, Origin};
use super::profile::Profile;

/// A table of providers and their built-in quotas, which displays as text and serializes.
///
/// Providers without built-in quotas are included, with the algorithm of their limits.
///
/// ```
/// use tollgate::provider::{GEMINI, OPENROUTER, QuotaTable};
/// let text = QuotaTable::of(&[GEMINI, OPENROUTER]).to_string();
/// let free = text.lines().find(|line| line.contains("*:free")).expect("a row of OpenRouter's");
/// let cells: Vec<&str> = free.split_whitespace().collect();
/// assert_eq!(cells[..2], ["openrouter", "*:free"]);
/// assert!(text.contains("gemini: tier 1, 2026-02, by go-ratelimit's table of default quotas"));
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
}

impl fmt::Display for QuotaTable {
    /// Writes aligned columns with one quota per line, then the sources; `-` means no limit. There is no
    /// trailing line feed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<Cells> = self.providers.iter().flat_map(ProviderQuotas::lines).collect();
        let widths = widths(&lines);
        write_line(f, &HEADINGS.map(str::to_owned), &widths)?;
        for line in &lines {
            f.write_str("\n")?;
            write_line(f, line, &widths)?;
        }
        let mut sources = self.providers.iter().filter_map(ProviderQuotas::source).peekable();
        if sources.peek().is_some() {
            f.write_str("\n")?;
        }
        sources.try_for_each(|source| write!(f, "\n{source}"))
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
    #[serde(flatten)]
    origin: Option<Origin>,
    quotas: &'static [DefaultQuota],
}

impl ProviderQuotas {
    fn of(profile: &Profile) -> Self {
        Self {
            provider: profile.name(),
            like: Some(profile.built_in().name()).filter(|_| *profile != profile.built_in()),
            base_url: profile.base_url(),
            algorithm: profile.algorithm().as_str(),
            origin: profile.defaults().map(|defaults| defaults.origin),
            quotas: profile.quotas(),
        }
    }

    fn lines(&self) -> Vec<Cells> {
        if self.quotas.is_empty() {
            return vec![self.line("none built in", Default::default(), "")];
        }
        self.quotas.iter().map(|quota| self.quota(quota)).collect()
    }

    fn quota(&self, quota: &DefaultQuota) -> Cells {
        let Amounts { rpm, tpm, itpm, otpm, rpd, zone, shared } = quota.amounts;
        let sharing = if shared { " (shared)" } else { "" };
        let amounts = [rpm, tpm, itpm, otpm, rpd].map(amount);
        self.line(&format!("{}{sharing}", quota.pattern), amounts, zone.unwrap_or_default())
    }

    fn line(&self, models: &str, amounts: [String; 5], zone: &str) -> Cells {
        let [rpm, tpm, itpm, otpm, rpd] = amounts;
        let as_of = self.origin.map_or("", |origin| origin.as_of);
        let [provider, models, zone, algorithm, as_of] =
            [self.provider, models, zone, self.algorithm, as_of].map(str::to_owned);
        [provider, models, rpm, tpm, itpm, otpm, rpd, zone, algorithm, as_of]
    }

    fn source(&self) -> Option<String> {
        let Origin { as_of, tier, source } = self.origin?;
        Some(format!("{}: {tier}, {as_of}, by {source}", self.provider))
    }
}

/// The cells of a line.
type Cells = [String; HEADINGS.len()];

const HEADINGS: [&str; 10] = [
    "PROVIDER",
    "MODELS",
    "RPM",
    "TPM",
    "ITPM",
    "OTPM",
    "RPD",
    "UNTIL MIDNIGHT IN",
    "ALGORITHM",
    "AS OF",
];

const NO_LIMIT: &str = "-";

/// Columns of numbers, which are right-aligned.
const AMOUNTS: core::ops::Range<usize> = 2..7;

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
