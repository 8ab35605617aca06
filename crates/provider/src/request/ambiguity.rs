//! Checks that all servers read a request in the same way.

use std::borrow::Cow;

use compact_str::CompactString;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};

use super::parameters::parameters;
use super::unreadable::UnreadableRequest;
use super::without_model::has_no_model;
use super::{Request, endpoint, form, multipart};
use crate::Estimate;

/// The format of a body by its `content-type`.
enum Kind<'h> {
    /// A form of parts, with this boundary.
    Multipart(Cow<'h, str>),
    /// A URL-encoded form.
    Pairs,
    /// Any other type, which is read as JSON.
    Json,
}

impl Request {
    /// Returns the reason if servers may read a request with a JSON body differently.
    pub(crate) fn ambiguity(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Option<UnreadableRequest> {
        let ambiguity = self.check(path, headers, body).err();
        ambiguity.filter(|_| !has_no_model(path))
    }

    fn check(&self, path: &str, headers: &HeaderMap, body: &[u8]) -> Result<(), UnreadableRequest> {
        endpoint::check(path)?;
        check_encoding(headers)?;
        let kind = kind(headers)?;
        if std::str::from_utf8(body).is_err() {
            return Err(UnreadableRequest::body("not UTF-8; send it in UTF-8"));
        }
        if self.is_named_by_path {
            return Ok(());
        }
        self.named.check()?;
        match kind {
            // `curl -d` declares JSON as a form too. A server that reads it as a form may find another
            // model.
            Kind::Pairs => {
                let pairs = form::pairs(body);
                pairs.check()?;
                let named = pairs.model.filter(|model| !model.is_empty());
                match named.is_some() && named != self.model {
                    true => Err(UnreadableRequest::model(TWO_KINDS)),
                    false => Ok(()),
                }
            }
            Kind::Multipart(_) | Kind::Json => Ok(()),
        }
    }

    /// Returns the estimate of a request whose body is not JSON, for the reason `json`, and the reason
    /// if servers may read it differently.
    pub(crate) fn estimate_form(
        path: &str,
        headers: &HeaderMap,
        body: &[u8],
        json: UnreadableRequest,
    ) -> (Estimate, Option<UnreadableRequest>) {
        match model_of_form(path, headers, body, json) {
            Ok(model) => (Self::estimate_of_size(path, Self::fallback_size(body), model), None),
            Err(ambiguity) => {
                let ambiguity = Some(ambiguity).filter(|_| !has_no_model(path));
                (Self::estimate_unread(path, body), ambiguity)
            }
        }
    }
}

fn model_of_form(
    path: &str,
    headers: &HeaderMap,
    body: &[u8],
    json: UnreadableRequest,
) -> Result<Option<CompactString>, UnreadableRequest> {
    endpoint::check(path)?;
    check_encoding(headers)?;
    let named = match kind(headers)? {
        Kind::Multipart(boundary) => multipart::read(&boundary, body)?,
        Kind::Pairs if form::is_pairs(body) => form::pairs(body),
        Kind::Pairs | Kind::Json => return Err(json),
    };
    let of_path = endpoint::model_of(&endpoint::normalized(path));
    if of_path.is_none() {
        named.check()?;
    }
    Ok(of_path.or(named.model.filter(|model| !model.is_empty())))
}

fn check_encoding(headers: &HeaderMap) -> Result<(), UnreadableRequest> {
    let is_identity = |line: &HeaderValue| line.as_bytes().eq_ignore_ascii_case(b"identity");
    match headers.get_all(CONTENT_ENCODING).into_iter().all(is_identity) {
        true => Ok(()),
        false => Err(UnreadableRequest::header("content-encoding", ENCODED)),
    }
}

fn kind(headers: &HeaderMap) -> Result<Kind<'_>, UnreadableRequest> {
    let mut lines = headers.get_all(CONTENT_TYPE).into_iter();
    let Some(line) = lines.next() else { return Ok(Kind::Json) };
    if lines.next().is_some() {
        return Err(invalid_type("given more than once; give it once"));
    }
    let text = line.to_str().map_err(|_| invalid_type(NO_PARAMETERS))?;
    let essence = text.split(';').next().unwrap_or(text).trim();
    let (mut boundary, mut is_twice, mut is_foreign) = (None, false, false);
    parameters(text, |name, value| match name {
        _ if name.eq_ignore_ascii_case("boundary") => is_twice |= boundary.replace(value).is_some(),
        _ if name.eq_ignore_ascii_case("charset") => {
            is_foreign |= !CHARSETS.iter().any(|known| value.eq_ignore_ascii_case(known));
        }
        _ => {}
    })
    .ok_or_else(|| invalid_type(NO_PARAMETERS))?;
    if is_foreign {
        return Err(invalid_type("unsupported `charset`; send the body in UTF-8"));
    }
    match essence {
        _ if essence.eq_ignore_ascii_case("multipart/form-data") => match boundary {
            Some(boundary) if !is_twice && !boundary.is_empty() => Ok(Kind::Multipart(boundary)),
            _ => Err(invalid_type("a form needs exactly one `boundary`; state it once")),
        },
        _ if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") => Ok(Kind::Pairs),
        _ => Ok(Kind::Json),
    }
}

fn invalid_type(reason: &'static str) -> UnreadableRequest {
    UnreadableRequest::header("content-type", reason)
}

/// Character sets in which ASCII bytes have the same meaning as in UTF-8.
const CHARSETS: [&str; 4] = ["utf-8", "utf8", "us-ascii", "iso-8859-1"];

const NO_PARAMETERS: &str = "invalid parameters; write them as `; name=value`";

const TWO_KINDS: &str = "the body names another model if it is read as the form that its `content-type` \
                         states than if it is read as JSON; send it as `application/json`";

const ENCODED: &str = "compressed bodies are not supported; send it uncompressed";
