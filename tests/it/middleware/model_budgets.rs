//! Budgets of models: requests that name no model are refused where one may be of such a model, and whatever waits for
//! a mode of a model waits for the model's budget.

use std::future::Future;
use std::task::{Context, Poll, Waker};

use http::Request;
use paceline::limiter::{AcquireError, Builder, Code, Limiter, Refused, UnknownKey};
use paceline::middleware::{Classify, Http, RateLimitLayer};
use paceline::price::{Price, Prices};
use paceline::provider::{ANTHROPIC, COMPATIBLE, OPENAI, Profile};
use paceline::quota::{Cost, Quota, Usd};
use tower::{Service, ServiceExt};

use super::inner::Frames;
use super::{available, builder, client_returning, is_ready};

/// $0.10.
const BUDGET: u64 = 100_000;

fn budget() -> Quota {
    Quota::new().usd_per_day(Usd::from_micros(BUDGET))
}

fn money(micros: u64) -> Cost {
    Cost::new().usd(Usd::from_micros(micros))
}

/// Returns a limiter of two providers whose only budget is of this key.
fn limiting(key: &str) -> Builder {
    builder().provider(OPENAI).provider(ANTHROPIC).quota(key, budget())
}

/// Returns the refusal of a request by this layer.
async fn refusal(layer: &RateLimitLayer, path: &str, body: &str) -> Option<Refused> {
    let mut client = client_returning(layer, || Frames::from("{}").into_response());
    let request = Request::post(path).body(body.to_owned()).unwrap();
    let sent = client.ready().await.unwrap().call(request).await;
    sent.err().map(|error| error.refused().expect("refused by the limiter").clone())
}

/// Returns the key of the refusal of a batch, whose lines name its models.
async fn refusing_key(limiter: Limiter, profile: Profile) -> Option<String> {
    refusing_key_of(RateLimitLayer::new(limiter).provider(profile)).await
}

async fn refusing_key_of(layer: RateLimitLayer) -> Option<String> {
    let refused = refusal(&layer, "/v1/batches", r#"{"input_file_id": "file-1"}"#).await?;
    assert_eq!(refused.code, Code::UnknownPrice);
    Some(refused.key.to_string())
}

#[tokio::test(start_paused = true)]
async fn unnamed_request_is_refused_under_a_models_budget() {
    let chat = r#""messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9"#;
    for (path, body) in [
        ("/v1/batches", r#"{"input_file_id": "file-1"}"#.to_owned()),
        ("/v1/chat/completions", format!("{{{chat}}}")),
        ("/v1/chat/completions", String::new()),
        ("/v1/responses", r#"{"prompt": {"id": "pmpt_1"}}"#.to_owned()),
        ("/v1/threads/t/runs", r#"{"assistant_id": "a"}"#.to_owned()),
        ("/v1/unheard/of", "{}".to_owned()),
    ] {
        let layer = RateLimitLayer::new(limiting("gpt-4o").build().unwrap());
        let refused = refusal(&layer, path, &body).await.expect(path);
        assert_eq!((&*refused.key, refused.code), ("gpt-4o", Code::UnknownPrice), "{path} {body}");
    }
    let layer = RateLimitLayer::new(limiting("gpt-4o").build().unwrap());
    for (path, body) in [
        // Free, of a model without a budget, and with a price.
        ("/v1/batches/batch_1/cancel", "{}".to_owned()),
        ("/v1/chat/completions", format!(r#"{{"model": "gpt-4.1", {chat}}}"#)),
        ("/v1/chat/completions", format!(r#"{{"model": "gpt-4o", {chat}}}"#)),
    ] {
        assert_eq!(refusal(&layer, path, &body).await.map(|refused| refused.code), None, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn budget_of_what_may_be_a_model_refuses_unnamed_requests() {
    for name in ["gpt-4o-2024-08-06", "gpt-4o:priority", "gpt-*", "gpt-?o", "regex:(gpt|o)-.*"] {
        let limiter = limiting(name).build().unwrap();
        assert_eq!(refusing_key(limiter, OPENAI).await.as_deref(), Some(name));
    }
    let price = Price::per_million(Usd::from_micros(2_000_000), Usd::from_micros(10_000_000));
    for name in ["house-1", "house-*"] {
        let limiter = limiting(name).build().unwrap();
        assert_eq!(refusing_key(limiter, OPENAI).await, None, "{name} isn't known to be a model");
        let prices = Prices::none().with("house-1", price.clone());
        let layer = RateLimitLayer::new(limiting(name).build().unwrap()).prices(prices);
        assert_eq!(refusing_key_of(layer).await.as_deref(), Some(name));
    }
    // The key of requests without a model has this budget itself, unless it has a quota of its own.
    let limiter = limiting("*").build().unwrap();
    assert_eq!(refusing_key(limiter, OPENAI).await.as_deref(), Some("unknown"));
    let limiter = limiting("*").quota("unknown", Quota::new().rpm(9)).build().unwrap();
    assert_eq!(refusing_key(limiter, OPENAI).await.as_deref(), Some("*"));
    let limiter = builder().provider(OPENAI).quota("unknown", Quota::new().rpm(9));
    let limiter = limiter.unknown_key(UnknownKey::Quota(budget())).build().unwrap();
    assert_eq!(refusing_key(limiter, OPENAI).await.as_deref(), Some("*"));
}

#[tokio::test(start_paused = true)]
async fn budget_of_another_scope_admits_unnamed_requests() {
    for name in ["tenant:bob", "account", "tenant:*", "session:*"] {
        let limiter = limiting(name).build().unwrap();
        assert_eq!(refusing_key(limiter, OPENAI).await, None, "{name}");
    }
    // Of another provider's model, where the models of both are known.
    for name in ["claude-opus-5", "claude-*"] {
        assert_eq!(refusing_key(limiting(name).build().unwrap(), OPENAI).await, None, "{name}");
        for profile in [ANTHROPIC, COMPATIBLE] {
            let key = refusing_key(limiting(name).build().unwrap(), profile).await;
            assert_eq!(key.as_deref(), Some(name), "{profile:?}");
        }
    }
    // Of a layer whose requests don't count under their models.
    let layer = RateLimitLayer::new(limiting("gpt-4o").build().unwrap());
    let read = Http::new(OPENAI);
    let layer = layer.key("deployment");
    assert_eq!(refusal(&layer, "/v1/batches", "{}").await.map(|refused| refused.code), None);
    let request = Request::post("/v1/batches").body("{}".to_owned()).unwrap();
    assert_eq!(read.classify(&request, Some("deployment")).keys().len(), 1);
}

/// Returns a limiter whose model `m` has a budget, as its mode `fast` has not.
fn of_model() -> Limiter {
    builder().provider(ANTHROPIC).quota("m", budget().rpm(3)).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn service_of_a_mode_is_pending_while_its_models_money_is_spent() {
    let limiter = of_model();
    let layer = RateLimitLayer::new(limiter.clone()).key("m:fast");
    let mut client = client_returning(&layer, || Frames::from("{}").into_response());
    assert!(is_ready(&mut client).await);
    limiter.try_acquire("m", &money(BUDGET)).unwrap().settle(&money(BUDGET));
    let mut fresh = client.clone();
    assert!(!is_ready(&mut fresh).await);
    limiter.reset("m");
    assert!(is_ready(&mut fresh).await);
    // A budget that is set later, and removed again.
    let limiter = builder().provider(ANTHROPIC).quota("m", Quota::new().rpm(3)).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).key("m:fast");
    let mut client = client_returning(&layer, || Frames::from("{}").into_response());
    limiter.quotas().set("m:fast", &Quota::new().concurrency(1)).unwrap();
    let busy = limiter.try_acquire("m:fast", &Cost::new()).unwrap();
    assert!(!is_ready(&mut client).await);
    limiter.quotas().set("m", &budget()).unwrap();
    limiter.try_acquire("m", &money(BUDGET)).unwrap().settle(&money(BUDGET));
    drop(busy);
    assert!(!is_ready(&mut client).await);
    limiter.quotas().set("m", &Quota::new().rpm(3)).unwrap();
    assert!(is_ready(&mut client).await);
}

#[tokio::test(start_paused = true)]
async fn capacity_of_a_mode_is_that_of_its_models_budget() {
    let limiter = of_model();
    limiter.try_acquire("m", &money(60_000)).unwrap().settle(&money(60_000));
    let cost = money(40_000);
    assert!(limiter.wait_for_capacity("m:fast", &cost).await.is_ok());
    let never = limiter.wait_for_capacity("m:fast", &money(BUDGET + 1)).await.unwrap_err();
    assert!(matches!(never, AcquireError::Refused(refused) if refused.key == "m"));
    let unpriced = limiter.wait_for_capacity("m:fast", &Cost::new()).await.unwrap_err();
    assert!(
        matches!(unpriced, AcquireError::Refused(refused) if refused.code == Code::UnknownPrice)
    );
    let late = limiter.wait_for_capacity("m:fast", &money(50_000));
    let late = late.max_wait(super::S).await.unwrap_err();
    assert!(matches!(late, AcquireError::DeadlineExceeded { refused, .. } if refused.key == "m"));
    // What is in flight may come back in time.
    let held = limiter.try_acquire("m:fast", &cost).unwrap();
    let mut waiting = Box::pin(limiter.wait_for_capacity("m:fast", &cost).max_wait(super::S));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(&mut cx).is_pending());
    held.release();
    assert!(matches!(waiting.as_mut().poll(&mut cx), Poll::Ready(Ok(()))));
}

#[tokio::test(start_paused = true)]
async fn handle_to_a_mode_in_a_shared_quota_counts_to_the_budget() {
    let shared = Quota::new().rpm(5).shared();
    for first in [true, false] {
        let limiter = builder().provider(ANTHROPIC).quota("*:fast", shared.clone());
        let limiter = if first { limiter.quota("m", budget()) } else { limiter };
        let limiter = limiter.build().unwrap();
        let handle = limiter.key("m:fast").unwrap();
        if !first {
            limiter.quotas().set("m", &budget()).unwrap();
        }
        assert_eq!(handle.key(), "*:fast");
        let held = handle.try_acquire(&money(60_000)).unwrap();
        assert_eq!(
            (available(&limiter, "m"), available(&limiter, "*:fast")),
            (vec![40_000], vec![4])
        );
        for refused in [
            handle.try_acquire(&money(60_000)).unwrap_err(),
            limiter.try_acquire("m:fast", &money(60_000)).unwrap_err(),
            handle.acquire(&money(60_000)).try_now().unwrap_err(),
        ] {
            assert_eq!((&*refused.key, refused.code), ("m", Code::LimitExceeded));
        }
        assert_eq!(handle.decide(&money(60_000)).key, "m");
        assert!(handle.acquire(&money(40_000)).await.is_ok());
        held.release();
        // Another model in the same quota has no budget.
        assert!(limiter.key("other:fast").unwrap().try_acquire(&Cost::new()).is_ok());
    }
}
