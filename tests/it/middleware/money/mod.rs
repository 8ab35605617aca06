//! Properties of budgets, against a provider that counts money by itself: the money spent is never above a budget, and
//! nearly all of it is used where work waits.

mod job;
mod provider;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use paceline::limiter::Limiter;
use paceline::middleware::{Classified, Classify, Http, RateLimitLayer};
use paceline::price::{Price, Prices};
use paceline::provider::{ANTHROPIC, OPENAI, Profile};
use paceline::quota::{Cost, Quota, Usd};
use paceline_testing::full::full_or;
use proptest::prelude::*;
use tower::{Layer, ServiceExt};

use self::job::{End, Job, Kind, MODELS, jobs};
use self::provider::{Bill, CONTEXT, DEARER, MAX_OUTPUT, Provider, RATES};
use super::builder;
use super::inner::Strict;
use crate::block_on_paused;

/// The longest wait of a request, longer than any is in flight.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
const DAY: Duration = Duration::from_secs(86_400);

fn prices() -> Prices {
    let price = |halves| {
        let dollars = |rate| Usd::from_micros(rate * halves * 500_000);
        let (input, output) = (dollars(RATES.0), dollars(RATES.1));
        Price::per_million(input, output).max_output(MAX_OUTPUT).max_input(CONTEXT)
    };
    MODELS[..3].iter().fold(Prices::none(), |prices, model| {
        let modes = [("priority", 2 * DEARER), ("fast", 2 * DEARER), ("flex", 1)];
        modes.iter().fold(prices.with(model, price(2)), |prices, (mode, halves)| {
            prices.with(&format!("{model}:{mode}"), price(*halves))
        })
    })
}

/// Returns a limiter with these budgets per day.
fn limiter(provider: &Provider, budgets: &Budgets) -> Limiter {
    let builder = builder().clock(provider.clock()).provider(OPENAI).provider(ANTHROPIC);
    let quota = |(key, amount): (&&'static str, &u64)| {
        (*key, Quota::new().usd_per_day(Usd::from_micros(*amount)))
    };
    let limited = budgets.iter().map(quota);
    limited.fold(builder, |builder, (key, quota)| builder.quota(key, quota)).build().unwrap()
}

type Budgets = BTreeMap<&'static str, u64>;

/// Runs a job to its end.
async fn run(job: Job, number: usize, limiter: Limiter, provider: Arc<Provider>) {
    tokio::time::sleep(Duration::from_millis(job.delay)).await;
    let stated = |amount: Option<u64>| {
        amount.map_or(Cost::new(), |amount| Cost::new().usd(Usd::from_micros(amount)))
    };
    match job.kind {
        Kind::Acquire(amount) => {
            let ends = limiter.now() + LONGEST_WAIT;
            let acquire = limiter.acquire_all(&[job.model, ACCOUNT], &stated(amount));
            if let Ok(permit) = acquire.deadline(ends).await {
                provider.work(job.model, amount);
                drop(permit);
            }
        }
        Kind::Closure(amount) => {
            let (model, cost) = (job.model, stated(amount));
            let layer = RateLimitLayer::new(limiter).max_wait(LONGEST_WAIT).observe(|_: &u64| None);
            let layer =
                layer.classify(move |_: &u64| Classified::new(model, cost.clone()).scope(ACCOUNT));
            let work = move |sent| {
                provider.work(model, amount);
                std::future::ready(Ok(sent))
            };
            let _ = layer.layer(Strict::new(work)).oneshot(7).await;
        }
        _ => send(&job, number, limiter, provider).await,
    }
}

async fn send(job: &Job, number: usize, limiter: Limiter, provider: Arc<Provider>) {
    let (profile, request): (Profile, Request<String>) = (job.profile(), job.request(number));
    let read = Http::new(profile);
    let layer = RateLimitLayer::new(limiter).provider(profile).prices(prices());
    let layer = layer.max_wait(LONGEST_WAIT);
    let layer = layer
        .classify(move |request: &Request<String>| read.classify(request, None).scope(ACCOUNT));
    let client = layer.layer(Strict::new(move |request| Arc::clone(&provider).answer(request)));
    let Ok(response) = client.oneshot(request).await else { return };
    let mut body = response.into_body();
    let frames = if let End::CutByClient(frames) = job.end { frames } else { usize::MAX };
    for _ in 0..frames {
        let Some(Ok(_)) = body.frame().await else { break };
    }
}

/// Runs all jobs, for up to this long. Returns the bills, and whether all have ended.
async fn bills(jobs: &[Job], budgets: &Budgets, most: Duration) -> (Vec<Bill>, bool) {
    let flat = budgets.values().copied().max().unwrap_or(0) + 1;
    let provider = Provider::new(jobs, flat);
    let limiter = limiter(&provider, budgets);
    let mut running = tokio::task::JoinSet::new();
    for (number, job) in jobs.iter().copied().enumerate() {
        running.spawn(run(job, number, limiter.clone(), Arc::clone(&provider)));
    }
    let all = async {
        while let Some(ended) = running.join_next().await {
            ended.unwrap();
        }
    };
    let has_ended = tokio::time::timeout(most, all).await.is_ok();
    let bills = provider.bills();
    running.shutdown().await;
    (bills, has_ended)
}

/// Returns what was billed on each day for the requests that a key counts, by the time of sending or of the end.
fn per_day(bills: &[Bill], key: &str, by_end: bool) -> BTreeMap<u64, u64> {
    let mut days = BTreeMap::new();
    for bill in bills.iter().filter(|bill| key == ACCOUNT || key == bill.model) {
        let time = if by_end { bill.ended } else { bill.sent };
        let day = time.as_nanos() / u64::try_from(DAY.as_nanos()).unwrap();
        *days.entry(day).or_default() += bill.micros;
    }
    days
}

const ACCOUNT: &str = "account";

/// The largest amount of a budget in the property.
const LARGEST: u64 = 8_000;

fn budgets() -> impl Strategy<Value = Budgets> {
    let keys = proptest::sample::subsequence([&[ACCOUNT], &MODELS[..]].concat(), 1..=3);
    let amounts = proptest::collection::vec(500..LARGEST, 3);
    (keys, amounts).prop_map(|(keys, amounts)| keys.into_iter().zip(amounts).collect())
}

/// At whatever time the provider bills a request, it never bills more on a day than the budget of any key.
#[test]
fn money_spent_is_never_above_a_budget() {
    let config = ProptestConfig { cases: full_or(100_000, 1_000), ..ProptestConfig::default() };
    proptest!(config, |(jobs in jobs(LARGEST), budgets in budgets())| {
        let (bills, has_ended) = block_on_paused(bills(&jobs, &budgets, 60 * DAY));
        prop_assert!(has_ended, "requests wait for ever");
        for (key, budget) in &budgets {
            for by_end in [false, true] {
                let spent = per_day(&bills, key, by_end);
                prop_assert!(spent.values().all(|spent| spent <= budget), "{key}: {spent:?} of {budget}: {bills:?}");
            }
        }
    });
}

/// Where work waits and no request's bound is above 5 % of the budget, at least 90 % of the budget is used. A request whose
/// answer was cut or lost counts with the most that it may have cost, since the limiter can't know more.
#[test]
fn money_is_used_where_work_waits() {
    let config = ProptestConfig { cases: full_or(2_000, 10), ..ProptestConfig::default() };
    let jobs = proptest::collection::vec(jobs(1), 30).prop_map(|jobs| jobs.concat());
    proptest!(config, |(jobs in jobs)| {
        let is_bounded = |job: &&Job| job.kind != Kind::EarlierResponse;
        let at_once = |job: &Job| {
            let used = (job.used.0, job.used.1.max(30));
            Job { delay: 0, latency: job.latency / 10, used, ..*job }
        };
        // More than twice the budget, so that work waits.
        let jobs = jobs.iter().filter(is_bounded).map(at_once).collect::<Vec<_>>().repeat(2);
        // Twice the price of 300 bytes and tokens around them, and of three outputs of 150 tokens.
        let budget = 20 * DEARER * (300 * RATES.0 + 3 * MAX_OUTPUT * RATES.1);
        let (bills, has_ended) = block_on_paused(bills(&jobs, &[(ACCOUNT, budget)].into(), LONGEST_WAIT / 10));
        prop_assume!(!has_ended);
        let sum = |amount: fn(&Bill) -> u64| bills.iter().map(amount).sum::<u64>();
        let (spent, most) = (sum(|bill| bill.micros), sum(|bill| bill.most));
        prop_assert!(spent <= budget && most * 10 >= budget * 9, "{spent} to {most} of {budget}");
    });
}
