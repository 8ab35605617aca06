//! What each kind of refusal does to its request, and to the others of the key.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use paceline::limiter::{AcquireError, Code, Limiter, Reduction, TokioClock};
use paceline::middleware::{Http, RateLimitError, RateLimitLayer, RetryService};
use paceline::provider::OPENAI;
use paceline::quota::{Dimension, Quota};
use parking_lot::Mutex;
use tower::{Layer, ServiceExt};

use super::inner::{Frames, Strict};
use super::{S, USAGE, cooling};

type Client = RetryService<Strict<Request<String>, Response<Frames>>, Http, Http>;

/// An answer: its status, `Retry-After` and body.
pub(super) type Answer = (u16, &'static str, &'static str);

pub(super) const TOO_LARGE: &str = r#"{"error": {"message": "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 41210. The input or output tokens must be reduced.", "type": "tokens", "code": "rate_limit_exceeded"}}"#;
pub(super) const NO_MONEY: &str = r#"{"error": {"message": "You exceeded your current quota, please check your plan and billing details.", "type": "insufficient_quota", "code": "insufficient_quota"}}"#;
pub(super) const LIMITED: &str = r#"{"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}}"#;
const LEFT: &str = r#"{"error": {"message": "Rate limit reached on tokens per day (TPD): Limit 100000, Used 97050, Requested 3619. Please try again in 9m38s.", "type": "tokens", "code": "rate_limit_exceeded"}}"#;
pub(super) const USED_UP: &str = r#"{"error": {"message": "Rate limit reached on requests per day (RPD): Limit 200, Used 200. Please try again in 20m."}}"#;
pub(super) const OK: Answer = (200, "", USAGE);
pub(super) const OVERLOADED: Answer = (503, "", "Overloaded");

/// A provider that answers a request by its name, and records when it was sent.
pub(super) struct Provider {
    pub(super) limiter: Limiter,
    sent: Arc<Mutex<Vec<(u64, String)>>>,
    client: Client,
}

impl Provider {
    pub(super) fn new(answer: impl Fn(&str, usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::with(Reduction::ADAPTIVE, 3, answer)
    }

    pub(super) fn with(
        reduction: Reduction,
        retries: u32,
        answer: impl Fn(&str, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let builder = Limiter::builder().clock(TokioClock::new()).provider(OPENAI);
        let builder = builder.reduction(reduction).quota("gpt-4o", Quota::new().rpm(6_000));
        Self::of(builder.build().unwrap(), retries, answer)
    }

    pub(super) fn of(
        limiter: Limiter,
        retries: u32,
        answer: impl Fn(&str, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let (record, clock, begin) = (Arc::clone(&sent), limiter.clone(), limiter.now());
        let service = Strict::new(move |request: Request<String>| {
            let name = request.headers()["name"].to_str().unwrap().to_owned();
            let number = {
                let mut sent = record.lock();
                sent.push(((clock.now() - begin).as_secs(), name.clone()));
                sent.iter().filter(|(_, other)| *other == name).count()
            };
            let (status, delay, body) = answer(&name, number);
            async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                let mut response = Frames::from(body).into_response();
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                if !delay.is_empty() {
                    response.headers_mut().insert("retry-after", delay.parse().unwrap());
                }
                Ok(response)
            }
        });
        let layer = RateLimitLayer::new(limiter.clone()).wait_for_server();
        let client = layer.retry(retries).layer(service);
        Self { limiter, sent, client }
    }

    /// Sends a request of this size. Returns its status, or the limiter's refusal.
    pub(super) async fn send_sized(
        &self,
        name: &str,
        tokens: u64,
    ) -> Result<StatusCode, AcquireError> {
        let body = serde_json::json!({"model": "gpt-4o", "max_tokens": tokens,
            "messages": [{"role": "user", "content": "Hi"}]});
        let request = Request::post("/v1/chat/completions").header("name", name);
        let request = request.body(body.to_string()).unwrap();
        match self.client.clone().oneshot(request).await {
            Ok(response) => {
                let status = response.status();
                super::read(response).await.unwrap();
                Ok(status)
            }
            Err(RateLimitError::Limited(error)) => Err(error),
            Err(error) => panic!("{error}"),
        }
    }

    pub(super) async fn send(&self, name: &str) -> u16 {
        self.send_sized(name, 50).await.unwrap().as_u16()
    }

    /// Sends requests at the same time.
    pub(super) async fn send_all(&self, names: &[&str]) -> Vec<Result<u16, Code>> {
        let sent = names.iter().map(|name| async {
            let sent = self.send_sized(name, 50).await;
            sent.map(|status| status.as_u16()).map_err(|error| error.refused().unwrap().code)
        });
        futures_util::future::join_all(sent).await
    }

    pub(super) fn tries(&self, name: &str) -> usize {
        self.sent.lock().iter().filter(|(_, other)| other == name).count()
    }

    /// Returns the seconds since the start.
    pub(super) fn seconds(&self, begin: paceline::Timestamp) -> u64 {
        (self.limiter.now() - begin).as_secs()
    }
}

#[tokio::test(start_paused = true)]
async fn too_large_request_fails_at_once_and_pauses_nothing() {
    for reduction in [Reduction::ADAPTIVE, Reduction::new()] {
        let answer = |name: &str, _| if name == "big" { (429, "30", TOO_LARGE) } else { OK };
        let provider = Provider::with(reduction, 3, answer);
        let begin = provider.limiter.now();
        assert_eq!(provider.send("big").await, 429);
        assert_eq!(provider.send_all(&["a", "b", "c"]).await, [Ok(200); 3]);
        assert_eq!((provider.tries("big"), provider.seconds(begin)), (1, 0));
        let stats = provider.limiter.stats("gpt-4o");
        assert_eq!((stats.learned.len(), stats.limits[0].limit), (0, 6_000));
    }
}

#[tokio::test(start_paused = true)]
async fn too_large_request_teaches_the_stated_limit_unless_set() {
    let limiter = |quota: Option<Quota>| {
        let builder = Limiter::builder().clock(TokioClock::new()).provider(OPENAI);
        quota.into_iter().fold(builder, |builder, quota| builder.quota("*", quota)).build().unwrap()
    };
    let tokens = |provider: &Provider| {
        let stats = provider.limiter.stats("gpt-4o");
        stats.get(&Dimension::Tokens).map(|limit| limit.limit)
    };
    let learning = Provider::of(limiter(None), 3, |_, _| (429, "", TOO_LARGE));
    let requests = |provider: &Provider| provider.limiter.stats("gpt-4o").limits.len();
    let (before, limits) = (tokens(&learning), requests(&learning));
    learning.send("big").await;
    assert_eq!((tokens(&learning), requests(&learning)), (Some(30_000), limits), "{before:?}");
    const LARGER: &str = r#"{"error": {"message": "Request too large on tokens per min (TPM): Limit 60000, Requested 61210."}}"#;
    let answer = |name: &str, _| (429, "", if name == "big" { TOO_LARGE } else { LARGER });
    let learning = Provider::of(limiter(None), 3, answer);
    learning.send("big").await;
    learning.send("bigger").await;
    assert_eq!(tokens(&learning), Some(30_000), "no larger one than before");
    let told =
        Provider::of(limiter(Some(Quota::new().tpm(90_000))), 3, |_, _| (429, "", TOO_LARGE));
    told.send("big").await;
    assert_eq!(tokens(&told), Some(90_000));
}

/// Azure states a day for a limit per minute, for a deployment that others can use.
#[tokio::test(start_paused = true)]
async fn stray_delay_of_a_day_stops_only_its_request() {
    for retries in [0, 3] {
        let answer = |name: &str, _| if name == "b" { (429, "86400", LIMITED) } else { OK };
        let provider = Provider::with(Reduction::ADAPTIVE, retries, answer);
        let begin = provider.limiter.now();
        assert_eq!(provider.send("a").await, 200);
        let b = provider.send("b");
        let others = async {
            tokio::time::sleep(S).await;
            (provider.send("c").await, provider.send("d").await, provider.seconds(begin))
        };
        let (b, (c, d, seconds)) = tokio::join!(b, others);
        assert_eq!((b, c, d), (429, 200, 200));
        assert!(seconds <= 5, "{seconds}");
        assert_eq!(provider.tries("b"), 1 + retries as usize);
        assert!(provider.seconds(begin) <= 30, "it waited for back-offs");
    }
}

#[tokio::test(start_paused = true)]
async fn stray_delay_is_obeyed_once_another_request_is_refused() {
    let provider = Provider::with(Reduction::OFF, 0, |_, _| (429, "7200", LIMITED));
    provider.send_sized("a", 50).await.unwrap();
    assert_eq!(cooling(&provider.limiter, "gpt-4o"), Duration::ZERO);
    provider.send_sized("a again", 50).await.unwrap();
    assert_eq!(cooling(&provider.limiter, "gpt-4o"), Duration::ZERO, "it may be the same one");
    provider.send_sized("b", 60).await.unwrap();
    assert!(cooling(&provider.limiter, "gpt-4o") >= Duration::from_secs(7_199));
}

#[tokio::test(start_paused = true)]
async fn request_refused_again_beside_accepted_ones_waits_alone() {
    let answer = |name: &str, _| if name == "bad" { (429, "", LIMITED) } else { OK };
    let provider = Provider::new(answer);
    let begin = provider.limiter.now();
    let others = async {
        for _ in 0..20 {
            assert_eq!(provider.send("good").await, 200);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        provider.seconds(begin)
    };
    let (bad, seconds) = tokio::join!(provider.send("bad"), others);
    assert_eq!((bad, provider.tries("bad")), (429, 4));
    assert!(seconds <= 2 + 5, "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn window_with_something_left_pauses_only_its_request() {
    let answer = |name: &str, number| match name {
        "big" if number == 1 => (429, "", LEFT),
        _ => OK,
    };
    let provider = Provider::new(answer);
    let begin = provider.limiter.now();
    let small = async {
        tokio::time::sleep(S).await;
        (provider.send("small").await, provider.seconds(begin))
    };
    let (big, small) = tokio::join!(provider.send("big"), small);
    assert_eq!((big, small), (200, (200, 1)));
    assert!((578..581).contains(&provider.seconds(begin)), "{}", provider.seconds(begin));
}

#[tokio::test(start_paused = true)]
async fn refused_account_answers_waiting_requests_and_is_probed() {
    for reduction in [Reduction::ADAPTIVE, Reduction::new()] {
        let builder = Limiter::builder().clock(TokioClock::new()).provider(OPENAI);
        let quota = Quota::new().rpm(6_000).concurrency(2);
        let limiter = builder.reduction(reduction).quota("gpt-4o", quota).build().unwrap();
        let paid = Arc::new(Mutex::new(false));
        let is_paid = Arc::clone(&paid);
        let answer = move |_: &str, _| if *is_paid.lock() { OK } else { (429, "", NO_MONEY) };
        let provider = Provider::of(limiter, 3, answer);
        let answers = provider.send_all(&["a", "b", "c", "d", "e"]).await;
        assert_eq!(
            answers[..3],
            [Ok(429); 3],
            "two that were in flight, and one that tested the account"
        );
        assert!(answers[3..].iter().all(|answer| *answer == Err(Code::AccountRefused)));
        let error = provider.send_sized("f", 50).await.unwrap_err();
        assert_eq!(&*error.refused().unwrap().refusal().unwrap().text, OF_ACCOUNT);
        assert!(error.to_string().contains(OF_ACCOUNT), "{error}");
        assert_eq!(provider.limiter.stats("gpt-4o").account_refused.as_deref(), Some(OF_ACCOUNT));
        assert_eq!(provider.sent.lock().len(), 3);
        // One request tests the account after a while; the others are still answered.
        tokio::time::sleep(Duration::from_secs(11)).await;
        let probed = provider.send_all(&["g", "h", "i"]).await;
        assert_eq!(probed, [Ok(429), Err(Code::AccountRefused), Err(Code::AccountRefused)]);
        *paid.lock() = true;
        tokio::time::sleep(Duration::from_secs(21)).await;
        assert_eq!(provider.send("j").await, 200);
        assert_eq!(provider.limiter.stats("gpt-4o").account_refused, None);
        assert_eq!(provider.send_all(&["k", "l", "m"]).await, [Ok(200); 3]);
    }
}

const OF_ACCOUNT: &str =
    "You exceeded your current quota, please check your plan and billing details.";

#[tokio::test(start_paused = true)]
async fn one_refusal_of_the_account_stops_no_other_request() {
    let answer = |name: &str, _| if name == "bad" { (402, "", NO_MONEY) } else { OK };
    let provider = Provider::new(answer);
    assert_eq!(provider.send("bad").await, 402);
    assert_eq!(provider.send_all(&["a", "b", "c"]).await, [Ok(200); 3]);
}

#[tokio::test(start_paused = true)]
async fn wrong_keys_of_a_client_stop_no_other_request() {
    let wrong =
        r#"{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}"#;
    let answer = move |name: &str, _| if name == "bad" { (401, "", wrong) } else { OK };
    let provider = Provider::new(answer);
    assert_eq!(provider.send_all(&["bad"; 20]).await, [Ok(401); 20]);
    assert_eq!(provider.send("good").await, 200);
}

/// Two accounts behind one key, one of them without money.
#[tokio::test(start_paused = true)]
async fn exhausted_account_of_two_leaves_the_rate_of_the_other() {
    let count = Mutex::new(0_u32);
    let provider = Provider::new(move |_, _| {
        let mut count = count.lock();
        *count = count.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if *count >> 31 == 0 { (429, "", NO_MONEY) } else { OK }
    });
    let (begin, mut served) = (provider.limiter.now(), 0);
    for _ in 0..100 {
        let answers = provider.send_all(&["a"; 4]).await;
        served += answers.iter().filter(|answer| **answer == Ok(200)).count();
    }
    assert!(served >= 160 && provider.seconds(begin) <= 20, "{served} {}", provider.seconds(begin));
}

#[tokio::test(start_paused = true)]
async fn overload_delays_its_request_and_keeps_the_rate() {
    for reduction in [Reduction::ADAPTIVE, Reduction::new()] {
        let answer = |name: &str, number| match name {
            "bad" if number <= 2 => (503, "4", "Overloaded"),
            _ => OK,
        };
        let provider = Provider::with(reduction, 3, answer);
        let begin = provider.limiter.now();
        let others = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            (provider.send_all(&["a", "b", "c"]).await, provider.seconds(begin))
        };
        let (bad, (answers, seconds)) = tokio::join!(provider.send("bad"), others);
        assert_eq!((bad, answers, seconds), (200, vec![Ok(200); 3], 0));
        assert_eq!(provider.seconds(begin), 8, "twice the stated delay");
        assert_eq!(provider.limiter.stats("gpt-4o").limits[0].limit, 6_000);
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_are_bounded_for_each_kind() {
    for (answer, tries) in [
        ((429, "", LIMITED), 3),
        ((429, "1", LIMITED), 3),
        ((503, "", "Overloaded"), 3),
        ((500, "", "Internal"), 3),
        ((429, "", TOO_LARGE), 1),
        ((429, "", NO_MONEY), 1),
    ] {
        let provider = Provider::with(Reduction::ADAPTIVE, 2, move |_, _| answer);
        assert_eq!(provider.send("a").await, answer.0);
        assert_eq!(provider.tries("a"), tries, "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_request_that_is_refused_again_pauses_a_second() {
    let provider = Provider::with(Reduction::OFF, 1, |_, _| (429, "", LIMITED));
    assert_eq!((provider.send("a").await, provider.tries("a")), (429, 2));
    let pause = cooling(&provider.limiter, "gpt-4o");
    assert!(pause > S - Duration::from_millis(50) && pause <= S, "{pause:?}");
}

#[tokio::test(start_paused = true)]
async fn used_up_window_measures_no_rate() {
    let provider = Provider::new(|_, _| (429, "", USED_UP));
    let waiting = tokio::time::timeout(S, provider.send("a")).await;
    assert!(waiting.is_err(), "it waits for the window");
    assert!(provider.limiter.stats("gpt-4o").learned.is_empty());
    assert!(cooling(&provider.limiter, "gpt-4o") > 1_190 * S);
}

/// Those in flight were sent before the first refusal.
#[tokio::test(start_paused = true)]
async fn account_counts_as_refused_after_a_test_alone() {
    let provider = Provider::new(|_, _| (429, "", NO_MONEY));
    assert_eq!(provider.send_all(&["a", "b", "c", "d"]).await, [Ok(429); 4]);
    assert_eq!(provider.send_all(&["e"]).await, [Ok(429)], "it tests the account");
    assert_eq!(provider.send_all(&["f"]).await, [Err(Code::AccountRefused)]);
}

#[tokio::test(start_paused = true)]
async fn overloads_of_one_request_open_no_circuit() {
    let answer = |name: &str, _| if name == "bad" { OVERLOADED } else { OK };
    let provider = Provider::with(Reduction::ADAPTIVE, 8, answer);
    assert_eq!((provider.send("bad").await, provider.tries("bad")), (503, 9));
    let begin = provider.limiter.now();
    assert_eq!((provider.send("good").await, provider.seconds(begin)), (200, 0));
}
