//! OpenAI-compatible servers without rules of their own.

use crate::charge::Charge;
use crate::prompt_weights::PromptWeights;
use crate::rules::Rules;
use crate::{Profile, openai, rules};

/// Any OpenAI-compatible server: a gateway, a local one, a provider without a profile.
///
/// - **Charge**: unknown, so the largest of the usual ones: OpenAI's charge at admission, or the usage
///   that the response states if that is more, held until its end. Reserved until then: the prompt as
///   OpenAI would count it, and `max_tokens` x `n`, or 1,024 per choice if it is unset. More than that is
///   charged in full when the response ends.
/// - **Limits**: sliding windows, which are safe against every other algorithm.
/// - **Quotas**: none.
pub const COMPATIBLE: Profile = Profile::new(
    &Rules::built_in("compatible")
        .weights(PromptWeights::OPENAI)
        .charge(Charge::by_usage_at_least(openai::ADMISSION)),
);

/// An OpenAI-compatible server that is known to charge by usage: as [`COMPATIBLE`], but the unused
/// part of a reservation is free again when the response ends. So the reservation is generous: the
/// prompt at three bytes of text a token, and a little for each message, tool and image.
pub const COMPATIBLE_USAGE: Profile = Profile::new(&rules::COMPATIBLE_USAGE);
