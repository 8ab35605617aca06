//! Work of other shapes than one long queue of equal requests: unequal sizes, bursts after idle times, several
//! models of one account.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use paceline::Quota;
use paceline::limiter::{Limiter, TokioClock};
use paceline::provider::OPENAI;

use super::provider::{Headers, Ledger, RetryAfter, Settings, Unit};
use super::{Job, Outcome, client, send_for};

/// The mean tokens of [`sizes`].
const MEAN: f64 = 1_500.0;

/// Tokens per second that 20 requests of the mean size use.
const TOKENS: f64 = 20.0 * MEAN;

/// Returns requests of 100 to 8,000 tokens, most of them small.
fn sized(count: u64) -> Vec<Request<Bytes>> {
    let mut state = 21_u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    };
    let size = |part: f64| (100.0 * 80.0_f64.powf(part)) as u64;
    let request = |size: u64| {
        let message = r#"{"role":"user","content":"hi"}"#;
        let body = format!(r#"{{"model":"m","messages":[{message}],"max_tokens":{size}}}"#);
        Request::post("/v1/chat/completions").body(body.into()).unwrap()
    };
    (0..count).map(|_| request(size(random()))).collect()
}

fn limiter(quota: Option<Quota>) -> Limiter {
    let builder = Limiter::builder().clock(TokioClock::new()).provider(OPENAI);
    quota.into_iter().fold(builder, |builder, quota| builder.quota("*", quota)).build().unwrap()
}

/// Runs work against a provider, and asserts the targets.
async fn assert_work(name: &str, settings: Settings, quota: Option<Quota>, job: Job) {
    let sent = job.requests();
    let outcome = job.run(client(&limiter(quota), settings), settings).await;
    let Outcome { answered, refused, used } = outcome;
    assert_eq!(answered, sent, "{name}: {outcome:?}");
    let most = (sent * 3 / 100).max(30);
    assert!(refused <= most && used >= 0.9, "{name}: {outcome:?}");
}

fn tokens() -> Settings {
    Settings { rate: TOKENS, unit: Unit::Tokens, headers: Headers::None, ..Settings::default() }
}

fn tpm(part: f64) -> Option<Quota> {
    Some(Quota::new().tpm((TOKENS * 60.0 * part) as u64))
}

#[tokio::test(start_paused = true)]
async fn limit_of_unequal_requests_is_used() {
    let job = || Job::new(vec![sized(1_800)], Duration::ZERO);
    let long = Settings { burst: 10.0, ..tokens() };
    assert_work("told", Settings { burst: 60.0, ..tokens() }, tpm(1.0), job()).await;
    assert_work("told, burst of 1 s", tokens(), tpm(1.0), job()).await;
    assert_work("told twice the rate", long, tpm(2.0), job()).await;
    assert_work("told nothing", long, None, job()).await;
    assert_work("told nothing, burst of 1 s", tokens(), None, job()).await;
    let headers = Settings { headers: Headers::PerMinute, ..long };
    assert_work("told nothing, headers", headers, None, job()).await;
}

#[tokio::test(start_paused = true)]
async fn limit_of_bursty_work_is_used() {
    let job = || Job::new((0..4).map(|_| Job::equal(500)).collect(), Duration::from_secs(180));
    let plain = Settings { headers: Headers::None, ..Settings::default() };
    let told = Some(Quota::new().rpm(1_200));
    assert_work("told", Settings { burst: 60.0, ..plain }, told.clone(), job()).await;
    assert_work("told, burst of 1 s", plain, told.clone(), job()).await;
    let headers = Settings { headers: Headers::PerMinute, ..plain };
    assert_work("told, burst of 1 s, headers", headers, told.clone(), job()).await;
    let silent = Settings { retry_after: RetryAfter::None, ..plain };
    assert_work("told, burst of 1 s, no Retry-After", silent, told, job()).await;
    let long = Settings { burst: 10.0, ..plain };
    assert_work("told twice the rate", long, Some(Quota::new().rpm(2_400)), job()).await;
    assert_work("told nothing", plain, None, job()).await;
    assert_work("told nothing, burst of 10 s", long, None, job()).await;
}

/// Sends requests of three models for some minutes, and asserts the targets after the first 30 s.
async fn assert_models(name: &str, settings: Settings, quota: Option<Quota>) {
    let (service, ledger) = client(&limiter(quota), settings);
    let models = ["a", "b", "c"];
    let services = || models.map(|model| (service.clone(), model)).to_vec();
    send_for(services(), Duration::from_secs(30)).await;
    let before = std::mem::take(&mut *ledger.lock());
    assert!(before.accepted > 0);
    let seconds = 120.0;
    let answered = send_for(services(), Duration::from_secs_f64(seconds)).await;
    let Ledger { taken, refused, .. } = *ledger.lock();
    let limits = if settings.is_per_model { 3.0 } else { 1.0 };
    let used = taken / (settings.rate * limits * seconds);
    let result = format!("{name}: used {used:.2}, {refused} refused, {answered:?}");
    assert!(used >= 0.9 && (refused as f64) <= 0.03 * taken, "{result}");
}

#[tokio::test(start_paused = true)]
async fn limits_of_several_models_are_used() {
    let plain = Settings { headers: Headers::None, is_per_model: true, ..Settings::default() };
    let long = Settings { burst: 10.0, ..plain };
    assert_models("each its own", plain, Some(Quota::new().rpm(1_200))).await;
    assert_models("each its own, told twice", long, Some(Quota::new().rpm(2_400))).await;
    let shared = Settings { is_per_model: false, ..long };
    assert_models("one of the account", shared, Some(Quota::new().rpm(1_200))).await;
    let headers = Settings { headers: Headers::PerMinute, ..shared };
    assert_models("one of the account, headers", headers, Some(Quota::new().rpm(1_200))).await;
}
