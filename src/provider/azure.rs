//! Azure OpenAI: OpenAI's formats behind deployments.

use super::rules::Rules;
use super::{Profile, limits, openai};

/// Azure OpenAI, `*.openai.azure.com` and `*.services.ai.azure.com`.
///
/// - **Model**: the deployment in the path (`/openai/deployments/NAME/...`), which has the quota,
///   whatever model the body names. Paths without one (`/openai/v1/...`) name it in the body.
/// - **Charge**: at admission, the prompt by its characters and `max_tokens` x `best_of`; usage
///   plays no part. Requests are checked over slices of 1 or 10 s, so a burst can be refused that a
///   minute's limit would allow. Source: Microsoft's page on quotas.
/// - **Limits**: token buckets; `reset` is a whole number, of seconds by its pages and of milliseconds
///   in the recordings: whichever a bucket can take.
/// - **Quotas**: none; they are set per deployment (6 RPM come with each 1,000 TPM).
pub const AZURE: Profile = Profile::new(&Rules {
    name: "azure",
    urls: &[
        "*.openai.azure.com",
        "*.services.ai.azure.com",
        "*.cognitiveservices.azure.com",
        "*.models.ai.azure.com",
        "*/openai/deployments/*",
    ],
    limits: |headers| limits::AZURE.read(headers),
    ..openai::RULES
});
