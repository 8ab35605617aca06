//! Requests under a budget: those without a price aren't sent, and the modes of a model count to its budget.

use bytes::Bytes;
use http::{Method, Request, Response};
use paceline::limiter::{Builder, Code, Limiter};
use paceline::middleware::{Classified, Classify, Http, PeekBody, RateLimitLayer};
use paceline::price::{Price, Prices};
use paceline::provider::{ANTHROPIC, COMPATIBLE, GEMINI, MISTRAL, OPENAI, Profile};
use paceline::quota::{Cost, Quota, Usd};
use tower::{Layer, Service, ServiceExt};

use super::inner::{Frames, InnerError, Strict};
use super::{USAGE, available, builder, chat, client_returning, echo, held, is_ready, read, send};

/// $0.10.
const BUDGET: u64 = 100_000;

fn budget() -> Quota {
    Quota::new().usd_per_day(Usd::from_micros(BUDGET))
}

/// Returns a limiter whose key `account` has a budget.
fn limiter(profile: Profile) -> Limiter {
    builder().provider(profile).quota("account", budget()).build().unwrap()
}

/// Returns the code of the refusal of a request by a layer with the scope `account`; `None` if it is sent.
async fn refusal(profile: Profile, method: &str, path: &str, body: &str) -> Option<Code> {
    let layer = RateLimitLayer::new(limiter(profile)).scope("account");
    let mut client = client_returning(&layer, || Frames::from("{}").into_response());
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let request = Request::builder().method(method).uri(path).body(body.to_owned()).unwrap();
    let sent = client.ready().await.unwrap().call(request).await;
    sent.err().map(|error| error.refused().expect("refused by the limiter").code)
}

#[tokio::test(start_paused = true)]
async fn requests_without_a_price_are_refused_under_a_budget() {
    let chat = r#""messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9"#;
    let input = r#""model": "gpt-4o", "input": "Hi", "max_output_tokens": 9"#;
    for (profile, path, body) in [
        (OPENAI, "/v1/chat/completions", format!("{{{chat}}}")),
        (OPENAI, "/v1/chat/completions", format!(r#"{{"model": "house-model", {chat}}}"#)),
        (OPENAI, "/v1/chat/completions", format!(r#"{{"model": "gpt-4o", {chat}"#)),
        (OPENAI, "/v1/chat/completions", String::new()),
        (OPENAI, "/v1/batches", r#"{"input_file_id": "file-1"}"#.to_owned()),
        (OPENAI, "/v1/images/generations", r#"{"model": "dall-e-3", "prompt": "x"}"#.to_owned()),
        (OPENAI, "/v1/images/generations", r#"{"model": "gpt-4o", "prompt": "x"}"#.to_owned()),
        (OPENAI, "/v1/audio/speech", r#"{"model": "gpt-4o-mini-tts", "input": "Hi"}"#.to_owned()),
        (OPENAI, "/v1/fine_tuning/jobs", r#"{"model": "gpt-4o", "training_file": "f"}"#.to_owned()),
        (OPENAI, "/v1/responses", format!(r#"{{"prompt": {{"id": "pmpt_1"}}, {input}}}"#)),
        (OPENAI, "/v1/responses", r#"{"prompt": {"id": "pmpt_1"}}"#.to_owned()),
        (OPENAI, "/v1/threads/t/runs", r#"{"model": "gpt-4o", "assistant_id": "a"}"#.to_owned()),
        (OPENAI, "/v1/vector_stores/vs_1/files", r#"{"file_id": "f"}"#.to_owned()),
        (OPENAI, "/v1/chat/completions/v1/files", "{}".to_owned()),
        // vLLM answers many chats at once.
        (COMPATIBLE, "/v1/chat/completions/batch", format!(r#"{{"model": "gpt-4o", {chat}}}"#)),
        (OPENAI, "/v1/conversations/run", format!(r#"{{"model": "gpt-4o", {chat}}}"#)),
        (OPENAI, "/v1/unheard/of", format!(r#"{{"model": "gpt-4o", {chat}}}"#)),
        (
            MISTRAL,
            "/v1/conversations",
            r#"{"model": "mistral-large-latest", "inputs": "x"}"#.into(),
        ),
        (MISTRAL, "/v1/conversations/c", r#"{"inputs": "x"}"#.to_owned()),
        (ANTHROPIC, "/v1/messages/batches", r#"{"requests": []}"#.to_owned()),
        (GEMINI, "/v1beta/models/gemini-2.5-pro:batchGenerateContent", "{}".to_owned()),
        (GEMINI, "/v1beta/models/gemini-2.5-pro:predict", "{}".to_owned()),
    ] {
        assert_eq!(
            refusal(profile, "POST", path, &body).await,
            Some(Code::UnknownPrice),
            "{path} {body}"
        );
    }
    assert_eq!(refusal(OPENAI, "GET", "/v1/realtime", "").await, Some(Code::UnknownPrice));
    let layer = RateLimitLayer::new(limiter(OPENAI)).scope("account");
    let mut client = client_returning(&layer, || Frames::from("{}").into_response());
    let request = Request::get("/v1/responses").header("upgrade", "websocket").body(String::new());
    let refused = client.ready().await.unwrap().call(request.unwrap()).await.unwrap_err();
    assert_eq!(refused.refused().unwrap().code, Code::UnknownPrice);
    // A server may treat any method like a POST if there is a body.
    assert_eq!(refusal(OPENAI, "GET", "/v1/models", "{}").await, Some(Code::UnknownPrice));
}

#[tokio::test(start_paused = true)]
async fn requests_known_to_be_free_pass_a_spent_budget() {
    let limiter = limiter(OPENAI);
    let all = Cost::new().usd(Usd::from_micros(BUDGET));
    limiter.try_acquire("account", &all).unwrap().settle(&all);
    // The gate of a layer's own scope would wait until the budget is renewed.
    let read = Http::new(OPENAI);
    let layer = RateLimitLayer::new(limiter.clone());
    let layer = layer
        .classify(move |request: &Request<String>| read.classify(request, None).scope("account"));
    let answer = || Ok(Frames::from("{}").into_response());
    let mut client = layer.layer(Strict::new(move |_| std::future::ready(answer())));
    for (method, path) in [
        ("GET", "/v1/models"),
        ("GET", "/v1/models/gpt-4o"),
        ("GET", "/v1/unheard/of"),
        ("HEAD", "/v1/files/file-1/content"),
        ("GET", "/v1/responses/resp_1/input_items?limit=3"),
        ("GET", "/v1/messages/batches/b/results"),
        ("GET", "/openai/v1/batches/batch_1"),
        ("POST", "/v1/files"),
        ("POST", "/v1/uploads/u/parts"),
        ("POST", "/v1/conversations"),
        ("POST", "/v1/conversations/conv_1"),
        ("POST", "/v1/chat/completions/chatcmpl-1"),
        ("POST", "/v1/batches/batch_1/cancel"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("POST", "/v1/responses/input_tokens"),
        ("POST", "/v1/messages/count_tokens"),
        ("POST", "/v1beta/models/gemini-2.5-pro:countTokens"),
        ("POST", "/v1/moderations"),
        ("DELETE", "/v1/files/file-1"),
        ("DELETE", "/v1/whatever/1"),
        ("OPTIONS", "/v1/chat/completions"),
    ] {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(if method == "POST" { "{}" } else { "" }.to_owned()).unwrap();
        let sent = client.ready().await.unwrap().call(request).await;
        assert!(sent.is_ok(), "{method} {path}: {:?}", sent.err());
    }
}

/// A body that isn't in memory.
#[derive(Clone)]
struct Streamed;

impl PeekBody for Streamed {
    fn peek<T>(&self, read: impl FnOnce(Option<&[u8]>) -> T) -> T {
        read(None)
    }

    fn size(&self) -> Option<u64> {
        Some(100)
    }
}

#[tokio::test(start_paused = true)]
async fn streamed_request_is_refused_under_a_budget() {
    for (profile, path) in [
        (OPENAI, "/v1/chat/completions"),
        (GEMINI, "/v1beta/models/gemini-2.5-pro:generateContent"),
    ] {
        let layer = RateLimitLayer::new(limiter(profile)).scope("account");
        let answer = || Ok::<_, InnerError>(Frames::from(USAGE).into_response());
        let mut client =
            layer.layer(Strict::new(move |_: Request<Streamed>| std::future::ready(answer())));
        let request = Request::post(path).body(Streamed).unwrap();
        let error = client.ready().await.unwrap().call(request).await.unwrap_err();
        assert_eq!(error.refused().unwrap().code, Code::UnknownPrice, "{path}");
        assert!(error.to_string().contains("the price of the request is unknown"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn closure_states_an_amount_of_money_under_a_budget() {
    let limiter = limiter(OPENAI);
    let layer = RateLimitLayer::new(limiter.clone()).observe(|_: &u64| None);
    let send = |amount: Option<u64>| {
        let layer = layer.clone().classify(move |_: &u64| {
            let cost =
                amount.map_or(Cost::new(), |amount| Cost::new().usd(Usd::from_micros(amount)));
            Classified::new("account", cost)
        });
        layer.layer(echo()).oneshot(7)
    };
    assert_eq!(send(None).await.unwrap_err().refused().unwrap().code, Code::UnknownPrice);
    assert_eq!(send(Some(0)).await.unwrap(), 7);
    assert_eq!(send(Some(9)).await.unwrap(), 7);
    assert_eq!(available(&limiter, "account"), [BUDGET - 9]);
}

#[tokio::test(start_paused = true)]
async fn unbounded_output_is_reserved_up_to_the_models_maximum() {
    let body = r#"{"model": "MODEL", "messages": [{"role": "user", "content": "Hi"}]}"#;
    let prices = |price: Price| Prices::built_in().with("m", price);
    let price = Price::per_million(Usd::from_micros(0), Usd::from_micros(1_000_000));
    for (model, prices, reserved) in [
        ("m", prices(price.clone().max_output(700)), Ok(700)),
        ("m", prices(price.clone()), Err(Code::UnknownPrice)),
        // The built-in table states 16,384 tokens of output.
        ("gpt-4o", Prices::built_in().with("gpt-4o", price), Ok(16_384)),
    ] {
        let limiter = builder().provider(OPENAI).quota("account", budget()).build().unwrap();
        let layer = RateLimitLayer::new(limiter.clone()).prices(prices).scope("account");
        let mut client = client_returning(&layer, || Frames::from(USAGE).into_response());
        let request =
            Request::post("/v1/chat/completions").body(body.replace("MODEL", model)).unwrap();
        let sent = client.ready().await.unwrap().call(request).await;
        let amounts = held(&limiter, "account");
        let code = sent.map(|_| amounts[0]).map_err(|error| error.refused().unwrap().code);
        assert_eq!(code, reserved, "{model}");
    }
}

#[tokio::test(start_paused = true)]
async fn earlier_response_is_reserved_up_to_the_models_context() {
    let body =
        r#"{"model": "m", "input": "Hi", "max_output_tokens": 1, "previous_response_id": ID}"#;
    let price = Price::per_million(Usd::from_micros(1_000_000), Usd::from_micros(0));
    for (id, price, reserved) in [
        (r#""r""#, price.clone().max_input(9_000), Ok(9_000)),
        (r#""r""#, price.clone(), Err(Code::UnknownPrice)),
        ("null", price, Ok(83 + 7)),
    ] {
        let prices = Prices::built_in().with("m", price);
        let limiter = builder().provider(OPENAI).quota("account", budget()).build().unwrap();
        let layer = RateLimitLayer::new(limiter.clone()).prices(prices).scope("account");
        let mut client = client_returning(&layer, || Frames::from("{}").into_response());
        let request = Request::post("/v1/responses").body(body.replace("ID", id)).unwrap();
        let sent = client.ready().await.unwrap().call(request).await;
        let amounts = held(&limiter, "account");
        let code = sent.map(|_| amounts[0]).map_err(|error| error.refused().unwrap().code);
        assert_eq!(code, reserved, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn service_is_pending_while_the_money_is_spent() {
    let prices = Prices::built_in()
        .with("m", Price::per_million(Usd::from_micros(2_000_000), Usd::from_micros(10_000_000)));
    let limiter = builder().provider(OPENAI).quota("m", budget()).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).prices(prices).key("m");
    let mut client = client_returning(&layer, || Frames::from(USAGE).into_response());
    // Nothing is known of the requests yet.
    assert!(is_ready(&mut client).await);
    let all = |amount| Cost::new().usd(Usd::from_micros(amount));
    limiter.try_acquire("m", &all(BUDGET)).unwrap().settle(&all(BUDGET));
    let mut fresh = client.clone();
    assert!(!is_ready(&mut fresh).await);
    limiter.reset("m");
    assert!(is_ready(&mut fresh).await);
    // With a known cost, less than that of a request is left.
    let _ = read(send(&mut client, chat("m")).await).await;
    let rest = available(&limiter, "m")[0] - 100;
    limiter.try_acquire("m", &all(rest)).unwrap().settle(&all(rest));
    let mut fresh = client.clone();
    assert!(!is_ready(&mut fresh).await);
    // Where no money is limited, none is asked for.
    let limiter = builder().provider(OPENAI).quota("m", Quota::new().rpm(3)).build().unwrap();
    let layer = RateLimitLayer::new(limiter).key("m");
    let mut client = client_returning(&layer, || Frames::from(USAGE).into_response());
    let _ = read(send(&mut client, chat("m")).await).await;
    assert!(is_ready(&mut client).await);
}

/// Returns a request to Anthropic for 1,000 tokens of output.
fn message(mode: Option<&str>) -> Request<String> {
    let mut body = serde_json::json!({"model": "claude-opus-5", "max_tokens": 1_000,
        "messages": [{"role": "user", "content": "Say this is a test"}]});
    if let Some(mode) = mode {
        body["speed"] = mode.into();
    }
    Request::post("/v1/messages").body(body.to_string()).unwrap()
}

/// A response with 12 tokens of input and 1,000 of output.
fn message_response() -> Response<Frames> {
    let body = r#"{"type": "message", "usage": {"input_tokens": 12, "output_tokens": 1000}}"#;
    Frames::from(body).into_response()
}

/// The cost of [`message_response`] at $5 and $25 per million tokens.
const STANDARD: u64 = 12 * 5 + 1_000 * 25;

/// The cost in fast mode, twice the price.
const FAST: u64 = 2 * STANDARD;

#[tokio::test(start_paused = true)]
async fn modes_count_to_the_budget_of_their_model() {
    for name in ["claude-opus-5", "claude-*", "*"] {
        let limiter = builder().provider(ANTHROPIC).quota(name, budget().rpm(7)).build().unwrap();
        let layer = RateLimitLayer::new(limiter.clone()).reject();
        let mut client = client_returning(&layer, message_response);
        let _ = read(send(&mut client, message(Some("fast"))).await).await;
        assert_eq!(available(&limiter, "claude-opus-5")[0], BUDGET - FAST, "{name}");
        let _ = read(send(&mut client, message(Some("standard"))).await).await;
        assert_eq!(available(&limiter, "claude-opus-5"), [BUDGET - FAST - STANDARD, 6], "{name}");
        for mode in [Some("fast"), None, Some("fast")] {
            if let Ok(response) = client.ready().await.unwrap().call(message(mode)).await {
                let _ = read(response).await;
            }
        }
        // Of the rest of the standard requests' budget, nothing is left for either.
        assert!(available(&limiter, "claude-opus-5")[0] < STANDARD, "{name}");
        let refused = client.ready().await.unwrap().call(message(Some("fast"))).await.unwrap_err();
        assert_eq!(refused.refused().unwrap().key, "claude-opus-5", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn mode_of_a_provider_of_the_layer_counts_to_the_budget() {
    let limiter = builder().quota("claude-opus-5", budget()).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).provider(ANTHROPIC);
    let mut client = client_returning(&layer, message_response);
    let _ = read(send(&mut client, message(Some("fast"))).await).await;
    assert_eq!(available(&limiter, "claude-opus-5"), [BUDGET - FAST]);
}

#[tokio::test(start_paused = true)]
async fn key_of_a_mode_counts_to_the_budget_of_its_model() {
    let limiter = builder().provider(ANTHROPIC).quota("m", budget().rpm(3)).build().unwrap();
    let cost = |amount| Cost::new().usd(Usd::from_micros(amount));
    // Both before the model's key is known, and by a handle.
    let handle = limiter.key("m:fast").unwrap();
    let permits = [limiter.try_acquire("m:fast", &cost(60_000)), handle.try_acquire(&cost(30_000))];
    let permits = permits.map(Result::unwrap);
    assert_eq!(
        (available(&limiter, "m"), available(&limiter, "m:fast")),
        (vec![10_000, 3], vec![1])
    );
    for refused in [
        limiter.try_acquire("m", &cost(20_000)).unwrap_err(),
        limiter.try_acquire("m:fast", &cost(20_000)).unwrap_err(),
        handle.try_acquire(&cost(20_000)).unwrap_err(),
    ] {
        assert_eq!((&*refused.key, refused.code), ("m", Code::LimitExceeded));
    }
    let decisions = [limiter.decide("m:fast", &cost(20_000)), handle.decide(&cost(20_000))];
    assert!(decisions.iter().all(|decision| !decision.is_allowed() && decision.key == "m"));
    let refused = limiter.try_acquire("m:fast", &Cost::new()).unwrap_err();
    assert_eq!((&*refused.key, refused.code), ("m", Code::UnknownPrice));
    let waiting = limiter.acquire("m:fast", &cost(50_000));
    let waiting = tokio::spawn(async move { waiting.await.unwrap() });
    super::settle_down().await;
    assert!(!waiting.is_finished());
    let [first, second] = permits;
    first.settle(&cost(20_000).tokens(7));
    second.release();
    let third = waiting.await.unwrap();
    assert_eq!(
        (available(&limiter, "m"), available(&limiter, "m:fast")),
        (vec![30_000, 3], vec![1])
    );
    drop(third);
    assert_eq!((available(&limiter, "m"), held(&limiter, "m")), (vec![30_000, 3], vec![0, 0]));
}

#[tokio::test(start_paused = true)]
async fn mode_counts_to_a_budget_that_is_set_while_it_waits() {
    let limiter = builder().provider(ANTHROPIC).quota("m", Quota::new().concurrency(1));
    let limiter = limiter.quota("other", budget()).build().unwrap();
    let cost = Cost::new().usd(Usd::from_micros(60_000));
    let first = limiter.try_acquire("m:fast", &cost).unwrap();
    let waiting = limiter.acquire("m:fast", &cost);
    let waiting = tokio::spawn(async move { waiting.await.unwrap() });
    super::settle_down().await;
    limiter.quotas().set("m", &budget().concurrency(1)).unwrap();
    first.release();
    let _second = waiting.await.unwrap();
    assert_eq!(held(&limiter, "m")[0], 60_000);
}

#[tokio::test(start_paused = true)]
async fn mode_without_a_price_is_refused_under_a_budget() {
    let service_tier = |tier: &str| {
        format!(
            r#"{{"model": "gpt-4o", "service_tier": {tier}, "max_tokens": 9,
                "messages": [{{"role": "user", "content": "Hi"}}]}}"#
        )
    };
    for (tier, code) in [
        (r#""priority""#, None),
        (r#""flex""#, None),
        (r#""auto""#, None),
        ("null", None),
        (r#""unheard-of""#, Some(Code::UnknownPrice)),
        (r#"{"type": "unheard-of"}"#, Some(Code::UnknownPrice)),
    ] {
        let body = service_tier(tier);
        assert_eq!(refusal(OPENAI, "POST", "/v1/chat/completions", &body).await, code, "{tier}");
    }
}

fn builder_of(profile: Profile) -> Builder {
    builder().provider(profile).quota("m", budget())
}

#[tokio::test(start_paused = true)]
async fn priority_service_is_charged_its_own_price() {
    let prices = Prices::built_in()
        .with("m", Price::per_million(Usd::from_micros(0), Usd::from_micros(10_000_000)))
        .with("m:priority", Price::per_million(Usd::from_micros(0), Usd::from_micros(20_000_000)));
    for (tier, cost) in [("priority", 180), ("flex", 90), ("default", 90)] {
        let limiter = builder_of(OPENAI).build().unwrap();
        let layer = RateLimitLayer::new(limiter.clone()).prices(prices.clone());
        let mut client = client_returning(&layer, || Frames::from(USAGE).into_response());
        let body = serde_json::json!({"model": "m", "max_tokens": 50, "service_tier": tier,
            "messages": [{"role": "user", "content": "Hi"}]});
        let request = Request::post("/v1/chat/completions").body(body.to_string()).unwrap();
        let _: Result<Bytes, _> = read(send(&mut client, request).await).await;
        assert_eq!(available(&limiter, "m"), [BUDGET - cost], "{tier}");
    }
}
