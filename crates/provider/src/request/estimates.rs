//! The estimates of requests.

use compact_str::CompactString;
use paceline_limiter::seam;

use super::endpoint::Endpoint;
use super::request::Request;
use super::{body, endpoint, form};
use crate::cached_prompt::CachedPrompt;
use crate::charge::Reserved;
use crate::prompt_weights::PromptWeights;
use crate::{Estimate, Operation};

impl Request {
    /// Returns the estimate of the request with this reservation.
    pub(crate) fn into_estimate(self, reserved: Reserved, weights: &PromptWeights) -> Estimate {
        let max_output = self.bound.map(|bound| bound.saturating_mul(self.answers()));
        let stream = self.stream;
        let (max_input, has_audio) = (self.max_prompt_tokens(weights), self.has_audio());
        let max_input = if self.has_content_elsewhere() { u64::MAX } else { max_input };
        let pricing = self.pricing();
        let Reserved { cost, terms, guess } = reserved;
        let Self { model, operation, .. } = self;
        let model = model.map(seam::key_of);
        let exact = true;
        Estimate {
            model,
            operation,
            cost,
            terms,
            stream,
            max_output,
            max_input,
            has_audio,
            exact,
            mode: None,
            pricing,
            is_charged_as_received: false,
            cached: CachedPrompt::CHARGED,
            guess,
        }
    }

    /// Returns the estimate of a request whose body can't be read to its end, by its path, its size, and
    /// the model if that can be read.
    pub(crate) fn estimate_unread(path: &str, body: &[u8]) -> Estimate {
        let mut request = Self::default();
        let _ = body::read(body, &mut request);
        let stated = request.named.model.or_else(|| form::model(body));
        Self::estimate_of_size(path, Self::fallback_size(body), stated)
    }

    /// Returns the estimate of a request by its path, the size of its body and the model in the body.
    pub(crate) fn estimate_of_size(
        path: &str,
        size: u64,
        stated: Option<CompactString>,
    ) -> Estimate {
        let path = &endpoint::normalized(path);
        let model = endpoint::model_of(path).or(stated).map(seam::key_of);
        let operation = Operation::of(Endpoint::of(path).unwrap_or_default(), path);
        Estimate { model, operation, ..Estimate::from_size(size) }
    }

    /// Returns the number of bytes of an unreadable body that are charged as text: all of them, or none
    /// for a form, since the size of a file in it doesn't indicate tokens.
    pub(super) fn fallback_size(body: &[u8]) -> u64 {
        if body.starts_with(b"--") { 0 } else { body.len() as u64 }
    }
}
