use std::env;
use std::error::Error;

use http::HeaderValue;
use serde_json::{Value, json};

use super::CountArgs;
use crate::batch::http_client;
use crate::batch::target::Base;
use crate::middleware::count_tokens;
use crate::provider::{ANTHROPIC, GEMINI, OPENAI, Profile, count_tokens as question};

/// A provider that is asked for a count.
pub(super) struct Asked {
    endpoint: &'static Endpoint,
    base: Base,
    key: Option<String>,
}

/// How a provider is asked.
struct Endpoint {
    profile: Profile,
    /// How the names of its models begin.
    models: &'static [&'static str],
    base: &'static str,
    path: fn(&str) -> String,
    body: fn(&str, &str) -> Value,
    variables: &'static [&'static str],
    header: &'static str,
    prefix: &'static str,
}

impl Asked {
    /// # Errors
    /// If nobody tells who is to be asked, or there is no key to ask with.
    pub(super) fn new(args: &CountArgs) -> Result<Self, String> {
        let endpoint = match args.provider {
            Some(profile) => ENDPOINTS.iter().find(|endpoint| endpoint.profile == profile),
            None => ENDPOINTS.iter().find(|endpoint| endpoint.serves(&args.model)),
        };
        let endpoint = endpoint.ok_or_else(|| nobody(args))?;
        let base = match &args.base_url {
            Some(base) => base.clone(),
            None => endpoint.base.parse().map_err(|error| format!("{error}"))?,
        };
        let key = endpoint.key(args)?;
        Ok(Self { endpoint, base, key })
    }

    /// # Errors
    /// Says what the provider answered instead, without the key.
    pub(super) async fn tokens(&self, model: &str, text: &str) -> Result<u64, String> {
        let Endpoint { profile, path, body, header, prefix, .. } = self.endpoint;
        let model = model.trim_start_matches("models/");
        let url = self.base.join(&path(model));
        let asked = question::request(*profile, &url, body(model, text).to_string().as_bytes());
        let mut asked = asked.map_err(|error| error.to_string())?;
        if let Some(key) = &self.key {
            let value = HeaderValue::from_str(&format!("{prefix}{key}"));
            let mut value = value.map_err(|_| "the API key can't be sent; is it a key?")?;
            value.set_sensitive(true);
            asked.headers_mut().insert(*header, value);
        }
        if *profile == ANTHROPIC {
            asked.headers_mut().insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        let client = http_client(&self.base).build().map_err(|error| self.told(&error))?;
        count_tokens(&client, asked).await.map_err(|error| self.told(&error))
    }

    /// An error with its causes. Some servers repeat a key that they refuse.
    fn told(&self, error: &dyn Error) -> String {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        match &self.key {
            Some(key) => text.replace(key.as_str(), "***"),
            None => text,
        }
    }
}

impl Endpoint {
    fn serves(&self, model: &str) -> bool {
        let model = model.trim_start_matches("models/");
        self.models.iter().any(|start| model.starts_with(start))
    }

    /// The key, which a server of one's own may not need.
    fn key(&self, args: &CountArgs) -> Result<Option<String>, String> {
        let own = args.api_key_env.as_deref();
        let names = own.as_slice();
        let names = if names.is_empty() { self.variables } else { names };
        let keys = names.iter().filter_map(|name| env::var(name).ok());
        let mut keys = keys.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        match keys.next() {
            None if args.base_url.is_none() => Err(format!(
                "{} is not set; put the API key into it, or name another variable with \
                 --api-key-env",
                names.join(" or ")
            )),
            key => Ok(key),
        }
    }
}

fn nobody(args: &CountArgs) -> String {
    let names: Vec<_> = ENDPOINTS.iter().map(|endpoint| endpoint.profile.name()).collect();
    let names = names.join(", ");
    match args.provider {
        Some(profile) => {
            format!("{} has no endpoint that counts tokens; {names} have", profile.name())
        }
        None => format!("whose model is {}? Say so with --provider: {names}", args.model),
    }
}

const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        profile: ANTHROPIC,
        models: &["claude-"],
        base: "https://api.anthropic.com",
        path: |_| "/v1/messages".to_owned(),
        body: |model, text| json!({"model": model, "messages": [{"role": "user", "content": text}]}),
        variables: &["ANTHROPIC_API_KEY"],
        header: "x-api-key",
        prefix: "",
    },
    Endpoint {
        profile: GEMINI,
        models: &["gemini-", "gemma-"],
        base: "https://generativelanguage.googleapis.com",
        path: |model| format!("/v1beta/models/{model}:generateContent"),
        body: |_, text| json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        header: "x-goog-api-key",
        prefix: "",
    },
    Endpoint {
        profile: OPENAI,
        models: &["gpt-", "chatgpt-", "o1", "o3", "o4", "ft:", "codex-", "text-embedding-"],
        base: "https://api.openai.com",
        path: |_| "/v1/responses".to_owned(),
        body: |model, text| json!({"model": model, "input": text}),
        variables: &["OPENAI_API_KEY"],
        header: "authorization",
        prefix: "Bearer ",
    },
];
