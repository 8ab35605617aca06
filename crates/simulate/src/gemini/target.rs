//! The model and method in a request path.

use crate::format::path_only;

/// A path that ends in `models/{model}:{method}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target<'a> {
    pub(super) model: &'a str,
    pub(super) method: Method,
}

/// The methods of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Generate,
    Stream,
    CountTokens,
    Embed,
    EmbedBatch,
}

impl<'a> Target<'a> {
    /// Parses a path without query; `None` if it does not belong to this API.
    pub(super) fn of(path: &'a str) -> Option<Self> {
        let (_, name) = path.rsplit_once("models/")?;
        let (model, method) = name.rsplit_once(':')?;
        let method = match method {
            "generateContent" => Method::Generate,
            "streamGenerateContent" => Method::Stream,
            "countTokens" => Method::CountTokens,
            "embedContent" => Method::Embed,
            "batchEmbedContents" => Method::EmbedBatch,
            _ => return None,
        };
        (!model.is_empty()).then_some(Self { model, method })
    }
}

/// Returns whether a path requests a stream as one JSON array, that is, without `alt=sse`.
pub(super) fn is_array(path: &str) -> bool {
    let streams = Target::of(path_only(path)).is_some_and(|target| target.method == Method::Stream);
    let query = path.split_once('?').map_or("", |(_, query)| query);
    streams && !query.split('&').any(|pair| pair == "alt=sse")
}
