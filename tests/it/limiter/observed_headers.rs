//! Remaining amounts from response headers, compared with a provider that counts independently.

use paceline::Timestamp;
use std::collections::BinaryHeap;
use std::time::Duration;

use paceline::limiter::{Limiter, ManualClock, Permit, Reduction};
use paceline::provider::{LimitReading, OPENAI};
use paceline::quota::{Dimension, Quota, Window};
use paceline_testing::log_buffer::LogBuffer;

use super::{S, tokens};

/// A provider's token bucket per minute; levels are scaled by a minute's nanoseconds.
struct Provider {
    limit: u128,
    level: u128,
    at: Timestamp,
}

impl Provider {
    fn new(limit: u64, now: Timestamp) -> Self {
        let limit = u128::from(limit);
        Self { limit, level: limit * MINUTE, at: now }
    }

    fn take(&mut self, amount: u64, now: Timestamp) -> bool {
        self.refill(now);
        let amount = u128::from(amount) * MINUTE;
        let fits = amount <= self.level;
        self.level -= if fits { amount } else { 0 };
        fits
    }

    fn left(&mut self, now: Timestamp) -> u64 {
        self.refill(now);
        u64::try_from(self.level / MINUTE).unwrap()
    }

    fn refill(&mut self, now: Timestamp) {
        self.level =
            (self.level + (now - self.at).as_nanos() * self.limit).min(self.limit * MINUTE);
        self.at = now;
    }
}

const MINUTE: u128 = 60_000_000_000;

/// The time at which the provider computes the remaining amount.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Header {
    AtAdmission,
    AtAnswer,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    header: Header,
    /// Milliseconds until the response.
    latency: u64,
    observes: bool,
    /// Tokens per second used by another program, in ten requests.
    others: u64,
    /// Milliseconds with traffic at the start of each 20 seconds.
    busy: u64,
}

/// Numbers of requests that the provider admitted and refused.
#[derive(Debug, PartialEq)]
struct Outcome {
    admitted: u64,
    refused: u64,
}

const LIMIT: u64 = 60_000;
const COST: u64 = 100;

/// A request in flight, with the time of its response and the remaining amount at admission.
struct Flight {
    answered_at: Timestamp,
    left: u64,
    permit: Permit,
}

impl Run {
    const ALONE: Self = Self {
        header: Header::AtAdmission,
        latency: 1_000,
        observes: true,
        others: 0,
        busy: 20_000,
    };

    /// Simulates five minutes in ticks of 10 ms. A request reaches the provider 20 to 60 ms after
    /// admission.
    fn outcome(self) -> Outcome {
        let clock = ManualClock::new();
        let builder = Limiter::builder().provider(OPENAI).reduction(Reduction::OFF);
        let builder = builder.quota("gpt-4o", Quota::new().tpm(LIMIT)).clock(clock.clone());
        let limiter = builder.build().unwrap();
        let mut provider = Provider::new(LIMIT, limiter.now());
        let mut arriving: BinaryHeap<(std::cmp::Reverse<Timestamp>, u64)> = BinaryHeap::new();
        let (mut permits, mut flights) = (std::collections::HashMap::new(), Vec::<Flight>::new());
        let (mut outcome, mut number) = (Outcome { admitted: 0, refused: 0 }, 0_u64);
        for tick in 0..30_000_u64 {
            let now = limiter.now();
            while arriving.peek().is_some_and(|(at, _)| at.0 <= now) {
                let (_, number) = arriving.pop().unwrap();
                let permit: Permit = permits.remove(&number).unwrap();
                let fits = provider.take(COST, now);
                *(if fits { &mut outcome.admitted } else { &mut outcome.refused }) += 1;
                let answered_at = now + Duration::from_millis(self.latency);
                flights.push(Flight { answered_at, left: provider.left(now), permit });
            }
            for flight in flights.extract_if(.., |flight| flight.answered_at <= now) {
                let left = match self.header {
                    Header::AtAdmission => flight.left,
                    Header::AtAnswer => provider.left(now),
                };
                if self.observes {
                    flight.permit.observe(&[reading(left)]);
                }
                drop(flight.permit);
            }
            if self.others > 0 && tick % 10 == 5 {
                provider.take(self.others / 10, now);
            }
            while tick * 10 % 20_000 < self.busy
                && let Ok(permit) = limiter.try_acquire("gpt-4o", &tokens(COST))
            {
                number += 1;
                let transit = 20 + number * 7 % 41;
                arriving.push((std::cmp::Reverse(now + Duration::from_millis(transit)), number));
                permits.insert(number, permit);
            }
            clock.advance(Duration::from_millis(10));
        }
        outcome
    }
}

fn reading(left: u64) -> LimitReading {
    let mut headers = http::HeaderMap::new();
    headers.insert("x-ratelimit-limit-tokens", LIMIT.to_string().parse().unwrap());
    headers.insert("x-ratelimit-remaining-tokens", left.to_string().parse().unwrap());
    let mut reading = OPENAI.limits(&headers).remove(0);
    reading.window = Window::MINUTE;
    reading
}

#[test]
fn sole_user_of_account_is_not_slowed_by_headers() {
    for header in [Header::AtAdmission, Header::AtAnswer] {
        for latency in [0, 100, 1_000, 10_000] {
            for busy in [300, 5_000, 20_000] {
                let run = Run { header, latency, busy, ..Run::ALONE };
                let with = run.outcome();
                assert_eq!(with, Run { observes: false, ..run }.outcome(), "{run:?}");
                assert_eq!(with.refused, 0, "{run:?}");
            }
        }
    }
}

/// Responses that arrive before the margin is used up avoid all refusals; slower ones avoid most.
#[test]
fn half_used_account_with_fast_responses_is_never_refused() {
    for header in [Header::AtAdmission, Header::AtAnswer] {
        for latency in [100, 500, 1_000] {
            let run = Run { header, latency, others: LIMIT / 120, ..Run::ALONE };
            let without = Run { observes: false, ..run }.outcome();
            let with = run.outcome();
            assert!(without.refused > 300, "{without:?}");
            let most = if latency > 500 { without.refused / 2 } else { 0 };
            assert!(with.refused <= most, "{run:?}: {with:?}, not {without:?}");
            // Five minutes and a full bucket, minus the usage of others, almost entirely.
            assert!(with.admitted * COST > LIMIT * 34 / 10, "{run:?}: {with:?}");
        }
    }
}

fn limiter() -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    let builder = Limiter::builder().provider(OPENAI).quota("gpt-4o", Quota::new().tpm(LIMIT));
    (builder.clock(clock.clone()).build().unwrap(), clock)
}

fn used(limiter: &Limiter) -> u64 {
    limiter.stats("gpt-4o").limits[0].used
}

/// Sends a request whose response reports `left` tokens.
fn answered(limiter: &Limiter, left: u64) {
    limiter.try_acquire("gpt-4o", &tokens(COST)).unwrap().observe(&[reading(left)]);
}

#[test]
fn usage_of_others_from_headers_counts_once() {
    let (limiter, _clock) = limiter();
    answered(&limiter, LIMIT - COST);
    let permits: Vec<_> =
        (0..5).map(|_| limiter.try_acquire("gpt-4o", &tokens(COST)).unwrap()).collect();
    permits.iter().for_each(|permit| permit.observe(&[reading(40_000)]));
    // The possible rounding of the reading is not counted.
    assert_eq!(used(&limiter), LIMIT - 40_000 - 1);
}

#[test]
fn lower_provider_limit_is_logged_once_across_reductions() {
    let log = LogBuffer::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let (limiter, clock) = limiter();
    tracing::subscriber::with_default(subscriber, || {
        limiter.feedback().reduce("gpt-4o", "429");
        for minute in 0..10 {
            let mut reading = reading(LIMIT / 2);
            reading.limit = Some(LIMIT / 2);
            limiter.try_acquire("gpt-4o", &tokens(1)).unwrap().observe(&[reading]);
            clock.advance(60 * S);
            if minute == 8 {
                limiter.reset("gpt-4o");
            }
        }
    });
    let log = log.text();
    assert_eq!(log.matches("the provider's limit is below the quota's").count(), 1, "{log}");
}

#[test]
fn first_response_after_recovery_step_is_compared() {
    let (limiter, clock) = limiter();
    limiter.feedback().reduce("gpt-4o", "429");
    answered(&limiter, LIMIT - COST);
    clock.advance(31 * S);
    limiter.decide("gpt-4o", &tokens(COST));
    let permit = limiter.try_acquire("gpt-4o", &tokens(COST)).unwrap();
    let before = used(&limiter);
    permit.observe(&[reading(0)]);
    assert!(used(&limiter) > before + LIMIT / 4, "{before}, {}", used(&limiter));
}

#[test]
fn usage_from_headers_allows_for_rounding_of_reading() {
    for granularity in [1, 1_000, u64::MAX] {
        let (limiter, _clock) = limiter();
        answered(&limiter, LIMIT - COST);
        let mut reading = reading(40_000);
        reading.granularity = granularity;
        limiter.try_acquire("gpt-4o", &tokens(COST)).unwrap().observe(&[reading]);
        let proven = (LIMIT - 40_000).saturating_sub(granularity);
        assert_eq!(used(&limiter), proven.max(2 * COST));
    }
}

#[test]
fn usage_from_headers_allows_for_overrun_of_held_requests() {
    let clock = ManualClock::new();
    let builder = Limiter::builder().quota("gpt-4o", Quota::new().tpm(LIMIT)).clock(clock.clone());
    let limiter = builder.build().unwrap();
    answered(&limiter, LIMIT - COST);
    let permits: Vec<_> =
        (0..5).map(|_| limiter.try_acquire("gpt-4o", &tokens(1_000)).unwrap()).collect();
    permits.iter().for_each(|permit| permit.observe(&[reading(40_000)]));
    let limit = &limiter.stats("gpt-4o").limits[0];
    assert_eq!((limit.used, limit.held), (LIMIT - 40_000 - 2 * 5_000 - 1, 5_000));
}

#[test]
fn higher_or_invalid_reading_changes_no_usage() {
    let (limiter, _clock) = limiter();
    answered(&limiter, LIMIT - COST);
    limiter.try_acquire("gpt-4o", &tokens(30_000)).unwrap().settle(&tokens(30_000));
    let before = used(&limiter);
    let with = |change: fn(&mut LimitReading)| {
        let mut reading = reading(0);
        change(&mut reading);
        reading
    };
    let invalid = [
        reading(LIMIT),
        reading(LIMIT + 1),
        reading(u64::MAX),
        with(|reading| reading.window = Window::DAY),
        with(|reading| reading.dimension = Dimension::InputTokens),
        with(|reading| reading.remaining = None),
        with(|reading| (reading.limit, reading.remaining) = (Some(0), Some(1))),
    ];
    let permit = limiter.try_acquire("gpt-4o", &tokens(0)).unwrap();
    for reading in invalid {
        permit.observe(std::slice::from_ref(&reading));
        assert_eq!(used(&limiter), before, "{reading:?}");
    }
}

#[test]
fn reading_from_before_refill_changes_no_usage() {
    let (limiter, clock) = limiter();
    answered(&limiter, LIMIT - COST);
    let first = limiter.try_acquire("gpt-4o", &tokens(COST)).unwrap();
    clock.advance(S);
    let burst: Vec<_> =
        (0..550).map(|_| limiter.try_acquire("gpt-4o", &tokens(COST)).unwrap()).collect();
    clock.advance(30 * S);
    let before = used(&limiter);
    // The provider computed this right after the burst; the response arrives only now.
    first.observe(&[reading(LIMIT - 552 * COST)]);
    assert_eq!(used(&limiter), before);
    drop(burst);
}

#[test]
fn key_with_observed_readings_can_be_pruned() {
    let (limiter, clock) = limiter();
    answered(&limiter, LIMIT - COST);
    clock.advance(120 * S);
    assert_eq!(limiter.state().prune(), 1);
}

/// A limit per minute that is enforced per second: at no time is more there than the provider's small bucket.
#[test]
fn burst_is_at_most_what_headers_have_shown() {
    let (limiter, clock) = limiter();
    answered(&limiter, 900);
    for _ in 0..3 {
        clock.advance(180 * S);
        limiter.try_acquire("gpt-4o", &tokens(COST)).unwrap().settle(&tokens(COST));
        // The reading may be rounded.
        assert_eq!(limiter.stats("gpt-4o").limits[0].available, 900 + COST + 1);
    }
}

/// Others used most of the account at the first response: the burst is whole again once headers show it.
#[test]
fn withheld_burst_is_returned_when_headers_show_it() {
    let (limiter, clock) = limiter();
    answered(&limiter, 900);
    clock.advance(180 * S);
    let early = limiter.try_acquire("gpt-4o", &tokens(COST)).unwrap();
    early.observe(&[reading(LIMIT - COST)]);
    assert_eq!(used(&limiter), COST);
    early.settle(&tokens(COST));
    clock.advance(180 * S);
    answered(&limiter, LIMIT - COST);
    assert_eq!(used(&limiter), COST);
}
