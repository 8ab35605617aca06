use std::error::Error;

use http::HeaderMap;
use serde_json::{Value, json};

use super::CountArgs;
use crate::batch::target::Base;
use crate::batch::{Secrets, http_client};
use paceline::ErrorChain;
use paceline::middleware::count_tokens;
use paceline::provider::{ANTHROPIC, GEMINI, OPENAI, Profile, count_tokens as question};

/// A client for a provider's token-counting endpoint.
pub(super) struct TokenCounter {
    endpoint: &'static Endpoint,
    base: Base,
    headers: HeaderMap,
}

/// The token-counting request of a provider.
struct Endpoint {
    profile: Profile,
    /// The prefixes of its models' names.
    models: &'static [&'static str],
    path: fn(&str) -> String,
    body: fn(&str, &str) -> Value,
}

impl TokenCounter {
    /// Returns a client for the provider of the arguments.
    ///
    /// # Errors
    /// Returns an error if the provider is unknown, or there is no API key.
    pub(super) fn new(args: &CountArgs) -> Result<Self, String> {
        let endpoint = match args.provider {
            Some(profile) => ENDPOINTS.iter().find(|endpoint| endpoint.profile == profile),
            None => ENDPOINTS.iter().find(|endpoint| endpoint.serves(&args.model)),
        };
        let endpoint = endpoint.ok_or_else(|| unknown_provider(args))?;
        let profile = endpoint.profile;
        let own = profile.api().origin.unwrap_or_default();
        let own = || own.parse().map_err(|error| format!("{error}"));
        let base = args.base_url.clone().map_or_else(own, Ok)?;
        let headers = args.credentials.headers(profile, &base, args.provider.is_some())?;
        Ok(Self { endpoint, base, headers })
    }

    /// Returns the token count of a prompt with this text.
    ///
    /// # Errors
    /// Returns the error of the provider, without the API key.
    pub(super) async fn tokens(&self, model: &str, text: &str) -> Result<u64, String> {
        let Endpoint { profile, path, body, .. } = self.endpoint;
        let model = model.trim_start_matches("models/");
        let url = self.base.join(&path(model));
        let request = question::request(*profile, &url, body(model, text).to_string().as_bytes());
        let mut request = request.map_err(|error| error.to_string())?;
        request.headers_mut().extend(self.headers.clone());
        let client = http_client(&self.base).build().map_err(|error| self.redacted(&error))?;
        count_tokens(&client, request).await.map_err(|error| self.redacted(&error))
    }

    /// Formats an error and its causes without secrets: some servers quote a rejected key.
    fn redacted(&self, error: &(dyn Error + 'static)) -> String {
        Secrets::of(&self.headers).hide_in(ErrorChain(error).to_string())
    }
}

impl Endpoint {
    fn serves(&self, model: &str) -> bool {
        let model = model.trim_start_matches("models/");
        self.models.iter().any(|start| model.starts_with(start))
    }
}

fn unknown_provider(args: &CountArgs) -> String {
    let names: Vec<_> = ENDPOINTS.iter().map(|endpoint| endpoint.profile.name()).collect();
    let names = names.join(", ");
    match args.provider {
        Some(profile) => {
            format!("{}: no endpoint for token counts; use one of {names}", profile.name())
        }
        None => {
            format!("{}: unknown model; select its provider with --provider: {names}", args.model)
        }
    }
}

const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        profile: ANTHROPIC,
        models: &["claude-"],
        path: |_| "/v1/messages".to_owned(),
        body: |model, text| json!({"model": model, "messages": [{"role": "user", "content": text}]}),
    },
    Endpoint {
        profile: GEMINI,
        models: &["gemini-", "gemma-"],
        path: |model| format!("/v1beta/models/{model}:generateContent"),
        body: |_, text| json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
    },
    Endpoint {
        profile: OPENAI,
        models: &["gpt-", "chatgpt-", "o1", "o3", "o4", "ft:", "codex-", "text-embedding-"],
        path: |_| "/v1/responses".to_owned(),
        body: |model, text| json!({"model": model, "input": text}),
    },
];
