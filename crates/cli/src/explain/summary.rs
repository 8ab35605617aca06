use std::collections::BTreeMap;
use std::fmt;

use super::Explanation;
use super::fresh::Fresh;
use super::spread::Spread;
use tollgate::quota::Dimension;

/// What many explanations come to: exchanges by provider and class, and how far estimates were off.
///
/// The charge is compared with what the headers say was charged, or is missing from the token limit
/// where the bucket was full before; the input with the usage that the response states.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    providers: BTreeMap<&'static str, Provider>,
    fresh: Fresh,
}

#[derive(Debug, Clone, Default)]
struct Provider {
    classes: BTreeMap<&'static str, u64>,
    charge: Spread,
    input: Spread,
}

impl Summary {
    /// Counts one more.
    pub fn add(&mut self, explanation: &Explanation) {
        let provider = self.providers.entry(explanation.profile.name()).or_default();
        *provider.classes.entry(explanation.class_name()).or_default() += 1;
        let cost = &explanation.estimate.cost;
        let fresh = self.fresh.admits(explanation);
        let missing = || explanation.missing_tokens().filter(|missing| fresh && *missing > 0);
        let charged = explanation.charged.or_else(missing);
        if let Some(charged) = charged {
            provider.charge.add(cost.amount(&Dimension::Tokens), charged);
        }
        if let Some(usage) = explanation.usage {
            provider.input.add(cost.amount(&Dimension::InputTokens), usage.input);
        }
    }

    /// How many were counted.
    pub fn exchanges(&self) -> u64 {
        self.providers.values().map(Provider::exchanges).sum()
    }
}

impl Provider {
    fn exchanges(&self) -> u64 {
        self.classes.values().sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exchanges = self.exchanges();
        let s = if exchanges == 1 { "" } else { "s" };
        write!(f, "{exchanges} exchange{s}")?;
        if self.providers.is_empty() {
            return Ok(());
        }
        write!(f, "\n\n{:<18}", "provider")?;
        CLASSES.iter().try_for_each(|class| write!(f, "{class:>12}"))?;
        for (name, provider) in &self.providers {
            write!(f, "\n{name:<18}")?;
            for class in CLASSES {
                write!(f, "{:>12}", provider.classes.get(class).unwrap_or(&0))?;
            }
        }
        write!(f, "\n\n{OFF}")?;
        for (name, provider) in &self.providers {
            write!(f, "\n{name:<18}{}   {}", provider.charge, provider.input)?;
        }
        Ok(())
    }
}

const CLASSES: [&str; 5] = ["ok", "transient", "until_reset", "terminal", "in_band"];

const OFF: &str = "\
Estimation error
                  charge, against headers        input, against usage
provider            known    median       p90     known    median       p90";
