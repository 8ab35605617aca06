//! Requests in quick succession after a refusal.

use std::time::Duration;

use smallvec::smallvec;

use super::super::send_log::Sums;
use super::super::trial::{Refused, Shown, Trials};
use super::super::{Controller, RateRefusal};
use crate::quota::Cost;
use crate::timestamp::Timestamp;

const START: Timestamp = Timestamp::from_unix_secs(1_700_000_000);

fn at(millis: u64) -> Timestamp {
    START + Duration::from_millis(millis)
}

/// A refusal at a rate of one request and 1,000 tokens a second, whose trial begins after 250 ms.
fn begun() -> Trials {
    let mut trials = Trials::default();
    begin(&mut trials);
    trials
}

fn begin(trials: &mut Trials) {
    let refused = Refused {
        at: START,
        requests_per_second: 1.0,
        rates: smallvec![1.0, 1_000.0],
        latency: 0.02,
        beside: 0,
        is_named: false,
    };
    trials.begin(refused, at(250));
}

/// Sends all requests of the trial. Returns their times.
fn send(trials: &mut Trials, tokens: f64) -> Vec<Timestamp> {
    let (mut times, mut now) = (Vec::new(), at(250));
    while let Some(time) = trials.ready_at(now) {
        let sent = times.len() as f64;
        let sums = |requests: f64| -> Sums { smallvec![requests, requests * tokens] };
        trials.sent(&sums(sent), &sums(sent + 1.0), time);
        times.push(time);
        now = time.add_nanos(1);
    }
    times
}

#[test]
fn accepted_requests_that_no_rate_explains_pass_the_trial() {
    let mut trials = begun();
    let times = send(&mut trials, 1_000.0);
    let passed: Vec<_> = times.iter().filter_map(|time| trials.accepted(*time)).collect();
    assert_eq!(passed, [(false, 1)], "of {} requests", times.len());
}

/// A limit of tokens that has refused a large request accepts small ones.
#[test]
fn accepted_requests_that_use_few_tokens_dont_pass_the_trial() {
    let mut trials = begun();
    let times = send(&mut trials, 50.0);
    assert!(times.iter().all(|time| trials.accepted(*time).is_none()));
}

#[test]
fn second_refusal_ends_the_trial() {
    let mut trials = begun();
    let times = send(&mut trials, 1_000.0);
    assert_eq!(trials.refused(START), Shown::NoTrial);
    assert_eq!(trials.refused(times[0]), Shown::Nothing);
    assert_eq!(trials.refused(times[1]), Shown::Limit);
    assert_eq!(trials.refused(times[2]), Shown::NoTrial);
    assert_eq!(trials.ready_at(at(300)), None);
}

/// A limit that is known costs little.
#[test]
fn trials_after_a_failed_one_are_fewer_and_end_with_the_first_refusal() {
    let mut trials = begun();
    let times = send(&mut trials, 1_000.0);
    trials.refused(times[0]);
    trials.refused(times[1]);
    for skipped in [3, 5, 9] {
        for _ in 0..skipped {
            begin(&mut trials);
            assert_eq!(trials.ready_at(at(250)), None);
        }
        begin(&mut trials);
        let times = send(&mut trials, 1_000.0);
        assert_eq!(trials.refused(times[0]), Shown::Limit);
    }
}

/// The refused request is sent again first. If it is refused alone, the key pauses, and the trial shows nothing.
#[test]
fn request_refused_for_itself_ends_the_trial() {
    let mut trials = begun();
    let first = trials.ready_at(at(250)).expect("a trial");
    trials.sent(&smallvec![0.0, 0.0], &smallvec![1.0, 10.0], first);
    trials.set_aside(first);
    assert_eq!(trials.ready_at(at(290)), None);
}

#[test]
fn request_that_was_never_sent_is_replaced() {
    let mut trials = begun();
    let sent = send(&mut trials, 1_000.0);
    trials.returned(sent[0]);
    let last = *sent.last().expect("requests");
    assert!(trials.ready_at(last.add_nanos(40_000_000)).is_some());
}

/// Sends a request at the first time at which it is admitted. Returns that.
fn send_next(controller: &mut Controller, now: Timestamp) -> Timestamp {
    let cost = Cost::new();
    let blocked = controller.check(&cost, now).map_err(|blocked| blocked.wait);
    let time = match blocked {
        Ok(()) => now,
        Err(crate::engine::Wait::At(time)) => time,
        Err(wait) => panic!("waits for {wait:?}"),
    };
    controller.sent(&cost, time);
    time
}

/// A long delay that the provider states is obeyed at once, also in a trial.
#[test]
fn long_retry_after_in_a_trial_pauses_the_key() {
    for (seconds, is_event) in [(None, false), (Some(1), false), (Some(45), true)] {
        let mut controller = Controller::new([], START);
        let cost = Cost::new();
        let refuse = |controller: &mut Controller, sent_at, seconds: Option<u64>| {
            let retry_after = seconds.map(Duration::from_secs);
            let refusal = RateRefusal { sent_at, cost: &cost, retry_after, dimension: None };
            let now = sent_at + Duration::from_millis(20);
            let reaction = controller.refused(&refusal, now);
            controller.ended(sent_at);
            (reaction, now)
        };
        let mut now = START;
        // The first refusal ends the start, and the second one comes below the measured rate.
        for accepted in [5, 1] {
            for _ in 0..accepted {
                now = send_next(&mut controller, now.add_nanos(1));
                controller.accepted(now, now);
                controller.ended(now);
            }
            now = send_next(&mut controller, now.add_nanos(1));
            now = refuse(&mut controller, now, None).1;
        }
        let tried = send_next(&mut controller, now);
        let (reaction, _) = refuse(&mut controller, tried, seconds);
        assert_eq!((reaction.is_event, reaction.is_chance), (is_event, !is_event), "{seconds:?}");
    }
}
