//! Azure OpenAI: OpenAI's formats behind deployments.

use paceline_limiter::quota::Algorithm;

use crate::Profile;
use crate::api::Api;
use crate::charge::Charge;
use crate::error::ErrorRules;
use crate::limits::LimitHeaders;
use crate::openai;
use crate::prompt_weights::PromptWeights;
use crate::rules::Rules;

/// Azure OpenAI, `*.openai.azure.com` and `*.services.ai.azure.com`.
///
/// - **Model**: the deployment in the path (`/openai/deployments/NAME/...`), which has the quota, even
///   if the body names another model. Requests to paths without a deployment (`/openai/v1/...`) name
///   the model in the body.
/// - **Charge**: at admission, the prompt by its characters and `max_tokens` x `best_of`; usage
///   has no effect. Requests are checked over slices of 1 or 10 s, so a burst can be refused that a
///   minute's limit would allow. Source: Microsoft's page on quotas.
/// - **Limits**: token buckets; `reset` is a whole number, of seconds by the documentation and of
///   milliseconds in recordings.
/// - **Failures**: a 400 by the content filter or for the length of the input is charged, and a 408; 401 and 429 are not
///   (learn.microsoft.com/azure/foundry-classic/openai/faq, read in November 2026).
/// - **Usage** of a chat's stream is stated with `stream_options.include_usage` only (recorded), from the API version
///   `2024-09-01-preview` on (learn.microsoft.com/azure/ai-services/openai/api-version-deprecation).
/// - **Cut streams**: as OpenAI's, by the name of the deployment.
/// - **Quotas**: none; they are set per deployment (6 RPM for each 1,000 TPM).
pub const AZURE: Profile = Profile::new(
    &Rules::built_in("azure")
        .urls(&[
            "*.openai.azure.com",
            "*.services.ai.azure.com",
            "*.cognitiveservices.azure.com",
            "*.models.ai.azure.com",
            "*/openai/deployments/*",
        ])
        .algorithm(Algorithm::TokenBucket)
        .weights(PromptWeights::OPENAI)
        .charge(Charge::at_admission(openai::ADMISSION))
        .limits(LimitHeaders::AZURE)
        .errors(ErrorRules::new().charged_codes(&["content_filter", "context_length_exceeded"]))
        .usage_on_request()
        .cut_streams(openai::CUT_STREAMS)
        .api(
            Api::bearer(&["AZURE_OPENAI_API_KEY"])
                .openai_path("/openai/v1")
                .key_header("api-key")
                .advice(
                    "its base URL is https://RESOURCE.openai.azure.com; with Microsoft Entra ID, \
                     give the token as --header \"Authorization=Bearer TOKEN\"",
                ),
        ),
);
