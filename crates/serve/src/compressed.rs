use axum::Router;
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{map_request, map_response};
use axum::response::{IntoResponse, Response};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;
use tower_http::decompression::RequestDecompressionLayer;

use super::problem::Problem;

/// Compresses what is long, for who accepts that (gzip). Not around streams of events, each of which is
/// to arrive at once, and not around what passes to its client unchanged.
pub(super) fn compressed() -> CompressionLayer<SizeAbove> {
    CompressionLayer::new().compress_when(SizeAbove::new(LONG))
}

/// Has these routes read bodies that come compressed (gzip), as if they hadn't. What they bound is what
/// a body holds: no more of it is decompressed than they read.
pub(super) fn decompressed<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    // Whatever else another crate has the library know.
    let layer = RequestDecompressionLayer::new().no_br().no_deflate().no_zstd();
    routes
        .route_layer(layer)
        .route_layer(map_request(plainly_named))
        .route_layer(map_response(unknown_encoding))
}

/// The library knows gzip by one of its names alone, in small letters (RFC 9110, 8.4.1).
async fn plainly_named(mut request: Request) -> Request {
    let is_gzip = |name: &&mut HeaderValue| {
        let name = name.as_bytes();
        [&b"gzip"[..], b"x-gzip"].iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    if let Some(name) = request.headers_mut().get_mut(CONTENT_ENCODING).filter(is_gzip) {
        *name = HeaderValue::from_static("gzip");
    }
    request
}

/// The library answers without a word to an encoding that it doesn't know, but with those that it does
/// (RFC 9110, 12.5.3).
async fn unknown_encoding(response: Response) -> Response {
    let known = response.headers().get(ACCEPT_ENCODING).cloned();
    let Some(known) = known.filter(|_| response.status() == UNSUPPORTED) else { return response };
    let detail = "the body is in an encoding that isn't known here; `accept-encoding` says which are, \
                  and without `content-encoding` it is taken as it is";
    let mut response = Problem::new(UNSUPPORTED, "unsupported_encoding", detail).into_response();
    response.headers_mut().insert(ACCEPT_ENCODING, known);
    response
}

const UNSUPPORTED: StatusCode = StatusCode::UNSUPPORTED_MEDIA_TYPE;

/// In bytes: what is shorter goes in one packet anyway.
const LONG: u64 = 1_024;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::body::{Body, Bytes};
    use axum::extract::DefaultBodyLimit;
    use axum::http::Request;
    use axum::routing::post;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn of_a_body_that_holds_far_more_than_is_read_no_more_is_decompressed() {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        (0..64).for_each(|_| bomb.write_all(&[0; 1 << 20]).unwrap());
        let bomb = bomb.finish().unwrap();
        assert!(bomb.len() < 1 << 17, "{}", bomb.len());
        // Each of some 60 parts is a megabyte.
        let read = Arc::new(AtomicUsize::new(0));
        let parts = bomb.chunks(1_024).map(Bytes::copy_from_slice).collect::<Vec<_>>();
        let counted = Arc::clone(&read);
        let parts = futures_util::stream::iter(parts.into_iter().map(move |part| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::convert::Infallible>(part)
        }));
        let reads = Router::new().route("/", post(async |body: Bytes| body.len().to_string()));
        let routes = decompressed(reads).layer(DefaultBodyLimit::max(1 << 18));
        let request = Request::post("/").header(CONTENT_ENCODING, "gzip");
        let request = request.body(Body::from_stream(parts)).unwrap();
        let response = routes.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert!((1..4).contains(&read.load(Ordering::Relaxed)), "{read:?}");
    }
}
