use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::InvalidLineReason;
use super::shape::Form;
use paceline::provider::{ANTHROPIC, GEMINI, Profile, VERTEX, VERTEX_ANTHROPIC};

/// Returns the path of a line without a `url`.
pub(super) fn path(endpoint: &str, form: Form, body: &str) -> Result<String, InvalidLineReason> {
    let is_one_of = |profiles: &[Profile]| profiles.contains(&Profile::find(endpoint));
    let other = match form {
        Form::Anthropic if !is_one_of(&[ANTHROPIC, VERTEX_ANTHROPIC]) => Some(ANTHROPIC),
        Form::Gemini if !is_one_of(&[GEMINI, VERTEX]) => Some(GEMINI),
        _ => None,
    };
    if let Some(provider) = other {
        let (provider, endpoint) = (provider.name(), endpoint.to_owned());
        return Err(InvalidLineReason::OtherProvider { provider, endpoint });
    }
    if !endpoint.contains(MODEL) {
        return Ok(endpoint.to_owned());
    }
    let model = serde_json::from_str::<Body<'_>>(body).ok().and_then(|body| body.model);
    let model = model.as_deref().map(|model| model.strip_prefix("models/").unwrap_or(model));
    let model = model.filter(|model| !model.is_empty());
    let model =
        model.ok_or_else(|| InvalidLineReason::NoModel { endpoint: endpoint.to_owned() })?;
    Ok(endpoint.replace(MODEL, &utf8_percent_encode(model, ESCAPED).to_string()))
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
}

/// The placeholder for the model of the body.
const MODEL: &str = "{model}";

/// Characters that are not allowed in a path segment.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':').remove(b'@');
