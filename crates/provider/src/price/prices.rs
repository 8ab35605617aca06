use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use super::model_price::Price;
use super::row::Row;
use crate::Profile;

/// The prices of models, by provider.
///
/// The [built-in](Self::built_in) ones are an excerpt of LiteLLM's table, `src/price/prices.json`; a file in the
/// format of that table ([`from_litellm`](Self::from_litellm)) or single prices ([`with`](Self::with)) take
/// precedence.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Prices {
    by_name: HashMap<Box<str>, Arc<Price>>,
    /// The prices of models without one here.
    fallback: Option<&'static Prices>,
}

impl Prices {
    /// The version and the date of the table of the built-in prices.
    pub const BUILT_IN_SOURCE: &'static str = "LiteLLM 1.109.1 (2026-11)";

    /// Returns the built-in prices.
    pub fn built_in() -> Self {
        Self { by_name: HashMap::new(), fallback: Some(&BUILT_IN) }
    }

    /// Returns prices without any.
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads prices from the text of a file in LiteLLM's format: a JSON object of models, with
    /// `input_cost_per_token` and others in dollars. Models that are not priced by token are left out. The
    /// built-in prices apply to models that the file doesn't name.
    ///
    /// ```
    /// use paceline_provider::price::Prices;
    /// use paceline_provider::OPENAI;
    /// let file = r#"{"my-model": {"input_cost_per_token": 1e-06, "output_cost_per_token": 4e-06}}"#;
    /// let prices = Prices::from_litellm(file)?;
    /// assert_eq!(prices.of(OPENAI, "my-model").map(|price| price.most(1_000, 500)), Some(3_000));
    /// # Ok::<(), paceline_provider::price::InvalidPrices>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidPrices`] if the text isn't a JSON object of objects, or prices no model by token.
    pub fn from_litellm(text: &str) -> Result<Self, InvalidPrices> {
        let own = read(text)?;
        Ok(Self { by_name: own, ..Self::built_in() })
    }

    /// Sets the price of a model: its name as requests state it, or with the provider before it
    /// (`groq/llama-3.3-70b`). It also applies to the name with a date (`NAME-2026-04-23`), unless that has a price
    /// of its own here, and takes precedence over all built-in prices of the model.
    ///
    /// The price in a mode, such as `priority` or `fast`, has the mode after the name: `claude-opus-5:fast`. See
    /// [`of_mode`](Self::of_mode).
    #[must_use]
    pub fn with(mut self, model: &str, price: Price) -> Self {
        self.by_name.insert(model.into(), Arc::new(price));
        self
    }

    /// Returns the price of a provider's model. A date at the end of the model's name is ignored if the name
    /// with it has no price.
    pub fn of(&self, provider: Profile, model: &str) -> Option<Arc<Price>> {
        self.of_mode(provider, model, "")
    }

    /// Returns the price of a provider's model in a mode; the standard one if `mode` is empty. `flex` costs at most
    /// the standard price, which applies if it has no price of its own; other modes then have none.
    ///
    /// ```
    /// use paceline_provider::price::{Price, Prices};
    /// use paceline_provider::OPENAI;
    /// use paceline_limiter::quota::Usd;
    /// let price = Price::per_million(Usd::from_dollars(1), Usd::from_dollars(4));
    /// let prices = Prices::built_in().with("gpt-4o", price.clone());
    /// assert_eq!(*prices.of_mode(OPENAI, "gpt-4o", "flex").unwrap(), *prices.of(OPENAI, "gpt-4o").unwrap());
    /// assert_eq!(prices.of_mode(OPENAI, "gpt-4o", "priority"), None);
    /// assert!(prices.with("gpt-4o:priority", price).of_mode(OPENAI, "gpt-4o", "priority").is_some());
    /// ```
    pub fn of_mode(&self, provider: Profile, model: &str, mode: &str) -> Option<Arc<Price>> {
        let name = provider.built_in().name();
        let prefix = prefix(name);
        // LiteLLM has another name for some providers.
        let other = (prefix != name).then_some(name);
        let with_prefix = |model: &str| {
            let named = [Some(prefix), other].into_iter().flatten();
            let named = named.map(|provider| format!("{provider}/{model}"));
            named.chain([model.to_owned()]).collect::<Vec<_>>()
        };
        let undated = without_date(model).map(with_prefix);
        self.find(
            &[with_prefix(model)].into_iter().chain(undated).flatten().collect::<Vec<_>>(),
            mode,
        )
    }

    /// Returns `true` if a name with a price is that of a model of the provider and fulfils a condition. Names have
    /// their mode, if they are the price of one.
    pub(crate) fn any_model(&self, provider: Profile, is_meant: &dyn Fn(&str) -> bool) -> bool {
        let name = provider.built_in().name();
        let own = |priced: &str| {
            let rest = |start: &str| priced.strip_prefix(start)?.strip_prefix('/');
            is_meant(priced) || [prefix(name), name].into_iter().filter_map(rest).any(is_meant)
        };
        self.by_name.keys().any(|name| own(name))
            || self.fallback.is_some_and(|fallback| fallback.any_model(provider, is_meant))
    }

    /// Returns the price in a mode of the first of these names that has one: here, or else in the fallback.
    fn find(&self, names: &[String], mode: &str) -> Option<Arc<Price>> {
        let find = |suffix: &str| {
            names.iter().find_map(|name| self.by_name.get(&*format!("{name}{suffix}")))
        };
        let of_mode = if mode.is_empty() { None } else { find(&format!(":{mode}")) };
        let Some(own) = of_mode.or_else(|| find("")) else {
            return self.fallback?.find(names, mode);
        };
        if of_mode.is_none() && !["", FLEX].contains(&mode) {
            return None;
        }
        let other = self.fallback.filter(|_| matches!(own.bounds(), (None, _) | (_, None)));
        let other = other.and_then(|other| other.find(names, ""));
        Some(match other {
            Some(other) => Arc::new(Price::clone(own).bounded_by(&other)),
            None => Arc::clone(own),
        })
    }
}

impl fmt::Debug for Prices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prices").field("models", &self.by_name.len()).finish_non_exhaustive()
    }
}

/// The error of a file of prices that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidPrices {
    /// The reason.
    pub reason: String,
}

impl fmt::Display for InvalidPrices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason } = self;
        write!(f, "no prices in LiteLLM's format (model_prices_and_context_window.json): {reason}")
    }
}

impl std::error::Error for InvalidPrices {}

fn read(text: &str) -> Result<HashMap<Box<str>, Arc<Price>>, InvalidPrices> {
    let rows: HashMap<Box<str>, Row> =
        serde_json::from_str(text).map_err(|error| InvalidPrices { reason: error.to_string() })?;
    let mut priced = HashMap::with_capacity(rows.len());
    for (name, row) in &rows {
        for (mode, price) in row.prices() {
            let name = if mode.is_empty() { name.clone() } else { format!("{name}:{mode}").into() };
            priced.insert(name, Arc::new(price));
        }
    }
    match priced.is_empty() {
        true => Err(InvalidPrices { reason: "no model has an `input_cost_per_token`".to_owned() }),
        false => Ok(priced),
    }
}

/// The mode that is never dearer than the standard one.
const FLEX: &str = "flex";

/// Returns the provider's name in LiteLLM's table, before the slash of a model's name.
fn prefix(provider: &str) -> &str {
    match provider {
        "together" => "together_ai",
        "vertex" | "vertex-anthropic" => "vertex_ai",
        "bedrock-mantle" => "bedrock_mantle",
        other => other,
    }
}

/// Returns a model's name without the date at its end: `-2026-04-23`, `-20260423` or `@20260423`.
fn without_date(model: &str) -> Option<&str> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_date = |date: &str| match date.len() {
        9 => digits(&date[1..]),
        11 => {
            date.split('-').skip(1).map(str::len).eq([4, 2, 2])
                && digits(&date[1..].replace('-', ""))
        }
        _ => false,
    };
    [9, 11].into_iter().find_map(|length| {
        let (name, date) = model.split_at_checked(model.len().checked_sub(length)?)?;
        (date.starts_with(['-', '@']) && is_date(date)).then_some(name)
    })
}

static BUILT_IN: LazyLock<Prices> = LazyLock::new(|| Prices {
    by_name: read(include_str!("prices.json")).unwrap_or_default(),
    fallback: None,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_table_is_readable() {
        assert!(read(include_str!("prices.json")).is_ok_and(|prices| prices.len() > 800));
    }

    #[test]
    fn date_at_end_of_name_is_found() {
        for (model, name) in [
            ("gpt-5.4-2026-03-05", Some("gpt-5.4")),
            ("claude-opus-5-20260423", Some("claude-opus-5")),
            ("claude-opus-5@20260423", Some("claude-opus-5")),
            ("gpt-4o", None),
            ("-2026-03-05", Some("")),
            ("model-é2345678", None),
        ] {
            assert_eq!(without_date(model), name, "{model}");
        }
    }
}
