use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use paceline_limiter::limiter::ModelLimits;
use paceline_limiter::quota::{Dimension, Limit, Quota, Window};

/// A page of an account's limits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The limits.
    pub limits: Vec<ModelLimits>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

impl Page {
    pub(super) fn of_anthropic(body: &[u8]) -> Result<Self, InvalidPage> {
        let page: AnthropicPage = parse(body)?;
        let group = |group: AnthropicGroup| {
            let limits = group.limits.iter().filter_map(AnthropicLimit::limit);
            Some((group.models?, limits.collect()))
        };
        Ok(Self {
            limits: model_limits(page.data.into_iter().filter_map(group)),
            next: page.next_page,
        })
    }

    pub(super) fn of_openai(body: &[u8]) -> Result<Self, InvalidPage> {
        let page: OpenAiPage = parse(body)?;
        let next = page.last_id.filter(|_| page.has_more);
        let model = |model: OpenAiModel| {
            let limits = [
                (Dimension::Requests, model.max_requests_per_1_minute, Window::MINUTE),
                (Dimension::Tokens, model.max_tokens_per_1_minute, Window::MINUTE),
                (Dimension::Requests, model.max_requests_per_1_day, Window::DAY),
            ];
            let limits = limits.into_iter();
            let limits =
                limits.filter_map(|(dimension, amount, window)| limit(dimension, amount, window));
            (vec![model.model], limits.collect())
        };
        Ok(Self { limits: model_limits(page.data.into_iter().map(model)), next })
    }
}

/// Returns the limits of models; those without a model or a known limit are left out.
fn model_limits(groups: impl Iterator<Item = (Vec<String>, Vec<Limit>)>) -> Vec<ModelLimits> {
    let is_known =
        |(models, limits): &(Vec<String>, Vec<Limit>)| !models.is_empty() && !limits.is_empty();
    let of_group = |(models, limits): (Vec<String>, Vec<Limit>)| {
        ModelLimits::new(models, limits.into_iter().fold(Quota::new(), Quota::limit))
    };
    groups.filter(is_known).map(of_group).collect()
}

/// Returns a limit; an amount of 0 says that there is none for this model.
fn limit(dimension: Dimension, amount: Option<u64>, window: Window) -> Option<Limit> {
    Limit::new(dimension, amount?, window)
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, InvalidPage> {
    serde_json::from_slice(body).map_err(|error| InvalidPage { reason: error.to_string() })
}

#[derive(Deserialize)]
struct AnthropicPage {
    data: Vec<AnthropicGroup>,
    #[serde(default)]
    next_page: Option<String>,
}

#[derive(Deserialize)]
struct AnthropicGroup {
    /// `None` for files, batches and other things that aren't models.
    #[serde(default)]
    models: Option<Vec<String>>,
    limits: Vec<AnthropicLimit>,
}

#[derive(Deserialize)]
struct AnthropicLimit {
    #[serde(rename = "type")]
    kind: String,
    value: Option<u64>,
}

impl AnthropicLimit {
    /// Returns the limit, if it is one of those that requests are charged to.
    fn limit(&self) -> Option<Limit> {
        let dimension = match self.kind.as_str() {
            "requests_per_minute" => Dimension::Requests,
            "tokens_per_minute" => Dimension::Tokens,
            "input_tokens_per_minute" => Dimension::InputTokens,
            "output_tokens_per_minute" => Dimension::OutputTokens,
            _ => return None,
        };
        limit(dimension, self.value, Window::MINUTE)
    }
}

#[derive(Deserialize)]
struct OpenAiPage {
    data: Vec<OpenAiModel>,
    #[serde(default)]
    has_more: bool,
    #[serde(default)]
    last_id: Option<String>,
}

#[derive(Deserialize)]
struct OpenAiModel {
    model: String,
    #[serde(default)]
    max_requests_per_1_minute: Option<u64>,
    #[serde(default)]
    max_tokens_per_1_minute: Option<u64>,
    #[serde(default)]
    max_requests_per_1_day: Option<u64>,
}

/// The error of a response that doesn't state limits in the documented format.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidPage {
    /// The reason.
    pub reason: String,
}

impl fmt::Display for InvalidPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a list of limits in the documented format: {}", self.reason)
    }
}

impl std::error::Error for InvalidPage {}
