use crate::request::Endpoint;

/// The operation of a request, by OpenTelemetry's semantic conventions for generative AI
/// (`gen_ai.operation.name`; version 1.41.0, in development).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Operation {
    /// Generate the next message of a conversation.
    Chat,
    /// Generate content by Google's `generateContent`.
    GenerateContent,
    /// Complete a text.
    TextCompletion,
    /// Embed texts as vectors.
    Embeddings,
    /// Any other: moderations, images, speech. The conventions have no name for it.
    #[default]
    Other,
}

impl Operation {
    /// Returns the name in the conventions; `other` if they have none.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::GenerateContent => "generate_content",
            Self::TextCompletion => "text_completion",
            Self::Embeddings => "embeddings",
            Self::Other => "other",
        }
    }

    /// Returns the operation of an endpoint with this normalized path.
    pub(super) fn of(endpoint: Endpoint, path: &str) -> Self {
        match endpoint {
            Endpoint::Chat if path.ends_with("enerateContent") => Self::GenerateContent,
            Endpoint::Chat | Endpoint::Responses => Self::Chat,
            Endpoint::Completions => Self::TextCompletion,
            Endpoint::Embeddings => Self::Embeddings,
            Endpoint::Other => Self::Other,
        }
    }
}
