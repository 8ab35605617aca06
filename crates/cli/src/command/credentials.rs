use std::env::{self, VarError};

use clap::Args;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::redacted_parser::RedactedParser;
use crate::batch::target::Base;
use paceline::provider::{Api, OPENAI, Profile};

/// The credentials and other headers of requests.
#[derive(Debug, Clone, Default, Args)]
pub struct CredentialArgs {
    /// Environment variable with the API key [default: the provider's, such as OPENAI_API_KEY or
    /// ANTHROPIC_API_KEY]
    ///
    /// The key is sent in the provider's header: `authorization` (bearer), `x-api-key` (Anthropic),
    /// `x-goog-api-key` (Gemini) or `api-key` (Azure). The provider's own variable is read only if
    /// the provider is named (--provider, configuration) or the request goes to a host of the
    /// provider; any other server gets a key only if this option names it. The key is never shown.
    #[arg(long, value_name = "NAME", value_parser = RedactedParser(variable))]
    pub api_key_env: Option<String>,

    /// Add or replace a header of every request; may be repeated
    ///
    /// A header that carries a credential (authorization, x-api-key, x-goog-api-key, api-key)
    /// replaces the API key. Values are never printed, but other users of this machine can see
    /// command-line arguments: pass keys in environment variables.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = RedactedParser(header))]
    pub headers: Vec<Header>,
}

/// A header of every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The name.
    pub name: HeaderName,
    /// The value, marked as sensitive.
    pub value: HeaderValue,
}

impl CredentialArgs {
    /// Returns the headers of requests to this provider at this base URL. The provider's API key
    /// is used only if `is_named` or for a host of the provider, and never for a host of another
    /// provider.
    ///
    /// # Errors
    /// Returns an error that names the unset variable, or the provider to which the API key of another
    /// provider would be sent.
    pub(super) fn headers(
        &self,
        profile: Profile,
        base: &Base,
        is_named: bool,
    ) -> Result<HeaderMap, String> {
        let (api, at) = (profile.api(), base.to_string());
        let is_known = is_named || profile.is_at(&at);
        let owner = Profile::all().iter().find(|owner| owner.is_at(&at));
        if let Some(owner) = owner.filter(|_| is_known && !profile.is_at(&at) && !self.is_given()) {
            return Err(format!(
                "{at}: a host of {}; the API key of {} is not sent to it; select a key with \
                 --api-key-env, or set the credential with --header",
                owner.name(),
                profile.name(),
            ));
        }
        let constant = api.constant_headers.iter();
        let mut headers: HeaderMap = constant
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        if let Some((variable, key)) = self.key(profile, is_known)? {
            let api = if base.is_compatible_with_openai() { OPENAI.api() } else { api };
            let (name, value) = api.credential(&key).map_err(|_| invalid_key(&variable))?;
            headers.insert(name, value);
        }
        for Header { name, value } in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        Ok(headers)
    }

    fn is_given(&self) -> bool {
        self.api_key_env.is_some() || self.gives_credential()
    }

    fn gives_credential(&self) -> bool {
        self.headers.iter().any(|header| Api::is_credential(&header.name))
    }

    /// Returns the variable and the API key.
    fn key(&self, profile: Profile, is_known: bool) -> Result<Option<(String, String)>, String> {
        let given = self.gives_credential();
        let (variables, is_needed) = match &self.api_key_env {
            Some(name) => (vec![name.clone()], true),
            None if given || !is_known => return Ok(None),
            None => (profile.key_variables(), profile.api().needs_key),
        };
        for name in &variables {
            match env::var(name) {
                Ok(key) if !key.trim().is_empty() => return Ok(Some((name.clone(), key))),
                Err(VarError::NotUnicode(_)) => return Err(invalid_key(name)),
                _ => {}
            }
        }
        if is_needed { Err(missing_key(profile, &variables)) } else { Ok(None) }
    }
}

fn invalid_key(variable: &str) -> String {
    format!("{variable}: not a valid header value; check that it is an API key")
}

fn missing_key(profile: Profile, variables: &[String]) -> String {
    let (name, advice) = (profile.name(), profile.api().advice);
    let mut text = match variables {
        [] => {
            format!("API key for {name}: not set; name its environment variable with --api-key-env")
        }
        _ => format!(
            "{}: not set; set it to the API key for {name}, name another variable with \
             --api-key-env, or set the credential with --header",
            variables.join(" or "),
        ),
    };
    if profile.name() != profile.built_in().name() {
        text.push_str(" (use `none` if the server needs no key)");
    }
    if !advice.is_empty() {
        text.push_str(&format!("; {name}: {advice}"));
    }
    text
}

/// Checks the name of a variable. API keys contain hyphens or dots, names don't.
fn variable(text: &str) -> Result<String, String> {
    let named = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !text.is_empty() && text.bytes().all(named) {
        return Ok(text.to_owned());
    }
    Err("must be the name of an environment variable (letters, digits, _), not an API key"
        .to_owned())
}

fn header(text: &str) -> Result<Header, String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    let name: HeaderName = name.trim().parse().map_err(|_| "NAME is not a valid header name")?;
    if FRAMING.contains(&name) {
        return Err(format!("{name} is set by the HTTP client and can't be changed; remove it"));
    }
    let value = HeaderValue::from_str(value.trim());
    let mut value =
        value.map_err(|_| format!("the value of {name} is not a valid header value"))?;
    value.set_sensitive(true);
    Ok(Header { name, value })
}

/// Headers set by the HTTP client.
const FRAMING: &[HeaderName] = &[HOST, CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION];
