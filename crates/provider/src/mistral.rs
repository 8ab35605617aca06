//! Mistral: states the charged tokens in a header.

use crate::Profile;
use crate::api::Api;
use crate::limits::LimitHeaders;
use crate::prompt_weights::PromptWeights;
use crate::rules::Rules;

/// Mistral, `api.mistral.ai`.
///
/// - **Charge** (`Tokens`): the number in the header `x-ratelimit-tokens-query-cost`
///   ([`Profile::charged_in_head`]); recorded, that is the usage, input and output, to the token.
/// - **Limits**: sliding windows of a minute and a month; requests over 10 s.
/// - **Quotas**: none; they differ by workspace.
pub const MISTRAL: Profile = Profile::new(
    &Rules::built_in("mistral")
        .urls(&["api.mistral.ai", "codestral.mistral.ai"])
        .weights(PromptWeights::OPENAI)
        .charge_header("x-ratelimit-tokens-query-cost")
        .limits(LimitHeaders::BY_NAME)
        .api(Api::bearer(&["MISTRAL_API_KEY"]).origin("https://api.mistral.ai")),
);
