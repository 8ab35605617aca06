//! Decides from the results of a job's requests whether the server has an outage.

use std::time::Duration;

use crate::terminal::Span;
use tollgate::Timestamp;

/// The state of the server: in order, or in an outage that pauses the job.
///
/// | state | what goes out | ends |
/// |---|---|---|
/// | in order | every request | with 5 failures in a row |
/// | outage | one request at a time, the probe, after a growing delay | with an answer to a probe |
///
/// A failure counts as one of the 5 if it can be the server's. A request that fails while others are
/// answered is at fault itself: it counts no more. A failure that may be the request's own counts once
/// for each request.
#[derive(Debug, Default)]
pub(super) struct Outage {
    state: State,
    /// Goes up with each change of the state: results of requests that were sent before don't count.
    epoch: u64,
    answers: u64,
    notices: Vec<String>,
}

#[derive(Debug)]
enum State {
    /// The lines whose requests have failed since the last answer.
    InOrder {
        failed: Vec<u64>,
    },
    Paused {
        since: Timestamp,
        cause: String,
        next_probe: Timestamp,
        delay: Duration,
    },
}

/// The failures of one line.
#[derive(Debug, Default)]
pub(super) struct Failures {
    line: u64,
    epoch: u64,
    /// How many answers there had been when it failed first.
    first: Option<u64>,
    /// Why its last failure is no failure of the line.
    excused: Option<Cause>,
}

/// What a failure says of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// No request can be at fault: no connection, 503, 529.
    Server,
    /// Either the server or the request: another 5xx, a broken connection, no answer in time.
    Unclear,
    /// Something is there, but answers no requests now: 429 and the like, or a success without an answer.
    Busy,
}

impl Failures {
    pub(super) fn of_line(line: u64) -> Self {
        Self { line, ..Self::default() }
    }

    /// Why the last failure uses up no try of the line; `None` if it does.
    pub(super) fn excused(&self) -> Option<Cause> {
        self.excused
    }
}

impl Outage {
    pub(super) fn is_paused(&self) -> bool {
        matches!(self.state, State::Paused { .. })
    }

    /// When the next probe may be sent; the epoch while all is in order.
    pub(super) fn next_probe(&self) -> Timestamp {
        match &self.state {
            State::InOrder { .. } => Timestamp::UNIX_EPOCH,
            State::Paused { next_probe, .. } => *next_probe,
        }
    }

    /// Notes that a request is sent.
    pub(super) fn sent(&self, failures: &mut Failures) {
        failures.epoch = self.epoch;
        failures.excused = None;
    }

    /// Notes an answer. Returns whether it has ended an outage.
    pub(super) fn answered(&mut self, failures: &Failures, now: Timestamp) -> bool {
        self.answers += 1;
        if failures.epoch != self.epoch {
            return false;
        }
        let in_order = State::InOrder { failed: Vec::new() };
        match std::mem::replace(&mut self.state, in_order) {
            State::InOrder { .. } => false,
            State::Paused { since, .. } => {
                self.epoch += 1;
                let span = words(since, now);
                self.notices.push(format!("resumed: the server responds again after {span}"));
                true
            }
        }
    }

    /// Notes a failure. Returns whether an outage has begun with it.
    pub(super) fn failed(
        &mut self,
        failures: &mut Failures,
        cause: Cause,
        message: impl FnOnce() -> String,
        now: Timestamp,
    ) -> bool {
        let is_old = failures.epoch != self.epoch;
        match &mut self.state {
            _ if is_old => failures.excused = Some(cause),
            State::Paused { cause: last, next_probe, delay, .. } => {
                failures.excused = Some(cause);
                if now >= *next_probe {
                    *last = message();
                    *delay = (*delay * 2).min(LONGEST_DELAY);
                    *next_probe = now + *delay;
                }
            }
            State::InOrder { .. } if cause == Cause::Busy => {}
            State::InOrder { failed } => {
                let first = *failures.first.get_or_insert(self.answers);
                let is_own = first < self.answers
                    || (cause == Cause::Unclear && failed.contains(&failures.line));
                if !is_own {
                    failed.push(failures.line);
                }
                if failed.len() >= IN_A_ROW {
                    failures.excused = Some(cause);
                    self.pause(message(), now);
                    return true;
                }
            }
        }
        false
    }

    fn pause(&mut self, cause: String, now: Timestamp) {
        self.notices.push(format!(
            "paused: {IN_A_ROW} consecutive requests failed ({cause}); probing with one request at \
             a time until the server responds"
        ));
        self.epoch += 1;
        let next_probe = now + FIRST_DELAY;
        self.state = State::Paused { since: now, cause, next_probe, delay: FIRST_DELAY };
    }

    /// Why a job that waits no longer than `most` for the server ends now, if it does.
    pub(super) fn give_up(&self, most: Duration, now: Timestamp) -> Option<String> {
        match &self.state {
            State::Paused { since, cause, .. } if now - *since >= most => {
                let span = words(*since, now);
                Some(format!(
                    "gave up: the server has not responded for {span} ({cause}); results so far are \
                     saved: run the same command again to continue, or raise --give-up-after"
                ))
            }
            _ => None,
        }
    }

    pub(super) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }
}

impl Default for State {
    fn default() -> Self {
        Self::InOrder { failed: Vec::new() }
    }
}

fn words(since: Timestamp, now: Timestamp) -> String {
    Span::of(now - since).to_string()
}

/// How many failures in a row are an outage.
const IN_A_ROW: usize = 5;
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_unix_secs(second)
    }

    fn sent(outage: &Outage, line: u64) -> Failures {
        let mut failures = Failures::of_line(line);
        outage.sent(&mut failures);
        failures
    }

    fn fail(outage: &mut Outage, failures: &mut Failures, cause: Cause, now: Timestamp) -> bool {
        outage.sent(failures);
        outage.failed(failures, cause, || "HTTP 500".to_owned(), now)
    }

    /// An outage since second 10.
    fn paused() -> Outage {
        let mut outage = Outage::default();
        for line in 1..=5 {
            fail(&mut outage, &mut Failures::of_line(line), Cause::Server, at(10));
        }
        assert!(outage.is_paused());
        outage
    }

    #[test]
    fn five_failures_in_a_row_pause_the_job() {
        for cause in [Cause::Server, Cause::Unclear] {
            let mut outage = Outage::default();
            for line in 1..=4 {
                let mut failures = Failures::of_line(line);
                assert!(!fail(&mut outage, &mut failures, cause, at(0)));
                assert_eq!(failures.excused(), None);
            }
            let mut last = Failures::of_line(5);
            assert!(fail(&mut outage, &mut last, cause, at(0)));
            assert_eq!((outage.is_paused(), last.excused()), (true, Some(cause)));
            let notices = outage.take_notices();
            assert!(notices[0].starts_with("paused: 5 consecutive requests"), "{notices:?}");
            assert!(notices[0].contains("HTTP 500"), "{notices:?}");
        }
    }

    #[test]
    fn an_answer_between_failures_keeps_the_job_going() {
        let mut outage = Outage::default();
        for line in 1..=20 {
            assert!(!fail(&mut outage, &mut Failures::of_line(line), Cause::Server, at(0)));
            if line % 4 == 0 {
                let answered = sent(&outage, 100 + line);
                assert!(!outage.answered(&answered, at(0)));
            }
        }
        assert_eq!(outage.take_notices(), [""; 0]);
    }

    #[test]
    fn one_line_that_fails_alone_pauses_only_if_the_server_is_at_fault() {
        let (mut outage, mut line) = (Outage::default(), Failures::of_line(1));
        for _ in 0..100 {
            assert!(!fail(&mut outage, &mut line, Cause::Unclear, at(0)));
        }
        let mut outage = Outage::default();
        let paused = (0..5).any(|_| fail(&mut outage, &mut line, Cause::Server, at(0)));
        assert!(paused);
    }

    #[test]
    fn lines_that_failed_while_others_were_answered_never_pause() {
        let mut outage = Outage::default();
        let mut bad: Vec<_> = (0..20).map(Failures::of_line).collect();
        for line in &mut bad {
            fail(&mut outage, line, Cause::Unclear, at(0));
            let answered = sent(&outage, 100);
            outage.answered(&answered, at(0));
        }
        for _ in 0..5 {
            for line in &mut bad {
                assert!(!fail(&mut outage, line, Cause::Unclear, at(0)));
                assert_eq!(line.excused(), None);
            }
        }
    }

    #[test]
    fn a_busy_answer_neither_pauses_nor_resumes() {
        let (mut outage, mut line) = (Outage::default(), Failures::of_line(1));
        for _ in 0..100 {
            assert!(!fail(&mut outage, &mut line, Cause::Busy, at(0)));
        }
        assert_eq!(line.excused(), None);
        let mut outage = paused();
        fail(&mut outage, &mut line, Cause::Busy, at(20));
        assert_eq!((outage.is_paused(), line.excused()), (true, Some(Cause::Busy)));
    }

    #[test]
    fn probes_that_fail_are_sent_ever_later_up_to_30_s() {
        let (mut outage, mut now) = (paused(), at(10));
        let mut delays = Vec::new();
        for line in 0..8 {
            delays.push((outage.next_probe() - now).as_secs());
            now = outage.next_probe();
            let mut failures = Failures::of_line(line);
            fail(&mut outage, &mut failures, Cause::Unclear, now);
            assert_eq!(failures.excused(), Some(Cause::Unclear));
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn results_of_requests_from_before_the_outage_change_nothing() {
        let mut outage = Outage::default();
        let (mut early, answered) = (sent(&outage, 90), sent(&outage, 91));
        for line in 1..=5 {
            fail(&mut outage, &mut Failures::of_line(line), Cause::Server, at(0));
        }
        let next = outage.next_probe();
        assert!(!outage.answered(&answered, next));
        assert!(!outage.failed(&mut early, Cause::Unclear, String::new, next));
        assert_eq!((outage.is_paused(), outage.next_probe()), (true, next));
        assert_eq!(early.excused(), Some(Cause::Unclear), "the outage is to blame");
    }

    #[test]
    fn an_answered_probe_resumes_the_job_and_tells_how_long_it_took() {
        let mut outage = paused();
        outage.take_notices();
        let probe = sent(&outage, 7);
        assert!(outage.answered(&probe, at(41)));
        assert!(!outage.is_paused());
        assert_eq!(outage.take_notices(), ["resumed: the server responds again after 31s"]);
    }

    #[test]
    fn an_outage_that_lasts_too_long_is_given_up_with_its_cause() {
        let outage = paused();
        assert_eq!(outage.give_up(Duration::from_secs(60), at(69)), None);
        let why = outage.give_up(Duration::from_secs(60), at(70)).expect("it is over");
        assert!(why.contains("for 1m (HTTP 500)") && why.contains("--give-up-after"), "{why}");
        assert_eq!(Outage::default().give_up(Duration::ZERO, Timestamp::MAX), None);
    }
}
