use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Empty;

use super::BenchArgs;
use super::target::PathTemplate;

/// The requests of all connections, which differ in their keys.
#[derive(Debug)]
pub(super) struct RequestTemplate {
    template: PathTemplate,
    query: &'static str,
    /// The part of the URL before the path: empty for HTTP/1.1, which has the authority in a header.
    origin: String,
    method: Method,
    headers: HeaderMap,
    keys: u64,
}

impl RequestTemplate {
    /// Returns the template of the arguments.
    ///
    /// # Errors
    /// Returns an error if the token is not a valid header value.
    pub(super) fn new(args: &BenchArgs) -> Result<Self, String> {
        let authority = args.url.authority.as_str();
        let mut headers = HeaderMap::new();
        if !args.http2 {
            let host = HeaderValue::from_str(authority);
            headers.insert(HOST, host.map_err(|error| error.to_string())?);
        }
        if let Some(token) = std::env::var_os(TOKEN) {
            let token = token.to_str().and_then(|token| HeaderValue::from_str(token).ok());
            let mut token = token.ok_or_else(|| {
                format!(
                    "{TOKEN}: not a valid header value; remove control characters and line breaks"
                )
            })?;
            token.set_sensitive(true);
            headers.insert(TOKEN_HEADER, token);
        }
        Ok(Self {
            template: args.path.clone(),
            query: match (args.wait, args.path.has_query()) {
                (false, _) => "",
                (true, false) => "?canWait=true",
                (true, true) => "&canWait=true",
            },
            origin: if args.http2 { args.url.to_string() } else { String::new() },
            method: args.method.clone(),
            headers,
            keys: args.keys,
        })
    }

    /// Returns the request with this number. Consecutive requests rotate through the keys.
    pub(super) fn request(&self, number: u64) -> Request<Empty<Bytes>> {
        let path = self.template.path(number % self.keys);
        let uri: Uri = format!("{}{path}{}", self.origin, self.query)
            .parse()
            .expect("the template is a valid path for every key");
        let mut request = Request::new(Empty::new());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        request.headers_mut().clone_from(&self.headers);
        request
    }
}

/// The environment variable with the client token.
const TOKEN: &str = "PACELINE_TOKEN";

/// The header with the client token.
const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-paceline-token");
