use compact_str::CompactString;
use percent_encoding::percent_decode_str;

/// The kinds of endpoint that are charged differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::provider) enum Endpoint {
    Chat,
    Completions,
    Responses,
    Embeddings,
    /// Anything else that takes text: moderations, images, speech.
    #[default]
    Other,
}

impl Endpoint {
    /// From the end of the path (query and trailing slash aside); `None` where it says nothing.
    pub(in crate::provider) fn of(path: &str) -> Option<Self> {
        let path = bare(path);
        let last = path.rsplit('/').next().unwrap_or("");
        let verb = last.rsplit_once(':').map_or(last, |(_, verb)| verb);
        Some(match verb {
            "completions" if path.ends_with("chat/completions") => Self::Chat,
            "completions" | "complete" | "generate" => Self::Completions,
            "responses" => Self::Responses,
            "embeddings" | "embed" | "embedContent" | "batchEmbedContents" => Self::Embeddings,
            // Adding to a thread of OpenAI's, which answers nothing.
            "messages" if path.contains("/threads/") => Self::Other,
            "chat" | "messages" | "converse" | "converse-stream" => Self::Chat,
            "generateContent" | "streamGenerateContent" => Self::Chat,
            "rawPredict" | "streamRawPredict" => Self::Chat,
            "predict" | "rerank" | "count_tokens" | "countTokens" => Self::Other,
            _ => return None,
        })
    }

    /// Whether it answers with generated text.
    pub(in crate::provider) fn generates(self) -> bool {
        matches!(self, Self::Chat | Self::Completions | Self::Responses)
    }
}

/// The model or the deployment that a path names: `/model/NAME/converse` (Bedrock),
/// `/models/NAME:generateContent` (Google), `/deployments/NAME/...` (Azure).
pub(super) fn model(path: &str) -> Option<CompactString> {
    let path = bare(path);
    let between = |before: &str, end: fn(&str) -> Option<usize>| {
        let (_, rest) = path.split_once(before)?;
        rest.get(..end(rest)?)
    };
    let name = between("/model/", |rest| rest.rfind('/'))
        .or_else(|| between("odels/", |rest| rest.rfind(':')))
        .or_else(|| between("/deployments/", |rest| rest.find('/')))?;
    let name = percent_decode_str(name).decode_utf8().ok()?;
    (!name.is_empty()).then(|| name.into())
}

fn bare(path: &str) -> &str {
    path.split(['?', '#']).next().unwrap_or(path).trim_end_matches('/')
}
