use super::request::Endpoint;

/// What a request asks of a model, in the words of OpenTelemetry's conventions for generative AI
/// (`gen_ai.operation.name`; version 1.41.0, in development).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Operation {
    /// The next message of a conversation.
    Chat,
    /// The same, or other contents, as Google's `generateContent` has it.
    GenerateContent,
    /// The rest of a text.
    TextCompletion,
    /// Texts as vectors.
    Embeddings,
    /// Anything else: moderations, images, speech. The conventions have no word for it.
    #[default]
    Other,
}

impl Operation {
    /// The word of the conventions; `other` where they have none.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::GenerateContent => "generate_content",
            Self::TextCompletion => "text_completion",
            Self::Embeddings => "embeddings",
            Self::Other => "other",
        }
    }

    pub(super) fn of(endpoint: Endpoint, path: &str) -> Self {
        match endpoint {
            Endpoint::Chat if path.contains("enerateContent") => Self::GenerateContent,
            Endpoint::Chat | Endpoint::Responses => Self::Chat,
            Endpoint::Completions => Self::TextCompletion,
            Endpoint::Embeddings => Self::Embeddings,
            Endpoint::Other => Self::Other,
        }
    }
}
