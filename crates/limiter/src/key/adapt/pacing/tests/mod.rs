//! The controller of one key, by single requests and answers.

use std::time::Duration;

use proptest::prelude::*;

use super::reaction::PacingReaction;
use super::*;
use crate::answer::learned::LearnedLimit;
use crate::engine::Wait;
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

mod cases;
mod chance;
mod configured;
mod levels;
mod properties;
mod provider;
mod random;
mod scenario;
mod short_jobs;
mod simulation;
mod sweep;
mod trial;

const START: Timestamp = Timestamp::from_unix_secs(1_000_000);
const MS: Duration = Duration::from_millis(1);

fn requests(per_second: f64, is_ceiling: bool) -> ConfiguredRate {
    let burst = per_second * 60.0;
    ConfiguredRate { dimension: Dimension::Requests, per_second, burst, is_ceiling }
}

/// Sends as many requests as are admitted at one time.
fn send_all(controller: &mut Controller, now: Timestamp) -> usize {
    let cost = Cost::new();
    (0..10_000)
        .take_while(|_| {
            let is_admitted = controller.check(&cost, now).is_ok();
            if is_admitted {
                controller.sent(&cost, now);
            }
            is_admitted
        })
        .count()
}

fn refuse(
    controller: &mut Controller,
    sent_at: Timestamp,
    retry_after: Option<Duration>,
    now: Timestamp,
) -> PacingReaction {
    let refusal = RateRefusal { sent_at, cost: &Cost::new(), retry_after, dimension: None };
    let reaction = controller.refused(&refusal, now);
    controller.ended(sent_at);
    reaction
}

#[test]
fn slow_start_begins_with_ten_requests() {
    let mut controller = Controller::new([requests(20.0, true)], START);
    assert_eq!(send_all(&mut controller, START), 10);
    let blocked = controller.check(&Cost::new(), START).unwrap_err();
    assert_eq!(blocked.wait, Wait::At(START + MS * 100));
}

#[test]
fn wait_is_exact_to_the_nanosecond() {
    let mut controller = Controller::new([requests(20.0, true)], START);
    send_all(&mut controller, START);
    refuse(&mut controller, START, Some(MS * 300), START + MS * 20);
    let blocked = controller.check(&Cost::new(), START + MS * 20).unwrap_err();
    let Wait::At(time) = blocked.wait else { panic!("{blocked:?}") };
    assert!(time > START + MS * 320, "{time}");
    assert_eq!(controller.check(&Cost::new(), time), Ok(()));
    assert!(controller.check(&Cost::new(), time - Duration::from_nanos(1)).is_err());
}

#[test]
fn refusals_of_one_flight_are_one_event() {
    let mut controller = Controller::new([requests(20.0, true)], START);
    send_all(&mut controller, START);
    let first = refuse(&mut controller, START, Some(MS * 300), START + MS * 20);
    let second = refuse(&mut controller, START, Some(MS * 300), START + MS * 25);
    assert!(first.is_event && !second.is_event);
    assert_eq!(second.until, first.until);
    assert_eq!(controller.events(), 1);
}

#[test]
fn request_set_aside_neither_pauses_nor_measures() {
    let mut controller = Controller::new([requests(20.0, true)], START);
    controller.sent(&Cost::new(), START);
    controller.set_aside(START, &Cost::new());
    controller.ended(START);
    assert_eq!((controller.events(), controller.learned(START).len()), (0, 0));
    assert!(send_all(&mut controller, START + Duration::from_secs(1)) > 1);
}

#[test]
fn restored_rate_is_used_and_reported() {
    let mut controller = Controller::new([requests(40.0, true)], START);
    let learned = LearnedLimit::new(Dimension::Requests, 20.0, START, 3);
    controller.restore(std::slice::from_ref(&learned), START);
    assert!(!controller.is_confirmed(START));
    let reported = controller.learned(START);
    assert_eq!((reported[0].amount, reported[0].events), (20.0, 3));
    assert!(send_all(&mut controller, START + Duration::from_secs(60)) <= 1);
}

#[test]
fn confirmed_key_is_paced_from_half_after_refusal() {
    let mut controller = Controller::after_confirmed([requests(20.0, true)], START);
    let sent_at = START - MS;
    let reaction = refuse(&mut controller, sent_at, None, START);
    assert!(reaction.is_event);
    assert_eq!(controller.learned(START)[0].amount, 10.0);
}

/// Sends requests at this interval as far as they are admitted; all are accepted after 10 ms.
fn accept_for(controller: &mut Controller, seconds: u64, interval: Duration) -> Timestamp {
    let (mut now, end) = (START, START + Duration::from_secs(seconds));
    while now < end {
        if controller.check(&Cost::new(), now).is_ok() {
            controller.sent(&Cost::new(), now);
            controller.accepted(now, now + MS * 10);
            controller.ended(now);
        }
        now += interval;
    }
    now
}

#[test]
fn limit_that_accepts_a_slow_start_is_confirmed() {
    let mut controller = Controller::new([requests(20.0, true)], START);
    let now = accept_for(&mut controller, 8, MS * 50);
    assert!(!controller.is_confirmed(now));
    let mut controller = Controller::new([requests(20.0, true)], START);
    let now = accept_for(&mut controller, 30, MS * 50);
    assert!(controller.is_confirmed(now));
}

#[test]
fn learned_rate_ends_once_configured_rate_and_burst_are_accepted() {
    let learned = LearnedLimit::new(Dimension::Requests, 20.0, START, 3);
    let is_confirmed = |burst: f64| {
        let limit = ConfiguredRate { burst, ..requests(20.0, true) };
        let mut controller = Controller::new([limit], START);
        controller.restore(std::slice::from_ref(&learned), START);
        let now = accept_for(&mut controller, 90, MS * 10);
        controller.is_confirmed(now)
    };
    assert!(is_confirmed(1.0));
    assert!(!is_confirmed(1_200.0));
}

/// Requests that are refused while the provider accepts none have used nothing of its limit.
#[test]
fn refusals_of_a_closure_are_not_measured_as_used() {
    let rate = |refused_in_closure: u32| {
        let mut controller = Controller::new([], START);
        let accept = |controller: &mut Controller, from: Duration| {
            for sent_at in (0..10).map(|i| START + from + MS * 100 * i) {
                controller.sent(&Cost::new(), sent_at);
                controller.accepted(sent_at, sent_at + MS * 10);
                controller.ended(sent_at);
            }
        };
        let event = |controller: &mut Controller, after: Duration| {
            controller.sent(&Cost::new(), START + after);
            refuse(controller, START + after, Some(MS * 100), START + after + MS * 10);
        };
        accept(&mut controller, Duration::ZERO);
        event(&mut controller, MS * 1_000);
        for refusal in 0..refused_in_closure {
            event(&mut controller, MS * (1_400 + 1_800 * refusal / refused_in_closure));
        }
        accept(&mut controller, MS * 3_400);
        event(&mut controller, MS * 4_400);
        controller.learned(START)[0].amount
    };
    let (few, many) = (rate(1), rate(17));
    assert!(many <= few, "{many} after many refusals, {few} after few");
}

/// However often a provider refuses, requests are sent at a quarter of the rate that it accepted in the last minute.
#[test]
fn learned_rate_keeps_a_quarter_of_what_was_accepted() {
    let mut controller = Controller::new([], START);
    controller.restore(&[LearnedLimit::new(Dimension::Requests, 20.0, START, 3)], START);
    let mut now = accept_for(&mut controller, 120, MS * 50);
    for _ in 0..10 {
        now += MS * 1_000;
        controller.sent(&Cost::new(), now);
        controller.accepted(now, now + MS * 10);
        controller.ended(now);
        now += MS * 500;
        controller.sent(&Cost::new(), now);
        let (cost, dimension) = (Cost::new(), Some(&Dimension::Requests));
        controller.refused(
            &RateRefusal { sent_at: now, cost: &cost, retry_after: None, dimension },
            now + MS,
        );
        controller.ended(now);
    }
    let accepted = (45.0 * 20.0 + 10.0) / 60.0;
    let rate = controller.learned(now)[0].amount;
    assert!((accepted / 4.0..accepted / 2.0).contains(&rate), "{rate} after {accepted} a second");
}

/// A call with any amounts and times.
#[derive(Debug, Clone)]
enum Call {
    Send { amount: u64 },
    Accept { back: usize },
    Refuse { back: usize, amount: u64, retry_after: Option<u64>, is_named: bool },
    Overload { back: usize, amount: u64 },
    Return { back: usize, amount: u64 },
    Rebase { seconds: u64 },
}

fn call() -> impl Strategy<Value = Call> {
    let amount = || prop_oneof![0..5_u64, Just(u64::MAX), any::<u64>()];
    let back = || 0..8_usize;
    prop_oneof![
        4 => amount().prop_map(|amount| Call::Send { amount }),
        2 => back().prop_map(|back| Call::Accept { back }),
        2 => (back(), amount(), any::<Option<u64>>(), any::<bool>()).prop_map(
            |(back, amount, retry_after, is_named)| Call::Refuse { back, amount, retry_after, is_named }
        ),
        1 => (back(), amount()).prop_map(|(back, amount)| Call::Overload { back, amount }),
        1 => (back(), amount()).prop_map(|(back, amount)| Call::Return { back, amount }),
        1 => any::<u64>().prop_map(|seconds| Call::Rebase { seconds }),
    ]
}

proptest! {
    /// No amounts, times or order of calls cause a panic or a rate that isn't a number, and a wait is exact.
    #[test]
    fn any_calls_keep_rates_finite(
        calls in prop::collection::vec((call(), prop_oneof![0..2_000_u64, any::<u64>()]), 1..60),
        told in prop_oneof![Just(None), (1e-3..1e12_f64).prop_map(Some)],
    ) {
        let mut now = START;
        let told = told.map(|rate| requests(rate, rate < 1e3));
        let mut controller = Controller::new(told, now);
        let mut sent = vec![now];
        for (call, elapsed) in calls {
            now = Timestamp::from_nanos(now.as_nanos().saturating_add(elapsed));
            let at = |back: usize| sent[sent.len().saturating_sub(back + 1)];
            match call {
                Call::Send { amount } => {
                    controller.sent(&Cost::new().tokens(amount), now);
                    sent.push(now);
                }
                Call::Accept { back } => {
                    controller.accepted(at(back), now);
                    controller.ended(at(back));
                }
                Call::Refuse { back, amount, retry_after, is_named } => {
                    let cost = Cost::new().tokens(amount);
                    let retry_after = retry_after.map(Duration::from_millis);
                    let dimension = is_named.then_some(&Dimension::Tokens);
                    let refusal = RateRefusal { sent_at: at(back), cost: &cost, retry_after, dimension };
                    controller.refused(&refusal, now);
                    controller.ended(at(back));
                }
                Call::Overload { back, amount } => {
                    controller.set_aside(at(back), &Cost::new().tokens(amount));
                    controller.ended(at(back));
                }
                Call::Return { back, amount } => {
                    controller.returned(&Cost::new().tokens(amount), at(back));
                }
                Call::Rebase { seconds } => {
                    controller.rebase(Duration::from_secs(seconds));
                    now -= Duration::from_secs(seconds);
                }
            }
            for learned in controller.learned(START) {
                prop_assert!(learned.amount.is_finite() && learned.amount > 0.0, "{learned:?}");
            }
            let cost = Cost::new().tokens(7);
            if let Err(blocked) = controller.check(&cost, now)
                && let Wait::At(time) = blocked.wait
            {
                prop_assert!(time > now);
                prop_assert_eq!(controller.check(&cost, time), Ok(()));
            }
        }
    }
}

/// The requests that a limit per window accepts are those up to the closure, without the one that ends it.
#[test]
fn probe_that_ends_a_long_closure_measures_no_rate() {
    let mut controller = Controller::new([requests(10.0, false)], START);
    let (mut now, mut delays) = (START, [60, 300].into_iter());
    let mut accepted = 0;
    while now < START + Duration::from_secs(900) {
        if controller.check(&Cost::new(), now).is_ok() {
            controller.sent(&Cost::new(), now);
            let (sent_at, answered_at) = (now, now + MS * 20);
            match delays.next() {
                Some(delay) => {
                    refuse(&mut controller, sent_at, Some(MS * delay * 1_000), answered_at);
                }
                None => {
                    controller.accepted(sent_at, answered_at);
                    controller.ended(sent_at);
                    accepted += 1;
                }
            }
        }
        now += MS * 100;
    }
    assert!(accepted > 1_000, "{accepted} in 598 s");
}
