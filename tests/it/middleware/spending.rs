//! Limits on spending: the price of a request is reserved at its highest, and settled at what it cost.

use std::time::Duration;

use http::{Request, Response, StatusCode};
use paceline::limiter::{Code, Limiter};
use paceline::middleware::RateLimitLayer;
use paceline::price::{Price, Prices};
use paceline::provider::{OPENAI, Profile};
use paceline::quota::{Dimension, Limit, Quota, Usd, Window};
use paceline_testing::full::full_or;
use proptest::prelude::*;
use tower::{Layer, Service, ServiceExt};

use super::inner::{Frames, Strict};
use super::{USAGE, available, builder, chat, client_returning, held, read, send, settle_down};

/// $2 per million input tokens, $10 per million output tokens.
const PRICE: (u64, u64) = (2_000_000, 10_000_000);

/// The most that a request of [`chat`] can cost, in micro-dollars: 89 bytes of body, 7 tokens around its text and an
/// output of 50 tokens.
const MOST: u64 = (89 + 7) * 2 + 50 * 10;

/// The cost of [`USAGE`].
const COST: u64 = 12 * 2 + 9 * 10;

fn prices() -> Prices {
    Prices::built_in()
        .with("m", Price::per_million(Usd::from_micros(PRICE.0), Usd::from_micros(PRICE.1)))
}

/// Returns a limiter whose model `m` may spend 1,000 micro-dollars a day.
fn limiter() -> Limiter {
    let quota = Quota::new().usd_per_day(Usd::from_micros(1_000));
    builder().provider(OPENAI).quota("m", quota).build().unwrap()
}

fn priced_layer(limiter: &Limiter) -> RateLimitLayer {
    RateLimitLayer::new(limiter.clone()).prices(prices())
}

fn respond(status: StatusCode, body: &'static str) -> impl Fn() -> Response<Frames> {
    move || {
        let mut response = Frames::from(body).into_response();
        *response.status_mut() = status;
        response
    }
}

#[tokio::test(start_paused = true)]
async fn highest_price_is_held_until_usage_settles_it() {
    let limiter = limiter();
    let answer = respond(StatusCode::OK, USAGE);
    let mut client = client_returning(&priced_layer(&limiter), answer);
    let response = send(&mut client, chat("m")).await;
    assert_eq!(held(&limiter, "m"), [MOST]);
    let _ = read(response).await;
    assert_eq!((held(&limiter, "m"), available(&limiter, "m")), (vec![0], vec![1_000 - COST]));
}

#[tokio::test(start_paused = true)]
async fn request_waits_until_the_money_of_another_is_known() {
    let limiter = limiter();
    let layer = priced_layer(&limiter);
    let mut client = client_returning(&layer, respond(StatusCode::OK, USAGE));
    let first = send(&mut client, chat("m")).await;
    let mut other = client_returning(&layer, respond(StatusCode::OK, USAGE));
    let second = tokio::spawn(async move { send(&mut other, chat("m")).await });
    settle_down().await;
    assert!(!second.is_finished());
    let _ = read(first).await;
    let _ = read(second.await.unwrap()).await;
    assert_eq!(available(&limiter, "m"), [1_000 - 2 * COST]);
}

#[tokio::test(start_paused = true)]
async fn refused_requests_cost_no_money() {
    for status in [400, 401, 404, 413, 429, 503, 529] {
        let limiter = limiter();
        let answer = respond(StatusCode::from_u16(status).unwrap(), "{}");
        let mut client = client_returning(&priced_layer(&limiter), answer);
        let response = send(&mut client, chat("m")).await;
        let _ = read(response).await;
        assert_eq!(available(&limiter, "m"), [1_000], "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn answer_without_usage_or_end_costs_the_highest_price() {
    for answer in [
        || Frames::from(r#"{"choices": []}"#).into_response(),
        || {
            Frames::default()
                .data("data: {\"usage\": {\"prompt_tokens\": 12}}\n\n")
                .error()
                .into_response()
        },
    ] {
        let limiter = limiter();
        let mut client = client_returning(&priced_layer(&limiter), answer);
        let response = send(&mut client, chat("m")).await;
        let _ = read(response).await;
        assert_eq!(available(&limiter, "m"), [1_000 - MOST]);
    }
}

#[tokio::test(start_paused = true)]
async fn tenant_pays_for_every_model() {
    let quota = Quota::new().usd_per_day(Usd::from_micros(1_000));
    let limiter = builder().provider(OPENAI).quota("tenant:7", quota);
    let limiter = limiter.quota("m", Quota::new().rpm(5)).build().unwrap();
    let layer = priced_layer(&limiter).scope("tenant:7");
    let mut client = client_returning(&layer, respond(StatusCode::OK, USAGE));
    let _ = read(send(&mut client, chat("m")).await).await;
    assert_eq!(available(&limiter, "tenant:7"), [1_000 - COST]);
    assert_eq!(available(&limiter, "m"), [4]);
}

#[tokio::test(start_paused = true)]
async fn model_without_price_is_refused_where_spending_is_limited() {
    let quota = Quota::new().usd_per_day(Usd::from_micros(1_000));
    let limiter = builder().provider(OPENAI).quota("tenant:7", quota).build().unwrap();
    let layer = priced_layer(&limiter).scope("tenant:7");
    let mut client = client_returning(&layer, respond(StatusCode::OK, USAGE));
    let error = client.ready().await.unwrap().call(chat("house-model")).await.unwrap_err();
    let refused = error.refused().unwrap();
    assert_eq!((refused.code, refused.key.as_str()), (Code::UnknownPrice, "tenant:7"));
    assert!(error.to_string().contains("price of the request is unknown"), "{error}");
    // Where nothing limits spending, no price is needed.
    let free = priced_layer(&limiter);
    let mut client = client_returning(&free, respond(StatusCode::OK, USAGE));
    let _ = read(send(&mut client, chat("house-model")).await).await;
    assert_eq!(available(&limiter, "tenant:7"), [1_000]);
}

#[tokio::test(start_paused = true)]
async fn price_larger_than_the_limit_is_an_error_in_dollars() {
    let quota = Quota::new().usd_per_day(Usd::from_micros(100));
    let limiter = builder().provider(OPENAI).quota("m", quota).build().unwrap();
    let answer = respond(StatusCode::OK, USAGE);
    let mut client = client_returning(&priced_layer(&limiter), answer);
    let error = client.ready().await.unwrap().call(chat("m")).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("needs $0.000692, the limit allows at most $0.0001"), "{text}");
}

/// A step of a random run.
#[derive(Debug, Clone)]
enum Step {
    /// Sends a request with a text of this many bytes and an output of at most this many tokens.
    Send {
        text: usize,
        output: u64,
    },
    /// Ends one of the requests in flight with this share of its highest usage, in percent.
    End {
        request: usize,
        input: u64,
        output: u64,
    },
    /// Ends one with an error, or without an answer.
    Fail {
        request: usize,
        is_error: bool,
    },
    Advance(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_usize..400, 1_u64..200).prop_map(|(text, output)| Step::Send { text, output }),
        3 => (0_usize..8, 0_u64..=100, 0_u64..=100)
            .prop_map(|(request, input, output)| Step::End { request, input, output }),
        1 => (0_usize..8, any::<bool>())
            .prop_map(|(request, is_error)| Step::Fail { request, is_error }),
        2 => (1_u64..4_000).prop_map(Step::Advance),
    ];
    proptest::collection::vec(step, 1..40)
}

/// A request in flight: its texts and bound, and the channel that ends it.
struct InFlight {
    text: u64,
    output: u64,
    end: tokio::sync::oneshot::Sender<Response<Frames>>,
}

/// Runs the steps, and returns the money spent with the times of sending and of the end, in milliseconds.
async fn run(steps: &[Step], limit: u64, profile: Profile) -> Vec<(u64, u64, u64)> {
    let window = Window::new(WINDOW).unwrap();
    let quota = Quota::new().limit(Limit::new(Dimension::usd(), limit, window));
    let limiter = builder().quota("m", quota).build().unwrap();
    let (clock, started) = (limiter.clone(), limiter.now());
    let now = || u64::try_from((clock.now() - started).as_millis()).unwrap();
    let (ends, arrivals) = std::sync::mpsc::channel();
    let inner = Strict::new(move |_: Request<String>| {
        let (end, ended) = tokio::sync::oneshot::channel();
        ends.send(end).unwrap();
        async move { ended.await.map_err(|_| super::inner::InnerError) }
    });
    let layer = priced_layer(&limiter).provider(profile).max_wait(Duration::ZERO);
    let mut client = layer.layer(inner);
    let (mut flying, mut spent) =
        (Vec::<(InFlight, u64, tokio::task::JoinHandle<()>)>::new(), Vec::new());
    for step in steps {
        match *step {
            Step::Send { text, output } => {
                let body = serde_json::json!({"model": "m", "max_tokens": output, "messages": [
                    {"role": "user", "content": "x".repeat(text)}]});
                let request = Request::post("/v1/chat/completions").body(body.to_string()).unwrap();
                let response = client.ready().await.unwrap().call(request);
                let task = tokio::spawn(async move {
                    if let Ok(response) = response.await {
                        let _ = read(response).await;
                    }
                });
                settle_down().await;
                if let Ok(end) = arrivals.try_recv() {
                    let text = u64::try_from(text).unwrap();
                    flying.push((InFlight { text, output, end }, now(), task));
                }
            }
            Step::End { request, input, output } if request < flying.len() => {
                let (flight, sent, task) = flying.swap_remove(request);
                // A token of text has at least one byte.
                let (input, output) = (flight.text * input / 100, flight.output * output / 100);
                let usage = serde_json::json!({"choices": [],
                    "usage": {"prompt_tokens": input, "completion_tokens": output}});
                let _ = flight.end.send(Frames::default().data(usage.to_string()).into_response());
                task.await.unwrap();
                let micros = (input * PRICE.0 + output * PRICE.1).div_ceil(1_000_000);
                spent.push((micros, sent, now()));
            }
            Step::Fail { request, is_error } if request < flying.len() => {
                let (flight, _, task) = flying.swap_remove(request);
                if is_error {
                    let _ = flight.end.send(respond(StatusCode::BAD_REQUEST, "{}")());
                } else {
                    drop(flight.end);
                }
                task.await.unwrap();
            }
            Step::Advance(milliseconds) => {
                tokio::time::advance(Duration::from_millis(milliseconds)).await;
            }
            Step::End { .. } | Step::Fail { .. } => {}
        }
    }
    spent
}

const WINDOW: Duration = Duration::from_secs(5);

/// Returns the largest sum of amounts within a window.
fn most_in_window(mut spent: Vec<(u64, u64)>) -> u64 {
    spent.sort_by_key(|(_, at)| *at);
    let window = u64::try_from(WINDOW.as_millis()).unwrap();
    let within =
        |start: u64| spent.iter().filter(move |(_, at)| (start..start + window).contains(at));
    spent.iter().map(|(_, at)| within(*at).map(|(micros, _)| micros).sum()).max().unwrap_or(0)
}

/// At whatever time the provider bills a request, it never bills more than the limit within a window.
#[test]
fn spending_with_bounded_output_stays_within_the_limit() {
    let config = ProptestConfig { cases: full_or(100_000, 300), ..ProptestConfig::default() };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.unwrap();
    let profiles = [OPENAI, paceline::provider::ANTHROPIC, paceline::provider::COMPATIBLE_USAGE];
    let profiles = proptest::sample::select(profiles.to_vec());
    proptest!(config, |(steps in steps(), limit in 500_u64..10_000, profile in profiles)| {
        let spent = runtime.block_on(run(&steps, limit, profile));
        let sent = most_in_window(spent.iter().map(|(micros, sent, _)| (*micros, *sent)).collect());
        let ended = most_in_window(spent.iter().map(|(micros, _, ended)| (*micros, *ended)).collect());
        prop_assert!(sent <= limit && ended <= limit, "{sent} and {ended} of {limit}");
    });
}
