//! Server mode as a layer of axum's router.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::Request;
use paceline::middleware::respond::RespondLayer;
use paceline::quota::{Cost, Quota};
use tower::{Layer, Service, ServiceExt};

use super::{limiter, respond};

/// Checks the bounds of `Router::layer`.
fn fits<L, S>(_: &L)
where
    L: Layer<S> + Clone + Send + Sync + 'static,
    L::Service: Service<Request<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    <L::Service as Service<Request<Body>>>::Future: Send + 'static,
{
}

#[tokio::test(start_paused = true)]
async fn respond_layer_fits_routers_routes_and_handlers() {
    let limiter = limiter(Quota::new().rpm(6));
    let layer = respond(&limiter).scope("k");
    fits::<RespondLayer, axum::routing::Route>(&layer);
    let app = Router::new()
        .route("/route", get(async || "hello").layer(layer.clone()))
        .nest("/nest", Router::new().route("/", get(async || "hello")).route_layer(layer.clone()))
        .merge(Router::new().route("/merged", get(async || "hello")).layer(layer));
    let mut statuses = Vec::new();
    for _ in 0..3 {
        for path in ["/route", "/nest", "/merged"] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            statuses.push(app.clone().oneshot(request).await.unwrap().status().as_u16());
        }
    }
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 429, 429, 429]);
}

#[tokio::test(start_paused = true)]
async fn classify_closure_replaces_scopes() {
    let limiter = limiter(Quota::new().tpm(10));
    let layer = respond(&limiter).classify(|request: &Request<Body>| {
        let tokens = http_body::Body::size_hint(request.body()).lower();
        paceline::middleware::Classified::new("k", Cost::new().tokens(tokens))
    });
    let app = Router::new().route("/", axum::routing::post(async || ())).layer(layer);
    for (body, status) in [("123456789", 200), ("12", 429), ("1", 200)] {
        let request = Request::post("/").body(Body::from(body)).unwrap();
        assert_eq!(app.clone().oneshot(request).await.unwrap().status().as_u16(), status);
    }
}
