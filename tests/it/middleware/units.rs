//! Quantities other than tokens that a profile reads from requests.

use http::{Request, Response};
use paceline::middleware::RateLimitLayer;
use paceline::provider::OPENAI;
use paceline::quota::{Dimension, Limit, Quota};

use super::inner::Frames;
use super::{S, available, builder, client_returning, send};

fn images(n: u64) -> Request<String> {
    let body = serde_json::json!({"model": "gpt-image-2", "prompt": "A gate", "n": n});
    Request::post("/v1/images/generations").body(body.to_string()).unwrap()
}

fn answer() -> Response<Frames> {
    Frames::from(r#"{"created": 1, "data": []}"#).into_response()
}

#[tokio::test(start_paused = true)]
async fn images_are_charged_where_a_quota_counts_them() {
    let per_minute = Limit::per_minute(Dimension::custom("images"), 3);
    let limiter = builder()
        .provider(OPENAI)
        .quota("gpt-image-2", Quota::new().rpm(60).tpm(100_000))
        .quota("account", Quota::new().limit(per_minute))
        .build()
        .unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).scope("account");
    let mut client = client_returning(&layer, answer);
    let start = limiter.now();
    drop(send(&mut client, images(2)).await);
    assert_eq!(available(&limiter, "account"), [1]);
    drop(send(&mut client, images(2)).await);
    assert_eq!(limiter.now() - start, 60 * S, "three images in any minute");
    assert_eq!(available(&limiter, "account"), [1]);
}
