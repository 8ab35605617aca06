//! `RateLimitLayer` wraps any `Service`.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use paceline::limiter::Limiter;
use paceline::middleware::{Classified, RateLimitLayer};
use paceline::quota::{Cost, Quota};
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};

fn limiter_of_two() -> Limiter {
    Limiter::builder().quota("k", Quota::new().rpm(2)).build().unwrap()
}

/// Sends three requests through a service and returns the number admitted.
async fn admitted_of_three<S, R>(service: S, request: impl Fn() -> R) -> usize
where
    S: Service<R> + Clone,
{
    let mut count = 0;
    for _ in 0..3 {
        count += usize::from(service.clone().oneshot(request()).await.is_ok());
    }
    count
}

#[tokio::test]
async fn d01_layer_wraps_a_function_over_http_types() {
    async fn answer(_: Request<String>) -> Result<Response<Full<Bytes>>, Infallible> {
        Ok(Response::new("hello".into()))
    }
    let layer = RateLimitLayer::new(limiter_of_two()).key("k").reject();
    let service = layer.layer(service_fn(answer));
    let body = service.clone().oneshot(Request::new(String::new())).await.unwrap().into_body();
    assert_eq!(body.collect().await.unwrap().to_bytes(), "hello");
    assert_eq!(admitted_of_three(service, || Request::new(String::new())).await, 1);
}

#[tokio::test]
async fn d01_layer_wraps_a_non_http_service_by_closures() {
    let double = service_fn(async |number: u64| Ok::<_, Infallible>(2 * number));
    let layer = RateLimitLayer::new(limiter_of_two())
        .classify(|number: &u64| Classified::new("k", Cost::new().tokens(*number)))
        .observe(|answer: &u64| Some(Cost::new().tokens(*answer)))
        .reject();
    assert_eq!(layer.layer(double).oneshot(21).await.unwrap(), 42);
    assert_eq!(admitted_of_three(layer.layer(double), || 1).await, 1);
}

/// A service with a custom error type that must be made ready before each call.
#[derive(Clone, Default)]
struct CustomService {
    ready: bool,
    calls: Arc<AtomicUsize>,
}

impl Service<()> for CustomService {
    type Response = ();
    type Error = std::fmt::Error;
    type Future = std::future::Ready<Result<(), std::fmt::Error>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        self.ready = true;
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, (): ()) -> Self::Future {
        assert!(std::mem::take(&mut self.ready));
        self.calls.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok(()))
    }
}

#[tokio::test]
async fn d01_layer_wraps_a_custom_service_in_a_tower_stack() {
    let own = CustomService::default();
    let layer = RateLimitLayer::new(limiter_of_two())
        .classify(|(): &()| Classified::new("k", Cost::new()))
        .observe(|(): &()| None)
        .reject();
    let stack = ServiceBuilder::new()
        .map_err(|error: BoxError| error.to_string())
        .buffer(8)
        .layer(layer)
        .concurrency_limit(1)
        .map_err(BoxError::from)
        .service(own.clone());
    assert_eq!(admitted_of_three(stack, || ()).await, 2);
    assert_eq!(own.calls.load(Ordering::Relaxed), 2);
}
