use http::Uri;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::InvalidLineReason;

/// A valid line.
pub(super) struct Request<'a> {
    pub(super) form: Form,
    pub(super) custom_id: Option<String>,
    pub(super) url_path: Option<String>,
    pub(super) body: &'a str,
}

/// An invalid line, with its `custom_id` if it is readable.
pub(super) struct Refused {
    pub(super) custom_id: Option<String>,
    pub(super) reason: InvalidLineReason,
}

impl From<InvalidLineReason> for Refused {
    fn from(reason: InvalidLineReason) -> Self {
        Self { custom_id: None, reason }
    }
}

/// The format of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A request body.
    Raw,
    /// `{custom_id, method, url, body}`
    OpenAi,
    /// `{custom_id, params}`
    Anthropic,
    /// `{key, request}`
    Gemini,
}

impl Form {
    /// Returns the member that contains the body.
    fn body(self) -> &'static str {
        match self {
            Self::Raw | Self::OpenAi => "body",
            Self::Anthropic => "params",
            Self::Gemini => "request",
        }
    }
}

/// Parses one line, without its line ending.
pub(super) fn parse(line: &[u8]) -> Result<Request<'_>, Refused> {
    let text = str::from_utf8(line)
        .map_err(|error| InvalidLineReason::NotUtf8 { column: error.valid_up_to() + 1 })?
        .trim_ascii();
    if !text.starts_with('{') {
        serde_json::from_str::<&RawValue>(text).map_err(not_json)?;
        return Err(InvalidLineReason::NotAnObject.into());
    }
    let shape: Shape<'_> = serde_json::from_str(text).map_err(not_json)?;
    let Some(form) = shape.form() else {
        check_model(text, text)?;
        return Ok(Request { form: Form::Raw, custom_id: None, url_path: None, body: text });
    };
    let id = if form == Form::Gemini { shape.key } else { shape.custom_id };
    let custom_id = id.map(|raw| custom_id(form, raw)).transpose()?;
    let checked = shape.check(form);
    match checked.and_then(|(path, body)| check_model(text, body).map(|()| (path, body))) {
        Ok((url_path, body)) => Ok(Request { form, custom_id, url_path, body }),
        Err(reason) => Err(Refused { custom_id, reason }),
    }
}

#[derive(Deserialize)]
struct Shape<'a> {
    #[serde(borrow)]
    custom_id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    url: Option<&'a RawValue>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    key: Option<&'a RawValue>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
}

impl<'a> Shape<'a> {
    /// Detects a batch line. No provider's request body has a `custom_id`, a `url` beside a `body`
    /// or `method`, or a `key` beside a `request`; a line with them is a batch line even if it is
    /// incomplete.
    fn form(&self) -> Option<Form> {
        let beside_url = self.body.is_some() || self.method.is_some();
        let is_openai = self.body.is_some() || self.url.is_some() || self.method.is_some();
        match self.custom_id {
            Some(_) if self.params.is_some() && !is_openai => Some(Form::Anthropic),
            Some(_) => Some(Form::OpenAi),
            None if self.url.is_some() && beside_url => Some(Form::OpenAi),
            None if self.key.is_some() && self.request.is_some() => Some(Form::Gemini),
            None => None,
        }
    }

    fn check(&self, form: Form) -> Result<(Option<String>, &'a str), InvalidLineReason> {
        let body = match form {
            Form::Raw | Form::OpenAi => self.body,
            Form::Anthropic => self.params,
            Form::Gemini => self.request,
        };
        if let Some(method) = self.method.map(RawValue::get)
            && method != r#""POST""#
        {
            return Err(InvalidLineReason::Method { method: method.to_owned() });
        }
        let url_path = self.url.map(path_of).transpose()?;
        let body = body.ok_or(InvalidLineReason::NoBody)?.get();
        if !body.starts_with('{') {
            return Err(InvalidLineReason::BodyNotAnObject { member: form.body() });
        }
        Ok((url_path, body))
    }
}

/// Checks that a body, which is a part of the line, names its model at most once. Parsers differ in which of
/// two names counts.
fn check_model(line: &str, body: &str) -> Result<(), InvalidLineReason> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(rename = "model")]
        _model: Option<IgnoredAny>,
    }
    let checked = serde_json::from_str::<Body>(body).map(drop);
    checked.map_err(|error| match not_json(error) {
        InvalidLineReason::NotJson { message, column } => {
            let before = body.as_ptr().addr() - line.as_ptr().addr();
            InvalidLineReason::NotJson { message, column: before + column }
        }
        other => other,
    })
}

fn custom_id(form: Form, raw: &RawValue) -> Result<String, InvalidLineReason> {
    let member = if form == Form::Gemini { "key" } else { "custom_id" };
    let id: String = serde_json::from_str(raw.get()).unwrap_or_default();
    if id.is_empty() { Err(InvalidLineReason::CustomId { member }) } else { Ok(id) }
}

fn path_of(raw: &RawValue) -> Result<String, InvalidLineReason> {
    let url: String = serde_json::from_str(raw.get()).unwrap_or_default();
    let uri: Option<Uri> = url.parse().ok();
    uri.filter(|uri| match uri.scheme_str() {
        None => url.starts_with('/'),
        Some(scheme) => matches!(scheme, "http" | "https"),
    })
    .and_then(|uri| Some(uri.path_and_query()?.as_str().to_owned()))
    .ok_or_else(|| InvalidLineReason::Url { url: without_secret(raw.get()) })
}

/// Removes the query and user info, which may hold secrets.
fn without_secret(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("//").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, host)) => format!("{scheme}//{host}"),
        None => url.to_owned(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the argument of `map_err`")]
fn not_json(error: serde_json::Error) -> InvalidLineReason {
    let text = error.to_string();
    // The parser gets one line, so its "line 1" would be misleading.
    let message = text.split(" at line ").next().unwrap_or_default().to_owned();
    InvalidLineReason::NotJson { message, column: error.column() }
}
