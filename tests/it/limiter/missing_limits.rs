//! Costs and charges in dimensions without a limit.

use std::sync::{Arc, Mutex};

use paceline::engine::Wait;
use paceline::limiter::{AcquireError, Code, Event, Limiter, Refused};
use paceline::provider::{ANTHROPIC, OPENAI};
use paceline::quota::{Cost, Dimension, Limit, Quota, Window};
use paceline_limiter::seam;

use super::{builder, manual, paused, tokens};

fn apart() -> Quota {
    Quota::new().rpm(100).itpm(1_000).otpm(1_000)
}

fn images() -> Quota {
    Quota::new().limit(Limit::new(Dimension::custom("images"), 10, Window::MINUTE).unwrap())
}

fn missing(refused: &Refused) -> &str {
    assert_eq!((refused.code, refused.wait), (Code::MissingLimit, Wait::Never));
    refused.dimension.as_ref().unwrap().as_str()
}

/// Returns the used and held amount of each limit.
fn used_and_held(limiter: &Limiter) -> Vec<(u64, u64)> {
    limiter.stats("k").limits.iter().map(|limit| (limit.used, limit.held)).collect()
}

/// Returns the list of mismatches, filled as they are reported.
fn mismatches(limiter: &Limiter) -> Arc<Mutex<Vec<(String, String, bool)>>> {
    let reported = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&reported);
    seam::on_change(limiter, move |event| {
        if let Event::ChargeMismatch { key, dimension, kept } = event {
            sink.lock().unwrap().push((key.to_string(), dimension.to_string(), *kept));
        }
    });
    reported
}

#[test]
fn tokens_are_refused_where_input_and_output_are_limited() {
    let (limiter, _) = manual(apart());
    let refused = limiter.try_acquire("k", &tokens(50)).unwrap_err();
    assert_eq!(missing(&refused), "tokens");
    let text = refused.to_string();
    assert!(text.contains("k: no limit counts tokens;"), "{text}");
    assert_eq!(limiter.decide("k", &tokens(50)).code, Code::MissingLimit);
    assert!(limiter.key("k").unwrap().try_acquire(&tokens(50)).is_err());
    assert_eq!(used_and_held(&limiter), [(0, 0); 3]);
    assert!(limiter.try_acquire("k", &Cost::new().input_tokens(50)).is_ok());
    assert!(limiter.try_acquire("k", &tokens(0)).is_ok());
}

#[test]
fn input_and_output_are_refused_where_sum_is_limited() {
    let (limiter, _) = manual(Quota::new().tpm(1_000));
    let cost = Cost::new().input_tokens(50).output_tokens(5);
    assert_eq!(missing(&limiter.try_acquire("k", &cost).unwrap_err()), "input_tokens");
    assert!(limiter.try_acquire("k", &cost.tokens(55)).is_ok());
}

#[test]
fn misspelt_custom_dimension_is_refused() {
    let (limiter, _) = manual(images().rpm(10));
    let refused = limiter.try_acquire("k", &Cost::new().custom("imagse", 2)).unwrap_err();
    assert_eq!(missing(&refused), "imagse");
    let both = Cost::new().custom("images", 1).custom("imagse", 2);
    assert_eq!(missing(&limiter.try_acquire("k", &both).unwrap_err()), "imagse");
    assert!(limiter.try_acquire("k", &Cost::new().custom("images", 2)).is_ok());
    assert!(limiter.try_acquire("k", &Cost::new().custom("imagse", 0)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn acquire_with_missing_limit_fails_immediately() {
    let limiter = paused(apart());
    let error = limiter.acquire("k", &tokens(50)).await.unwrap_err();
    assert!(matches!(error, AcquireError::Refused(refused) if missing(&refused) == "tokens"));
    let error = limiter.wait_for_capacity("k", &tokens(50)).await.unwrap_err();
    assert!(matches!(error, AcquireError::Refused(refused) if missing(&refused) == "tokens"));
}

#[test]
fn custom_dimension_limited_by_one_of_several_keys_passes() {
    let builder = builder().quota("tenant", images()).quota("model", Quota::new().tpm(1_000));
    let limiter = builder.quota("apart", apart()).quota("free", Quota::new()).build().unwrap();
    let acquire = |keys: &[&str], cost: &Cost| limiter.acquire_all(keys, cost).try_now();
    let cost = tokens(50).custom("images", 1);
    assert!(acquire(&["tenant", "model", "free"], &cost).is_ok());
    assert_eq!(missing(&acquire(&["model", "free"], &cost).unwrap_err()), "images");
    let refused = acquire(&["model", "apart"], &tokens(50)).unwrap_err();
    assert_eq!((missing(&refused), refused.key.as_str()), ("tokens", "apart"));
}

#[test]
fn keys_without_limits_and_full_estimates_are_accepted() {
    let limiter = builder().quota("free", Quota::new()).quota("k", apart()).build().unwrap();
    for key in ["free", "unknown"] {
        assert!(limiter.try_acquire(key, &tokens(50).custom("imagse", 1)).is_ok());
    }
    let requests = builder().quota("k", Quota::new().rpm(5)).build().unwrap();
    assert!(requests.try_acquire("k", &tokens(50)).is_ok());
    let body = br#"{"model": "k", "messages": [], "tools": [{"type": "function"}]}"#;
    for profile in [OPENAI, ANTHROPIC] {
        for path in ["/v1/chat/completions", "/v1/embeddings", "/v1/images/generations"] {
            let cost = profile.read_request(path, body).cost;
            for quota in [Quota::new().tpm(9_999), Quota::new().otpm(9_999), apart()] {
                let limiter = builder().quota("k", quota).build().unwrap();
                assert!(limiter.try_acquire("k", &cost).is_ok(), "{} {path}", profile.name());
            }
        }
    }
}

#[test]
fn learned_limits_refuse_no_dimension() {
    let limiter = builder().provider(ANTHROPIC).build().unwrap();
    let mut headers = http::HeaderMap::new();
    for name in ["input", "output"] {
        let name = format!("anthropic-ratelimit-{name}-tokens-limit");
        headers.insert(http::HeaderName::try_from(name).unwrap(), 1_000.into());
    }
    limiter.feedback().learn("k", &ANTHROPIC.limits(&headers));
    assert_eq!(limiter.quotas().of("k").limits().len(), 2);
    assert!(limiter.try_acquire("k", &tokens(50)).is_ok());
}

#[test]
fn settle_in_other_dimension_keeps_reservation_and_reports() {
    let (limiter, _) = manual(Quota::new().tpm(1_000));
    let reported = mismatches(&limiter);
    let permit = limiter.try_acquire("k", &tokens(100)).unwrap();
    permit.settle(&Cost::new().input_tokens(50).output_tokens(5));
    assert_eq!(used_and_held(&limiter), [(100, 0)]);
    assert_eq!(*reported.lock().unwrap(), [("k".to_owned(), "tokens".to_owned(), true)]);

    let (limiter, _) = manual(apart());
    let reported = mismatches(&limiter);
    let cost = Cost::new().input_tokens(80).output_tokens(20);
    limiter.try_acquire("k", &cost).unwrap().settle(&tokens(100));
    assert_eq!(used_and_held(&limiter), [(1, 0), (80, 0), (20, 0)]);
    assert_eq!(*reported.lock().unwrap(), [("k".to_owned(), "input_tokens".to_owned(), true)]);
    // Part of the reservation.
    limiter.try_acquire("k", &cost).unwrap().settle(&Cost::new().output_tokens(7));
    assert_eq!(used_and_held(&limiter), [(2, 0), (160, 0), (27, 0)]);
}

#[test]
fn settle_of_misspelt_custom_dimension_keeps_reservation() {
    let (limiter, _) = manual(images());
    let reported = mismatches(&limiter);
    let reserved = Cost::new().custom("images", 3);
    limiter.try_acquire("k", &reserved).unwrap().settle(&Cost::new().custom("imagse", 1));
    assert_eq!(used_and_held(&limiter), [(3, 0)]);
    assert_eq!(*reported.lock().unwrap(), [("k".to_owned(), "images".to_owned(), true)]);
    limiter.try_acquire("k", &Cost::new()).unwrap().settle(&Cost::new().custom("imagse", 1));
    let reported = reported.lock().unwrap();
    assert_eq!(reported[1..], [("k".to_owned(), "imagse".to_owned(), false)]);
    assert_eq!(used_and_held(&limiter), [(3, 0)]);
}

#[test]
fn zero_charge_of_a_dimension_counts() {
    let (limiter, _) = manual(Quota::new().tpm(1_000));
    let reported = mismatches(&limiter);
    limiter.try_acquire("k", &tokens(100)).unwrap().settle(&tokens(0));
    assert_eq!(used_and_held(&limiter), [(0, 0)]);
    let reserved = tokens(100).input_tokens(60).output_tokens(40);
    let charged = tokens(30).input_tokens(30).output_tokens(0);
    limiter.try_acquire("k", &reserved).unwrap().settle(&charged);
    assert_eq!(used_and_held(&limiter), [(30, 0)]);
    limiter.try_acquire("k", &reserved).unwrap().settle(&tokens(30));
    assert_eq!(used_and_held(&limiter), [(60, 0)]);
    assert!(reported.lock().unwrap().is_empty());
}

#[test]
fn settle_under_several_keys_keeps_limits_of_each() {
    let quota = |quota: Quota| quota.with_algorithm(paceline::quota::Algorithm::TokenBucket);
    let builder = builder().quota("k", quota(images())).quota("m", quota(Quota::new().tpm(1_000)));
    let limiter = builder.build().unwrap();
    let reported = mismatches(&limiter);
    let acquire = || limiter.acquire_all(&["k", "m"], &tokens(50).custom("images", 2)).try_now();
    acquire().unwrap().settle(&tokens(20).custom("images", 1));
    assert!(reported.lock().unwrap().is_empty());
    acquire().unwrap().settle(&tokens(20));
    assert_eq!(used_and_held(&limiter), [(3, 0)]);
    assert_eq!(*reported.lock().unwrap(), [("k".to_owned(), "images".to_owned(), true)]);
}
