use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::answer::stats::Outage;
use crate::engine::Wait;
use crate::event::{Fault, RateLimited};
use crate::key::denial::Denial;
use crate::refusal::Refusal;
use crate::timestamp::Timestamp;

/// Stops a key whose requests fail one after the other, and tests with one request at a time whether they are accepted
/// again. A single request never opens it, unless the server can't be reached.
#[derive(Debug, Default)]
pub(super) struct Circuit {
    /// The numbers of the requests that have failed since one was accepted, one for each failure that counts.
    failed: SmallVec<[u64; IN_A_ROW]>,
    open: Option<Open>,
    /// The end of the last outage. Failures of requests that were sent before show nothing.
    closed_at: Timestamp,
    /// The end of the time in which the provider has refused the account and accepted other requests, as where several
    /// accounts share a key.
    mixed_until: Timestamp,
}

/// The pause of a key after a failure.
#[derive(Debug)]
pub(super) struct Pause {
    pub(super) until: Timestamp,
    /// `true` if the failure has opened the circuit.
    pub(super) is_new: bool,
}

/// A circuit that stops requests.
#[derive(Debug)]
struct Open {
    cause: Cause,
    /// An accepted request that was sent at this time or later closes it.
    since: Timestamp,
    /// The next request is sent at this time, alone.
    until: Timestamp,
    delay: Duration,
    /// The time at which that request was sent.
    probe: Option<Timestamp>,
}

#[derive(Debug)]
enum Cause {
    /// Nothing is accepted. The last failure.
    Down(Arc<Refusal>),
    /// One request was refused for its account; the next one shows whether others are.
    Suspected,
    /// The account is refused.
    Account(Arc<Refusal>),
}

impl Circuit {
    /// Returns why no request is sent at this time.
    pub(super) fn check(&self, at: Timestamp) -> Result<(), Denial> {
        let Some(open) = &self.open else { return Ok(()) };
        let is_testing = open.probe.is_some();
        match open.cause {
            _ if at >= open.until && !is_testing => Ok(()),
            Cause::Account(_) => Err(Denial::Account),
            _ if is_testing => Err(Denial::CoolingDown(Wait::Unknown)),
            _ => Err(Denial::CoolingDown(Wait::At(open.until))),
        }
    }

    /// Returns the refusal with which waiting requests are answered.
    pub(super) fn account(&self) -> Option<&Arc<Refusal>> {
        match &self.open.as_ref()?.cause {
            Cause::Account(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Returns the outage of the server, if there is one.
    pub(super) fn outage(&self) -> Option<Outage> {
        let open = self.open.as_ref()?;
        let Cause::Down(last) = &open.cause else { return None };
        Some(Outage { since: open.since, status: last.status, text: last.text.clone() })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.open.is_none()
    }

    /// Returns whether no request is stopped, or none has tested the server for a while.
    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        let is_unused = |open: &Open| open.probe.is_none() && now - open.until > UNUSED_FOR;
        self.open.as_ref().is_none_or(is_unused)
    }

    /// Counts a request that is sent.
    pub(super) fn sent(&mut self, now: Timestamp) {
        if let Some(open) = self.open.as_mut().filter(|open| open.until <= now) {
            open.probe.get_or_insert(now);
        }
    }

    /// Counts the end of a request. A test that ended otherwise than by a refusal shows that requests are served; one
    /// that was never sent is repeated.
    pub(super) fn ended(&mut self, sent_at: Timestamp, was_sent: bool, now: Timestamp) {
        if let Some(open) = self.open.as_mut().filter(|open| open.is_probe(sent_at)) {
            open.probe = None;
            if was_sent && matches!(self.open.take(), Some(Open { cause: Cause::Down(_), .. })) {
                self.failed.clear();
                self.closed_at = now;
            }
        }
    }

    /// Lets another request test, since this one has no answer.
    pub(super) fn unanswered(&mut self, sent_at: Timestamp) {
        if let Some(open) = self.open.as_mut().filter(|open| open.is_probe(sent_at)) {
            open.probe = None;
        }
    }

    /// Counts an accepted request, whenever it was sent.
    pub(super) fn accepted(&mut self, sent_at: Timestamp, now: Timestamp) {
        self.failed.clear();
        match self.open.take_if(|open| sent_at >= open.since).map(|open| open.cause) {
            Some(Cause::Down(_)) => self.closed_at = now,
            Some(Cause::Suspected | Cause::Account(_)) => self.mixed_until = now + MIXED_FOR,
            None => {}
        }
    }

    /// Counts a failure for lack of capacity. Returns the pause that it starts or prolongs.
    pub(super) fn failed(
        &mut self,
        failure: &RateLimited,
        sent_at: Timestamp,
        now: Timestamp,
    ) -> Option<Pause> {
        if sent_at < self.closed_at {
            return None;
        }
        self.count(failure);
        let stated = failure.refusal.delay.unwrap_or_default().min(LONGEST_STATED);
        let down = || Cause::Down(Arc::new(failure.refusal.clone()));
        // The test whether others are refused, too, shows that nothing is known of the account.
        let is_suspected =
            |open: &mut Open| matches!(open.cause, Cause::Suspected) && open.is_probe(sent_at);
        self.open.take_if(is_suspected);
        match &mut self.open {
            Some(open) if open.is_probe(sent_at) => {
                let longest = match open.cause {
                    Cause::Account(_) => LONGEST_OF_ACCOUNT,
                    Cause::Down(_) | Cause::Suspected => LONGEST,
                };
                if matches!(open.cause, Cause::Down(_)) {
                    open.cause = down();
                }
                open.again(stated, longest, now);
                Some(Pause { until: open.until, is_new: false })
            }
            Some(_) => None,
            None if self.failed.len() < IN_A_ROW => None,
            None => {
                let until = now + FIRST.max(stated);
                self.open = Some(Open { until, ..Open::new(down(), now, FIRST) });
                Some(Pause { until, is_new: true })
            }
        }
    }

    /// Counts a refusal of the account. Returns whether the account counts as refused from now on.
    pub(super) fn refused_account(
        &mut self,
        refused: &RateLimited,
        sent_at: Timestamp,
        now: Timestamp,
    ) -> bool {
        self.count(refused);
        let is_probe = self.open.as_ref().is_some_and(|open| open.is_probe(sent_at));
        let is_shown = match now < self.mixed_until {
            true => self.failed.len() >= MIXED_IN_A_ROW,
            false => self.failed.len() >= ACCOUNT_IN_A_ROW && is_probe,
        };
        match &mut self.open {
            Some(open @ Open { cause: Cause::Account(_), .. }) => {
                if is_probe {
                    open.again(Duration::ZERO, LONGEST_OF_ACCOUNT, now);
                }
                return false;
            }
            _ if is_shown => {
                let cause = Cause::Account(Arc::new(refused.refusal.clone()));
                self.open = Some(Open::new(cause, now, FIRST_OF_ACCOUNT));
                return true;
            }
            Some(open) if is_probe => open.probe = None,
            Some(_) => {}
            None if now >= self.mixed_until => {
                let open = Open::new(Cause::Suspected, now, Duration::ZERO);
                // One that was sent before shows nothing: the money may have lasted for it.
                self.open = Some(Open { since: sent_at, ..open });
            }
            None => {}
        }
        false
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        for time in [&mut self.mixed_until, &mut self.closed_at] {
            *time = time.saturating_sub(back);
        }
        if let Some(open) = &mut self.open {
            open.since = open.since.saturating_sub(back);
            open.until = open.until.saturating_sub(back);
            // Its end couldn't be told from that of another request.
            open.probe = None;
        }
    }

    /// Counts a failure unless the request may be its cause: one that fails again counts only if the provider says that
    /// it is overloaded, and other requests have failed too. One that had failed before others were accepted doesn't
    /// count at all.
    fn count(&mut self, failure: &RateLimited) {
        let number = failure.request.unwrap_or_default();
        let is_own = match failure.fault {
            Some(Fault::Unreachable) => false,
            _ if number == 0 || !self.failed.contains(&number) => failure.has_failed,
            None => self.failed.iter().all(|other| *other == number),
            Some(Fault::Unclear) => true,
        };
        if !is_own && self.failed.len() < MIXED_IN_A_ROW {
            self.failed.push(number);
        }
    }
}

impl Open {
    fn new(cause: Cause, now: Timestamp, delay: Duration) -> Self {
        Self { cause, since: now, until: now + delay, delay, probe: None }
    }

    /// Returns whether this request tests whether others are accepted.
    fn is_probe(&self, sent_at: Timestamp) -> bool {
        self.probe == Some(sent_at)
    }

    /// Waits for longer after a test that was refused too.
    fn again(&mut self, stated: Duration, longest: Duration, now: Timestamp) {
        self.delay = (self.delay * 2).min(longest);
        self.until = now + self.delay.max(stated);
        self.probe = None;
    }
}

/// The failures that stop a key.
const IN_A_ROW: usize = 5;

/// The refusals of different requests that show that the account is refused. The last one tested that.
const ACCOUNT_IN_A_ROW: usize = 3;

/// The same for refusals of an account while others behind the key are accepted.
const MIXED_IN_A_ROW: usize = 16;

const MIXED_FOR: Duration = Duration::from_secs(600);

/// The time until the first test, and the longest time between two.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// The time after which the state of a key that nothing tests any more can be dropped.
const UNUSED_FOR: Duration = Duration::from_secs(600);

/// The longest delay of an overloaded provider that is kept to, as in the official SDKs.
const LONGEST_STATED: Duration = Duration::from_secs(60);

/// The time for which waiting requests are answered before the first test, and the longest one.
const FIRST_OF_ACCOUNT: Duration = Duration::from_secs(10);
const LONGEST_OF_ACCOUNT: Duration = Duration::from_secs(300);
