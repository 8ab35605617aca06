//! Replays a trace through a limiter and a slow network to the simulated provider.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use paceline::Timestamp;
use paceline::limiter::{Limiter, Permit, TokioClock};
use paceline::provider::Profile;
use paceline::quota::{Cost, Dimension, Margin, Quota};
use paceline_simulate::{Provider, Settings};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::trace::Request;

/// The limiter and the provider of a replay.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    pub(super) profile: Profile,
    pub(super) quota: Quota,
    pub(super) margin: Margin,
    pub(super) provider: Settings,
    /// The reservation in thousandths of the actual cost.
    pub(super) reserved: Range<u64>,
    pub(super) charged: Charged,
    /// The seed of the delays and of the reservations.
    pub(super) seed: u64,
}

/// The time at which the provider charges a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charged {
    AtArrival,
    /// At the end of the answer.
    AtEnd,
}

/// The result of a replay.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) refusals: Vec<String>,
    /// The time of each grant, in nanoseconds since the start, in the order of the trace.
    pub(super) granted: Vec<u64>,
    /// The number of requests that waited.
    pub(super) waited: usize,
    /// The charged tokens of the requests that waited.
    pub(super) tokens: u64,
    /// The total of the amounts that were available each time a queue formed.
    pub(super) left: u64,
    /// The total time with at least one request waiting, in nanoseconds.
    pub(super) busy: u64,
    waiting: usize,
    busy_since: Timestamp,
}

impl Outcome {
    /// Returns the tokens granted to waiters, divided by the rate times the time with a queue.
    ///
    /// The burst is left out, since no request waits while it lasts. Its remainder when a queue
    /// forms, too small for the first waiter, is subtracted. So the result is 1 for a token bucket
    /// whose every refill is granted immediately, and never above. (With held reservations it may
    /// be above: the excess is already refilled when they end.)
    pub(super) fn utilization(&self, tpm: u64) -> f64 {
        let possible = tpm as f64 * self.busy as f64 / 60e9;
        self.tokens.saturating_sub(self.left) as f64 / possible
    }

    fn enqueue(&mut self, now: Timestamp, available: u64) {
        if self.waiting == 0 {
            self.busy_since = now;
            self.left += available;
        }
        self.waiting += 1;
    }

    fn dequeue(&mut self, now: Timestamp, tokens: u64) {
        self.waited += 1;
        self.tokens += tokens;
        self.waiting -= 1;
        if self.waiting == 0 {
            self.busy += nanos(now - self.busy_since);
        }
    }
}

/// State shared by the requests of a replay.
#[derive(Debug)]
struct World {
    limiter: Limiter,
    provider: Mutex<Provider>,
    outcome: Mutex<Outcome>,
    setup: Setup,
    start: Timestamp,
}

/// Replays a trace on tokio's paused clock.
pub(super) async fn replay(trace: &[Request], setup: &Setup) -> Outcome {
    let limiter = Limiter::builder()
        .provider(setup.profile)
        .quota(MODEL, setup.quota.clone())
        .margin(setup.margin)
        .clock(TokioClock::new())
        .build()
        .expect("the limiter is valid");
    let world = Arc::new(World {
        start: limiter.now(),
        limiter,
        provider: Mutex::new(Provider::new(setup.provider.clone())),
        outcome: Mutex::new(Outcome { granted: vec![0; trace.len()], ..Outcome::default() }),
        setup: setup.clone(),
    });
    let mut tasks = JoinSet::new();
    for (number, request) in trace.iter().enumerate() {
        let elapsed = world.limiter.now() - world.start;
        if request.at > elapsed {
            sleep(request.at - elapsed).await;
        }
        tasks.spawn(Arc::clone(&world).send(number, request.tokens));
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no request panics");
    }
    std::mem::take(&mut world.outcome.lock())
}

impl World {
    /// Sends one request, from its arrival at the limiter to the end of its answer.
    async fn send(self: Arc<Self>, number: usize, tokens: u64) {
        let Setup { seed, charged, reserved, .. } = &self.setup;
        let draw = |purpose, range| draw(*seed, number as u64, purpose, range);
        let reserved = tokens * draw(0, reserved.clone()) / 1_000;
        let permit = self.admit(number, reserved, tokens).await;
        sleep(Duration::from_micros(draw(1, NETWORK))).await;
        if *charged == Charged::AtArrival {
            self.charge(tokens);
        }
        sleep(Duration::from_micros(draw(2, ANSWER))).await;
        if *charged == Charged::AtEnd {
            self.charge(tokens);
        }
        sleep(Duration::from_micros(draw(3, NETWORK))).await;
        permit.settle(&Cost::new().tokens(tokens));
    }

    async fn admit(&self, number: usize, reserved: u64, tokens: u64) -> Permit {
        let cost = Cost::new().tokens(reserved);
        let mut acquire = self.limiter.acquire(MODEL, &cost);
        let arrived = acquire.arrive();
        let waits = arrived.is_none();
        if waits {
            self.outcome.lock().enqueue(self.limiter.now(), self.available());
        }
        let result = match arrived {
            Some(result) => result,
            None => acquire.await,
        };
        let permit = result.expect("every request is granted eventually");
        let mut outcome = self.outcome.lock();
        outcome.granted[number] = nanos(permit.granted_at() - self.start);
        if waits {
            outcome.dequeue(permit.granted_at(), tokens);
        }
        permit
    }

    /// Charges the request at the provider now.
    fn charge(&self, tokens: u64) {
        let now = nanos(self.limiter.now() - self.start);
        if let Err(refusal) = self.provider.lock().admit(now, MODEL, 1, tokens) {
            self.outcome.lock().refusals.push(format!("at {now} ns: {refusal}"));
        }
    }

    fn available(&self) -> u64 {
        let stats = self.limiter.stats(MODEL);
        let tokens = stats.limits.iter().find(|limit| limit.dimension == Dimension::Tokens);
        tokens.expect("tokens are limited").available
    }
}

/// Returns the grant times of an ideal client, which calls the provider without a network: in order of
/// arrival, each in the first nanosecond in which the provider admits the request.
pub(super) fn ideal_grants(trace: &[Request], settings: &Settings) -> Vec<u64> {
    let mut provider = Provider::new(settings.clone());
    let mut now = 0;
    let grants = trace.iter().map(|request| {
        now = now.max(request.at.as_nanos() as u64);
        while let Err(refusal) = provider.admit(now, MODEL, 1, request.tokens) {
            now += refusal.retry_after.expect("every request fits").as_nanos() as u64;
        }
        now
    });
    grants.collect()
}

/// Returns a number in `range` that depends only on the seed, the request and the purpose.
fn draw(seed: u64, number: u64, purpose: u64, range: Range<u64>) -> u64 {
    // SplitMix64.
    let mut z = (seed << 32 | number << 2 | purpose).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    range.start + (z ^ (z >> 31)) % (range.end - range.start)
}

const MODEL: &str = "gpt-4o";

/// The one-way delay of the network, in microseconds.
const NETWORK: Range<u64> = 0..400_001;

/// The duration of an answer, in microseconds.
const ANSWER: Range<u64> = 200_000..8_000_000;

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("a replay takes less than 584 years")
}
