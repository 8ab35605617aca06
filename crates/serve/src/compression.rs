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

/// Returns a layer that compresses long responses with gzip if the client accepts it. It must not be
/// applied to event streams, whose events must arrive immediately, or to proxied responses, which are
/// forwarded unchanged.
pub(super) fn compression() -> CompressionLayer<SizeAbove> {
    CompressionLayer::new().compress_when(SizeAbove::new(MIN_SIZE))
}

/// Adds layers that decompress request bodies (gzip). Size limits apply to the decompressed body, which
/// is decompressed only as far as it is read.
pub(super) fn decompression<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    // Another crate may enable further encodings.
    let layer = RequestDecompressionLayer::new().no_br().no_deflate().no_zstd();
    routes
        .route_layer(layer)
        .route_layer(map_request(normalize_encoding))
        .route_layer(map_response(describe_unsupported))
}

/// Normalizes the names of gzip: tower-http only accepts `gzip` in lower case (RFC 9110, 8.4.1).
async fn normalize_encoding(mut request: Request) -> Request {
    let is_gzip = |name: &&mut HeaderValue| {
        let name = name.as_bytes();
        [&b"gzip"[..], b"x-gzip"].iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    if let Some(name) = request.headers_mut().get_mut(CONTENT_ENCODING).filter(is_gzip) {
        *name = HeaderValue::from_static("gzip");
    }
    request
}

/// Adds a problem document to responses of tower-http to an unknown encoding, which list the supported
/// ones (RFC 9110, 12.5.3) but have no body.
async fn describe_unsupported(response: Response) -> Response {
    let known = response.headers().get(ACCEPT_ENCODING).cloned();
    let Some(known) = known.filter(|_| response.status() == UNSUPPORTED) else { return response };
    let detail = "unsupported content encoding; `accept-encoding` lists the supported ones; omit \
                  `content-encoding` to send the body uncompressed";
    let mut response = Problem::new(UNSUPPORTED, "unsupported_encoding", detail).into_response();
    response.headers_mut().insert(ACCEPT_ENCODING, known);
    response
}

const UNSUPPORTED: StatusCode = StatusCode::UNSUPPORTED_MEDIA_TYPE;

/// In bytes; a shorter response fits into one packet anyway.
const MIN_SIZE: u64 = 1_024;

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
    async fn oversized_body_is_decompressed_only_up_to_the_limit() {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        (0..64).for_each(|_| bomb.write_all(&[0; 1 << 20]).unwrap());
        let bomb = bomb.finish().unwrap();
        assert!(bomb.len() < 1 << 17, "{}", bomb.len());
        // The body has about 60 parts; each decompresses to about 1 MB.
        let read = Arc::new(AtomicUsize::new(0));
        let parts = bomb.chunks(1_024).map(Bytes::copy_from_slice).collect::<Vec<_>>();
        let counted = Arc::clone(&read);
        let parts = futures_util::stream::iter(parts.into_iter().map(move |part| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::convert::Infallible>(part)
        }));
        let reads = Router::new().route("/", post(async |body: Bytes| body.len().to_string()));
        let routes = decompression(reads).layer(DefaultBodyLimit::max(1 << 18));
        let request = Request::post("/").header(CONTENT_ENCODING, "gzip");
        let request = request.body(Body::from_stream(parts)).unwrap();
        let response = routes.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert!((1..4).contains(&read.load(Ordering::Relaxed)), "{read:?}");
    }
}
