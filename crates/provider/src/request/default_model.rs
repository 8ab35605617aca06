//! Requests that name no model.

use compact_str::CompactString;

use super::endpoint::{Endpoint, normalized};
use super::request::Request;
use super::unreadable::UnreadableRequest;
use super::without_model::has_no_model;

impl Request {
    /// Sets the model of a request that names none: the first of the models that may answer, if the provider
    /// routes by that list, else `default`.
    ///
    /// # Errors
    /// [`UnreadableRequest`] if no model is known of a request that runs one. A prompt that the provider keeps has a
    /// model of its own.
    pub(crate) fn use_default_model(
        &mut self,
        path: &str,
        routes_by_list: bool,
        default: Option<&str>,
    ) -> Result<(), UnreadableRequest> {
        if !runs_named_model(path) {
            return Ok(());
        }
        let first = self.fallbacks.first().filter(|model| routes_by_list && !model.is_empty());
        self.model = first.cloned().or_else(|| default.map(CompactString::from));
        match self.model.is_some() || self.has_kept_prompt {
            true => Ok(()),
            false => Err(missing_model()),
        }
    }
}

pub(crate) fn missing_model() -> UnreadableRequest {
    UnreadableRequest::model(MISSING)
}

/// Returns true if requests to a path run a model, which their body names if the path doesn't. Some servers ignore the
/// case of a path.
pub(crate) fn runs_named_model(path: &str) -> bool {
    if has_no_model(path) {
        return false;
    }
    let path = normalized(path);
    let runs = |path: &str| match Endpoint::of(path) {
        Some(Endpoint::Other) => path.ends_with("/rerank"),
        Some(_) => true,
        None => NAMED.iter().any(|end| path.ends_with(end)),
    };
    runs(&path) || runs(&path.to_ascii_lowercase())
}

/// Returns the default model that a provider documents for a path.
pub(crate) fn documented_default(
    defaults: &'static [(&'static str, &'static str)],
    path: &str,
) -> Option<&'static str> {
    if defaults.is_empty() {
        return None;
    }
    let path = normalized(path).to_ascii_lowercase();
    defaults.iter().find(|(end, _)| path.ends_with(end)).map(|(_, model)| *model)
}

/// The ends of paths that run a model, beside those that [`Endpoint`] knows.
const NAMED: &[&str] = &[
    "/audio/speech",
    "/audio/transcriptions",
    "/audio/translations",
    "/images/edits",
    "/images/generations",
    "/images/variations",
    "/moderations",
    "/ocr",
];

const MISSING: &str = "missing or empty; name a model";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_run_a_named_model_are_known() {
        for path in [
            "/v1/chat/completions",
            "//v1/Chat%2FCompletions/",
            "/v1/completions?a=/files",
            "/v1/responses",
            "/v1/embeddings",
            "/v1/messages",
            "/api/generate",
            "/v2/rerank",
            "/v1/audio/speech",
            "/v1/images/edits",
            "/v1/moderations",
        ] {
            assert!(runs_named_model(path), "{path}");
        }
        for path in [
            "/v1/files",
            "/v1/files/speech",
            "/v1/batches",
            "/v1/messages/batches",
            "/v1/messages/count_tokens",
            "/v1/threads/t/messages",
            "/v1/threads/t/runs",
            "/v1/vector_stores/v/search",
            "/v1/fine_tuning/jobs",
            "/v1/conversations",
            "/v1/responses/r/cancel",
            "/completion",
            "/api/pull",
            "/",
            "",
        ] {
            assert!(!runs_named_model(path), "{path}");
        }
    }
}
