use super::Request;

/// The kinds of endpoint that are charged differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider) enum Endpoint {
    Chat,
    Completions,
    Responses,
    Embeddings,
    /// Anything else that takes text: moderations, images, speech.
    Other,
}

impl Endpoint {
    /// From the end of the path (query and trailing slash aside); by the fields of the body where
    /// the path says nothing.
    pub(in crate::provider) fn of(path: &str, request: &Request) -> Self {
        let path = path.split(['?', '#']).next().unwrap_or(path).trim_end_matches('/');
        match path.rsplit('/').next() {
            Some("completions") if path.ends_with("chat/completions") => Self::Chat,
            Some("completions") => Self::Completions,
            Some("responses") => Self::Responses,
            Some("embeddings") => Self::Embeddings,
            _ if request.has_messages => Self::Chat,
            _ => Self::Other,
        }
    }

    /// Whether it answers with generated text.
    pub(in crate::provider) fn generates(self) -> bool {
        matches!(self, Self::Chat | Self::Completions | Self::Responses)
    }
}
