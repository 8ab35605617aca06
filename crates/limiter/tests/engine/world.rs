//! The engine driven by a schedule, with the charges that a provider makes.

use paceline_limiter::engine::{Bucket, Level, Rule, Shortfall, Wait, release, reserve, settle};
use paceline_limiter::quota::{Cost, Dimension, Margin, SettleAt};

use super::at;
use super::schedule::{Act, Event, Spec, size};

pub(super) struct World {
    pub(super) specs: Vec<Spec>,
    pub(super) rules: Vec<Rule>,
    pub(super) buckets: Vec<Bucket>,
    pub(super) now: u64,
    pub(super) open: Vec<Sent>,
    /// The times and amounts of the provider's charges, by rule.
    pub(super) charges: Vec<Vec<(u64, u64)>>,
    /// Ended requests, in order of their ends.
    ended_requests: Vec<EndedRequest>,
    /// The time named by the last refusal.
    retry: u64,
    lag: u64,
}

/// A request that has ended.
pub(super) struct EndedRequest {
    sent: u64,
    reserved: Cost,
    actual: Cost,
    ended_at: u64,
    released: bool,
}

impl EndedRequest {
    pub(super) fn at_settle(&self, dimension: &Dimension) -> (u64, u64) {
        (self.ended_at, if self.released { 0 } else { self.actual.amount(dimension) })
    }

    pub(super) fn at_send(&self, dimension: &Dimension) -> (u64, u64) {
        (self.sent, if self.released { 0 } else { self.actual.amount(dimension) })
    }

    pub(super) fn reserved_at_send(&self, dimension: &Dimension) -> (u64, u64) {
        (self.sent, self.reserved.amount(dimension))
    }
}

/// A request in flight.
pub(super) struct Sent {
    pub(super) at: u64,
    pub(super) reserved: Cost,
    pub(super) actual: Cost,
    /// The nanoseconds from sending to arrival at the provider.
    pub(super) delay: u64,
    /// The time of a late charge by the provider, in 1/255 of the time from arrival to end.
    pub(super) share: u8,
}

impl World {
    pub(super) fn new(specs: Vec<Spec>, margin: Margin, now: u64) -> Self {
        let rules: Vec<Rule> = specs.iter().map(|s| s.rule(margin)).collect();
        let buckets = rules.iter().map(Bucket::new).collect();
        let charges = vec![Vec::new(); specs.len()];
        let lag = u64::try_from(margin.lag().as_nanos()).unwrap();
        let (open, ended_requests) = (Vec::new(), Vec::new());
        Self { specs, rules, buckets, now, open, charges, ended_requests, retry: now, lag }
    }

    pub(super) fn run(&mut self, events: &[Event]) {
        for &event in events {
            self.advance(event);
            match event.act {
                Act::Reserve => drop(self.reserve(&self.cost(event), event)),
                Act::Settle | Act::Release => self.finish_one(event),
            }
        }
    }

    /// Advances the time: by zero, a nanosecond, a window or a part of it plus or minus a
    /// nanosecond (on a calendar also an hour), a part of the lag, or to the time named by the last
    /// refusal.
    pub(super) fn advance(&mut self, event: Event) {
        let spec = &self.specs[usize::from(event.pick) % self.specs.len()];
        let (window, is_civil) = (spec.window, spec.civil.is_some());
        let part = u64::from(event.step / 16) + 1;
        self.now += match event.step % 16 {
            3 if is_civil => window - HOUR,
            4 if is_civil => window + HOUR,
            0..=4 => 0,
            5 => 1,
            6 => window,
            7 => window - 1,
            8 => window + 1,
            9 => window / part - 1,
            10 => window / part,
            11 => self.lag / part,
            12 => (2 * self.lag) / part,
            13 => part,
            _ => self.retry.saturating_sub(self.now),
        };
    }

    pub(super) fn cost(&self, event: Event) -> Cost {
        let [a, b, c] = event.sizes;
        // Sometimes more than the smallest limit can hold.
        let times = if event.delay % 16 == 5 { 3 } else { 1 };
        Cost::new()
            .requests(times * size(a, self.least(&Dimension::Requests)))
            .tokens(times * size(b, self.least(&Dimension::Tokens)))
            .input_tokens(times * size(c, self.least(&Dimension::InputTokens)))
    }

    pub(super) fn reserve(&mut self, cost: &Cost, event: Event) -> Result<(), Shortfall> {
        let answer = reserve(&self.rules, &mut self.buckets, cost, at(self.now));
        match answer {
            Ok(()) => {
                let actual = self.actual(cost, event.share);
                let delay = self.lag * u64::from(event.delay) / 255;
                let (at, reserved, share) = (self.now, cost.clone(), event.delay);
                self.open.push(Sent { at, reserved, actual, delay, share });
            }
            Err(Shortfall { wait: Wait::At(time), .. }) => self.retry = time.as_nanos(),
            Err(_) => {}
        }
        answer
    }

    pub(super) fn finish_one(&mut self, event: Event) {
        if !self.open.is_empty() {
            let sent = self.open.swap_remove(usize::from(event.pick) % self.open.len());
            self.finish(sent, event.act);
        }
    }

    pub(super) fn finish_all(&mut self, act: Act) {
        for sent in std::mem::take(&mut self.open) {
            self.finish(sent, act);
        }
    }

    fn finish(&mut self, sent: Sent, act: Act) {
        let (sent_at, now) = (at(sent.at), at(self.now));
        let released = act == Act::Release && self.can_release(&sent);
        if released {
            release(&self.rules, &mut self.buckets, sent_at, &sent.reserved, now);
        } else {
            settle(&self.rules, &mut self.buckets, sent_at, &sent.reserved, &sent.actual, now);
            self.charge(&sent);
        }
        let Sent { at: sent, reserved, actual, .. } = sent;
        self.ended_requests.push(EndedRequest {
            sent,
            reserved,
            actual,
            ended_at: self.now,
            released,
        });
    }

    /// Returns the level of every bucket, this many nanoseconds from now.
    pub(super) fn levels(&self, later: u64) -> Vec<Level> {
        let buckets = self.rules.iter().zip(&self.buckets);
        buckets.map(|(rule, bucket)| bucket.level(rule, at(self.now + later))).collect()
    }

    /// Returns the charges of the ended requests that the rule counts, as returned by `charge`.
    pub(super) fn charges_of(
        &self,
        spec: &Spec,
        charge: impl Fn(&EndedRequest, &Dimension) -> (u64, u64),
    ) -> Vec<(u64, u64)> {
        let counts = |request: &&EndedRequest| request.reserved.amount(&spec.dimension) > 0;
        let counted = self.ended_requests.iter().filter(counts);
        counted.map(|request| charge(request, &spec.dimension)).collect()
    }

    pub(super) fn has_released(&self) -> bool {
        self.ended_requests.iter().any(|request| request.released)
    }

    /// Returns `true` if a request may be released: a fixed window starts with its first request, which can
    /// be corrected only until another window can start.
    fn can_release(&self, sent: &Sent) -> bool {
        let is_over = |s: &Spec| s.is_anchored() && self.now >= sent.at + s.window + self.lag;
        !self.specs.iter().any(is_over)
    }

    /// Records the provider's charge of a request that ends now.
    fn charge(&mut self, sent: &Sent) {
        for (spec, charges) in self.specs.iter().zip(&mut self.charges) {
            if sent.reserved.amount(&spec.dimension) == 0 {
                continue;
            }
            let arrived = sent.at + sent.delay;
            let late = u128::from(self.now.saturating_sub(arrived)) * u128::from(sent.share) / 255;
            let at = match spec.settle {
                SettleAt::Send => arrived,
                _ => arrived.min(self.now) + u64::try_from(late).unwrap(),
            };
            charges.push((at, sent.actual.amount(&spec.dimension)));
        }
    }

    /// Returns the actual cost of a request: at most the reservation, often exactly that.
    fn actual(&self, cost: &Cost, share: u8) -> Cost {
        let part = |dimension: &Dimension, shift: u8| {
            let reserved = cost.amount(dimension);
            let anchored = |s: &Spec| s.is_anchored() && s.dimension == *dimension;
            // A fixed window starts with a request that is counted, so the cost is at least one.
            let least = u64::from(self.specs.iter().any(anchored)).min(reserved);
            let part = (reserved / 3) * u64::from(share.rotate_left(shift.into()) % 4);
            let whole = share.rotate_left(shift.into()) % 4 == 3;
            if whole { reserved } else { part.max(least) }
        };
        Cost::new()
            .requests(part(&Dimension::Requests, 0))
            .tokens(part(&Dimension::Tokens, 2))
            .input_tokens(part(&Dimension::InputTokens, 4))
    }

    /// Returns the smallest capacity of the limits of a dimension.
    fn least(&self, dimension: &Dimension) -> u64 {
        let of = self.specs.iter().filter(|s| s.dimension == *dimension);
        of.map(Spec::capacity).min().unwrap_or(1)
    }
}

const HOUR: u64 = 3_600_000_000_000;
