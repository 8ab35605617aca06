use wildmatch::WildMatch;

use crate::request::Request;

/// How a provider treats a stream whose connection is closed before its last event, which states the usage.
///
/// The default keeps the reservation as the charge. A provider that stops to generate when the connection is
/// closed ([`stopping`](Self::stopping), [`stopping_for`](Self::stopping_for)) is charged for what was received
/// instead: the input, a token for each byte of text, and what it may have generated before it noticed. That
/// takes a stream that shows all that is generated, so that reasoning that isn't shown keeps the reservation.
///
/// Source of the built-in rules: openrouter.ai/docs/api-reference/streaming ("Stream Cancellation"), which lists
/// the providers that stop, read in November 2026; and the providers' pages on reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutStreams {
    shown: Shown,
}

/// The requests whose streams show all that is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    None,
    All,
    /// Those that turn reasoning off, and those to models that don't reason unless the request asks for it.
    WithoutReasoning(&'static [&'static str]),
}

impl CutStreams {
    /// Keeps the reservation: the provider generates to the end, or it isn't known whether it does.
    pub const fn kept() -> Self {
        Self { shown: Shown::None }
    }

    /// The provider stops, and its streams show all that it generates.
    pub const fn stopping() -> Self {
        Self { shown: Shown::All }
    }

    /// The provider stops, but its streams don't show the reasoning of its models. `models` are globs over the
    /// names of those that reason only if a request asks for it.
    pub const fn stopping_for(models: &'static [&'static str]) -> Self {
        Self { shown: Shown::WithoutReasoning(models) }
    }

    /// Returns true if a cut response to this request is charged for what was received.
    pub(super) fn is_charged_as_received(&self, request: &Request) -> bool {
        // Tools that the provider runs add to the input. Choices are generated at the same time.
        let is_simple = request.stream
            && !request.background
            && request.endpoint.generates()
            && request.choices.unwrap_or(1) <= 1
            && (request.searches, request.built_in) == (0, 0);
        is_simple
            && match (self.shown, request.reasons) {
                (Shown::None, _) => false,
                (Shown::All, _) => true,
                (Shown::WithoutReasoning(_), Some(reasons)) => !reasons,
                (Shown::WithoutReasoning(models), None) => {
                    let model = request.model.as_deref().unwrap_or_default();
                    models.iter().any(|glob| WildMatch::new(glob).matches(model))
                }
            }
    }
}
