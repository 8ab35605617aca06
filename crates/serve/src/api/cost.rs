use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounded_integer::Amount;
use super::error::{ApiError, invalid, unprocessable};
use paceline::quota::{Cost, Dimension, Usd};
use paceline_limiter::seam;

/// The cost of a request in each dimension.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Cost")]
pub(super) struct CostFields {
    /// Requests. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Amount>,
    /// Tokens, as counted by the provider's limit on total tokens. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<Amount>,
    /// Prompt tokens, for providers that limit them separately. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<Amount>,
    /// Generated tokens, for providers that limit them separately. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<Amount>,
    /// US dollars, with at most six decimals; the price of the request, where a key limits spending. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0, max = 18_446_744_073_709_u64))]
    usd: Option<Usd>,
    /// Custom dimensions by name, such as images or pages. A name has at most 64 bytes in UTF-8.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = MAX_CUSTOM,
        "propertyNames" = {
            "minLength": 1,
            "maxLength": MAX_NAME_LENGTH,
            "not": {"enum": ["requests", "tokens", "input_tokens", "output_tokens", "concurrency", "usd"]},
        },
    ))]
    custom: BTreeMap<String, Amount>,
}

impl CostFields {
    /// Returns the cost; omitted dimensions are those of a single request.
    ///
    /// # Errors
    /// Returns an error for too many dimensions or an invalid name.
    pub(super) fn cost(&self) -> Result<Cost, ApiError> {
        self.apply_to(Cost::new())
    }

    /// Returns `cost` with the stated dimensions replaced.
    ///
    /// # Errors
    /// Returns the errors of [`cost`](Self::cost).
    pub(super) fn apply_to(&self, mut cost: Cost) -> Result<Cost, ApiError> {
        if self.custom.len() > MAX_CUSTOM {
            return Err(invalid(format!(
                "cost.custom: {} dimensions; at most {MAX_CUSTOM} are allowed",
                self.custom.len()
            )));
        }
        let built_in = [
            (Dimension::Requests, self.requests),
            (Dimension::Tokens, self.tokens),
            (Dimension::InputTokens, self.input_tokens),
            (Dimension::OutputTokens, self.output_tokens),
        ];
        for (dimension, amount) in built_in {
            if let Some(amount) = amount {
                seam::set_amount(&mut cost, &dimension, amount.0);
            }
        }
        if let Some(usd) = self.usd {
            cost = cost.usd(usd);
        }
        for (name, amount) in &self.custom {
            cost = cost.custom(custom(name)?, amount.0);
        }
        Ok(cost)
    }
}

impl From<&Cost> for CostFields {
    fn from(cost: &Cost) -> Self {
        let amount = |dimension: Dimension| Some(Amount::from(cost.amount(&dimension)));
        let custom = |(name, amount): (&str, u64)| (name.to_owned(), amount.into());
        let usd = Dimension::usd();
        let (money, customs): (Vec<_>, Vec<_>) =
            cost.customs().partition(|(name, _)| *name == usd.as_str());
        Self {
            requests: amount(Dimension::Requests),
            tokens: amount(Dimension::Tokens),
            input_tokens: amount(Dimension::InputTokens),
            output_tokens: amount(Dimension::OutputTokens),
            usd: money.first().map(|(_, micros)| Usd::from_micros(*micros)),
            custom: customs.into_iter().map(custom).collect(),
        }
    }
}

fn custom(name: &str) -> Result<&str, ApiError> {
    let is_named = |dimension: &Dimension| dimension.as_str() == name;
    let known = seam::DIMENSIONS.iter().any(is_named) || is_named(&Dimension::usd());
    let path = || format!("cost.custom.{}", name.escape_debug());
    match name.len() {
        _ if known => {
            let error = "is a built-in dimension; set it in `cost` itself";
            Err(invalid(format!("{}: {error}", path())))
        }
        0 => Err(invalid(format!("{}: the name must not be empty", path()))),
        // The error omits the name, which may be as long as the body.
        length if length > MAX_NAME_LENGTH => Err(unprocessable(format!(
            "cost.custom: a name has {length} bytes; at most {MAX_NAME_LENGTH} are allowed"
        ))),
        _ => Ok(name),
    }
}

/// The maximum number of custom dimensions.
const MAX_CUSTOM: usize = 16;

/// In bytes.
const MAX_NAME_LENGTH: usize = 64;
