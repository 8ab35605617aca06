//! Responses that are in memory as a whole, in contrast to event streams and proxied responses.

use std::io::Write;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body::Body as _;

use super::app::App;
use super::budget::BudgetPermit;
use super::client_address::ClientAddress;
use super::problem::Problem;

/// A body that never changes, which is compressed once.
#[derive(Debug, Clone)]
pub(super) struct StaticBody {
    plain: Bytes,
    gzip: Bytes,
}

impl StaticBody {
    pub(super) fn new(plain: impl Into<Bytes>) -> Self {
        let plain = plain.into();
        Self { gzip: gzip(&plain), plain }
    }

    /// Returns a response in the encoding that these headers of a request prefer.
    pub(super) fn response(&self, request: &HeaderMap) -> Response {
        let is_gzip = accepts_gzip(request);
        let body = if is_gzip { &self.gzip } else { &self.plain };
        let mut response = Body::from(body.clone()).into_response();
        set_encoding(response.headers_mut(), is_gzip);
        response
    }
}

/// Middleware for responses that are complete: it compresses long ones if the client accepts it, and bounds the memory of
/// those that clients don't read.
///
/// A response is compressed in one piece: a stream that isn't read holds its bytes, and no encoder.
pub(super) async fn complete(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    let client = ClientAddress::of_request(request.extensions());
    let is_gzip = accepts_gzip(request.headers());
    // Another answer may tell what has been done.
    let may_refuse = request.method().is_safe();
    let response = next.run(request).await;
    let length = response.body().size_hint().exact().and_then(|length| length.try_into().ok());
    let Some(length) = length.filter(|length: &usize| *length > MIN_COMPRESSED) else {
        return response;
    };
    // An answer that no budget has room for, as that of a million keys, may be the only one of its client.
    let counted = if may_refuse && length > MIN_COUNTED {
        length.min(app.answers.largest_share())
    } else {
        0
    };
    let Ok(mut permit) = app.answers.share(client).take(counted) else {
        return busy().into_response();
    };
    let (mut parts, body) = response.into_parts();
    let Ok(mut bytes) = to_bytes(body, usize::MAX).await else {
        return Problem::internal().into_response();
    };
    if is_gzip {
        bytes = match length > MAX_INLINE {
            true => match app.scan(move || gzip(&bytes)).await {
                Ok(bytes) => bytes,
                Err(problem) => return problem.into_response(),
            },
            false => gzip(&bytes),
        };
        permit.shrink_to(bytes.len());
        parts.headers.remove(CONTENT_LENGTH);
    }
    set_encoding(&mut parts.headers, is_gzip);
    // HTTP/2 buffers the bytes after the body has ended.
    let bytes = Bytes::from_owner(CountedBytes { bytes, _permit: permit });
    Response::from_parts(parts, Body::from(bytes))
}

/// Bytes that take a part of a budget.
struct CountedBytes {
    bytes: Bytes,
    _permit: BudgetPermit,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn set_encoding(headers: &mut HeaderMap, is_gzip: bool) {
    headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    if is_gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
}

/// Returns true if a client accepts gzip (RFC 9110, 12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    let (mut named, mut any) = (None, false);
    for (name, weight) in lines.flat_map(|line| line.split(',')).map(weighted) {
        match name {
            "*" => any = weight,
            name if GZIP.iter().any(|gzip| name.eq_ignore_ascii_case(gzip)) => {
                named = Some(weight);
            }
            _ => {}
        }
    }
    named.unwrap_or(any)
}

/// Returns a coding and whether it is acceptable: its weight isn't 0.
fn weighted(item: &str) -> (&str, bool) {
    let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
    let weight = parameters
        .trim()
        .strip_prefix(['q', 'Q'])
        .and_then(|rest| rest.trim_start().strip_prefix('=')?.trim().parse::<f32>().ok());
    (name.trim(), weight.is_none_or(|weight| weight > 0.0))
}

fn gzip(plain: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(plain).and_then(|()| encoder.finish());
    written.expect("a Vec accepts all bytes").into()
}

fn busy() -> Problem {
    let detail = "the memory for long responses that are not read yet is used up; read the other responses, ask for \
                  shorter pages, or retry later";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).retry_after(1)
}

const GZIP: [&str; 2] = ["gzip", "x-gzip"];

/// In bytes; a shorter response fits into one packet anyway.
const MIN_COMPRESSED: usize = 1_024;

/// In bytes; only lists are longer. Shorter responses are bounded by the number of requests.
const MIN_COUNTED: usize = 16 << 10;

/// In bytes, which are compressed within a few milliseconds.
const MAX_INLINE: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::to_bytes;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;
    use crate::{Serve, Tokens, parse};

    /// Routes with an answer of 10 MiB, and one that is longer than the budget.
    fn routes() -> Router {
        let config = parse("serve: {listen: '127.0.0.1:0'}").unwrap();
        let limiter = config.builder().build().unwrap();
        let serve = Serve::of(&config).unwrap().clone();
        let listen = serve.listen;
        let app = Arc::new(App::new(config, serve, limiter, Tokens::default(), listen));
        Router::new()
            .route("/long", get(async || vec![b' '; 10 << 20]).post(async || vec![b' '; 10 << 20]))
            .route("/huge", get(async || vec![b' '; 100 << 20]))
            .layer(from_fn_with_state(app, complete))
    }

    async fn ask(
        routes: &Router,
        method: &str,
        path: &str,
        client: u8,
        encoding: &str,
    ) -> Response {
        let request = Request::builder().method(method).uri(path).header(ACCEPT_ENCODING, encoding);
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(ClientAddress::of([10, 0, 0, client].into()));
        routes.clone().oneshot(request).await.unwrap()
    }

    async fn get_from(routes: &Router, path: &str, client: u8) -> Response {
        ask(routes, "GET", path, client, "identity").await
    }

    #[tokio::test]
    async fn unread_long_responses_leave_room_for_others() {
        let routes = routes();
        let mut held = Vec::new();
        for _ in 0..3 {
            let response = get_from(&routes, "/long", 1).await;
            // HTTP/2 has the bytes when the body has ended.
            held.push(to_bytes(response.into_body(), usize::MAX).await.unwrap());
        }
        for path in ["/long", "/huge"] {
            let refused = get_from(&routes, path, 1).await;
            assert_eq!(
                (refused.status().as_u16(), &refused.headers()["retry-after"]),
                (503, &"1".parse().unwrap())
            );
        }
        // What a request has done is told in any case.
        assert_eq!(ask(&routes, "POST", "/long", 1, "identity").await.status(), 200);
        let other = get_from(&routes, "/long", 2).await;
        assert_eq!(other.status(), 200);
        drop((other, held.pop()));
        assert_eq!(get_from(&routes, "/long", 1).await.status(), 200);
    }

    #[tokio::test]
    async fn longest_response_is_the_only_one_of_its_client() {
        let routes = routes();
        let huge = get_from(&routes, "/huge", 1).await;
        assert_eq!(huge.status(), 200);
        assert_eq!(get_from(&routes, "/long", 1).await.status(), 503);
        assert_eq!(get_from(&routes, "/long", 2).await.status(), 200);
        drop(huge);
        assert_eq!(get_from(&routes, "/long", 1).await.status(), 200);
    }

    #[tokio::test]
    async fn compressed_responses_count_with_their_compressed_length() {
        let routes = routes();
        let mut held = Vec::new();
        for _ in 0..4 {
            let response = ask(&routes, "GET", "/long", 1, "gzip").await;
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers()[CONTENT_ENCODING], "gzip");
            held.push(response);
        }
        assert_eq!(get_from(&routes, "/long", 1).await.status(), 200);
    }

    #[test]
    fn gzip_is_used_if_it_is_accepted() {
        for (lines, expected) in [
            (&["gzip"][..], true),
            (&["br;q=1.0, GZIP ;q=0.5, *;q=0"], true),
            (&["br", "x-gzip"], true),
            (&["*"], true),
            (&["*;q=0"], false),
            (&["*, gzip;q=0"], false),
            (&["gzip; q=0.000"], false),
            (&["br, identity"], false),
            (&[], false),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(ACCEPT_ENCODING, HeaderValue::from_static(line));
            }
            assert_eq!(accepts_gzip(&headers), expected, "{lines:?}");
        }
    }
}
