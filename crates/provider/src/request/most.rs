//! The most that a request can use, for its price.

use super::medium::{Medium, MediumKind};
use super::request::Request;
use crate::Operation;
use crate::estimate::Pricing;
use crate::prompt_weights::PromptWeights;

impl Request {
    /// Returns the maximum tokens of the prompt. A token of text has at least one byte, and text may stand anywhere in the
    /// body; media are estimated.
    pub(super) fn max_prompt_tokens(&self, weights: &PromptWeights) -> u64 {
        let read = self.text.saturating_add(self.call_text).saturating_add(self.schema);
        let binary = self.media.iter().map(Medium::binary_bytes).fold(0, u64::saturating_add);
        let texts = read.max(self.body.saturating_sub(binary));
        // The tokens of encrypted reasoning are estimated.
        let reasoning = self.reasoning.saturating_mul(2);
        texts.saturating_add(self.other_tokens(weights)).saturating_add(reasoning)
    }

    /// Returns the terms of the price; `None` if the price isn't that of the tokens.
    pub(super) fn pricing(&self) -> Option<Pricing> {
        let is_by_tokens = self.has_known_path && self.operation != Operation::Other;
        let pricing = || Pricing {
            mode: self.modes.of_price(),
            choices: u32::try_from(self.answers()).unwrap_or(u32::MAX),
            generates: self.endpoint.generates(),
            fallbacks: self.fallbacks.iter().map(|model| model.as_str().into()).collect(),
        };
        (is_by_tokens && !self.has_kept_prompt).then(pricing)
    }

    /// Returns true if parts of the prompt aren't in the body: content that the provider keeps, or files that are only
    /// linked. The size of an image is limited even then.
    pub(super) fn has_content_elsewhere(&self) -> bool {
        let is_linked =
            |medium: &Medium| medium.bytes.is_none() && medium.kind != MediumKind::Image;
        self.has_kept_content || self.media.iter().any(is_linked)
    }

    /// Returns true if the prompt contains audio or video.
    pub(super) fn has_audio(&self) -> bool {
        let mut kinds = self.media.iter().map(|medium| medium.kind);
        kinds.any(|kind| matches!(kind, MediumKind::Audio | MediumKind::Video))
    }

    /// Returns the number of prompts outside a conversation, each of which is answered.
    pub(super) fn prompts(&self) -> u64 {
        self.texts.saturating_add(self.token_lists)
    }

    /// Returns the number of outputs: the choices of each prompt.
    pub(super) fn answers(&self) -> u64 {
        self.choices().saturating_mul(self.prompts().max(1))
    }
}
