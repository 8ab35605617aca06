use std::collections::BTreeMap;
use std::fmt;
use std::iter;

use comfy_table::CellAlignment::{Left, Right};
use comfy_table::Table;

use super::Explanation;
use super::full_buckets::FullBuckets;
use super::relative_errors::RelativeErrors;
use crate::terminal::{counted, plain_table};
use paceline::quota::Dimension;

/// A summary of explanations: exchanges by provider and class, and estimation errors.
///
/// The charge by the provider's rule is compared with the charge stated in headers, or with the missing part of
/// a full bucket; the input with the reported usage.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    providers: BTreeMap<&'static str, Provider>,
    full_buckets: FullBuckets,
    skipped: u64,
}

#[derive(Debug, Clone, Default)]
struct Provider {
    classes: BTreeMap<&'static str, u64>,
    charge: RelativeErrors,
    input: RelativeErrors,
}

impl Summary {
    /// Adds an explanation.
    pub fn add(&mut self, explanation: &Explanation) {
        let provider = self.providers.entry(explanation.profile.name()).or_default();
        *provider.classes.entry(explanation.class_name()).or_default() += 1;
        let cost = &explanation.estimate.cost;
        let full_buckets = self.full_buckets.is_full_for(explanation);
        let missing =
            || explanation.missing_tokens().filter(|missing| full_buckets && *missing > 0);
        let charged = explanation.charged.or_else(missing);
        if let (Some(charged), Some(own)) = (charged, explanation.charged_tokens()) {
            provider.charge.record(own, charged);
        }
        if let Some(usage) = explanation.usage {
            provider.input.record(cost.amount(&Dimension::InputTokens), usage.input);
        }
    }

    /// Counts an entry that isn't an exchange with a provider.
    pub fn skip(&mut self) {
        self.skipped += 1;
    }

    /// Returns the number of exchanges.
    pub fn exchanges(&self) -> u64 {
        self.providers.values().map(Provider::exchanges).sum()
    }

    fn class_table(&self) -> Table {
        let header = ["provider", "ok", "transient", "until_reset", "terminal", "in_band"];
        let rows = self.providers.iter().map(|(name, provider)| {
            let [ok, transient, until_reset, terminal, in_band] = provider.class_counts();
            [(*name).to_owned(), ok, transient, until_reset, terminal, in_band]
        });
        let rows = iter::once(header.map(str::to_owned)).chain(rows);
        plain_table([Left, Right, Right, Right, Right, Right], rows)
    }

    fn error_table(&self) -> Table {
        let header = ["provider", "charges", "median", "p90", "inputs", "median", "p90"];
        let rows = self.providers.iter().map(|(name, provider)| {
            let [charges, charge_median, charge_p90] = provider.charge.summary();
            let [inputs, input_median, input_p90] = provider.input.summary();
            [
                (*name).to_owned(),
                charges,
                charge_median,
                charge_p90,
                inputs,
                input_median,
                input_p90,
            ]
        });
        let rows = iter::once(header.map(str::to_owned)).chain(rows);
        plain_table([Left, Right, Right, Right, Right, Right, Right], rows)
    }
}

impl Provider {
    fn class_counts(&self) -> [String; 5] {
        CLASSES.map(|class| self.classes.get(class).unwrap_or(&0).to_string())
    }

    fn exchanges(&self) -> u64 {
        self.classes.values().sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&counted(self.exchanges(), "exchange"))?;
        if self.skipped > 0 {
            let skipped = if self.skipped == 1 { "entry" } else { "entries" };
            write!(f, "; {} other {skipped} skipped: preflights and parts of pages", self.skipped)?;
        }
        if self.providers.is_empty() {
            return Ok(());
        }
        write!(f, "\n\n{}", self.class_table().trim_fmt())?;
        write!(f, "\n\n{ERRORS_TITLE}\n{}", self.error_table().trim_fmt())
    }
}

const CLASSES: [&str; 5] = ["ok", "transient", "until_reset", "terminal", "in_band"];

const ERRORS_TITLE: &str =
    "Estimation errors: charges compared with headers, inputs compared with usage";
