use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use http_body::{Frame, SizeHint};

use super::api_state::Api;
use super::reservation_id::ReservationId;

/// The response body of a new reservation. It releases the reservation if it is dropped before it is
/// polled, because the client disconnected.
///
/// A client that disconnects later leaves a reservation that expires.
pub(super) struct ReservationBody {
    body: Option<Bytes>,
    reservation: Option<(Arc<Api>, ReservationId)>,
}

impl ReservationBody {
    /// Creates a body. With `None`, the reservation is kept in any case.
    pub(super) fn new(body: Vec<u8>, reservation: Option<(Arc<Api>, ReservationId)>) -> Self {
        Self { body: Some(body.into()), reservation }
    }
}

impl http_body::Body for ReservationBody {
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

impl IntoResponse for ReservationBody {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::new(self));
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }
}

impl Drop for ReservationBody {
    fn drop(&mut self) {
        if let Some((api, id)) = self.reservation.take() {
            // The reservation may have expired.
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
    async fn undelivered_reservation_is_released() {
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

        // A delivered reservation is kept, and so is one with an idempotency key, whose response the
        // client can request again.
        reserve(&routes, None).await.into_body().collect().await.unwrap();
        assert_eq!(held(), 1);
        drop(reserve(&routes, Some("k")).await);
        assert_eq!(held(), 2);
    }
}
