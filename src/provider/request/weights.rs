use super::Medium;

/// What the parts of a prompt come to with one provider's models.
pub(in crate::provider) struct Weights {
    /// Bytes of text in a token.
    pub(in crate::provider) text: u64,
    /// Tokens around each message or other item of a conversation.
    pub(in crate::provider) item: u64,
    /// Tokens that a conversation takes once.
    pub(in crate::provider) answer: u64,
    /// Tokens around each call of a tool.
    pub(in crate::provider) call: u64,
    /// Bytes of compact JSON, of functions and of the answer's schema, in a token.
    pub(in crate::provider) schema: u64,
    /// Tokens that introduce functions, where there are any.
    pub(in crate::provider) functions: u64,
    /// Tokens of the definition of a web search.
    pub(in crate::provider) search: u64,
    /// Tokens of the definition of another tool that the provider runs itself.
    pub(in crate::provider) built_in: u64,
    /// Tokens of a medium.
    pub(in crate::provider) medium: fn(&Medium) -> u64,
}
