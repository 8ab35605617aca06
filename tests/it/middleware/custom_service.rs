//! Runs `examples/custom_service.rs`: a service that is not HTTP.

use std::time::Duration;

use paceline::limiter::{Code, Limiter};
use tower::{Service, ServiceExt};

use super::{available, builder};

#[path = "../../../examples/custom_service.rs"]
#[expect(dead_code, reason = "its main function is not called here")]
mod example;

use example::Embed;

/// Embeds this many words for the team and returns the number charged.
async fn embed(limiter: &Limiter, team: &'static str, words: usize) -> u64 {
    let mut machine = example::machine(limiter);
    let request = Embed { team, text: "word ".repeat(words) };
    let embedded = machine.ready().await.unwrap().call(request).await.unwrap();
    assert_eq!(embedded.vector.len(), words);
    embedded.words_charged
}

#[tokio::test(start_paused = true)]
async fn requests_wait_by_words_and_pay_observed_words() {
    let limiter = builder().quota("team:*", example::quota()).build().unwrap();
    let begin = limiter.now();
    assert_eq!(embed(&limiter, "blue", 200).await, 100);
    assert_eq!(available(&limiter, "team:blue"), [100]);
    assert_eq!(limiter.now(), begin);
    // The refunded half is available immediately; the rest takes a second.
    assert_eq!(embed(&limiter, "blue", 100).await, 100);
    assert_eq!(limiter.now(), begin);
    assert_eq!(embed(&limiter, "blue", 100).await, 100);
    assert_eq!(limiter.now() - begin, Duration::from_secs(1));
    // Another team has a separate limit.
    assert_eq!(embed(&limiter, "red", 200).await, 100);
    assert_eq!(limiter.now() - begin, Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn request_above_word_limit_is_refused_immediately() {
    let limiter = builder().quota("team:*", example::quota()).build().unwrap();
    let request = Embed { team: "blue", text: "word ".repeat(201) };
    let error = example::machine(&limiter).oneshot(request).await.unwrap_err();
    assert_eq!((error.code(), error.key()), (Some(Code::ExceedsCapacity), Some("team:blue")));
}
