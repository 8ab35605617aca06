//! Detects outages of the server from the results of requests.

use std::time::Duration;

use crate::terminal::HumanDuration;
use tollgate::Timestamp;

/// The state of the server: normal, or an outage that pauses the job.
///
/// | state | requests sent | ends |
/// |---|---|---|
/// | normal | all | after 5 consecutive failures |
/// | outage | one probe at a time, after a growing delay | after a response to a probe |
///
/// A failure counts if the server may be the cause. A request that fails while others succeed is
/// the cause itself and doesn't count. A failure that may be caused by the request counts once per
/// request.
#[derive(Debug, Default)]
pub(super) struct Outage {
    state: State,
    /// Incremented with each change of the state; results of requests sent before don't count.
    epoch: u64,
    answers: u64,
    notices: Vec<String>,
}

#[derive(Debug)]
enum State {
    /// The lines that have failed since the last response.
    Normal {
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
pub(super) struct LineFailures {
    line: u64,
    epoch: u64,
    /// The number of responses before the first failure.
    first: Option<u64>,
    /// The cause if the last failure doesn't count against the line.
    excused: Option<Cause>,
}

/// The cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The server: no connection, 503, 529.
    Server,
    /// The server or the request: another 5xx, a broken connection, a timeout.
    Unclear,
    /// The server is running but busy: 429 and the like, or a success without a valid body.
    Busy,
}

impl LineFailures {
    pub(super) fn of_line(line: u64) -> Self {
        Self { line, ..Self::default() }
    }

    /// Returns the cause if the last failure doesn't use up a retry of the line.
    pub(super) fn excused(&self) -> Option<Cause> {
        self.excused
    }
}

impl Outage {
    pub(super) fn is_paused(&self) -> bool {
        matches!(self.state, State::Paused { .. })
    }

    /// Returns the time at which the next probe may be sent; the Unix epoch if there is no outage.
    pub(super) fn next_probe(&self) -> Timestamp {
        match &self.state {
            State::Normal { .. } => Timestamp::UNIX_EPOCH,
            State::Paused { next_probe, .. } => *next_probe,
        }
    }

    /// Records that a request is sent.
    pub(super) fn sent(&self, failures: &mut LineFailures) {
        failures.epoch = self.epoch;
        failures.excused = None;
    }

    /// Records a response. Returns true if it ends an outage.
    pub(super) fn answered(&mut self, failures: &LineFailures, now: Timestamp) -> bool {
        self.answers += 1;
        if failures.epoch != self.epoch {
            return false;
        }
        let normal = State::Normal { failed: Vec::new() };
        match std::mem::replace(&mut self.state, normal) {
            State::Normal { .. } => false,
            State::Paused { since, .. } => {
                self.epoch += 1;
                let span = duration_text(since, now);
                self.notices.push(format!("resumed: the server responds again after {span}"));
                true
            }
        }
    }

    /// Records a failure. Returns true if it starts an outage.
    pub(super) fn failed(
        &mut self,
        failures: &mut LineFailures,
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
            State::Normal { .. } if cause == Cause::Busy => {}
            State::Normal { failed } => {
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

    /// Returns the reason to give up if an outage has lasted for at least `longest`.
    pub(super) fn give_up(&self, longest: Duration, now: Timestamp) -> Option<String> {
        match &self.state {
            State::Paused { since, cause, .. } if now - *since >= longest => {
                let span = duration_text(*since, now);
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
        Self::Normal { failed: Vec::new() }
    }
}

fn duration_text(since: Timestamp, now: Timestamp) -> String {
    HumanDuration::of(now - since).to_string()
}

/// The number of consecutive failures that start an outage.
const IN_A_ROW: usize = 5;
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_unix_secs(second)
    }

    fn sent(outage: &Outage, line: u64) -> LineFailures {
        let mut failures = LineFailures::of_line(line);
        outage.sent(&mut failures);
        failures
    }

    fn fail(
        outage: &mut Outage,
        failures: &mut LineFailures,
        cause: Cause,
        now: Timestamp,
    ) -> bool {
        outage.sent(failures);
        outage.failed(failures, cause, || "HTTP 500".to_owned(), now)
    }

    /// Returns an outage that started at second 10.
    fn paused() -> Outage {
        let mut outage = Outage::default();
        for line in 1..=5 {
            fail(&mut outage, &mut LineFailures::of_line(line), Cause::Server, at(10));
        }
        assert!(outage.is_paused());
        outage
    }

    #[test]
    fn five_consecutive_failures_pause_job() {
        for cause in [Cause::Server, Cause::Unclear] {
            let mut outage = Outage::default();
            for line in 1..=4 {
                let mut failures = LineFailures::of_line(line);
                assert!(!fail(&mut outage, &mut failures, cause, at(0)));
                assert_eq!(failures.excused(), None);
            }
            let mut last = LineFailures::of_line(5);
            assert!(fail(&mut outage, &mut last, cause, at(0)));
            assert_eq!((outage.is_paused(), last.excused()), (true, Some(cause)));
            let notices = outage.take_notices();
            assert!(notices[0].starts_with("paused: 5 consecutive requests"), "{notices:?}");
            assert!(notices[0].contains("HTTP 500"), "{notices:?}");
        }
    }

    #[test]
    fn response_between_failures_prevents_pause() {
        let mut outage = Outage::default();
        for line in 1..=20 {
            assert!(!fail(&mut outage, &mut LineFailures::of_line(line), Cause::Server, at(0)));
            if line % 4 == 0 {
                let answered = sent(&outage, 100 + line);
                assert!(!outage.answered(&answered, at(0)));
            }
        }
        assert_eq!(outage.take_notices(), [""; 0]);
    }

    #[test]
    fn single_failing_line_pauses_only_for_server_errors() {
        let (mut outage, mut line) = (Outage::default(), LineFailures::of_line(1));
        for _ in 0..100 {
            assert!(!fail(&mut outage, &mut line, Cause::Unclear, at(0)));
        }
        let mut outage = Outage::default();
        let paused = (0..5).any(|_| fail(&mut outage, &mut line, Cause::Server, at(0)));
        assert!(paused);
    }

    #[test]
    fn lines_failing_beside_successes_never_pause() {
        let mut outage = Outage::default();
        let mut bad: Vec<_> = (0..20).map(LineFailures::of_line).collect();
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
    fn busy_response_neither_pauses_nor_resumes() {
        let (mut outage, mut line) = (Outage::default(), LineFailures::of_line(1));
        for _ in 0..100 {
            assert!(!fail(&mut outage, &mut line, Cause::Busy, at(0)));
        }
        assert_eq!(line.excused(), None);
        let mut outage = paused();
        fail(&mut outage, &mut line, Cause::Busy, at(20));
        assert_eq!((outage.is_paused(), line.excused()), (true, Some(Cause::Busy)));
    }

    #[test]
    fn failed_probes_back_off_up_to_30_seconds() {
        let (mut outage, mut now) = (paused(), at(10));
        let mut delays = Vec::new();
        for line in 0..8 {
            delays.push((outage.next_probe() - now).as_secs());
            now = outage.next_probe();
            let mut failures = LineFailures::of_line(line);
            fail(&mut outage, &mut failures, Cause::Unclear, now);
            assert_eq!(failures.excused(), Some(Cause::Unclear));
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn results_sent_before_outage_are_ignored() {
        let mut outage = Outage::default();
        let (mut early, answered) = (sent(&outage, 90), sent(&outage, 91));
        for line in 1..=5 {
            fail(&mut outage, &mut LineFailures::of_line(line), Cause::Server, at(0));
        }
        let next = outage.next_probe();
        assert!(!outage.answered(&answered, next));
        assert!(!outage.failed(&mut early, Cause::Unclear, String::new, next));
        assert_eq!((outage.is_paused(), outage.next_probe()), (true, next));
        assert_eq!(early.excused(), Some(Cause::Unclear), "the outage is the cause");
    }

    #[test]
    fn successful_probe_resumes_job_and_reports_duration() {
        let mut outage = paused();
        outage.take_notices();
        let probe = sent(&outage, 7);
        assert!(outage.answered(&probe, at(41)));
        assert!(!outage.is_paused());
        assert_eq!(outage.take_notices(), ["resumed: the server responds again after 31s"]);
    }

    #[test]
    fn long_outage_gives_up_with_cause() {
        let outage = paused();
        assert_eq!(outage.give_up(Duration::from_secs(60), at(69)), None);
        let why = outage.give_up(Duration::from_secs(60), at(70)).expect("the outage is too long");
        assert!(why.contains("for 1m (HTTP 500)") && why.contains("--give-up-after"), "{why}");
        assert_eq!(Outage::default().give_up(Duration::ZERO, Timestamp::MAX), None);
    }
}
