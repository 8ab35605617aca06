use std::time::Duration;

use super::send_log::SentRequest;
use super::units::seconds_between;
use crate::timestamp::Timestamp;

/// Refusals that don't depend on the rate, as those of a provider that is full.
///
/// Once they are [shown](Self::show), a refusal is chance as long as the share of refused requests is explained by the
/// share that is known (a cumulative sum of log-likelihood ratios). Any other one is that of a limit. The share follows
/// requests that aren't sent above a measured rate, and is forgotten without refusals.
#[derive(Debug)]
pub(super) struct Chance {
    /// The share of requests that are refused by chance, and the number of requests that show it.
    share: f64,
    requests: f64,
    /// The share that was shown last, and its time.
    shown: Option<(f64, Timestamp)>,
    /// The number of the last request before it was shown.
    shown_at: u64,
    /// `true` if requests after it were refused more often than it explains, and if that was the last one shown.
    is_doubtful: bool,
    is_refuted: bool,
    /// The log-likelihood ratio of more refusals against the known share.
    excess: f64,
    /// That of a limit that accepts nothing, by the last refusals in a row.
    run: f64,
    /// The number of the last refused request.
    last: u64,
    /// Recent requests up to a refusal that was reacted to, and those that were sent after it before the reaction.
    paced: Counts,
    flight: Counts,
    /// The numbers of the request whose refusal was reacted to, and of the last request before that.
    reacted: (u64, u64),
}

/// The chance of refusals that name a limit, and of those that don't.
#[derive(Debug)]
pub(super) struct Chances {
    named: Chance,
    unnamed: Chance,
}

impl Chances {
    pub(super) fn new() -> Self {
        Self { named: Chance::new(), unnamed: Chance::new() }
    }

    pub(super) fn of(&mut self, is_named: bool) -> &mut Chance {
        if is_named { &mut self.named } else { &mut self.unnamed }
    }

    /// Counts a request that is sent.
    pub(super) fn sent(&mut self, is_growing: bool) {
        self.named.sent(is_growing);
        self.unnamed.sent(is_growing);
    }

    /// Returns whether no chance is known.
    pub(super) fn is_quiet(&self, now: Timestamp) -> bool {
        self.named.is_quiet(now) && self.unnamed.is_quiet(now)
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        self.named.rebase(back);
        self.unnamed.rebase(back);
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    sent: f64,
    refused: f64,
}

impl Chance {
    fn new() -> Self {
        Self {
            share: LEAST,
            requests: 1.0,
            shown: None,
            is_doubtful: false,
            is_refuted: false,
            shown_at: 0,
            excess: 0.0,
            run: 0.0,
            last: 0,
            paced: Counts::default(),
            flight: Counts::default(),
            reacted: (0, 0),
        }
    }

    fn sent(&mut self, is_growing: bool) {
        if !is_growing && self.shown.is_some() {
            self.requests = (self.requests + 1.0).min(LONGEST);
            self.share -= self.share / self.requests;
        }
    }

    /// Begins to count refusals that may be chance: the last one was that of a request that tested whether the limit
    /// is higher.
    pub(super) fn begin(&mut self) {
        let flight = to_f64(self.reacted.1 - self.reacted.0);
        self.paced = Counts::default();
        self.flight = Counts { sent: flight, refused: 0.0 };
    }

    /// Counts a refusal, and those of `requests` that were sent after it before the reaction.
    pub(super) fn react(&mut self, number: u64, requests: u64) {
        let (refused, last) = self.reacted;
        if number <= last {
            self.flight.refused += if number > refused { 1.0 } else { 0.0 };
            return;
        }
        for counts in [&mut self.paced, &mut self.flight] {
            counts.sent *= FADED;
            counts.refused *= FADED;
        }
        self.paced.sent += to_f64(number - last);
        self.paced.refused += 1.0;
        self.flight.sent += to_f64(requests.saturating_sub(number));
        self.reacted = (number, requests.max(number));
    }

    /// Returns whether a limit that seems to have fallen this often shows chance: an exceeded limit refuses most of
    /// those in flight with the first refused request, chance no more of them than of others. A limit may
    /// explain some of the falls.
    pub(super) fn is_shown(&self, falls: usize, explained: usize) -> bool {
        let expected = self.flight.sent * self.paced.share();
        let is_alike = self.flight.refused <= expected + 2.0 * expected.sqrt() + 1.0;
        falls > explained + usize::from(self.is_doubtful) && is_alike && self.paced.share() < MOST
    }

    /// Counts a refusal, and returns whether the known share explains it.
    pub(super) fn explains(&mut self, sent: &SentRequest, now: Timestamp) -> bool {
        let accepted = to_f64(sent.number.saturating_sub(self.last + 1));
        self.last = self.last.max(sent.number);
        if self.is_quiet(now) {
            self.shown = None;
            return false;
        }
        let known = self.share(now);
        let higher = known + (1.0 - known) * EXCESS;
        self.excess += accepted * ((1.0 - higher) / (1.0 - known)).ln();
        self.excess = self.excess.max(0.0) + (higher / known).ln();
        self.run = if accepted > 0.0 { 0.0 } else { self.run } - known.ln();
        if self.excess < THRESHOLD && self.run < RUN {
            if !sent.is_growing {
                let followed = (FOLLOWED * self.remembered(now)).min(MOST);
                self.share = (self.share + 1.0 / self.requests).min(followed);
            }
            if !self.is_refuted && sent.number > self.shown_at + CONFIRMED {
                self.is_doubtful = false;
            }
            self.react(sent.number, sent.number);
            return true;
        }
        (self.excess, self.run) = (0.0, 0.0);
        if !self.is_refuted && sent.number < self.shown_at + CONFIRMED {
            (self.is_doubtful, self.is_refuted) = (true, true);
        }
        false
    }

    /// Notes that the recent refusals are chance.
    pub(super) fn show(&mut self, requests: u64, now: Timestamp) {
        self.share = self.paced.share().clamp(LEAST, MOST);
        self.shown = Some((self.share, now));
        self.requests = self.paced.sent.min(LONGEST);
        (self.shown_at, self.is_refuted, self.excess) = (requests, false, 0.0);
    }

    /// Returns whether no chance is known: none was shown, or it is forgotten.
    fn is_quiet(&self, now: Timestamp) -> bool {
        self.shown.is_none() || self.share(now) <= LEAST
    }

    fn rebase(&mut self, back: Duration) {
        if let Some((_, at)) = &mut self.shown {
            *at = at.saturating_sub(back);
        }
    }

    /// Returns the share of requests that are refused by chance.
    fn share(&self, now: Timestamp) -> f64 {
        self.share.max(self.remembered(now)).clamp(LEAST, MOST)
    }

    /// Returns what is remembered of the share that was shown.
    fn remembered(&self, now: Timestamp) -> f64 {
        let half = if self.is_doubtful { REMEMBERED_DOUBTFUL } else { REMEMBERED };
        let of_shown = |(share, at)| share * (-seconds_between(at, now) / half).exp2();
        self.shown.map_or(0.0, of_shown)
    }
}

impl Counts {
    fn share(self) -> f64 {
        self.refused / self.sent.max(1.0)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number of requests")]
fn to_f64(requests: u64) -> f64 {
    requests as f64
}

/// The least share of chance: rarer refusals are as many as a limit causes that is tested now and then. The largest one:
/// of two accounts behind one key that take turns, half of the requests meet an exhausted one. Of programs that share
/// an account and take each other's use for chance, the one with the largest share would send ever more.
const LEAST: f64 = 0.005;
const MOST: f64 = 0.6;

/// The part of other requests that a limit refuses, from which it is to be noticed: growth that exceeds a limit by this
/// part is an event, as it is at the end of a cycle without chance.
const EXCESS: f64 = 0.15;

/// The log-likelihood ratio from which a share is larger than known: one in 50, since an event costs some percent of a
/// rate for seconds. For refusals in a row, one in 400, since every refusal begins such a row.
const THRESHOLD: f64 = 4.0;
const RUN: f64 = 6.0;

/// The weight of earlier requests after another refusal, so that six or seven refusals count.
const FADED: f64 = 0.85;

/// Requests after chance was shown that confirm it: three refusals of a share of 2 %.
const CONFIRMED: u64 = 150;

/// The factor of a share that was shown, up to which it is followed: a limit that is exceeded more and more would pass
/// for chance otherwise.
const FOLLOWED: f64 = 1.3;

/// Requests of which the share is known: ten refusals of a share of 2 %.
const LONGEST: f64 = 500.0;

/// Seconds in which half of a share that was shown is forgotten: providers are full for minutes. One that is doubtful
/// has to be seen again.
const REMEMBERED: f64 = 300.0;
const REMEMBERED_DOUBTFUL: f64 = 30.0;
