use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use http_body::{Frame, SizeHint};

use super::id::Id;
use super::state::Api;

/// The answer that hands a reservation out. If nobody takes it, because its client has gone, the
/// reservation is given back.
///
/// Taken means: given to the connection. A client that goes after that is one that never settles.
pub(super) struct Handed {
    body: Option<Bytes>,
    reservation: Option<(Arc<Api>, Id)>,
}

impl Handed {
    /// `None` if the reservation stays whether or not anybody takes the answer.
    pub(super) fn new(body: Vec<u8>, reservation: Option<(Arc<Api>, Id)>) -> Self {
        Self { body: Some(body.into()), reservation }
    }
}

impl http_body::Body for Handed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.reservation = None;
        Poll::Ready(self.body.take().map(Frame::data).map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.body.as_ref().map_or(0, Bytes::len) as u64)
    }
}

impl IntoResponse for Handed {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::new(self));
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        if let Some((api, id)) = self.reservation.take() {
            // It may have expired by now.
            let _ = api.reservations.release(id, api.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::Router;
    use axum::http::{Request, StatusCode};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::Tokens;
    use crate::api::routes;
    use crate::app::App;
    use crate::config::{Serve, parse};

    async fn reserve(routes: &Router, key: Option<&str>) -> Response {
        let mut request = Request::post("http://localhost/v1/reserve");
        request = request.header(CONTENT_TYPE, "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(Body::from("{\"keys\":[\"a\"]}")).unwrap();
        let response = routes.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        response
    }

    #[tokio::test]
    async fn a_reservation_whose_answer_nobody_takes_is_given_back() {
        let config = parse("{quotas: {a: {concurrency: 9}}, margin: {percent: 0}}").unwrap();
        let limiter = config.builder().build().unwrap();
        let addr = SocketAddr::from(([127, 0, 0, 1], 0));
        let serve = Serve::of(&config).unwrap().clone();
        let app = Arc::new(App::new(config, serve, limiter.clone(), Tokens::default(), addr));
        let routes = routes(&app);
        let held = || limiter.stats("a").limits[0].held;

        let response = reserve(&routes, None).await;
        assert_eq!(held(), 1);
        drop(response);
        assert_eq!(held(), 0);

        // Taken, it stays; and so does one that its client can ask for again.
        reserve(&routes, None).await.into_body().collect().await.unwrap();
        assert_eq!(held(), 1);
        drop(reserve(&routes, Some("k")).await);
        assert_eq!(held(), 2);
    }
}
