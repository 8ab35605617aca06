/// The format of a provider's endpoint that counts the tokens of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CountTokensFormat {
    /// `POST .../responses/input_tokens`, for Responses and chat completions.
    OpenAi,
    /// `POST .../messages/count_tokens`.
    Anthropic,
    /// `POST .../models/NAME:countTokens` with the whole request.
    Gemini,
    /// `POST .../models/NAME:countTokens` with the contents of the request.
    Vertex,
}
