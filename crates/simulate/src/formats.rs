//! The selection of a format by the path of a request.

use super::anthropic::Anthropic;
use super::format::{Format, path_only};
use super::gemini::Gemini;
use super::openai::OpenAi;

/// Returns the format of a path: OpenAI's, which most providers copy, unless another one matches.
pub(super) fn for_path(path: &str) -> &'static dyn Format {
    let path_only = path_only(path);
    if Gemini::matches_path(path_only) {
        &Gemini
    } else if Anthropic::matches_path(path_only) {
        &Anthropic
    } else {
        &OpenAi
    }
}

/// Returns the format of a GET. The lists of models have one path, and headers that tell them apart.
pub(super) fn for_get(path: &str, has_header: impl Fn(&str) -> bool) -> &'static dyn Format {
    match for_path(path) {
        format if format.name() != OpenAi.name() => format,
        _ if has_header("anthropic-version") => &Anthropic,
        _ if has_header("x-goog-api-key") => &Gemini,
        openai => openai,
    }
}
