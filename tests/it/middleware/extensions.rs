//! Extensions of requests sent through reqwest, which doesn't expose them itself.

use paceline::middleware::{Journey, RateLimitLayer};
use reqwest::{Body, Response};
use tower::{Service, ServiceBuilder, ServiceExt};

use super::inner::Frames;
use super::reqwest::{CHAT, client, closed_port, limiter, ok, respond_once};
use super::{USAGE, available, held};

#[tokio::test]
async fn http_request_keeps_journey_through_reqwest() {
    let limiter = limiter();
    let mut service = ServiceBuilder::new()
        .layer(RateLimitLayer::new(limiter.clone()))
        .filter(|request: http::Request<Body>| reqwest::Request::try_from(request))
        .service(client());
    for (body, in_memory) in
        [(Body::from(CHAT), true), (Body::wrap(Frames::from(CHAT).with_known_end()), false)]
    {
        let journey = Journey::new();
        let url = format!("{}/v1/chat/completions", respond_once(ok(USAGE)).await);
        let request = http::Request::post(&url).extension(journey.clone()).body(body).unwrap();
        let response: Response = service.ready().await.unwrap().call(request).await.unwrap();
        assert_eq!(response.url().as_str(), url);
        response.bytes().await.unwrap();
        let facts = journey.facts();
        // The model of a stream cannot be read; its size can.
        assert_eq!(facts.key, if in_memory { "gpt-4o" } else { "unknown" });
        assert_eq!(facts.usage.map(|usage| usage.output), Some(9));
    }
    assert_eq!(available(&limiter, "gpt-4o"), [9_979]);

    let (_socket, url) = closed_port();
    let request = http::Request::post(url).body(Body::from(CHAT)).unwrap();
    service.ready().await.unwrap().call(request).await.unwrap_err();
    assert_eq!((held(&limiter, "gpt-4o"), available(&limiter, "gpt-4o")), (vec![0], vec![9_979]));
}
