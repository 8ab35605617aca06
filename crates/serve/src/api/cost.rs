use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fault::{Fault, invalid, meaningless};
use super::whole::Amount;
use tollgate::quota::{Cost, Dimension};

/// What a request takes in each dimension.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Cost")]
pub(super) struct CostFields {
    /// Requests. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Amount>,
    /// Tokens, as the provider's total-token limit counts them. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<Amount>,
    /// Tokens of the prompt, where they are limited apart. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<Amount>,
    /// Generated tokens, where they are limited apart. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<Amount>,
    /// Dimensions of your own, by name: images, pages. A name has at most 64 bytes in UTF-8.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = MOST_CUSTOM,
        "propertyNames" = {
            "minLength": 1,
            "maxLength": LONGEST_NAME,
            "not": {"enum": ["requests", "tokens", "input_tokens", "output_tokens", "concurrency"]},
        },
    ))]
    custom: BTreeMap<String, Amount>,
}

impl CostFields {
    /// The cost; what is left out is that of one request.
    ///
    /// # Errors
    /// Too many dimensions, or a name that can't be one.
    pub(super) fn cost(&self) -> Result<Cost, Fault> {
        self.over(Cost::new())
    }

    /// The same cost, but for what is said here.
    ///
    /// # Errors
    /// As [`cost`](Self::cost).
    pub(super) fn over(&self, mut cost: Cost) -> Result<Cost, Fault> {
        if self.custom.len() > MOST_CUSTOM {
            return Err(invalid(format!(
                "cost.custom: names {} dimensions; at most {MOST_CUSTOM} are allowed",
                self.custom.len()
            )));
        }
        let own = [
            (Dimension::Requests, self.requests),
            (Dimension::Tokens, self.tokens),
            (Dimension::InputTokens, self.input_tokens),
            (Dimension::OutputTokens, self.output_tokens),
        ];
        for (dimension, amount) in own {
            if let Some(amount) = amount {
                cost.set(&dimension, amount.0);
            }
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
        Self {
            requests: amount(Dimension::Requests),
            tokens: amount(Dimension::Tokens),
            input_tokens: amount(Dimension::InputTokens),
            output_tokens: amount(Dimension::OutputTokens),
            custom: cost.customs().map(custom).collect(),
        }
    }
}

fn custom(name: &str) -> Result<&str, Fault> {
    let known = Dimension::KNOWN.iter().any(|dimension| dimension.as_str() == name);
    let place = || format!("cost.custom.{}", name.escape_debug());
    match name.len() {
        _ if known => {
            let what = "is no dimension of your own; state it in `cost` itself";
            Err(invalid(format!("{}: {what}", place())))
        }
        0 => Err(invalid(format!("{}: the name of a dimension must not be empty", place()))),
        // Without it: it may be as long as the body.
        long if long > LONGEST_NAME => Err(meaningless(format!(
            "cost.custom: a name of {long} bytes; at most {LONGEST_NAME} are allowed"
        ))),
        _ => Ok(name),
    }
}

/// How many dimensions of their own a cost may name.
const MOST_CUSTOM: usize = 16;

/// In bytes.
const LONGEST_NAME: usize = 64;
