//! What the layer, the server and the command of paceline need of the providers beyond the interface of their users.
//! Unstable: it may change in any version.

use std::time::Duration;

use http::HeaderMap;
use paceline_limiter::Limiter;
use paceline_limiter::quota::{Cost, Dimension, Key};

pub use crate::cached_prompt::CachedPrompt;
pub use crate::estimate::{OutputGuess, Pricing};

use crate::price::{Price, Prices};
use crate::{ApiError, Estimate, Profile, Scanned, Scanner, UnreadableRequest};

/// Reads a request as [`Profile::read_request_strictly`] does, from a server whose requests without a model run
/// `default_model`.
pub fn read_request_of(
    profile: &Profile,
    path: &str,
    headers: &HeaderMap,
    body: &[u8],
    default_model: Option<&str>,
) -> (Estimate, Option<UnreadableRequest>) {
    profile.read_request_of(path, headers, body, default_model)
}

/// Returns the terms of the price of a request; `None` if the price isn't that of the tokens, or isn't known.
#[inline]
pub fn pricing(estimate: &mut Estimate) -> &mut Option<Pricing> {
    &mut estimate.pricing
}

/// Returns the prompt of a request, of which the provider may read a part from a cache.
#[inline]
pub fn cached_prompt(estimate: &Estimate) -> CachedPrompt {
    estimate.cached
}

/// Returns the guess at the output, if the actual output is charged.
#[inline]
pub fn output_guess(estimate: &Estimate) -> Option<OutputGuess> {
    estimate.output_guess()
}

/// Returns the dimensions whose charge is final before the response ends.
#[inline]
pub fn settled_early(profile: &Profile) -> impl Iterator<Item = Dimension> {
    profile.settled_early()
}

/// Removes the tokens and the provider's units from a cost: what is left is a request.
pub fn remove_tokens(profile: &Profile, cost: &mut Cost) {
    profile.remove_tokens(cost);
}

/// Returns true if the provider has several names for one model.
#[inline]
pub fn unifies_models(profile: &Profile) -> bool {
    profile.unifies_models()
}

/// Returns the key under which requests for a model of this provider count: the model, or the name of it in the quota that
/// covers it, if the provider has several names for one model.
#[inline]
pub fn key_of_model(profile: &Profile, limiter: &Limiter, model: Key) -> Key {
    profile.key_of_model(limiter, model)
}

/// Returns true if a name with a price is that of a model of the provider and fulfils a condition. Names have their mode,
/// if they are the price of one.
pub fn any_model(prices: &Prices, provider: Profile, is_meant: &dyn Fn(&str) -> bool) -> bool {
    prices.any_model(provider, is_meant)
}

/// Returns the length of the model's context and its largest output, in tokens.
pub fn bounds(price: &Price) -> (Option<u64>, Option<u64>) {
    price.bounds()
}

/// Returns true if the generated text is measured.
#[inline]
pub fn measures_output(scanner: &Scanner) -> bool {
    scanner.measures_output()
}

/// Returns what the first event of a stream, or the first object of another body, is: data, or an error; `None` before its
/// end.
#[inline]
pub fn first_event(scanner: &Scanner) -> Option<Result<(), &ApiError>> {
    scanner.first_event()
}

/// Returns the result for the whole body, after which the scanner reads no more.
#[inline]
pub fn end(scanner: &mut Scanner) -> Scanned {
    scanner.end()
}

/// Reads a duration as Go writes it: `6m0s`, `1.5s`, `250ms`. `None` for other texts.
pub fn go_duration(text: &str) -> Option<Duration> {
    crate::duration::go(text)
}
