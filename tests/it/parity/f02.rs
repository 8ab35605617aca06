//! An error names the exceeded bucket.

use std::time::Duration;

use paceline::engine::Wait;
use paceline::limiter::{AcquireError, Code, Event};
use paceline::quota::{Cost, Dimension, Quota};

use super::rig::{buckets, limit, manual, tokens};

#[test]
fn f02_refusal_names_the_exceeded_dimension() {
    let images = Dimension::custom("images");
    let hour = Duration::from_secs(3_600);
    let quota = || {
        let quota = Quota::new().rpm(10).tpm(10).itpm(10).otpm(10);
        quota.limit(limit(images.clone(), 10, hour))
    };
    let cases = [
        (Cost::new().requests(10), Dimension::Requests, Code::RpmExceeded),
        (Cost::new().tokens(10), Dimension::Tokens, Code::TpmExceeded),
        (Cost::new().input_tokens(10), Dimension::InputTokens, Code::ItpmExceeded),
        (Cost::new().output_tokens(10), Dimension::OutputTokens, Code::OtpmExceeded),
        (Cost::new().custom("images", 10), images.clone(), Code::LimitExceeded),
    ];
    for (cost, dimension, code) in cases {
        let (limiter, _) = manual(quota());
        drop(limiter.try_acquire("k", &cost).unwrap());
        let mut events = limiter.subscribe();
        let refused = limiter.try_acquire("k", &cost).unwrap_err();
        assert_eq!((&*refused.key, refused.code), ("k", code));
        assert_eq!(refused.dimension, Some(dimension.clone()));
        let wait = if code == Code::LimitExceeded { hour } else { Duration::from_secs(60) };
        assert_eq!(refused.retry_after(), Some(wait));
        let Ok(Event::Denied { dimension: reported, .. }) = events.try_recv() else { panic!() };
        assert_eq!(reported, Some(dimension));
    }
}

#[test]
fn f02_refusal_names_dimension_with_longest_wait() {
    let (limiter, _) = manual(buckets(Quota::new().rpm(60).tpm(60)));
    drop(limiter.try_acquire("k", &Cost::new().requests(60).tokens(60)).unwrap());
    let binding = |cost: &Cost| limiter.try_acquire("k", cost).unwrap_err().dimension.unwrap();
    assert_eq!(binding(&Cost::new().requests(5).tokens(4)), Dimension::Requests);
    assert_eq!(binding(&Cost::new().requests(4).tokens(5)), Dimension::Tokens);
}

#[tokio::test]
async fn f02_deadline_error_names_the_dimension() {
    let (limiter, _) = manual(Quota::new().rpm(10).tpm(100));
    drop(limiter.try_acquire("k", &tokens(100)).unwrap());
    let late = limiter.acquire("k", &tokens(1)).max_wait(Duration::from_secs(59)).await;
    let Err(AcquireError::DeadlineExceeded { refused, .. }) = late else { panic!("{late:?}") };
    assert_eq!(refused.dimension, Some(Dimension::Tokens));
    let never = limiter.acquire("k", &tokens(101)).await.unwrap_err();
    let refused = never.refused().unwrap();
    assert_eq!((refused.dimension.as_ref(), refused.wait), (Some(&Dimension::Tokens), Wait::Never));
    let text = "k: the request needs 101 tokens, the limit allows at most 100; \
                make the request smaller or raise the limit";
    assert_eq!(never.to_string(), text);
}
